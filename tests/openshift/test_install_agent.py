# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""openshift_install for the agent-based installer: its inputs, what hosts boot from, and which of it holds keys."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import booting
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import agent
from ansible_collections.hwaccel.gpu.tests.openshift.test_install import EXTRA, Installation, config, predicted, refused


def inputs(machine: str = "amd64", **agent: t.Any) -> dict[str, t.Any]:
    worker = {"name": "worker", "replicas": 0, "architecture": machine}
    pools = config({"controlPlane.architecture": machine, "compute": [worker]})
    address = {"bootArtifactsBaseURL": "http://boot.example.com/ocp"}
    return {support.INSTALL_CONFIG: pools, support.AGENT_CONFIG: support.AGENT_BASE | address | agent, **EXTRA}


@pytest.mark.parametrize(("machine", "name"), [("amd64", "agent.x86_64"), ("arm64", "agent.aarch64")])
def test_what_hosts_boot_from_is_created_once(tmp_path: pathlib.Path, keys: str, machine: str, name: str) -> None:
    installation = Installation(tmp_path, keys)
    options: dict[str, t.Any] = {"method": "agent", "files": inputs(machine)}
    made = installation.run(**options)
    files = {f"boot-artifacts/{name}{part}" for part in ("-initrd.img", "-rootfs.img", "-vmlinuz", ".ipxe")}
    assert (made.values["row"], set(made.values["publishable"])) == (1, files)
    assert all(made.values["publishable"][one] == file_digest(installation.path / one) for one in files)
    assert made.values["secret"] == [f"boot-artifacts/{name}-initrd.img"]
    assert support.names(installation.path) >= {"auth/kubeconfig", "auth/kubeadmin-password"}
    again = installation.run(**options)
    assert (again.values["row"], again.changed, again.values["secret"]) == (2, False, made.values["secret"])
    predicted(installation, again, **options)


def test_boot_servers_get_these_files_and_know_which_one_holds_the_keys(tmp_path: pathlib.Path, keys: str) -> None:
    installation = Installation(tmp_path, keys)
    made = installation.run(method="agent", files=inputs()).values
    given = booting.read({"edge": {booting.INSTALLATION: made}})
    assert {one["path"]: one["checksum"] for one in given["artifacts"]} == {
        one["path"]: f"sha256:{file_digest(pathlib.Path(one['source']))}" for one in given["artifacts"]
    }
    for one in given["artifacts"]:
        content = pathlib.Path(one["source"]).read_bytes()
        holds = one["path"] == "edge/initramfs" and b"PRIVATE KEY" in b"".join(
            support.contents(json.loads(agent.ignition_in(content))).values()
        )
        assert one.get("secret", False) == holds, one["path"]


def test_other_hosts_are_other_inputs_and_an_altered_initramfs_is_not_published(
    tmp_path: pathlib.Path, keys: str
) -> None:
    installation = Installation(tmp_path, keys)
    installation.run(method="agent", files=inputs())
    others = inputs(hosts=support.AGENT_BASE["hosts"][::-1])
    refused(installation.run(method="agent", files=others), 5, "agent-config.yaml: hosts[0].hostname")
    initramfs = installation.path / "boot-artifacts" / "agent.x86_64-initrd.img"
    initramfs.write_bytes(initramfs.read_bytes() + b"x")
    refused(installation.run(method="agent", files=inputs()), 7, "agent.x86_64-initrd.img", "SHA-256")
