# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of what machines need from elsewhere, by a real run: no machine is asked, and nothing is executed that has not its checksum."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import pathlib
import subprocess
import threading
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.unit import programs
from ansible_collections.hwaccel.gpu.tests.unit.action import plays

KUBEADM = "#!/bin/sh\n[ $1 = config ] && echo registry.k8s.io/etcd:3.6.8-0\n"


def program(path: pathlib.Path, text: str, source: str = "") -> dict[str, t.Any]:
    path.write_text(text)
    path.chmod(0o755)
    return {
        "name": path.name,
        "source": source or str(path),
        "checksum": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
    }


def ran(folder: pathlib.Path, groups: dict[str, t.Any]) -> subprocess.CompletedProcess[str]:
    (folder / "hosts.yml").write_text(yaml.safe_dump(groups))
    given = ["-e", "cluster_kubeadm_entry=bundle", "-e", f"hwaccel_summary_file={folder}/summary.json"]
    return subprocess.run(
        [plays.PROGRAM, "-i", "hosts.yml", "hwaccel.gpu.cluster_kubeadm", *given],
        cwd=folder,
        env=programs.environment(folder, "K8S_AUTH_")
        | {"ANSIBLE_COLLECTIONS_PATH": str(plays.ROOT.parents[2]), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_programs_and_images_are_listed_with_their_sizes(tmp_path: pathlib.Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/kubelet"
        refused = program(tmp_path / "other", KUBEADM.replace("etcd", "planted"))
        listed = [
            program(tmp_path / "kubeadm", KUBEADM),
            program(served / "kubelet", "x" * 2048, address) | {"architecture": "aarch64"},
            refused | {"name": "kubeadm", "checksum": f"sha256:{'0' * 64}", "architecture": "x86_64"},
        ]
        cluster = {
            "ansible_connection": "local",
            "hwaccel_installer": "kubeadm",
            "cluster_kubeadm_version": "1.36.4",
            "cluster_kubeadm_programs": listed,
        }
        groups = {
            "gpu_clusters": {"hosts": {"one": cluster}},
            "control_plane": {"hosts": {"cp1": {"ansible_ssh_executable": "/bin/false"}}},
        }
        done = ran(tmp_path, groups)
        server.shutdown()
    assert done.returncode == 0, done.stdout[-4000:]
    needs = json.loads((tmp_path / "summary.json").read_text())["machines"]["one"]["needs"]
    sizes = {(one["name"], one["architecture"]): one["bytes"] for one in needs if one["kind"] == "program"}
    assert sizes == {
        ("kubeadm", ""): len(KUBEADM),
        ("kubelet", "aarch64"): 2048,
        ("kubeadm", "x86_64"): len(KUBEADM) + 3,
    }
    assert [one["name"] for one in needs if one["kind"] == "image"] == [
        "registry.k8s.io/etcd:3.6.8-0",
        "registry.k8s.io/pause:3.10.2",
    ]
    assert "3 of 3 files are known" in done.stdout
