# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that roles run on a RHEL 9, with all arguments and files, in their order: tests/boot/redhat/*.yml. Their results are simulated."""

from __future__ import annotations

import copy
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.boot.redhat.machine import ADDRESS, Task, written
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run, playbook

HERE = pathlib.Path(__file__).parent
ROLES = HERE.parents[1] / "roles"
CALLBACKS = ":".join(str(HERE.parent / folder / "callbacks") for folder in ("live/support", "boot/redhat"))
NETWORKS = {
    "hwaccel_machine_network": "192.0.2.0/24",
    "hwaccel_cluster_network": "10.128.0.0/14",
    "hwaccel_service_network": "172.30.0.0/16",
}
CLUSTER = {
    "hwaccel_distribution": "openshift",
    "hwaccel_domain": "ocp.example.com",
    "hwaccel_load_balancer_address": ADDRESS,
    "hwaccel_new_cluster": True,
    **NETWORKS,
}
#: A virtual machine, and a physical one.
MACHINES: dict[str, dict[str, dict[str, t.Any]]] = {
    "control_plane": {
        "master-0": {
            "hwaccel_address": "192.0.2.11",
            "hwaccel_mac": "52:54:00:77:00:11",
            "hwaccel_firmware": "bios",
            "hwaccel_install": True,
            "hwaccel_power_provider": "libvirt",
            "hwaccel_hypervisor": "server",
            "hwaccel_vm_bridge": "br0",
        }
    },
    "workers": {
        "worker-0": {
            "hwaccel_address": "192.0.2.21",
            "hwaccel_mac": "52:54:00:77:00:21",
            "hwaccel_firmware": "uefi",
            "hwaccel_install": True,
        }
    },
}
#: Additional arguments by playbook.
LIMITS = {"machine_boot": ("--limit", "localhost,ocp,server,master-0")}


@pytest.fixture
def files(tmp_path: pathlib.Path) -> pathlib.Path:
    """Files of the controller."""
    for name in ("kernel", "initramfs", "rootfs", "cluster.ign"):
        (tmp_path / name).write_text(name, encoding="ascii")
    return tmp_path


def run(role: str, group: str, variables: dict[str, t.Any], files: pathlib.Path) -> tuple[Run, list[Task]]:
    """A run of the role with a machine in this group, and its tasks on the machine, whose state results from all previous tasks."""
    record = files / "tasks"
    before = len(record.read_text(encoding="utf-8").splitlines()) if record.exists() else 0
    groups = {group: {"server": {"ansible_host": ADDRESS, **variables}}, **copy.deepcopy(MACHINES)}
    environment = {
        "ANSIBLE_CALLBACK_PLUGINS": CALLBACKS,
        "ANSIBLE_CALLBACKS_ENABLED": "recorder,stand_in",
        "HWACCEL_TASKS": str(record),
    }
    done = playbook(role, {"ocp": dict(CLUSTER)}, *LIMITS.get(role, ()), machines=groups, environment=environment)
    assert done.rc == 0, done.stdout[-6000:]
    return done, [Task(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()[before:]]


def boot_server(files: pathlib.Path) -> dict[str, t.Any]:
    """Variables of a boot server for the machines."""
    images = ("kernel", "initramfs", "rootfs")
    boots = {name: f"os/{name}" for name in images}
    checksums = {name: hashlib.sha256(name.encode()).hexdigest() for name in images}
    return {
        "dns_pxe_interfaces": ["eth0"],
        "dns_pxe_networks": [{"network": "192.0.2.0/24", "router": "192.0.2.1"}],
        "dns_pxe_artifacts": [
            {"path": f"os/{name}", "source": str(files / name), "checksum": f"sha256:{checksums[name]}"}
            for name in images
        ],
        "dns_pxe_ignitions": [{"path": "cluster.ign", "source": str(files / "cluster.ign")}],
        "dns_pxe_profiles": [
            {"role": role, **boots, "ignition": "cluster.ign", "install_device": "/dev/sda"}
            for role in ("master", "worker")
        ],
    }


def shown(task: Task, role: str, files: pathlib.Path) -> dict[str, t.Any]:
    """A task in the format of the expected ones: with names of files, and with the texts of written files."""
    scripts = {
        path.read_text(encoding="utf-8").rstrip("\n"): f"<{path.name}>"
        for path in (ROLES / role).glob("files/*")
        if path.is_file()
    }

    def plain(value: t.Any) -> t.Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        return (
            scripts.get(value.rstrip("\n"), value.replace(str(files), "<controller>"))
            if isinstance(value, str)
            else value
        )

    args = plain(task.args)
    if args.get("cmd", "").startswith("look.py "):
        args["cmd"] = [*shlex.split(args["cmd"])[:1], json.loads(shlex.split(args["cmd"])[1])]
    if "stdin" in args and (texts := written(task)):
        args["stdin"] = plain(texts)
    return {"task": task.name, "action": task.action, "args": args}


class Readable(yaml.SafeDumper):
    """Writes texts with several lines as block scalars."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


Readable.add_representer(str, Readable.represent_str)


def expect(role: str, tasks: list[Task], files: pathlib.Path) -> None:
    observed = [shown(task, role, files) for task in tasks]
    target = files / f"{role}.yml"
    target.write_text(yaml.dump(observed, Dumper=Readable, sort_keys=False, width=160), encoding="utf-8")
    expected = yaml.safe_load((HERE / "redhat" / f"{role}.yml").read_text(encoding="utf-8"))
    assert observed == expected, f"the present tasks are in {target}"


def unknown(tasks: list[Task]) -> list[str]:
    """Arguments that the modules do not have."""
    names = sorted({task.action for task in tasks})
    command = [sys.executable, "-m", "ansible", "doc", "--type", "module", "--json", *names]
    documents = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout)
    options = {name: documents[name]["doc"]["options"] for name in names}
    known = {
        name: {*options[name], *(alias for one in options[name].values() for alias in one.get("aliases", ()))}
        for name in names
    }
    return [f"{task.action}: {name}" for task in tasks for name in task.args if name not in known[task.action]]


@pytest.mark.parametrize(
    ("role", "group", "variables"),
    [
        # With virtual addresses, the role also installs keepalived.
        ("load_balancer", "load_balancers", {"load_balancer_virtual_addresses": ["192.0.2.5/24"]}),
        # By default, SELinux does not allow this port for nginx.
        ("dns_pxe", "boot_servers", {"dns_pxe_http_port": 8081}),
        ("machine_boot", "hypervisors", {}),
    ],
)
def test_the_tasks_of_a_role_in_their_order(
    role: str, group: str, variables: dict[str, t.Any], files: pathlib.Path
) -> None:
    more = boot_server(files) if role == "dns_pxe" else {}
    _run, tasks = run(role, group, {**more, **variables}, files)
    assert unknown(tasks) == []
    expect(role, tasks, files)
    again, _tasks = run(role, group, {**more, **variables}, files)
    assert again.changed() == 0, again.stdout
