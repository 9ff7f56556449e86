# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bootstrap.ign: 108 files, ten units and the user core, with the modes, numbers and about the size of section 1 of behaviours.yml.

Known are names of certificates, manifests and most units. Names of other scripts and settings are fillers, in the right number and with the right modes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import ignition, kubeconfig, pki
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.install_config import InstallConfig

_OPT = "/opt/openshift"
_SECRET, _READABLE, _PROGRAM = 0o600, 0o644, 0o555
_SCRIPTS = (
    "approve-csr.sh",
    "bootkube.sh",
    "bootstrap-cluster-gather.sh",
    "bootstrap-service-record.sh",
    "bootstrap-verify-api-server-urls.sh",
    "crio-configure.sh",
    "installer-gather.sh",
    "installer-masters-gather.sh",
    "kubelet-pause-image.sh",
    "kubelet.sh",
    "node-image-overlay.sh",
    "node-image-pull.sh",
    "release-image-download.sh",
    "release-image.sh",
    "report-progress.sh",
    "wait-for-etcd.sh",
    "wait-for-ha-api.sh",
)
_IN_PLACE_SCRIPTS = ("bootstrap-in-place.sh", "install-to-disk.sh")
#: Lines of a filler in a script, so that a file is as large as a real one.
_LINES = 55
_IN_PLACE_LINES = 58
_SETTINGS = (
    "/etc/NetworkManager/conf.d/99-bootstrap.conf",
    "/etc/profile.d/proxy.sh",
    "/etc/systemd/system.conf.d/10-default-env.conf",
    f"{_OPT}/bootkube-config-overrides/kube-apiserver-config-overrides.yaml",
    f"{_OPT}/bootkube-config-overrides/kube-controller-manager-config-overrides.yaml",
    f"{_OPT}/bootkube-config-overrides/kube-scheduler-config-overrides.yaml",
)
_TEMPLATE = f"{_OPT}/original_cvo_overrides.patch"
#: Units by name: whether they are enabled, None without a word of it.
_UNITS = {
    "approve-csr.service": True,
    "bootkube.service": None,
    "chown-gatewayd-key.service": True,
    "crio-configure.service": None,
    "kubelet.service": True,
    "node-image-overlay.service": None,
    "progress.service": True,
    "release-image-pivot.service": None,
    "release-image.service": None,
}
_GATEWAY = "systemd-journal-gatewayd.socket"


@dataclasses.dataclass(frozen=True)
class Parts:
    """What the file is made of. tls: all certificates and keys. manifests: of both folders. key: public, for the user core."""

    config: InstallConfig
    tls: dict[str, bytes]
    manifests: dict[str, bytes]
    key: str
    in_place: bool = False


def bootstrap_ignition(parts: Parts) -> bytes:
    files = {entry["path"]: entry for entry in _files(parts)}
    users = [line for line in parts.config.content.get("sshKey", "").splitlines() if line.strip()]
    return ignition.written(
        {
            "ignition": {"version": ignition.SPEC},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [*users, parts.key]}]},
            "storage": {"files": list(files.values())},
            "systemd": {"units": _units(parts.in_place)},
        }
    )


def bundles(tls: dict[str, bytes]) -> dict[str, bytes]:
    """Authorities that machines trust. tls: all certificates."""
    return {
        f"tls/{bundle}.crt": b"".join(tls[f"tls/{name}.crt"] for name in names) for bundle, names in pki.BUNDLES.items()
    }


def _files(parts: Parts) -> list[dict[str, t.Any]]:
    """In their order: a later one with the path of an earlier one takes its place."""
    config = parts.config
    scripts = _SCRIPTS + _IN_PLACE_SCRIPTS * parts.in_place
    found = [ignition.file(f"/usr/local/bin/{name}", _script(name, parts.in_place), _PROGRAM) for name in scripts]
    found += [ignition.file(path, f"# A stand-in for {path}\n".encode(), _SECRET) for path in _SETTINGS]
    found += [
        ignition.file(_TEMPLATE, f"# A stand-in for {_TEMPLATE}\n".encode(), _READABLE),
        ignition.file("/etc/containers/registries.conf", _registries(config), _READABLE),
        ignition.appended("/etc/containers/containers.conf", b"[engine]\nnum_locks = 4096\n", _READABLE),
        ignition.appended("/etc/motd", b"This is the bootstrap node (a stand-in).\n", _READABLE),
        ignition.file(ignition.DOCKER_CONFIG, config.content["pullSecret"].encode(), _SECRET),
    ]
    found += [ignition.file(f"{_OPT}/{path}", content, _READABLE) for path, content in parts.manifests.items()]
    found += [ignition.file(f"{_OPT}/auth/{name}", text, _SECRET) for name, text in _kubeconfigs(parts).items()]
    found += _certificates(parts.tls)
    return found


def _certificates(tls: dict[str, bytes]) -> list[dict[str, t.Any]]:
    shown = {}
    for path, content in {**tls, **bundles(tls)}.items():
        name, _dot, suffix = path.removeprefix("tls/").rpartition(".")
        if name not in (pki.KEYS_KEPT_BACK if suffix == "key" else pki.KEPT_BACK):
            shown[path] = content
    return [ignition.file(f"{_OPT}/{path}", content, _SECRET) for path, content in shown.items()]


def _kubeconfigs(parts: Parts) -> dict[str, bytes]:
    tls, domain, name = parts.tls, parts.config.domain, parts.config.name
    authorities = bundles(tls)["tls/kube-apiserver-complete-server-ca-bundle.crt"]
    internal = f"https://api-int.{domain}:6443"

    def one(server: str, user: str, file: str) -> bytes:
        return kubeconfig.kubeconfig(name, server, user, authorities, tls[f"tls/{file}.crt"], tls[f"tls/{file}.key"])

    return {
        "kubeconfig": one(internal, "admin", "admin-kubeconfig-client"),
        "kubeconfig-kubelet": one(internal, "kubelet", "kubelet-client"),
        "kubeconfig-loopback": one("https://localhost:6443", "loopback", "admin-kubeconfig-client"),
    }


def _script(name: str, in_place: bool) -> bytes:
    """Lines that differ, as those of real scripts do."""
    lines = [
        f"# {hashlib.sha256(f'{name} {number}'.encode()).hexdigest()}"
        for number in range(_IN_PLACE_LINES if in_place else _LINES)
    ]
    return "\n".join(["#!/usr/bin/env bash", f"# A stand-in for {name}", *lines, ""]).encode()


def _registries(config: InstallConfig) -> bytes:
    entries = [
        *config.content.get("imageDigestSources", ()),
        *config.content.get("imageContentSources", ()),
    ]
    text = 'unqualified-search-registries = ["registry.access.redhat.com"]\n' + "".join(
        f'[[registry]]\nlocation = "{entry["source"]}"\n'
        + "".join(f'[[registry.mirror]]\nlocation = "{mirror}"\n' for mirror in entry.get("mirrors", ()))
        for entry in entries
    )
    return text.encode()


def _units(in_place: bool) -> list[dict[str, t.Any]]:
    found: list[dict[str, t.Any]] = []
    for name, enabled in sorted(_UNITS.items()):
        program = name.removesuffix(".service")
        contents = f"[Unit]\nDescription=A stand-in for {name}\n[Service]\nExecStart=/usr/local/bin/{program}.sh\n"
        found.append({"contents": contents, **({"enabled": True} if enabled else {}), "name": name})
    if in_place:
        found.append(
            {"contents": "[Unit]\nDescription=A stand-in\n", "enabled": True, "name": "install-to-disk.service"}
        )
    dropin = {"contents": "[Socket]\nListenStream=\nListenStream=19531\n", "name": "10-bootstrap.conf"}
    return [*found, {"dropins": [dropin], "enabled": True, "name": _GATEWAY}]
