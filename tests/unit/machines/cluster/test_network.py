# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""network.py on a machine: what it asks for, and what it tells. tests/cluster runs it in the network namespace of a real pod."""

from __future__ import annotations

import email.message
import ipaddress
import itertools
import json
import pathlib
import socket
import threading
import typing as t
import urllib.error

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster" / "files" / "network.py"
_CONFIG = "clusterDNS:\n- 10.96.0.10\nclusterDomain: example.internal\nkind: KubeletConfiguration\n"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> t.Any:
    module = loaded(PATH)
    (tmp_path / "config.yaml").write_text(_CONFIG, encoding="utf-8")
    module.PLACES.update(
        manifests=str(tmp_path / "manifests"), kubelet={"configuration": str(tmp_path / "config.yaml")}
    )
    module.PAUSE = 0
    monkeypatch.setattr(module, "enter", lambda _address: None)
    monkeypatch.setattr(module, "address", lambda _node, _server: "10.244.1.2")
    monkeypatch.setattr(module, "api", lambda _host: None)
    monkeypatch.setattr(module, "resolve", lambda *_given, **_port: None)
    monkeypatch.setattr(module, "read", lambda _server, _path: {})
    return module


def run(network: t.Any, *more: str, seconds: str = "0") -> int:
    return int(
        network.main("{}", "w1", "10.0.0.1:6443", "10.96.0.0/12", "registry.k8s.io/pause:3.10.2", seconds, *more)
    )


def failing(text: str, times: float = float("inf")) -> t.Callable[..., None]:
    calls = itertools.count()

    def call(*_given: t.Any, **_more: t.Any) -> None:
        if next(calls) < times:
            raise OSError(text)

    return call


def test_a_pod_that_reaches_everything_leaves_nothing_behind(network: t.Any, capsys: t.Any) -> None:
    made: list[dict[str, t.Any]] = []
    network.enter = lambda _address: made.append(
        json.loads(pathlib.Path(network.manifest_path()).read_text(encoding="utf-8"))
    )
    assert (run(network), capsys.readouterr().out) == (0, "")
    assert list(pathlib.Path(network.manifest_path()).parent.iterdir()) == []
    (container,) = made[0]["spec"]["containers"]
    assert container["image"] == "registry.k8s.io/pause:3.10.2"
    assert container["securityContext"]["runAsNonRoot"] and container["securityContext"]["capabilities"] == {
        "drop": ["ALL"]
    }


@pytest.mark.parametrize(
    ("part", "why", "told"),
    [
        ("api", "timed out", "the API server's Service at 10.96.0.1:443: timed out"),
        ("resolve", "refused", "the cluster's DNS at 10.96.0.10:53: refused"),
        ("enter", "no network namespace", "the pod hwaccel-network-check-w1: no network namespace"),
        ("address", "it is Pending", "the pod hwaccel-network-check-w1: it is Pending"),
    ],
)
def test_what_is_not_reached_is_told_and_nothing_is_left_behind(
    network: t.Any, capsys: t.Any, part: str, why: str, told: str
) -> None:
    setattr(network, part, failing(why))
    assert run(network) == 1
    assert capsys.readouterr().out == f"{told}\n"
    assert not pathlib.Path(network.manifest_path()).exists()


def test_rules_of_a_new_node_may_need_a_moment(network: t.Any) -> None:
    network.api = failing("refused", 3)
    assert run(network, seconds="30") == 0


def test_without_the_addon_nothing_is_asked_of_dns(network: t.Any) -> None:
    network.resolve = failing("refused")
    assert run(network, "none") == 0


def test_pods_of_dns_may_wait_for_a_node_that_is_cordoned(network: t.Any) -> None:
    def refuse(*_given: t.Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    network.resolve = refuse
    assert (run(network, "if-ready"), run(network)) == (0, 1)
    network.resolve = failing("timed out")
    assert run(network, "if-ready") == 1


def test_what_is_asked_of_dns(network: t.Any) -> None:
    asked: list[tuple[str, ...]] = []
    network.resolve = lambda *given: asked.append(given)
    assert run(network) == 0
    assert asked == [("10.96.0.10", "kubernetes.default.svc.example.internal", "10.96.0.1")]


def endpoints(*places: tuple[str, str]) -> dict[str, t.Any]:
    """Of the cluster's DNS, by address and node."""
    ports = [{"name": "dns-tcp", "port": 53, "protocol": "TCP"}, {"name": "dns", "port": 5353, "protocol": "UDP"}]
    return {"subsets": [{"addresses": [{"ip": ip, "nodeName": node} for ip, node in places], "ports": ports}]}


def test_pods_of_dns_on_other_nodes_are_asked_themselves(network: t.Any, capsys: t.Any) -> None:
    """The Service may choose the one on the same node."""
    read: list[tuple[str, str]] = []

    def tell(server: str, path: str) -> dict[str, t.Any]:
        read.append((server, path))
        return endpoints(("10.244.1.9", "w1"), ("10.244.2.9", "w2"))

    def resolve(server: str, _name: str, _expected: str, port: int = 53) -> None:
        if (server, port) != ("10.96.0.10", 53):
            raise OSError(f"timed out at {port}")

    network.read, network.resolve = tell, resolve
    assert run(network) == 1
    assert capsys.readouterr().out == "pods of DNS on other nodes: 10.244.2.9 on w2: timed out at 5353\n"
    assert set(read) == {("10.96.0.1:443", "endpoints/kube-dns")}
    network.read = lambda _server, _path: endpoints(("10.244.1.9", "w1"))
    assert run(network) == 0


def test_pods_of_dns_that_have_moved_are_not_waited_for(network: t.Any) -> None:
    places = iter([endpoints(("10.244.2.9", "w2")), endpoints(("10.244.3.9", "w3"))])
    network.read = lambda _server, _path: next(places)

    def resolve(server: str, *_asked: str, port: int = 53) -> None:
        if server == "10.244.2.9":
            raise OSError("timed out")

    network.resolve = resolve
    assert run(network, seconds="30") == 0


@pytest.mark.parametrize(("status", "reached"), [(403, True), (404, True), (500, False)])
def test_where_pods_of_dns_are_may_not_be_known(network: t.Any, status: int, reached: bool) -> None:
    def refuse(_server: str, path: str) -> t.NoReturn:
        raise urllib.error.HTTPError(path, status, "no", email.message.Message(), None)

    network.read = refuse
    assert (run(network) == 0) == reached


@pytest.mark.parametrize(("answered", "reached"), [("10.96.0.1", True), ("10.96.0.2", False)])
def test_an_answer_counts_if_it_has_the_address_of_the_api_server(answered: str, reached: bool) -> None:
    module = loaded(PATH)
    queries: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]

        def answer() -> None:
            query, client = server.recvfrom(512)
            queries.append(query)
            server.sendto(query[:2] + b"\x81\x80" + query[4:] + ipaddress.ip_address(answered).packed, client)

        thread = threading.Thread(target=answer)
        thread.start()
        if reached:
            module.resolve("127.0.0.1", "a.example", "10.96.0.1", port)
        else:
            with pytest.raises(OSError, match=r"no answer with 10\.96\.0\.1 for a\.example \(status 0\)"):
                module.resolve("127.0.0.1", "a.example", "10.96.0.1", port)
        thread.join()
    assert queries[0].endswith(b"\x01a\x07example\x00\x00\x01\x00\x01")


def test_an_address_is_looked_for_where_it_is_local() -> None:
    module = loaded(PATH)
    assert module.owns("127.0.0.1")
    assert not module.owns("192.0.2.1")
