# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lone server with SQLite, which has made its token itself, gets another one, on the stand-in for K3s."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown

pytestmark = pytest.mark.slow
TOKEN = "cluster_k3s_entry=rotate_token"


def test_a_lone_server_gets_another_token(k3s_rig: K3sRig, tmp_path: pathlib.Path) -> None:
    site, path = K3sSite(k3s_rig, servers=("s1",)), tmp_path / "token"
    site.done()
    server = site.machines["s1"]
    before = server.read(f"{DATA}/server/token").strip()
    arguments = ("-e", TOKEN, "-e", f"cluster_k3s_token_file={path}")
    predicted = site.done(*arguments, "--check").summary["one"]["changes"]
    run = site.done(*arguments, "-vvv")
    assert run.summary["one"]["changes"] == predicted
    assert predicted == [
        "replace the token of servers on s1",
        "give s1 the new token",
        "restart K3s on s1 with the new token",
    ]
    new, old = path.read_text(encoding="utf-8").strip(), before.rpartition(":")[2]
    for place in (f"{DATA}/server/token", "/etc/rancher/k3s/token"):
        assert server.read(place).strip() == before.replace(old, new)
    assert new not in run.stdout and old not in run.stdout
    assert secrets_shown([server], [new, old]) == []
    again = site.done(*arguments)
    assert again.changed() == 0 and "have this token already" in again.stdout
    assert site.done().changed() == 0
