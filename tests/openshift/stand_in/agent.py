# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent's commands make (section 6 of behaviours.yml). As the real one, the initramfs carries the ignition file with all keys and the pull secret."""

from __future__ import annotations

import collections.abc as c
import gzip
import shutil
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import agent_config, assets, ignition, install_config
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.install_config import InstallConfig
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.settings import Settings
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.store import Asset, Value

CONFIG, HOSTS = "agentconfig.AgentConfig", "agentconfig.AgentHosts"
PXE, IMAGE = "image.AgentPXEFiles", "image.AgentImage"
TARGETS = {
    "pxe-files": ((PXE, assets.ADMIN, assets.PASSWORD), "PXE files created in: {0}/boot-artifacts"),
    "image": ((IMAGE, assets.ADMIN, assets.PASSWORD), "Generated ISO at {0}"),
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}
_SECRET = 0o600
#: Where cpio begins a file (the format newc), and pads to.
_MAGIC, _ALIGNED, _TRAILER = "070701", 4, "TRAILER!!!"


class AgentInstallation(assets.Installation):
    """The assets of an installation by agents: those of the others, with more checks, and what machines boot."""

    def __init__(self, settings: Settings, log: Log) -> None:
        super().__init__(settings, log)

    def assets(self) -> dict[str, Asset]:
        found = super().assets()
        secret = (assets.INSTALL_CONFIG, CONFIG, HOSTS, assets.PASSWORD, assets.COMMON, assets.OPENSHIFT, assets.ADMIN)
        more = [
            Asset("Agent Config", CONFIG, (), self._no_agent_config, (agent_config.FILE,), self._load_agent_config),
            Asset("Agent Hosts", HOSTS, (assets.INSTALL_CONFIG, CONFIG), self._hosts),
            Asset("Agent Installer PXE Files", PXE, (*secret, assets.certificate_type("root-ca")), self._pxe),
            Asset("Agent Installer ISO", IMAGE, (*secret, assets.certificate_type("root-ca")), self._image),
        ]
        return {**found, **{one.type: one for one in more}}

    def _load_config(self, found: Value) -> Value:
        value = super()._load_config(found)
        agent_config.check_install_config(self._config(value))
        return value

    def _no_agent_config(self, _parents: Value) -> Value:
        raise Refused(
            "missing rendezvousIP in agent-config, at least one host networkConfig, or at least one NMStateConfig manifest"
        )

    def _load_agent_config(self, found: Value) -> Value:
        return {
            agent_config.FILE: yaml.safe_dump(
                agent_config.load(found[agent_config.FILE].decode(errors="replace"))
            ).encode()
        }

    def _hosts(self, parents: Value) -> Value:
        for warning in agent_config.check_hosts(_agent(parents), self._config(parents)):
            self._log.warning(warning)
        return {"agent-hosts.yaml": yaml.safe_dump(_agent(parents).get("hosts", [])).encode()}

    def _ready(self, parents: Value) -> None:
        """What an image needs beside its inputs."""
        for number, host in enumerate(_agent(parents).get("hosts", [])):
            if host.get("networkConfig") and not shutil.which("nmstatectl"):
                raise Refused(
                    f"failed to validate network yaml for host {number}, install nmstate package, "
                    'exec: "nmstatectl": executable file not found in $PATH'
                )
        if self._settings.registry == "unreachable":
            raise Refused(f"failed to get base ISO: image {self._release.image} is not reachable")

    def _pxe(self, parents: Value) -> Value:
        self._ready(parents)
        machine = _machine(self._config(parents))
        name = f"boot-artifacts/agent.{machine}"
        files = {
            f"{name}-initrd.img": _initramfs(self._ignition(parents)),
            f"{name}-rootfs.img": b"A stand-in for the root file system of CoreOS.\n",
            f"{name}-vmlinuz": b"A stand-in for the kernel of CoreOS.\n",
        }
        base = _agent(parents).get("bootArtifactsBaseURL")
        if base:
            files[f"{name}.ipxe"] = _ipxe(base.rstrip("/"), machine).encode()
        return files

    def _image(self, parents: Value) -> Value:
        self._ready(parents)
        content = _initramfs(self._ignition(parents))
        return {f"agent.{_machine(self._config(parents))}.iso": b"A stand-in for an image of CoreOS.\n" + content}

    def _ignition(self, parents: Value) -> bytes:
        """With everything that the rendezvous host makes a cluster of."""
        config = self._config(parents)
        contents: dict[str, bytes] = {
            ignition.DOCKER_CONFIG: config.content["pullSecret"].encode(),
            "/etc/assisted/rendezvous-host.env": f"NODE_ZERO_IP={_agent(parents).get('rendezvousIP', '')}\n".encode(),
            "/etc/assisted/manifests/install-config.yaml": parents[install_config.FILE],
            "/etc/assisted/manifests/agent-config.yaml": parents[agent_config.FILE],
        }
        contents |= {
            f"/opt/agent/{path}": text
            for path, text in parents.items()
            if path.startswith(("tls/", "auth/", "manifests/", "openshift/"))
        }
        keys = [line for line in config.content.get("sshKey", "").splitlines() if line.strip()]
        return ignition.written(
            {
                "ignition": {"version": ignition.SPEC},
                "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": keys}]},
                "storage": {"files": [ignition.file(path, text, _SECRET) for path, text in contents.items()]},
            }
        )


def _agent(parents: Value) -> dict[str, t.Any]:
    content: dict[str, t.Any] = yaml.safe_load(parents[agent_config.FILE])
    return content


def _machine(config: InstallConfig) -> str:
    return _MACHINES[config.content["controlPlane"]["architecture"]]


def _ipxe(base: str, machine: str) -> str:
    arguments = "rw ignition.firstboot ignition.platform.id=metal"
    return (
        "#!ipxe\n"
        f"initrd --name initrd {base}/agent.{machine}-initrd.img\n"
        f"kernel {base}/agent.{machine}-vmlinuz initrd=initrd coreos.live.rootfs_url={base}/agent.{machine}-rootfs.img {arguments}\n"
        "boot\n"
    )


def _initramfs(config: bytes) -> bytes:
    """CoreOS's own, which is faked, and behind it an archive with config.ign."""
    return b"A stand-in for the initramfs of CoreOS.\n" + gzip.compress(_archive({"config.ign": config}), mtime=0)


def _archive(files: c.Mapping[str, bytes]) -> bytes:
    """cpio's format newc (cpio(5)): a header of 13 fields with eight digits each, name, content, each padded to four bytes."""

    def padded(content: bytes) -> bytes:
        return content + b"\0" * (-len(content) % _ALIGNED)

    archive = b""
    for number, (name, content) in enumerate({**files, _TRAILER: b""}.items(), 1):
        mode = 0 if name == _TRAILER else 0o100000 | _SECRET
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        header = _MAGIC + "".join(f"{field:08X}" for field in fields)
        archive += padded(header.encode() + name.encode() + b"\0") + padded(content)
    return archive


def ignition_in(image: bytes) -> bytes:
    """The ignition file in an initramfs or an image, for tests."""
    archive = gzip.decompress(image[image.index(b"\x1f\x8b\x08") :])
    size, name = int(archive[54:62], 16), int(archive[94:102], 16)
    start = 110 + name
    start += -start % _ALIGNED
    return archive[start : start + size]
