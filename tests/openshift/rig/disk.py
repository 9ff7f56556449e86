# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk of the bootstrap machine as a folder, and which file of it is what (sections 1 and 5 of behaviours.yml).

Ignition has written the files, or whoever has decoded bootstrap.ign in its place (`unpack`). Nothing else of an installation is known here: not its folder, not
its inventory.
"""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import json
import pathlib
import typing as t
import urllib.parse

import yaml

from ansible_collections.hwaccel.gpu.tests.openshift import support

Obj = dict[str, t.Any]
_OPT = pathlib.PurePosixPath("opt/openshift")


@dataclasses.dataclass(frozen=True)
class Disk:
    """root: a folder with opt/openshift in it. Files that are asked for and missing raise FileNotFoundError with their path."""

    root: pathlib.Path

    def path(self, name: str) -> pathlib.Path:
        """Of a file below /opt/openshift."""
        path = self.root / _OPT / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: Ignition has not written it on the bootstrap machine's disk")
        return path

    def tls(self, name: str) -> pathlib.Path:
        return self.path(f"tls/{name}")

    def kubeconfig(self, name: str = "") -> Obj:
        """A kubeconfig of /opt/openshift/auth: of the administrator, or `kubelet` and `loopback`."""
        text = self.path(f"auth/kubeconfig{name and '-' + name}").read_text(encoding="utf-8")
        content: Obj = yaml.safe_load(text)
        return content

    @property
    def domain(self) -> str:
        """Of the cluster, such as dgxpod.example.com: 22623 gives machines a kubeconfig for api-int of it."""
        server = urllib.parse.urlsplit(self.kubeconfig("kubelet")["clusters"][0]["cluster"]["server"])
        return str(server.hostname).removeprefix("api-int.")

    @property
    def infrastructure(self) -> str:
        """infraID."""
        (found,) = (one for one in self.manifests() if one["kind"] == "Infrastructure")
        return str(found["status"]["infrastructureName"])

    @property
    def service_network(self) -> str:
        (found,) = (one for one in self.manifests() if one["kind"] == "Network")
        return str(found["spec"]["serviceNetwork"][0])

    def manifests(self) -> list[Obj]:
        """What the bootstrap machine's cluster-bootstrap creates, in the order of their files."""
        files = sorted(
            path for folder in ("manifests", "openshift") for path in (self.root / _OPT / folder).glob("*.y*ml")
        )
        return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]

    def client(self, server: str, name: str = "") -> Obj:
        """A kubeconfig for this server, with what its authorities are by kubeconfig-loopback.

        name: of the certificate and key in /opt/openshift/tls, by default those of the administrator. The server is held to `localhost`, which is in one of
        its certificates whatever its address is.
        """
        content = self.kubeconfig("loopback")
        content["clusters"][0]["cluster"] |= {"server": server, "tls-server-name": "localhost"}
        if name:
            pair = {"client-certificate-data": f"{name}.crt", "client-key-data": f"{name}.key"}
            content["users"][0]["user"] = {
                key: base64.b64encode(self.tls(file).read_bytes()).decode() for key, file in pair.items()
            }
        return content


def unpack(ignition: pathlib.Path, root: pathlib.Path) -> Disk:
    """Writes the files of an ignition file below a folder with their modes, as Ignition does on a disk; users and units are left out."""
    content = json.loads(ignition.read_bytes())
    modes: c.Mapping[str, int] = {entry["path"]: entry["mode"] for entry in content["storage"]["files"]}
    for name, data in support.contents(content).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)
        path.chmod(modes[name])
    return Disk(root)
