# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark's own requests to the sandbox, with another client than the measured one."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import pathlib
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

import urllib3
import yaml
from measure import OWN_AGENT


class Api:
    """A client with the identity of the sandbox's administrator."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = self.config["clusters"][0]["cluster"], self.config["users"][0]["user"]
        self.server = str(cluster["server"])
        self.address = urllib.parse.urlsplit(self.server)
        with tempfile.TemporaryDirectory() as folder:
            ca, certificate, key = (
                self._file(folder, source, name)
                for source, name in (
                    (cluster, "certificate-authority"),
                    (user, "client-certificate"),
                    (user, "client-key"),
                )
            )
            context = urllib3.util.ssl_.create_urllib3_context()
            context.load_verify_locations(ca)
            context.load_cert_chain(certificate, key)
        self.pool = urllib3.HTTPSConnectionPool(
            str(self.address.hostname),
            self.address.port,
            ssl_context=context,
            maxsize=8,
            headers={"User-Agent": OWN_AGENT},
            timeout=60,
        )

    @staticmethod
    def _file(folder: str, source: dict[str, str], name: str) -> str:
        if name in source:
            return source[name]
        path = pathlib.Path(folder) / name
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(source[f"{name}-data"]))
        return str(path)

    def call(self, method: str, path: str, content: Any = None, kind: str = "application/json") -> dict[str, Any]:
        payload = None if content is None else json.dumps(content)
        response = self.pool.request(
            method, path, body=payload, headers={"User-Agent": OWN_AGENT, "Content-Type": kind}
        )
        if response.status >= 400 and response.status not in (404, 409):
            raise SystemExit(f"{method} {path}: {response.status} {response.data[:500]!r}")
        document: dict[str, Any] = json.loads(response.data)
        return document

    def each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> None:
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
            for unused in pool.map(work, items):
                del unused

    def kubeconfig_at(self, port: int, path: pathlib.Path) -> pathlib.Path:
        """Writes a kubeconfig with the same credentials and another port of loopback."""
        changed = json.loads(json.dumps(self.config))
        changed["clusters"][0]["cluster"]["server"] = f"https://{self.address.hostname}:{port}"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(changed), encoding="utf-8")
        return path
