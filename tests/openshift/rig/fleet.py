# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of joined nodes, played by the sandbox's fleet agent: a stand-in for kubelet's and the container runtime's other half, and for GPUs.

    with Fleet(plane, place) as fleet:
        fleet.play({"w0.ocp.example.com": {"gpu": GPU}})    # a node, as pools of a fleet file describe it; kernel is that of its Node
        ...                                                 # a node program is started with --logs fleet.logs

The agent reports capacity and allocatable of devices, and nothing else of a Node. Whoever keeps the Node has to leave these as they are.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import http.client
import http.server
import json
import os
import pathlib
import ssl
import sys
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import fleet_file, process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import read_json, write_if_changed
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.supervisor import find_port
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Key, Subject, issue

#: What CoreOS since OpenShift 4.19 is to drivers, in the words of a fleet file.
SYSTEM = {
    "os_image": "Red Hat Enterprise Linux CoreOS 9.6",
    "os_id": "rhel",
    "os_version": "9.6",
    "container_runtime": "cri-o://1.33.4",
}
_CLIENT = "kube-apiserver-to-kubelet-client"
_AGENT = "fleet-agent"
#: Seconds for each second of a real node.
_TIME_SCALE = 0.02
#: Seconds after SIGTERM.
_STOPPING = 10.0


class Fleet:
    """images: that registries have beside the published ones, such as a precompiled driver of somebody's own.

    address, port: for the logs, any port if it is 0. logs: address and port of an HTTP server with the logs of all pods.
    """

    def __init__(
        self,
        plane: ControlPlane,
        place: pathlib.Path,
        images: c.Sequence[str] = (),
        address: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._plane, self._place, self._images = plane, place, images
        self._port = find_port(())
        self._relay = _relay((address, port), self._port, place / "pki")
        self.logs = f"{address}:{self._relay.server_address[1]}"

    def __enter__(self) -> t.Self:
        _write_keys(self._place / "pki", self._plane)
        self.play({})
        process.start(self._command(), self._place / "agent.log", self._place / "agent.pid")
        threading.Thread(target=self._relay.serve_forever, name="logs").start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._relay.shutdown()
        self._relay.server_close()
        known = process.known(self._place / "agent.pid")
        process.stop([known] if known else [], _STOPPING)

    def play(self, nodes: c.Mapping[str, c.Mapping[str, t.Any]]) -> None:
        """From now on it plays these, which have to have joined, and no others. Returns once the agent has them."""
        found = {}
        for name, described in nodes.items():
            kernel = self._plane.admin.get(NODE, name)["status"]["nodeInfo"]["kernelVersion"]
            pool = {"name": "joined", "count": 1, "kernel": kernel, **SYSTEM, **described}
            found[name] = next(iter(fleet_file.parse({"pools": [pool]})["nodes"].values()))
        fleet = {"time_scale": _TIME_SCALE, "seed": 1, "images": list(self._images), "nodes": found}
        write_if_changed(self._place / "fleet.json", json.dumps(fleet))
        if nodes:
            until(lambda: self._status().get("nodes") == len(nodes), "the agent to have its nodes", 60, self._status)

    def log(self) -> str:
        return (self._place / "agent.log").read_text(encoding="utf-8", errors="replace")

    def _status(self) -> dict[str, t.Any]:
        return read_json(self._place / "agent-status.json")

    def _command(self) -> process.Command:
        own = REPOSITORY / "roles" / "sandbox" / "files"
        arguments = (
            "-m",
            "fleet_agent",
            f"--kubeconfig={self._plane.kubeconfig}",
            f"--fleet={self._place}/fleet.json",
            f"--state={self._place}",
            f"--listen-port={self._port}",
            "--joined",
        )
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
        return process.Command(_AGENT, (sys.executable, *arguments), environment, self._place)


def _write_keys(folder: pathlib.Path, plane: ControlPlane) -> None:
    """Of the agent's server of logs, whose only client is the API server by its key, and of the relay, which has that key."""
    folder.mkdir(mode=0o700)
    key, begin = Key.generate("P-256"), datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    own = issue(Subject(_AGENT), key, begin, begin + datetime.timedelta(days=1), names=("127.0.0.1",))
    tls = plane.disk.tls
    contents = {
        "kubelet.crt": own,
        "kubelet.key": key.pem(),
        "ca.crt": tls("kube-apiserver-to-kubelet-ca-bundle.crt").read_bytes(),
        "kubelet-client.crt": tls(f"{_CLIENT}.crt").read_bytes(),
        "kubelet-client.key": tls(f"{_CLIENT}.key").read_bytes(),
    }
    for name, content in contents.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)


def _relay(listens: tuple[str, int], port: int, keys: pathlib.Path) -> http.server.ThreadingHTTPServer:
    """Passes requests of node programs on to the agent: they have no key of the API server's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: t.Any) -> None:
            pass

        def do_GET(self) -> None:
            context = ssl.create_default_context(cafile=str(keys / "kubelet.crt"))
            context.load_cert_chain(keys / "kubelet-client.crt", keys / "kubelet-client.key")
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
            connection.request("GET", self.path)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return http.server.ThreadingHTTPServer(listens, Handler)
