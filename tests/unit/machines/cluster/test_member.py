# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""member.py on a machine: what it asks of its cluster, with servers that answer as kube-apiserver and etcd do."""

from __future__ import annotations

import http.server
import io
import json
import pathlib
import socket
import threading
import typing as t
import urllib.error

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster" / "files" / "member.py"
KUBEADM = yaml.safe_load((PATH.parents[2] / "cluster_kubeadm" / "vars" / "main.yml").read_text(encoding="utf-8"))[
    "__cluster_kubeadm_of_cluster"
]["places"]
SERVER, ETCD = "https://10.0.0.11:6443", "https://127.0.0.1:2379"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "metadata": {"labels": {"a": "b"}}}


class Cluster:
    """Answers by method and URL: an object, a text, or a status that is an error. asked: what was asked, with bodies."""

    def __init__(self, **answers: t.Any) -> None:
        self.answers: dict[str, t.Any] = {
            f"GET {SERVER}/readyz": "ok",
            f"GET {SERVER}/api/v1/nodes/cp1": READY,
            f"POST {ETCD}/v3/cluster/member/list": {
                "members": [{"ID": "7", "name": "cp1"}, {"ID": "8", "name": "cp2"}]
            },
            f"POST {ETCD}/v3/cluster/member/remove": {},
            **answers,
        }
        self.asked: list[tuple[str, t.Any]] = []

    def ask(self, url: str, _tls: object, method: str = "GET", body: bytes | None = None, _kind: str = "") -> str:
        self.asked.append((f"{method} {url}", json.loads(body) if body else None))
        answer = self.answers.get(f"{method} {url}", 404)
        if isinstance(answer, int):
            raise urllib.error.HTTPError(url, answer, "error", None, io.BytesIO())  # type: ignore[arg-type]
        return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> t.Any:
    module = loaded(PATH)
    for name in ("context", "administrator"):
        monkeypatch.setattr(module, name, lambda *_files: None)
    monkeypatch.setattr(module.os.path, "exists", lambda _path: True)
    module.PLACES.update(json.loads(json.dumps(KUBEADM)))
    module.PLACES["kubelet"]["configuration"] = str(tmp_path / "config.yaml")
    _serving(tmp_path, 0)
    return module


def _serving(folder: pathlib.Path, port: int) -> None:
    """The kubelet's health is served on this port, and nowhere with 0."""
    (folder / "config.yaml").write_text(f"kind: KubeletConfiguration\nhealthzPort: {port}\n", encoding="utf-8")


def health(member: t.Any, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    member.ask = cluster.ask
    return member.main("{}", "health", "cp1", "10.0.0.11", "10.0.0.1:6443"), capsys.readouterr().out


def test_a_server_is_healthy_if_it_is_ready_and_its_etcd_votes(member: t.Any, capsys: t.Any) -> None:
    assert health(member, Cluster(), capsys) == (0, "")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({f"GET {SERVER}/readyz": 500}, "the API server at https://10.0.0.11:6443: HTTP Error 500"),
        ({f"GET {SERVER}/readyz": "[-]etcd failed"}, "the API server is not ready: [-]etcd failed"),
        ({f"GET {SERVER}/api/v1/nodes/cp1": 404}, "node cp1: HTTP Error 404"),
        ({f"GET {SERVER}/api/v1/nodes/cp1": {"status": {}}}, "node cp1 has no condition Ready yet"),
        (
            {
                f"GET {SERVER}/api/v1/nodes/cp1": {
                    "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}]}
                }
            },
            "node cp1 is not Ready: no CNI",
        ),
        ({f"POST {ETCD}/v3/cluster/member/list": {"members": [{"name": "cp2"}]}}, "etcd has no member cp1"),
        ({f"POST {ETCD}/v3/cluster/member/list": {"members": [{"name": "cp1", "isLearner": True}]}}, "still a learner"),
    ],
)
def test_why_a_server_is_not_healthy(member: t.Any, capsys: t.Any, answers: dict[str, t.Any], told: str) -> None:
    status, printed = health(member, Cluster(**answers), capsys)
    assert status == 1
    assert told in printed


def test_a_server_lets_machines_join_once_its_api_server_is_ready(member: t.Any, capsys: t.Any) -> None:
    for answer, status, told in (("ok", 0, ""), ("[-]etcd failed", 1, "not ready: [-]etcd failed"), (500, 1, "500")):
        member.ask = Cluster(**{f"GET {SERVER}/readyz": answer}).ask
        assert member.main("{}", "serves", "10.0.0.11") == status
        assert told in capsys.readouterr().out


def test_an_agent_asks_the_endpoint(member: t.Any, capsys: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.os.path, "exists", lambda _path: False)
    endpoint = "https://10.0.0.1:6443"
    cluster = Cluster(**{f"GET {endpoint}/readyz": "ok", f"GET {endpoint}/api/v1/nodes/cp1": READY})
    assert health(member, cluster, capsys) == (0, "")
    assert {asked.partition("/api")[0] for asked, _body in cluster.asked} == {
        f"GET {endpoint}/readyz",
        f"GET {endpoint}",
    }


def test_a_member_has_the_version_only_once_its_kubelet_and_its_api_server_report_it(
    member: t.Any, capsys: t.Any
) -> None:
    def told(api_server: str, kubelet: str) -> str:
        runs = {**READY, "status": {**READY["status"], "nodeInfo": {"kubeletVersion": kubelet}}}
        answers = {f"GET {SERVER}/version": {"gitVersion": api_server}, f"GET {SERVER}/api/v1/nodes/cp1": runs}
        member.ask = Cluster(**answers).ask
        status = member.main("{}", "health", "cp1", "10.0.0.11", "10.0.0.1:6443", "1.36.5")
        printed = str(capsys.readouterr().out)
        assert status == bool(printed)
        return printed

    assert told("v1.36.4", "v1.36.4") == "the API server is v1.36.4, and not v1.36.5 yet\n"
    assert told("v1.36.5", "v1.36.4") == "the kubelet of node cp1 is v1.36.4, and not v1.36.5 yet\n"
    assert told("v1.36.5", "v1.36.5") == ""


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False)])
def test_a_kubelet_that_ended_is_not_healthy_though_its_node_is_still_ready(
    member: t.Any, capsys: t.Any, tmp_path: pathlib.Path, status: int, healthy: bool
) -> None:
    class Kubelet(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_given: t.Any) -> None:
            """Requests are not logged."""

    with http.server.HTTPServer(("127.0.0.1", 0), Kubelet) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        _serving(tmp_path, server.server_port)
        found, printed = health(member, Cluster(), capsys)
    assert (found == 0) == healthy
    assert printed.startswith("" if healthy else "the kubelet: HTTP Error 500")
    # It has ended.
    assert "the kubelet: " in health(member, Cluster(), capsys)[1]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([{"ID": "7", "name": "cp1"}, {"ID": "8", "name": "cp2"}], ""),
        ([{"ID": "7", "name": "cp1"}], "etcd has no member cp2\n"),
        (
            [{"ID": "7", "name": "cp1"}, {"ID": "8", "name": "cp2", "isLearner": True}],
            "etcd's member cp2 is still a learner\n",
        ),
        (
            [{"ID": "7", "name": "cp1"}, {"ID": "8", "name": "cp2"}, {"ID": "9372538179322589801", "isLearner": True}],
            "etcd's member 8211f1d0f64f3269 is none of the cluster's servers\n"
            "etcd's member 8211f1d0f64f3269 is still a learner\n",
        ),
    ],
)
def test_why_no_other_server_may_be_taken_away(member: t.Any, capsys: t.Any, members: list[t.Any], told: str) -> None:
    member.ask = Cluster(**{f"POST {ETCD}/v3/cluster/member/list": {"members": members}}).ask
    assert member.main("{}", "quorum", json.dumps(["cp1", "cp2"])) == bool(told)
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(("names", "status"), [(("cp1", "cp2"), 0), (("cp1",), 0), (("cp2",), 1), (("cp1", "cp3"), 1)])
def test_a_server_that_leaves_may_be_a_member_and_need_not(member: t.Any, names: tuple[str, ...], status: int) -> None:
    members = {"members": [{"ID": "7", "name": name} for name in names]}
    member.ask = Cluster(**{f"POST {ETCD}/v3/cluster/member/list": members}).ask
    assert member.main("{}", "quorum", '["cp1"]', '["cp2"]') == status


def test_a_learner_that_leaves_holds_up_nothing(member: t.Any) -> None:
    members = {"members": [{"ID": "7", "name": "cp1"}, {"ID": "8", "name": "cp2", "isLearner": True}]}
    member.ask = Cluster(**{f"POST {ETCD}/v3/cluster/member/list": members}).ask
    assert (member.main("{}", "quorum", '["cp1"]', '["cp2"]'), member.main("{}", "quorum", '["cp1", "cp2"]')) == (0, 1)


def test_the_quorum_of_an_external_etcd_is_its_owners(member: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.os.path, "exists", lambda _path: False)
    assert member.main("{}", "quorum", json.dumps(["cp1"])) == 0


def listed(*names: str) -> dict[str, t.Any]:
    items = [{"metadata": {"name": name, "labels": READY["metadata"]["labels"]}} for name in names]
    return {f"GET {SERVER}/api/v1/nodes": {"items": items}}


@pytest.mark.parametrize(("how", "writes"), [("apply", 1), ("check", 0)])
def test_labels_are_written_only_where_they_differ(member: t.Any, capsys: t.Any, how: str, writes: int) -> None:
    cluster = Cluster(**{f"PATCH {SERVER}/api/v1/nodes/cp1": {}, **listed("cp1")})
    member.ask = cluster.ask
    assert member.main("{}", "nodes", "10.0.0.11", json.dumps({"cp1": {"a": "b", "c": "d"}}), '["cp1"]', how) == 0
    assert json.loads(capsys.readouterr().out) == {"labelled": ["label cp1: c=d"], "strangers": []}
    patched = [body for asked, body in cluster.asked if asked.startswith("PATCH")]
    assert patched == [{"metadata": {"labels": {"c": "d"}}}] * writes
    assert member.main("{}", "nodes", "10.0.0.11", json.dumps({"cp1": {"a": "b"}}), '["cp1"]', "apply") == 0
    assert json.loads(capsys.readouterr().out)["labelled"] == []


def test_nodes_that_the_inventory_does_not_have_are_named(member: t.Any, capsys: t.Any) -> None:
    member.ask = Cluster(**listed("w9", "cp1", "a1")).ask
    assert member.main("{}", "nodes", "10.0.0.11", "{}", '["cp1"]', "apply") == 0
    assert json.loads(capsys.readouterr().out)["strangers"] == ["a1", "w9"]


def node(address: str, ready: str) -> dict[str, t.Any]:
    addresses = [{"type": "Hostname", "address": "cp2"}, {"type": "InternalIP", "address": address}]
    return {"status": {"conditions": [{"type": "Ready", "status": ready}], "addresses": addresses}}


@pytest.mark.parametrize("left", [node("10.0.0.12", "True"), node("10.0.0.99", "Unknown"), {"status": {}}])
def test_what_is_left_of_a_machine_is_removed(member: t.Any, capsys: t.Any, left: dict[str, t.Any]) -> None:
    """It is left of it if it has the machine's address, or is not Ready."""
    there = f"{SERVER}/api/v1/nodes/cp2"
    cluster = Cluster(**{f"GET {there}": left, f"DELETE {there}": {}})
    member.ask = cluster.ask
    assert member.main("{}", "forget", "10.0.0.11", json.dumps({"cp2": "10.0.0.12", "w9": "10.0.0.29"})) == 0
    assert capsys.readouterr().out == "remove the member cp2 of etcd\ndelete the node cp2\n"
    assert (f"POST {ETCD}/v3/cluster/member/remove", {"ID": "8"}) in cluster.asked


def test_nothing_is_removed_if_another_machine_has_the_name(member: t.Any, capsys: t.Any) -> None:
    cluster = Cluster(**{f"GET {SERVER}/api/v1/nodes/cp2": node("10.0.0.99", "True")})
    member.ask = cluster.ask
    assert (
        member.main("{}", "forget", "10.0.0.11", json.dumps({"cp2": "10.0.0.12", "cp1": "10.0.0.11"}))
        == member.OCCUPIED
    )
    assert "cp2: the cluster has a node of this name at 10.0.0.99, which is Ready" in capsys.readouterr().out
    assert {asked.partition(" ")[0] for asked, _body in cluster.asked} == {"GET"}


def test_addresses_of_ipv6_get_brackets(member: t.Any) -> None:
    assert member.joined("fd00::1", "6443") == "[fd00::1]:6443"


#: As kubeadm writes them: keys are sorted, and not all have annotations.
_MANIFESTS = {
    "etcd": "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    kubeadm.kubernetes.io/etcd.x: https://10.0.0.11:2379\n  labels:\n    tier: x\n",
    "kube-scheduler": "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    tier: x\nspec: {}\n",
}


@pytest.fixture
def manifests(member: t.Any, tmp_path: pathlib.Path) -> pathlib.Path:
    (folder := tmp_path / "manifests").mkdir()
    member.PLACES["manifests"] = str(folder)
    for pod, text in _MANIFESTS.items():
        (folder / f"{pod}.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("moment", "ready", "told"),
    [
        ("2026-01-01T00:00:00Z", "True", ""),
        ("2026-01-01T00:00:00Z", "False", "the static pod etcd-cp1 is not Ready\n"),
        ("2025-01-01T00:00:00Z", "True", "the static pod etcd-cp1 has not been restarted yet\n"),
        (None, "True", "the static pod etcd-cp1 has not been restarted yet\n"),
    ],
)
def test_a_server_is_healthy_once_its_static_pods_have_restarted(
    member: t.Any, capsys: t.Any, manifests: pathlib.Path, moment: str | None, ready: str, told: str
) -> None:
    path = manifests / "etcd.yaml"
    annotated = '  annotations:\n    hwaccel.gpu/restarted-at: "2026-01-01T00:00:00Z"\n'
    path.write_text(_MANIFESTS["etcd"].replace("  annotations:\n", annotated), encoding="utf-8")
    pod = {
        "metadata": {"annotations": {"hwaccel.gpu/restarted-at": moment}} if moment else {},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    cluster = Cluster(**{f"GET {SERVER}/api/v1/namespaces/kube-system/pods/etcd-cp1": pod})
    assert health(member, cluster, capsys) == (int(bool(told)), told)


def test_clusters_are_told_apart_by_a_uid(member: t.Any, capsys: t.Any) -> None:
    member.ask = Cluster(**{f"GET {SERVER}/api/v1/namespaces/kube-system": {"metadata": {"uid": "2a62"}}}).ask
    assert member.main("{}", "uid", "10.0.0.11") == 0
    assert capsys.readouterr().out == "2a62\n"


def _in_system(kind: str, name: str) -> str:
    group = "apis/apps/v1" if kind == "daemonsets" else "api/v1"
    return f"{SERVER}/{group}/namespaces/kube-system/{kind}/{name}"


def test_a_server_that_does_not_answer_is_told_in_a_line(member: t.Any, capsys: t.Any) -> None:
    def refused(*_arguments: object) -> str:
        raise urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))

    member.ask = refused
    assert member.main(json.dumps(KUBEADM), "observe", "10.0.0.11") == 1
    assert capsys.readouterr().err == "<urlopen error [Errno 111] Connection refused>\n"


def test_a_cluster_tells_what_it_has(member: t.Any, capsys: t.Any) -> None:
    body = {"metadata": {"resourceVersion": "7"}, "data": {"ClusterConfiguration": "a: 1"}}
    listed = {"items": [{"metadata": {"name": "cp1"}, **node("10.0.0.11", "True")}, {"metadata": {"name": "w1"}}]}
    answers = {f"GET {_in_system('configmaps', 'kubeadm-config')}": body, f"GET {SERVER}/api/v1/nodes": listed}
    member.ask = Cluster(**answers).ask
    assert member.main("{}", "observe", "10.0.0.11") == 0
    assert json.loads(capsys.readouterr().out) == {
        "configuration": {
            "kubeadm-config": {"version": "7", "data": body["data"], "annotations": {}},
            "kubelet-config": None,
            "kube-proxy": None,
        },
        "nodes": {"cp1": True, "w1": False},
        "members": ["cp1", "cp2"],
    }


@pytest.mark.parametrize(
    ("ready", "port", "told"), [("True", 0, "its node is Ready"), ("False", 1, "a kubelet answers"), ("False", 0, "")]
)
def test_a_lost_machine_must_not_run(
    member: t.Any, capsys: t.Any, monkeypatch: pytest.MonkeyPatch, ready: str, port: int, told: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(member, "PORTS", {server.getsockname()[1] if port else 1: "a kubelet"})
        left = {f"{method} {SERVER}/api/v1/nodes/cp2": node("127.0.0.1", ready) for method in ("GET", "DELETE")}
        cluster = Cluster(**left)
        member.ask = cluster.ask
        assert member.main("{}", "forget", "10.0.0.11", json.dumps({"cp2": "127.0.0.1"}), "lost") == (3 if told else 0)
    assert told in capsys.readouterr().out
    assert (f"DELETE {SERVER}/api/v1/nodes/cp2", None) in cluster.asked or told


def test_plans_of_another_controller_are_named_and_none_where_it_is_not(member: t.Any, capsys: t.Any) -> None:
    url = f"GET {SERVER}/apis/upgrade.cattle.io/v1/plans"
    plans = [{"metadata": {"namespace": "system-upgrade", "name": name}} for name in ("server", "agent")]
    for answers, named in (
        ({url: {"items": plans}}, ["system-upgrade/agent", "system-upgrade/server"]),
        ({url: {"items": []}}, []),
        # Without its CRD.
        ({}, []),
    ):
        member.ask = Cluster(**answers).ask
        assert member.main("{}", "plans", "10.0.0.11") == 0
        assert json.loads(capsys.readouterr().out) == named


@pytest.mark.parametrize(("busy", "status"), [(4, 0), (5, 1)])
def test_plans_of_a_busy_api_server_are_asked_for_again(
    member: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: t.Any, busy: int, status: int
) -> None:
    answers: list[t.Any] = [TimeoutError("timed out")] * busy
    answers.append(json.dumps({"items": [{"metadata": {"namespace": "default", "name": "agents"}}]}))

    def ask(*_arguments: t.Any) -> str:
        if isinstance(answer := answers.pop(0), OSError):
            raise answer
        return str(answer)

    member.ask = ask
    monkeypatch.setattr(member.time, "sleep", lambda _seconds: None)
    assert member.main("{}", "plans", "10.0.0.11") == status
    assert capsys.readouterr().out == ("" if status else '["default/agents"]\n')
