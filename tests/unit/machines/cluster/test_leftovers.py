# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""leftovers.py removes what kubeadm reset leaves, and nothing of others. tests/cluster runs it on machines that were nodes."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

FOLDERS = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", "/var/lib/hwaccel-gpu")
PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster" / "files" / "leftovers.py"
_RULES = """# Table `filter' is incompatible, use 'nft' tool.
*filter
:INPUT ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
:MINE - [0:0]
-A INPUT -m comment --comment "a rule" -j KUBE-FIREWALL
-A KUBE-FIREWALL -j DROP
-A INPUT -s 192.0.2.1/32 -j MINE
COMMIT
"""


@pytest.fixture
def leftovers(tmp_path: pathlib.Path) -> t.Any:
    module = loaded(PATH)
    module.ROOT = str(tmp_path)
    module.called = []

    def run(*argv: str) -> bytes | None:
        module.called.append(argv)
        return module.answers.get(argv[0], None)

    module.run, module.answers = run, {}
    return module


def placed(root: str, *paths: str) -> None:
    for path in paths:
        (made := pathlib.Path(root + path)).parent.mkdir(parents=True, exist_ok=True)
        made.write_text("", encoding="utf-8")


def test_interfaces_and_configurations_of_network_plugins_go_but_those_of_before_and_of_others(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    leftovers.answers = {"ip": b""}
    root = leftovers.ROOT
    placed(root, *(f"/sys/class/net/{name}" for name in ("cni0", "flannel.1", "eth0", "docker0", "cilium_host")))
    placed(
        root,
        "/etc/cni/net.d/10-flannel.conflist",
        "/etc/cni/net.d/87-podman.conflist",
        "/etc/cni/net.d/05-cilium.conflist",
    )
    leftovers.main("network", f"{root}/sys/class/net/cilium_host", f"{root}/etc/cni/net.d/05-cilium.conflist")
    assert [argv for argv in leftovers.called if argv[0] == "ip"] == [
        ("ip", "link", "delete", "cni0"),
        ("ip", "link", "delete", "flannel.1"),
    ]
    left = {path.name for path in pathlib.Path(root + "/etc/cni/net.d").iterdir()}
    assert left == {"05-cilium.conflist", "87-podman.conflist"}
    assert "remove the interface cni0" in capsys.readouterr().out


def test_routes_to_pods_of_other_nodes_go_and_routes_of_others_stay(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of flannel's backend host-gw lead through interfaces of the machine, and would take the pods' traffic of the next cluster."""
    shown = (
        b"10.42.0.0/24 dev cni0 proto kernel scope link src 10.42.0.1 linkdown\n10.42.3.0/24 via 10.99.0.12 dev eth0 \n"
    )
    leftovers.answers = {"ip": shown}
    leftovers.main("network")
    assert leftovers.called.count(("ip", "-4", "route", "show", "root", "10.42.0.0/16")) == 0, "flannel was not here"
    file = pathlib.Path(leftovers.ROOT + leftovers.NETWORKS)
    file.parent.mkdir(parents=True)
    file.write_text("FLANNEL_NETWORK=10.42.0.0/16\nFLANNEL_SUBNET=10.42.0.1/24\nFLANNEL_MTU=1450\n", encoding="ascii")
    leftovers.main("network")
    assert [argv[1:] for argv in leftovers.called if argv[0] == "ip"] == [
        ("-4", "route", "show", "root", "10.42.0.0/16"),
        ("-4", "route", "delete", "10.42.3.0/24", "via", "10.99.0.12", "dev", "eth0"),
    ]
    assert "remove the route to pods 10.42.3.0/24 via 10.99.0.12" in capsys.readouterr().out


def test_chains_of_the_kubelet_go_one_by_one_and_rules_of_others_stay(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    leftovers.answers = {"iptables-save": _RULES.encode()}
    leftovers.main("network")
    assert [argv for argv in leftovers.called if argv[0] == "iptables"] == [
        ("iptables", "--wait", "-t", "filter", *more)
        for more in (
            ("-D", "INPUT", "-m", "comment", "--comment", "a rule", "-j", "KUBE-FIREWALL"),
            ("-F", "KUBE-FIREWALL"),
            ("-X", "KUBE-FIREWALL"),
        )
    ]
    assert capsys.readouterr().out == "remove chains of iptables: KUBE-FIREWALL\n"


def test_tables_of_nft_that_belong_to_the_network_of_pods_go(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = "table ip kube-proxy\ntable ip6 kube-proxy\ntable inet filter\ntable ip flannel-ipv4\ntable inet kube-proxy-mine\n"
    leftovers.answers = {"nft": listed.encode()}
    leftovers.main("network")
    assert [argv[2:] for argv in leftovers.called if argv[:2] == ("nft", "delete")] == [
        ("table", "ip", "kube-proxy"),
        ("table", "ip6", "kube-proxy"),
        ("table", "ip", "flannel-ipv4"),
    ]
    assert "remove the table ip kube-proxy of nft\n" in capsys.readouterr().out


def test_programs_of_the_distribution_are_used_where_the_machine_has_none(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, mine, theirs = loaded(PATH), tmp_path / "mine", tmp_path / "theirs"
    module.ROOT = str(tmp_path)
    for folder in (mine, theirs):
        folder.mkdir()
    said = "echo table ip kube-proxy"
    (theirs / "nft").write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
    (theirs / "nft").chmod(0o755)
    monkeypatch.setenv("PATH", str(mine))
    module.main("network")
    assert capsys.readouterr().out == ""
    module.main("network", f"--programs={theirs}", "/sys/class/net/cni0")
    assert capsys.readouterr().out == "remove the table ip kube-proxy of nft\n"


@pytest.mark.parametrize(
    ("ends", "told"),
    [(b"", "remove the rules of kube-proxy\n"), (None, "rules of kube-proxy stay until the next boot\n")],
)
def test_kube_proxy_removes_its_own_rules(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str], ends: bytes | None, told: str
) -> None:
    def run(*argv: str) -> bytes | None:
        if argv[0] != "ctr":
            return None
        if "list" in argv:
            return b"registry.k8s.io/pause:3.10.2\nregistry.k8s.io/kube-proxy:v1.36.4\n"
        assert argv[-4:] == (
            "registry.k8s.io/kube-proxy:v1.36.4",
            "hwaccel-cleanup",
            "/usr/local/bin/kube-proxy",
            "--cleanup",
        )
        return ends

    leftovers.run = run
    leftovers.main("network")
    assert capsys.readouterr().out == told


def test_only_empty_folders_go(leftovers: t.Any) -> None:
    root = pathlib.Path(leftovers.ROOT)
    (root / "etc/kubernetes/pki/etcd").mkdir(parents=True)
    (root / "var/lib/etcd").mkdir(parents=True)
    placed(str(root), "/var/lib/kubelet/mine")
    leftovers.main("folders", *FOLDERS)
    assert not (root / "etc/kubernetes").exists() and not (root / "var/lib/etcd").exists()
    assert (root / "var/lib/kubelet/mine").exists()


def test_a_machine_without_anything_says_nothing(leftovers: t.Any, capsys: pytest.CaptureFixture[str]) -> None:
    leftovers.main("network")
    leftovers.main("folders", *FOLDERS)
    assert capsys.readouterr().out == ""


def test_logs_and_control_groups_of_pods_go_and_those_of_others_stay(
    leftovers: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    root = pathlib.Path(leftovers.ROOT)
    placed(
        leftovers.ROOT,
        "/var/log/pods/kube-system_a_1/main/0.log",
        "/var/log/syslog",
        "/sys/fs/cgroup/cpu/system.slice/tasks",
    )
    (root / "var/log/containers").mkdir()
    (root / "var/log/containers/a.log").symlink_to("/var/log/pods/kube-system_a_1/main/0.log")
    for group in ("kubepods.slice/pod1", "cpu/kubepods/besteffort"):
        (root / "sys/fs/cgroup" / group).mkdir(parents=True)
    leftovers.main("kubelet")
    left = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() or path.is_symlink())
    assert left == ["sys/fs/cgroup/cpu/system.slice/tasks", "var/log/syslog"]
    assert not list(root.glob("sys/fs/cgroup/**/kubepods*")) and not (root / "var/log/pods").exists()
    assert "remove what is in /var/log/pods" in capsys.readouterr().out
    leftovers.main("kubelet")
    assert capsys.readouterr().out == ""
