# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the roles for machines: none can inject a line into a configuration, and none with a secret is shown. Files are created with their mode."""

from __future__ import annotations

import collections.abc as c
import copy
import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe import boot_server
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s import test_plan as k3s
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm import test_plan as kubeadm
from ansible_collections.hwaccel.gpu.tests.unit.machines.load_balancer import test_plan as load_balancer
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime import test_plan as node_runtime

TOP = pathlib.Path(__file__).resolve().parents[3]
ROLES = ("cluster_k3s", "cluster_kubeadm", "load_balancer", "dns_pxe", "machine_boot", "node_runtime")
EVIL = "a\n    stats admin if TRUE"
SECOND_MASTER = {"name": "m1", "cluster": "ocp", "role": "master", "address": "10.0.0.12"}
SERVICE = {
    "name": "web",
    "port": 80,
    "address": "10.0.0.3",
    "mode": "http",
    "balance": "source",
    "members": [{"name": "m0", "address": "10.0.0.11"}],
    "check": {"type": "http", "path": "/ready", "status": "200", "interval": "5s"},
    "sources": ["10.0.0.0/24"],
}
#: Every variable with a value that has texts, so that each text can be made invalid.
GIVEN: dict[str, dict[str, t.Any]] = {
    "cluster_k3s": {
        "version": "1.36.4+k3s1",
        "programs": [{"source": "/files/k3s", "checksum": f"sha256:{k3s.SUM}"}],
        "images": [{"source": "/files/images.tar.zst", "checksum": f"sha256:{k3s.SUM}"}],
        "image_list": "/files/k3s-images.txt",
        "snapshot_s3": {"bucket": "snapshots", "endpoint": "s3.example.com", "folder": "edge"},
        "registries": {"mirrors": {"docker.io": {"endpoint": ["https://mirror.example.com"]}}},
        "system_default_registry": "registry.example.com",
        "pause_image": "registry.example.com/pause:3.6",
        "datastore": "etcd",
        "datastore_endpoint": "postgres://k3s:planted@db.example.com:5432/k3s",
        "pod_network": "10.42.0.0/16",
        "service_network": "10.43.0.0/16",
        "dns_domain": "cluster.local",
        "flannel_backend": "vxlan",
        "disable": ["traefik"],
        "snapshot_schedule": "0 */12 * * *",
        "engine": "containerd",
        "default_runtime": "nvidia",
        "names": ["api.example.com"],
        "hardening": "cis",
        "configuration": {"kubelet-arg": ["max-pods=200"]},
        "server_configuration": {"kube-apiserver-arg": ["audit-log-maxage=30"]},
        "skipped_checks": ["swap"],
    },
    "cluster_kubeadm": {
        "version": "1.36.4",
        "programs": [{"name": "kubelet", "source": "/files/kubelet", "checksum": kubeadm.SUM}],
        "packages": ["kubeadm"],
        "images": [{"source": "/files/node.tar", "checksum": kubeadm.SUM}],
        "cni_plugins": [{"source": "/files/cni-plugins.tgz", "checksum": kubeadm.SUM}],
        "runtime_packages": ["containerd"],
        "runtime_socket": "unix:///run/containerd/containerd.sock",
        "pause_image": "registry.k8s.io/pause:3.10.2",
        "cgroup_driver": "systemd",
        "pod_network": "10.244.0.0/16",
        "service_network": "10.96.0.0/12",
        "dns_domain": "cluster.local",
        "image_repository": "mirror.example.com",
        "proxy_mode": "nftables",
        "names": ["api.example.com"],
        "ignored_errors": ["NumCPU"],
        "skipped_phases": ["addon/coredns"],
        "configuration": {"KubeletConfiguration": {"clusterDomain": "cluster.local"}},
        "skipped_checks": ["swap"],
    },
    "load_balancer": {
        **load_balancer.SETTINGS,
        "services": [SERVICE],
        "extra": "",
        "maxconn": "1000",
        "stats_user": "ops",
        "stats_password": "secret",
        "interface": "eth0",
        "clusters": [{"name": "ocp", "profile": "kubernetes", "address": "10.0.0.3", "machine_network": "10.0.0.0/24"}],
        "machines": [SECOND_MASTER],
        "virtual_addresses": ["10.0.0.5/24"],
    },
    "dns_pxe": boot_server.settings(
        forwarders=["10.77.0.3"],
        clients=["10.77.0.0/24"],
        install_again=["worker-0"],
        joined={"ocp": ["worker-0"]},
        loaders={"ipxe.efi": "/l/ipxe.efi"},
        networks=[
            {
                "network": "10.77.0.0/24",
                "router": "10.77.0.1",
                "dns": ["10.77.0.3"],
                "ntp": ["10.77.0.3"],
                "lease": "12h",
                "pool": ["10.77.0.200"],
            }
        ],
        extra_hosts=[{"address": "10.77.0.9", "names": ["files.example.com"]}],
        skipped_checks=["other_dhcp"],
        profiles=[
            {
                "role": "master",
                "kernel": "os/kernel",
                "initramfs": "os/initramfs",
                "install_device": "/dev/sda",
                "arguments": ["console=ttyS0"],
            },
            {
                "role": "worker",
                "kernel": "os/kernel",
                "initramfs": "os/initramfs",
                "install_device": "/dev/sda",
                "answer": {
                    "kind": "kickstart",
                    "user": "operator",
                    "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3x operator"],
                    "source": "https://mirror.example.com/os",
                    "password": f"$6$salt${'a' * 86}",
                    "locale": "en_US.UTF-8",
                    "keyboard": "us",
                    "timezone": "Etc/UTC",
                    "packages": ["chrony"],
                },
            },
        ],
    ),
    "machine_boot": {
        "name": "m0",
        "cluster": "ocp",
        "role": "master",
        "address": "10.0.0.11",
        "mac": "52:54:00:77:00:11",
        "firmware": "uefi",
        "architecture": "x86_64",
        "nodes": ["m0", "m0.example.com"],
        "provider": "redfish",
        "boot": "network",
        "power": "on",
        "media": "http://10.0.0.1/a.iso",
        "http": False,
        "bmc": {"address": "10.0.0.111", "username": "root", "has_password": True, "system": "1", "verify": True},
        "vm": {
            "hypervisor": "h",
            "memory": "1024",
            "vcpus": "2",
            "disk": "20",
            "path": "/a",
            "pool": "p",
            "bridge": "br0",
            "found": {"xml": "<a>\n</a>"},
        },
    },
    "node_runtime": {
        **node_runtime.SETTINGS,
        "engines": ["containerd"],
        "skipped_checks": ["disk"],
        "repository_url": "https://mirror.example.com",
        "repository_key": "",
        "repository_username": "ops",
        "repository_password": "secret",
        "archive": "/a.tar",
        "programs": [{"name": "nvidia-ctk", "source": "/files/nvidia-ctk", "checksum": kubeadm.SUM}],
        "toolkit_version": "1.20.1",
        "restart": True,
    },
}
#: Where vars/main.yml of a role has its settings, if not in __NAME_settings.
SETTINGS = {
    "machine_boot": "__machine_boot_request",
    "cluster_k3s": "__cluster_k3s_of_cluster",
    "cluster_kubeadm": "__cluster_kubeadm_of_cluster",
}
#: Settings that are no texts of a user.
NO_TEXTS = {
    *(
        "named",
        "logs",
        "shutdown",
        "machines",
        "retired",
        "lost",
        "endpoint",
        "dns",
        "places",
        "pod_image",
        "public_path",
        "restores",
        "staged",
        "units",
        "even_servers",
        "approval_profile",
        "embedded_registry",
        "has_token",
        "adopt",
        "secrets_encryption",
        "snapshot_retention",
        "at_a_time",
        "timeout",
        "follows",
        "optional",
    )
} | {f"drain_{name}" for name in ("timeout", "force", "delete_emptydir_data")}
#: Variables whose text may have several lines.
LINES: dict[str, set[str]] = {
    "cluster_k3s": set(),
    "cluster_kubeadm": set(),
    "load_balancer": {"extra"},
    "dns_pxe": {"dnsmasq_extra", "nginx_extra"},
    "machine_boot": set(),
    "node_runtime": {"repository_key"},
}
#: Options of the roles that are in no configuration, and how they are used.
ELSEWHERE = {
    "cluster_k3s": {
        "network": "manifests of a module",
        "at_a_time": "a number or a percentage, which is parsed",
        "cluster": "a host of the inventory",
        "inventory": "set by playbooks",
        **dict.fromkeys(("token", "agent_token"), "the text of a file of its own"),
        **dict.fromkeys(("snapshot_s3_access_key", "snapshot_s3_secret_key"), "data of a Secret"),
        "token_file": "a file that is written",
        "snapshot": "an argument of a script, in quotes",
        "snapshot_checksum": "an expected value that is compared",
    },
    "cluster_kubeadm": {
        "network": "manifests of a module",
        "at_a_time": "a number or a percentage, which is parsed",
        "cluster": "a host of the inventory",
        "inventory": "set by playbooks",
        "snapshot": "an argument of a script, in quotes",
    },
    "load_balancer": {"drain_timeout": "a timeout of this run"},
    "dns_pxe": {"self_test": "a switch", "self_test_from": "a host of the inventory"},
    "machine_boot": {
        **dict.fromkeys(("bmc_password", "bmc_ca", "ipmi_cipher"), "an option of a module that speaks to the BMC"),
        **dict.fromkeys(
            ("connection", "wait_for", "from", "named", "node", "domain", "servers", "nodes"),
            "settings of this run",
        ),
        **dict.fromkeys(("dhcp_log", "web_log", "marks"), "a file that is read"),
        **dict.fromkeys(("vm_small",), "names of hosts that are compared"),
        **dict.fromkeys(("ssh_user", "ssh_key", "device"), "an argument of a script, in quotes"),
        **dict.fromkeys(("host_key", "system"), "an expected value that is compared"),
    },
    "node_runtime": {
        "archive_checksum": "an option of a module that downloads",
        "cluster": "a host of the inventory",
        "node": "a name that is looked up",
        "drain": "a choice of this run",
    },
}


def faults(role: str, settings: dict[str, t.Any]) -> list[str]:
    if role == "cluster_k3s":
        return [one["text"] for one in k3s.plan(k3s.BARE, {**k3s.SETTINGS, **settings})["faults"]]
    if role == "cluster_kubeadm":
        return [one["text"] for one in kubeadm.plan(kubeadm.BARE, {**kubeadm.SETTINGS, **settings})["faults"]]
    if role == "load_balancer":
        return [one["text"] for one in load_balancer.planned(load_balancer.BARE, **settings)["faults"]]
    if role == "dns_pxe":
        return boot_server.faults(settings)
    if role == "machine_boot":
        return [str(one) for one in request.faults([settings], {request.COLLECTION: "11.0.0"})]
    return node_runtime.texts(node_runtime.planned(node_runtime.machine(), **settings))


def with_invalid_texts(value: t.Any) -> c.Iterator[t.Any]:
    """The value with one of its texts made invalid, for each text in it."""
    if isinstance(value, str):
        yield value + EVIL
    elif isinstance(value, dict):
        for key, item in value.items():
            for other in with_invalid_texts(item) if key != "found" else ():
                yield {**value, key: other}
    elif isinstance(value, list):
        for number, item in enumerate(value):
            for other in with_invalid_texts(item):
                yield [*value[:number], other, *value[number + 1 :]]


#: Settings that are no variables of the role.
NOT_GIVEN = {
    ("load_balancer", "name"),
    ("load_balancer", "collections"),
    ("dns_pxe", "collections"),
    ("node_runtime", "collections"),
}
CASES = [
    pytest.param(role, {**GIVEN[role], name: other}, f"{role}_{name}", id=f"{role}_{name}-{number}")
    for role in ROLES
    for name, value in GIVEN[role].items()
    if name not in LINES[role] and (role, name) not in NOT_GIVEN
    for number, other in enumerate(with_invalid_texts(value))
]


@pytest.mark.parametrize(("role", "settings", "named"), CASES)
def test_a_text_with_a_line_end_is_reported_and_not_shown(role: str, settings: dict[str, t.Any], named: str) -> None:
    before = copy.deepcopy(settings)
    messages = faults(role, settings)
    assert settings == before
    mine = [text for text in messages if "line end or another control character" in text]
    assert len(mine) == 1, messages
    assert f"({named}" in mine[0] and "stats admin" not in mine[0]


@pytest.mark.parametrize("role", ROLES)
def test_all_invalid_texts_are_reported_at_once(role: str) -> None:
    invalid = {
        name: next(with_invalid_texts(value), value) for name, value in GIVEN[role].items() if name not in LINES[role]
    }
    several = faults(role, {**GIVEN[role], **invalid})
    expected = {name for name, value in invalid.items() if value != GIVEN[role][name] and (role, name) not in NOT_GIVEN}
    assert len(expected) >= 10
    assert {
        name for name in expected if any(f"({role}_{name}" in text and "line end" in text for text in several)
    } == expected


@pytest.mark.parametrize("sign", ["\r", "\x00", "\x1b", "\x85", "\u2028", "\x7f"])
def test_other_control_characters_are_reported_too(sign: str) -> None:
    assert any(
        "load_balancer_stats_password" in text
        for text in faults("load_balancer", {**GIVEN["load_balancer"], "stats_password": f"a{sign}b"})
    )
    assert any(
        "load_balancer_extra" in text
        for text in faults("load_balancer", {**GIVEN["load_balancer"], "extra": f"a{sign}b"})
    )


@pytest.mark.parametrize(
    ("role", "changed", "message"),
    [
        ("load_balancer", {"stats_user": "ops insecure-password x"}, "load_balancer_stats_user"),
        ("load_balancer", {"stats_user": "a#b"}, "not a user name"),
        ("load_balancer", {"tunnel_timeout": "1h # x"}, "load_balancer_tunnel_timeout"),
        ("load_balancer", {"hard_stop_after": "soon"}, "hard_stop_after"),
        ("load_balancer", {"services": [{**SERVICE, "cluster": "a b"}]}, "is not a name"),
        (
            "dns_pxe",
            {"networks": [{"network": "10.77.0.0/24", "lease": "12h,option:router,1.2.3.4"}]},
            "is not a lease time",
        ),
        (
            "dns_pxe",
            {"profiles": [{**GIVEN["dns_pxe"]["profiles"][0], "arguments": ["a'; reboot; '"]}]},
            "contain a single quote",
        ),
        ("node_runtime", {"repository_password": "x machine other"}, "node_runtime_repository_password"),
        ("node_runtime", {"repository_username": 'a"b'}, "node_runtime_repository_username"),
    ],
)
def test_a_value_that_would_be_read_as_several_words_is_reported(
    role: str, changed: dict[str, t.Any], message: str
) -> None:
    assert [text for text in faults(role, {**GIVEN[role], **changed}) if message in text]


def options(role: str) -> dict[str, dict[str, t.Any]]:
    found = yaml.safe_load((TOP / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]
    return {name: option for entry in found.values() for name, option in (entry.get("options") or {}).items()}


@pytest.mark.parametrize("role", ROLES)
def test_each_variable_that_may_hold_a_text_is_covered(role: str) -> None:
    """By the argument specification: a new variable is in GIVEN, or has a reason in ELSEWHERE."""
    texts = {
        name.removeprefix(f"{role}_")
        for name, option in options(role).items()
        if option.get("type", "str") in ("str", "path", "list", "dict", "raw")
    }
    covered = set(GIVEN[role]) | {
        f"{name}_{part}" for name, value in GIVEN[role].items() if isinstance(value, dict) for part in value
    }
    covered |= {"media_url", "vm_disk_path", "hypervisor"} if role == "machine_boot" else set()
    assert sorted(texts - covered - set(ELSEWHERE[role])) == []
    variables = yaml.safe_load((TOP / "roles" / role / "vars" / "main.yml").read_text(encoding="utf-8"))
    settings = variables[SETTINGS.get(role, f"__{role}_settings")]
    assert sorted(set(settings) - set(GIVEN[role]) - NO_TEXTS) == []


# -- secrets

SECRET = re.compile(r"password|token|secret|credential|_key$|^key$|_connection$")
#: Variables that have such a name and may be shown.
SHOWN = {
    **{
        f"{role}_image_pull_secrets": "names of Secrets"
        for role in ("device_plugin", "driver", "feature_discovery", "gpu_validation", "monitoring")
    },
    "cluster_k3s_secrets_encryption": "a switch",
    "cluster_kubeadm_secrets_encryption": "a switch",
    "node_runtime_repository_key": "a public key",
    "cluster_k3s_token_file": "the path of a file",
    "machine_boot_host_key": "a public key",
    "machine_boot_ssh_key": "the path of a file",
}


def test_no_log_is_on_every_variable_with_a_secret() -> None:
    every = {
        name: option
        for path in sorted((TOP / "roles").glob("*/meta/argument_specs.yml"))
        for name, option in options(path.parents[1].name).items()
    }
    named = {name for name in every if SECRET.search(name)}
    assert {
        "load_balancer_stats_password",
        "machine_boot_bmc_password",
        "node_runtime_repository_password",
        "machine_boot_connection",
    } <= named
    assert sorted(name for name in named - set(SHOWN) if every[name].get("no_log") is not True) == []
    assert sorted(set(SHOWN) - named) == []


# -- modes

WRITERS = ("copy", "template", "get_url", "yum_repository", "lineinfile", "blockinfile")
#: Folders that other users cannot enter, by the prefix of a destination.
CLOSED = {
    "{{ __cluster_folder }}/": "0700, record.yml of the role machine",
    "{{ __cluster_k3s_folder }}/": "0700, record.yml of the role machine and images.yml",
    "{{ __cluster_kubeadm_folder }}/": "0700, record.yml of the role machine and images.yml",
    "{{ __cluster_kubeadm_secrets }}/": "0700, configuration.yml",
    "{{ __cluster_kubeadm_rotated }}/": "0700, rotate_begin.yml",
    "{{ __node_runtime_folder }}/": "0700, record.yml of the role machine and archive.yml",
    "/var/lib/rancher/k3s/server/cred/": "0700, prepare in pkg/daemons/control/server.go of K3s",
    "{{ __dns_pxe_state }}/ignition/": "0750 for the web server's group, configure.yml",
}
#: Files that take their mode from an existing file, or are in a closed folder that was created for them.
OF_PLANS = {
    (
        "dns_pxe",
        "fetch.yml",
        "{{ __dns_pxe_state }}/{{ item.path }}",
    ): "in the folders ignition and secret, of mode 0750",
    (
        "cluster_k3s",
        "withdraw.yml",
        "/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml",
    ): "a file that entry.yml has created with its mode",
    (
        "cluster_k3s",
        "migrate.yml",
        "/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml",
    ): "a file that entry.yml has created with its mode",
    ("cluster_kubeadm", "rotate_begin.yml", "{{ item.1.item }}"): "in a folder of mode 0700",
    (
        "machine",
        "fetch.yml",
        "{{ __machine_target }}",
    ): "a program, or an archive in a folder of mode 0700",
    ("machine", "validate.yml", "{{ item }}"): "in folders of mode 0700 that the task before creates",
}


def tasks(entries: t.Any) -> c.Iterator[dict[str, t.Any]]:
    for task in entries or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part))


def test_files_that_other_users_may_not_read_are_created_with_their_mode() -> None:
    """The modules write the text of a new file before they set its mode."""
    exposed = []
    for path in sorted((TOP / "roles").glob("*/tasks/*.yml")):
        made: list[tuple[str, str]] = []
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            touched = task.get("ansible.builtin.file") or {}
            if touched.get("state") == "touch":
                made.append((touched["path"], touched["mode"]))
            for module in WRITERS:
                given = task.get(f"ansible.builtin.{module}")
                if given is None:
                    continue
                target = given.get("dest") or f"/etc/yum.repos.d/{given.get('name')}.repo"
                mode = given.get("mode")
                assert mode is not None, f"{path}: {task['name']} has no mode"
                open_to_all = re.fullmatch(r"0?[0-7]{2}[4-7]", mode) is not None
                closed = target.startswith(tuple(CLOSED)) or (path.parts[-3], path.name, target) in OF_PLANS
                if not open_to_all and not closed and (target, mode) not in made:
                    exposed.append(f"{path.parts[-3]}/{path.name}: {task['name']}")
    assert exposed == []
