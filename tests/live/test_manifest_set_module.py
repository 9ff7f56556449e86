# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""manifest_set as users run it: with the command ansible, beside kubectl, with webhooks and slices."""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import json
import os
import shutil
import subprocess
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support import adhoc
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import Obj, Sets, actions, config_map, deployment

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
SPACE = "module"


def ansible(sandbox: t.Any, arguments: dict[str, t.Any], *options: str) -> tuple[int, dict[str, t.Any], str]:
    """Exit status, result, and output of one ad-hoc task."""
    return adhoc.task("manifest_set", {"kubeconfig": sandbox.kubeconfig} | arguments, *options, home=sandbox.state_dir)


def test_first_run_second_run_and_a_readable_error(sandbox: t.Any, sets: Sets, name: str) -> None:
    arguments = {
        "name": name,
        "definition": [config_map(f"{name}-a", SPACE), deployment(f"{name}-d", SPACE)],
        "wait_timeout": 240,
    }
    status, result, printed = ansible(sandbox, arguments, "--diff")
    assert status == 0, printed
    assert result["changed"]
    assert {(row["kind"], row["action"], row["ready"]) for row in result["objects"]} == {
        ("ConfigMap", "created", True),
        ("Deployment", "created", True),
    }
    assert f"+++ after: ConfigMap {SPACE}/{name}-a" in printed
    assert result["not_ready"] == []
    assert "pending" not in result
    status, result, _printed = ansible(sandbox, arguments)
    assert (status, result["changed"]) == (0, False)
    assert result["requests"] <= 4 + 2
    arguments["definition"] = "kind: ["
    status, result, printed = ansible(sandbox, arguments, "-v")
    assert status != 0
    assert "not valid YAML" in result["msg"]
    assert result["faults"][0]["where"].startswith("definition, document 1, line 2")
    assert "Traceback" not in printed + json.dumps(result)


def test_progress_is_printed_during_the_wait(sandbox: t.Any, sets: Sets, name: str) -> None:
    body = deployment(f"{name}-d", SPACE)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "yes"}
    status, result, printed = ansible(sandbox, {"name": name, "definition": [body], "wait_timeout": 12})
    assert status != 0
    assert f"Deployment {SPACE}/{name}-d: 0 of 1 pods" in result["msg"]
    assert result["changed"], "changes before the failed wait are reported"
    assert f"localhost: 0 of 1 ready, Deployment {SPACE}/{name}-d" in printed


def test_a_wait_continues_where_the_previous_slice_stopped(sets: Sets, name: str) -> None:
    definition = [deployment(f"{name}-d", SPACE), config_map(f"{name}-a", SPACE)]
    definition[0]["spec"]["template"]["spec"]["nodeSelector"] = {f"{name}.example": "yes"}
    nodes = Resource("", "v1", "Node", "nodes", False)
    client = sets.client()
    node = client.list(nodes).items[0]["metadata"]["name"]
    report = sets.apply(name, definition, wait=True, clock=Clock(deadline=time.monotonic()))
    assert report.pending is not None, "no node matches, so the pod cannot run yet"
    client.patch(nodes, node, "", {"metadata": {"labels": {f"{name}.example": "yes"}}})
    try:
        slices = 0
        while report.pending is not None:
            slices += 1
            assert slices < 1000
            resume = json.loads(json.dumps(report.pending))
            report = sets.apply(
                name, definition, wait=True, resume=resume, clock=Clock(deadline=time.monotonic() + 0.3)
            )
        assert report.changed, "the last slice reports the changes of the first one"
        assert actions(report)[f"Deployment.apps {SPACE}/{name}-d"] == "created"
        assert all(row.ready for row in report.rows.values() if row.key.kind == "Deployment")
    finally:
        client.patch(nodes, node, "", {"metadata": {"labels": {f"{name}.example": None}}})


def webhook(name: str) -> Obj:
    rules = [
        {"apiGroups": [f"{name}.example"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}
    ]
    hook = {"name": f"h.{name}.example", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": rules}
    hook["clientConfig"] = {"service": {"namespace": SPACE, "name": name, "path": "/"}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


def api_service(name: str) -> Obj:
    spec = {
        "group": f"{name}.example",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    spec["service"] = {"namespace": SPACE, "name": name}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{name}.example"},
        "spec": spec,
    }


@pytest.mark.parametrize("extension", [webhook, api_service])
def test_extensions_of_the_server_are_created_last_and_only_with_ready_endpoints(
    sets: Sets, name: str, extension: c.Callable[[str], Obj]
) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443}]},
    }
    body = extension(name)
    client = sets.client()
    resource = client.resource(body["apiVersion"], body["kind"])
    definition = [body, service]
    late = sets(name, definition, wait_timeout=1)
    assert late.failure is not None
    assert f"Service {SPACE}/{name} has no ready endpoints" in str(late.failure)
    with pytest.raises(NotFound):
        client.get(resource, body["metadata"]["name"])
    paused = sets(name, definition, clock=Clock(deadline=time.monotonic()))
    assert paused.pending is not None
    assert "endpoints of Service" in paused.progress[-1]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        helper = pool.submit(sets.apply, f"{name}-pods", [deployment(name, SPACE)])
        report = sets.apply(name, definition, resume=paused.pending)
        helper.result()
    assert actions(report) == {
        f"{body['kind']}.{resource.group} {body['metadata']['name']}": "created",
        f"Service {SPACE}/{name}": "unchanged",
    }
    assert not sets.apply(name, definition).changed
    sets.remove(name)
    sets.remove(f"{name}-pods")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not available")
def test_kubectl_does_not_change_our_set(sandbox: t.Any, sets: Sets, name: str) -> None:
    sets.apply(name, [config_map(f"{name}-a", SPACE)])
    command = [
        "kubectl",
        "--kubeconfig",
        sandbox.kubeconfig,
        "apply",
        "--server-side",
        "--prune",
        f"--applyset=configmap/{name}",
        "-n",
        "hwaccel-gpu-records",
        "-f",
        "-",
    ]
    manifest = json.dumps(config_map(f"{name}-b", "hwaccel-gpu-records"))
    done = subprocess.run(
        command,
        input=manifest,
        env=os.environ | {"KUBECTL_APPLYSET": "true"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode != 0
    assert 'is managed by tooling "hwaccel.gpu"' in done.stderr
    assert sets.client().get(CONFIG_MAP, f"{name}-a", SPACE)
    assert not sets.apply(name, [config_map(f"{name}-a", SPACE)]).changed
