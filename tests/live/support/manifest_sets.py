# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared parts of the live tests of manifest_set: calls of the engine, objects, and a client that dies."""

from __future__ import annotations

import collections.abc as c
import os
import threading
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.ensure import ensure
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import Holder
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.modules.manifest_set import ARGUMENT_SPEC

Obj = dict[str, t.Any]
DEFAULTS: dict[str, t.Any] = {name: spec.get("default") for name, spec in ARGUMENT_SPEC.items()}
DIED = 9


class Sets:
    """Calls of manifest_set against one cluster."""

    def __init__(self, kubeconfig: str, *, client: t.Any = None) -> None:
        self.kubeconfig = kubeconfig
        self._client = client

    def client(self, *, check: bool = False) -> t.Any:
        return self._client or connect({"kubeconfig": self.kubeconfig}, check_mode=check)

    def __call__(
        self,
        name: str,
        definition: t.Any = None,
        *,
        check: bool = False,
        diff: bool = False,
        client: t.Any = None,
        holder: Holder | None = None,
        clock: Clock | None = None,
        resume: Obj | None = None,
        **options: t.Any,
    ) -> Report:
        """One call as by the module, which waits only with the option `wait`."""
        params = (
            DEFAULTS
            | {"name": name, "definition": definition, "wait": False, "wait_timeout": 240, "lock_timeout": 240}
            | options
        )
        return ensure(
            client or self.client(check=check),
            params,
            clock or Clock(),
            resume or {},
            check_mode=check,
            diff=diff,
            holder=holder,
        )

    def apply(self, name: str, definition: t.Any, **options: t.Any) -> Report:
        """A call that must succeed."""
        report = self(name, definition, **options)
        assert report.failure is None, str(report.failure)
        return report

    def remove(self, name: str, **options: t.Any) -> Report:
        report = self(name, state="absent", **({"wait": True} | options))
        assert report.failure is None, str(report.failure)
        return report


class DyingClient:
    """A client whose process ends right after its k-th write, without any cleanup, as by SIGKILL.

    Writes are sent one at a time, so that exactly k have reached the server.
    """

    WRITES = ("apply", "create", "replace", "patch", "delete")

    def __init__(self, client: Client, last: int) -> None:
        self._client = client
        self._left = last
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> t.Any:
        method = getattr(self._client, name)
        if name not in self.WRITES:
            return method

        def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
            if kwargs.get("dry_run"):
                return method(*args, **kwargs)
            with self._lock:
                result = method(*args, **kwargs)
                self._left -= 1
                if self._left == 0:
                    os._exit(DIED)
                return result

        return call


def dies_after(write: int, kubeconfig: str, call: c.Callable[[t.Any], Report]) -> bool:
    """Runs a call in another process that dies after its n-th write. False if the call completed before."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            report = call(DyingClient(connect({"kubeconfig": kubeconfig}), write))
            status = 0 if report.failure is None else 2
        finally:
            os._exit(status)
    _pid, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, DIED), f"the child ended with {code}"
    return code == DIED


def config_map(name: str, namespace: str, data: dict[str, str] | None = None) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data or {"a": "1"},
    }


def workload(kind: str, name: str, namespace: str, **spec: t.Any) -> Obj:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "env": env}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template} | spec,
    }


def deployment(name: str, namespace: str, replicas: int = 1) -> Obj:
    return workload("Deployment", name, namespace, replicas=replicas)


def crd(plural: str, kind: str, group: str = "tests.hwaccel.example") -> Obj:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
            ],
        },
    }


def custom(kind: str, name: str, namespace: str, size: int, group: str = "tests.hwaccel.example") -> Obj:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": size},
    }


def actions(report: Report) -> dict[str, str]:
    """Action by object, for comparisons."""
    return {str(key): row.action for key, row in report.rows.items()}


def bench_objects(namespace: str) -> list[Obj]:
    """40 objects of 8 kinds in one namespace, which must exist."""
    rbac = "rbac.authorization.k8s.io"
    objects: list[Obj] = []
    for index in range(5):
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        subjects = [{"kind": "ServiceAccount", "name": f"sa{index}", "namespace": namespace}]
        objects.append(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"sa{index}", "namespace": namespace}}
        )
        objects.append(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"{namespace}-{index}"},
                "rules": rules,
            }
        )
        objects.append(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "Role",
                "metadata": {"name": f"r{index}", "namespace": namespace},
                "rules": rules,
            }
        )
        role = {"apiGroup": rbac, "kind": "Role", "name": f"r{index}"}
        bound = {"roleRef": role, "subjects": subjects}
        objects.append(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"rb{index}", "namespace": namespace},
            }
            | bound
        )
        spec = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"s{index}", "namespace": namespace},
                "spec": spec,
            }
        )
    objects += [config_map(f"cm{index}", namespace, {"a": "1", "b": "x" * 100}) for index in range(10)]
    objects += [workload("DaemonSet", f"ds{index}", namespace) for index in range(3)]
    objects += [deployment(f"d{index}", namespace) for index in range(2)]
    return objects
