# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Prometheus server on the loopback interface, and pages for it to scrape. Both end with their context."""

from __future__ import annotations

import collections.abc as c
import contextlib
import http.server
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request

import yaml

Found = t.TypeVar("Found")
#: Timeout in seconds of each step.
PATIENCE = 240.0
_PAUSE = 0.1
#: Another process can use the free port in the meantime.
_ATTEMPTS = 3


class Prometheus:
    """The HTTP API of a server, https://prometheus.io/docs/prometheus/latest/querying/api/."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=PATIENCE):
                return True
        except urllib.error.URLError:
            return False

    def get(self, path: str, **parameters: str) -> t.Any:
        """`data` of the answer. Raises AssertionError if it is an error or has warnings."""
        try:
            with urllib.request.urlopen(
                f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=PATIENCE
            ) as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error
        assert (answer["status"], answer.get("warnings")) == ("success", None), answer
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, t.Any]]:
        return t.cast("list[dict[str, t.Any]]", self.get("query", query=expression)["result"])

    def rules(self) -> list[dict[str, t.Any]]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


def until(what: str, happened: c.Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen in {PATIENCE:.0f} s"
        time.sleep(_PAUSE)


def observed(query: c.Callable[[], Found], as_expected: c.Callable[[Found], bool]) -> Found:
    """The result of a query once it is as expected, or at the timeout. A target that answers late has no data until the next scrape."""
    found = query()

    def again() -> bool:
        nonlocal found
        found = query()
        return as_expected(found)

    with contextlib.suppress(AssertionError):
        until("the expected result", again)
    return found


@contextlib.contextmanager
def pages(bodies: c.Mapping[str, str]) -> c.Iterator[str]:
    """HOST:PORT of a server where each path has its body, like that of an exporter."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies[self.path].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: t.Any) -> None:
            """Requests are not logged, to keep the output of pytest short."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(_PAUSE,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def prometheus(program: str, folder: pathlib.Path, config: dict[str, t.Any], rules: str) -> c.Iterator[Prometheus]:
    """`config`: configuration of Prometheus. Its rules file is rules.yml in the folder."""
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with contextlib.ExitStack() as stack:
        for _attempt in range(_ATTEMPTS):
            process, server = _started(program, folder)
            stack.callback(_ended, process)
            if _serves(process, server):
                yield server
                return
        raise AssertionError((folder / "log").read_text(encoding="utf-8"))


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def _started(program: str, folder: pathlib.Path) -> tuple[subprocess.Popen[bytes], Prometheus]:
    address = free_address()
    command = [
        program,
        "--config.file=prometheus.yml",
        f"--web.listen-address={address}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--log.level=warn",
    ]
    with (folder / "log").open("wb") as log:
        # Times in answers depend on the time zone of the process.
        environment = os.environ | {"TZ": "UTC"}
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ), Prometheus(f"http://{address}")


def _serves(process: subprocess.Popen[bytes], server: Prometheus) -> bool:
    until("Prometheus", lambda: process.poll() is not None or server.ready())
    return process.poll() is None


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
