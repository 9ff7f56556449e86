# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's HTTP connections to a server whose answers a test defines, byte by byte."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import pathlib
import socket
import threading
import typing as t

import pytest

from fleet_agent.cluster.api import AGENT, Api, ApiError, Identity, Unreachable
from fleet_agent.cluster.connections import BROKEN, Connections

OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """`answers`: answers of each connection in turn, before it is closed. The first `together` connections are answered when all have sent a request."""

    def __init__(self, *answers: list[bytes], together: int = 1) -> None:
        self.heads: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.clients = contextlib.ExitStack()
        self._answers, self._together = answers, together
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def connections(self) -> Connections:
        created = Connections(f"http://127.0.0.1:{self._listener.getsockname()[1]}", None)
        self.clients.callback(created.close)
        return created

    def api(self, tmp_path: pathlib.Path) -> Api:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._listener.getsockname()[1]}/prefix"}}
            ],
            "users": [{"name": "u", "user": {"token": "secret"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config), encoding="utf-8")
        created = Api(str(path))
        self.clients.callback(created.close)
        return created

    def _run(self) -> None:
        all_requested = threading.Barrier(self._together)
        first = [
            threading.Thread(target=self._serve, args=(answers, all_requested))
            for answers in self._answers[: self._together]
        ]
        for thread in first:
            thread.start()
        for thread in first:
            thread.join()
        for answers in self._answers[self._together :]:
            self._serve(answers, threading.Barrier(1))

    def _serve(self, answers: list[bytes], all_requested: threading.Barrier) -> None:
        accepted, _address = self._listener.accept()
        with accepted, accepted.makefile("rb") as reader:
            for answer in answers:
                head = [line.decode().strip() for line in iter(reader.readline, b"\r\n")]
                self.bodies.append(
                    reader.read(next(int(line.split(": ")[1]) for line in head if line.startswith("Content-Length")))
                )
                self.heads.append(head)
                all_requested.wait(240)
                accepted.sendall(answer)

    def close(self) -> None:
        self._thread.join(240)
        self._listener.close()
        self.clients.close()


@pytest.fixture
def serve() -> t.Iterator[t.Callable[..., Server]]:
    with contextlib.ExitStack() as servers:

        def start(*answers: list[bytes], together: int = 1) -> Server:
            created = Server(*answers, together=together)
            servers.callback(created.close)
            return created

        yield start


def answer(text: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"Content-Length: 4\r\n\r\nabcd", b"abcd"),
        (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", b"abc0123456789"),
        (b"content-length:0\r\n\r\n", b""),
    ],
)
def test_bodies_with_length_or_chunks_use_one_connection(serve, body, data):
    server = serve([OK + body, OK + body])
    connections = server.connections()
    assert [connections.request("GET", "/", []).data for _turn in range(2)] == [data, data]


def test_a_request_has_path_headers_and_body(serve, tmp_path):
    server = serve([answer('{"kind": "Pod"}')])
    who = Identity(
        "system:node:a", ("system:nodes", "system:authenticated"), (("authentication.kubernetes.io/pod-name", "p"),)
    )
    assert server.api(tmp_path).request(
        "PATCH", "/api/v1/x", {"a": "ü"}, who, "application/merge-patch+json", {"k": "a b"}
    ) == {"kind": "Pod"}
    assert server.heads[0][0] == "PATCH /prefix/api/v1/x?k=a+b HTTP/1.1"
    assert {
        "Impersonate-User: system:node:a",
        "Impersonate-Group: system:nodes",
        "Impersonate-Group: system:authenticated",
        "Impersonate-Extra-authentication.kubernetes.io%2Fpod-name: p",
        "Content-Type: application/merge-patch+json",
        "Authorization: Bearer secret",
    } <= set(server.heads[0])
    assert json.loads(server.bodies[0]) == {"a": "ü"}


def test_an_error_has_the_message_of_the_server(serve, tmp_path):
    server = serve([answer('{"reason": "Forbidden", "message": "no"}', "403 Forbidden")])
    with pytest.raises(ApiError, match="no") as caught:
        server.api(tmp_path).request("GET", "/x")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("POST", "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/ns/nodefeatures", "(post nodefeatures.nfd.k8s-sigs.io)"),
        (
            "GET",
            "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/ns/nodefeatures/n0",
            "(get nodefeatures.nfd.k8s-sigs.io n0)",
        ),
        ("GET", "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeatures", "(get nodefeatures.nfd.k8s-sigs.io)"),
        ("GET", "/api/v1/namespaces/ns", "(get namespaces ns)"),
    ],
)
def test_an_unknown_kind_is_reported_like_in_client_go(serve, tmp_path, method, path, words):
    server = serve([answer("404 page not found", "404 Not Found")])
    with pytest.raises(ApiError) as caught:
        server.api(tmp_path).request(method, path)
    assert (caught.value.code, caught.value.message) == (
        404,
        f"the server could not find the requested resource {words}",
    )


@pytest.mark.parametrize(
    "cut",
    [b"", OK + b"Content-Length: 10\r\n\r\nabc", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", b"SSH-2.0\r\n"],
)
def test_a_connection_that_ends_early_is_an_error(serve, cut):
    with pytest.raises(BROKEN):
        serve([cut]).connections().request("GET", "/", [])


def test_a_restarted_server_costs_one_attempt(serve, tmp_path):
    """All kept connections are closed then, and trying each of them would exhaust the attempts."""
    server = serve(*[[answer("{}")]] * 3, [answer('{"a": 1}')], together=3)
    created = server.api(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _n: created.request("GET", "/x"), range(3))) == [{}] * 3
    assert created.request("GET", "/x", tries=2) == {"a": 1}


def test_an_unreachable_server_is_an_error(serve, tmp_path):
    server = serve()
    created = server.api(tmp_path)
    server.close()
    with pytest.raises(Unreachable):
        created.request("GET", "/x", tries=2)


def test_a_watch_returns_objects_as_they_arrive(serve, tmp_path):
    lines = b'{"n": 1}\n{"n"', b": 2}\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    server = serve([OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"])
    assert list(server.api(tmp_path).watch("/x", "7", AGENT)) == [{"n": 1}, {"n": 2}]
    assert "resourceVersion=7" in server.heads[0][0]
