# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token of servers and the key of Secrets are replaced in a cluster of three servers, on the stand-in for K3s.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

pytestmark = pytest.mark.slow
SERVERS = ("s1", "s2", "s3")
_SECRET = Resource("", "v1", "Secret", "secrets", True)
TOKEN, KEYS = "cluster_k3s_entry=rotate_token", "cluster_k3s_entry=rotate_encryption_keys"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, SERVERS, balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    site.done()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "namespace": "default"}}
    site.client().create({**secret, "stringData": {"password": "as before"}}, _SECRET)
    return site


def changes(run: Run) -> list[str]:
    return list(run.summary["one"]["changes"])


def tokens(site: K3sSite, *paths: str) -> set[str]:
    return {site.machines[name].read(path).strip() for name in SERVERS for path in paths}


def starts(site: K3sSite) -> dict[str, str]:
    return {name: site.machines[name].sh("systemctl show --property=InvocationID k3s") for name in SERVERS}


def is_whole(site: K3sSite) -> None:
    assert [site.voters(site.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3
    assert site.client().get(_SECRET, "kept", "default")["data"]["password"] == "YXMgYmVmb3Jl"
    assert site.done().changed() == 0


def status(site: K3sSite, name: str) -> dict[str, t.Any]:
    return dict(json.loads(site.machines[name].sh("k3s secrets-encrypt status --output json")))


def killed(site: K3sSite, kill: Kill, folder: pathlib.Path, *arguments: str) -> None:
    path = folder / "started"
    assert site.killed(kill.reached(path), *arguments, environment={"HWACCEL_STARTED": str(path)}, timeout=900)


def test_a_token_that_is_not_set_is_a_fault(site: K3sSite) -> None:
    run = site.play("cluster_k3s", "-e", TOKEN)
    assert run.rc != 0 and run.changed() == 0
    assert "set cluster_k3s_token_file to a file on the controller" in json.dumps(run.summary)


def test_the_token_is_replaced_also_by_a_run_that_was_killed(site: K3sSite, tmp_path: pathlib.Path) -> None:
    own, given, path = f"{DATA}/server/token", "/etc/rancher/k3s/token", tmp_path / "token"
    (before,) = tokens(site, own)
    arguments = ("-e", TOKEN, "-e", f"cluster_k3s_token_file={path}")
    predicted = site.done(*arguments, "--check")
    assert not path.exists() and tokens(site, own) == {before}
    assert changes(predicted) == [
        "replace the token of servers on s1",
        "give s1, s2, s3 the new token",
        "restart K3s on s1 with the new token",
        "restart K3s on s2 with the new token",
        "restart K3s on s3 with the new token",
    ]
    # While the second server is restarted.
    killed(site, Kill("hwaccel.gpu.cluster_k3s : start | Start K3s", 2, 0.5), tmp_path, *arguments)
    new = path.read_text(encoding="utf-8").strip()
    assert path.stat().st_mode & 0o777 == 0o600 and new not in before
    began = time.monotonic()
    run = site.done(*arguments, "-vvv")
    print(f"the next run: {time.monotonic() - began:.0f} s; {changes(run)}")
    assert not [text for text in changes(run) if text.startswith("replace ")]
    assert {text.rpartition(":")[2] for text in tokens(site, own, given)} == {new}
    assert new not in run.stdout and before.rpartition(":")[2] not in run.stdout
    again = site.done(*arguments)
    assert again.changed() == 0 and "have this token already" in again.stdout
    is_whole(site)
    assert secrets_shown(site.machines.values(), [new, before.rpartition(":")[2]]) == []


def test_machines_join_after_it(site: K3sSite) -> None:
    site.agents = ("a1",)
    site.machines["a1"] = site.boot("a1")
    assert [text.partition(":")[0] for text in changes(site.done())] == ["join a1"]


def test_the_key_of_secrets_is_replaced_also_by_a_run_that_was_killed(site: K3sSite, tmp_path: pathlib.Path) -> None:
    key = status(site, "s1")["activekey"].split()[-1]
    told = site.done("-e", KEYS)
    assert told.changed() == 0 and f"-e hwaccel_confirm={key}" in told.stdout
    other = site.play("cluster_k3s", "-e", KEYS, "-e", "hwaccel_confirm=another")
    assert other.rc != 0 and "hwaccel_confirm names another key" in other.stdout
    arguments = ("-e", KEYS, "-e", f"hwaccel_confirm={key}")
    predicted = changes(site.done(*arguments, "--check"))
    assert predicted[0] == "encrypt all Secrets with another key on s1" and len(predicted) == 5
    # While Secrets are encrypted again.
    killed(site, Kill("hwaccel.gpu.cluster_k3s : replace_key | Replace it", 1, 5), tmp_path, *arguments)
    began = time.monotonic()
    run = site.done(*arguments)
    print(f"the next run: {time.monotonic() - began:.0f} s; {changes(run)}")
    found = [status(site, name) for name in SERVERS]
    assert {one["stage"] for one in found} == {"reencrypt_finished"} and all(one["hashmatch"] for one in found)
    assert len({one["activekey"] for one in found}) == 1 and key not in found[0]["activekey"].split()
    assert not [one for one in found if one.get("inactivekeys")]
    before = starts(site)
    again = site.done(*arguments)
    assert again.changed() == 0 and "was replaced already" in again.stdout and starts(site) == before
    is_whole(site)
