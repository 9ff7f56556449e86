# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights in the rendered manifests are the calls that the tables of the real programs have, with the settings of these manifests.

A right that no program of the account needs is too much, and a call without a right fails on a cluster. What a simulated program sends is in its
table in any case (Proc.request), so the tables are compared, and not a run.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack as roles
from fleet_agent.machine import images
from fleet_agent.programs import registry, tables

Obj = dict[str, t.Any]
Request = tuple[str, str, str]
SHELLS = ("sh", "bash")
#: The part of the configuration file that has what flags have, where that is not the whole file.
SECTIONS = {"nfd-worker": "core", "gpu-feature-discovery": "flags"}
#: Calls that a program makes only on what these roles do not have on a node.
NOT_NEEDED = {
    (
        "nfd-prune",
        ("patch", "", "nodes/status"),
    ): "node-feature-discovery v0.19.0, pkg/nfd-master/nfd-master.go, updateNodeObject: only of nodes with "
    "extended resources of NFD, which our nfd-master creates none of (restrictions.disableExtendedResources)",
}


class Manifests:
    """All objects of the roles, also those of a teardown."""

    def __init__(self, objects: list[Obj]) -> None:
        self.objects = objects
        self.maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}

    def of_kind(self, *kinds: str) -> list[Obj]:
        return [one for one in self.objects if one["kind"] in kinds]

    def granted(self, account: str) -> set[Request]:
        rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in self.of_kind("Role", "ClusterRole")}
        return {
            (verb, group, resource)
            for binding in self.of_kind("RoleBinding", "ClusterRoleBinding")
            if account in [subject["name"] for subject in binding["subjects"]]
            for rule in rules[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

    def needed(self, account: str) -> set[Request]:
        return {
            request
            for workload in self.of_kind("DaemonSet", "Deployment", "Job")
            for spec in [workload["spec"]["template"]["spec"]]
            if spec["serviceAccountName"] == account
            for container in [*(spec.get("initContainers") or ()), *spec["containers"]]
            for settings in self.programs(spec, container)
            for request in self.calls(spec, container, settings)
        }

    def programs(self, spec: Obj, container: Obj) -> list[tables.Settings]:
        """Settings of each program with a table that the container starts, also by a script."""
        image = images.parse(container["image"])
        assert image is not None
        words = [*container.get("command", registry.entry_point(image)), *container.get("args", ())]
        env = {one["name"]: one.get("value", "given") for one in container.get("env") or ()}
        if posixpath.basename(words[0]) not in SHELLS:
            return _read(posixpath.basename(words[0]), words, env)
        text = words[-1] if words[1] == "-c" else self.file(spec, container, words[1])
        return self._of_script(spec, container, text, env)

    def _of_script(self, spec: Obj, container: Obj, text: str, env: dict[str, str]) -> list[tables.Settings]:
        image = images.parse(container["image"])
        assert image is not None
        found: list[tables.Settings] = []
        for name in registry.PROGRAMS.get(image.family, {}):
            for match in re.finditer(
                rf"((?:[A-Z_]+=\S+ )*)\b{re.escape(name)}((?: -?-?[\w=/.:-]+)*)$", text, re.MULTILINE
            ):
                more = dict(word.split("=", 1) for word in match[1].split())
                found += _read(name, [name, *match[2].split()], env | more)
            for match in re.finditer(rf"((?:[A-Z_]+=\S+ )+){re.escape(name)} \|\|", text):
                more = dict(word.split("=", 1) for word in match[1].split())
                found += _read(name, [name], env | more)
        for path in set(re.findall(r"\bsh (/\S+\.sh)", text)):
            found += self._of_script(spec, container, self.file(spec, container, path), env)
        return found

    def file(self, spec: Obj, container: Obj, path: str) -> str:
        """Of a ConfigMap that the container mounts; empty if it has no such file."""
        for mount in container.get("volumeMounts") or ():
            volume = next(one for one in spec["volumes"] if one["name"] == mount["name"])
            if "configMap" in volume and path.startswith(mount["mountPath"] + "/"):
                return str(self.maps.get(volume["configMap"]["name"], {}).get(posixpath.basename(path), ""))
        return ""

    def calls(self, spec: Obj, container: Obj, settings: tables.Settings) -> set[Request]:
        table = settings.table
        path = next((settings[name] for name in ("config", "config-file") if name in table.by_name), "")
        config = roles.yaml.safe_load(self.file(spec, container, path)) or {}
        token = spec.get("automountServiceAccountToken") is not False
        return {
            (call.verb, call.group, call.resource)
            for call in table.calls
            if all(_holds(settings, config, token, name, value) for name, value in call.condition)
        }


def _read(program: str, words: list[str], env: dict[str, str]) -> list[tables.Settings]:
    table = tables.table_of(program)
    return [] if table is None else [tables.read(table, words, env)]


def _holds(settings: tables.Settings, config: Obj, token: bool, name: str, value: t.Any) -> bool:
    if name == "token":
        return token
    flag = settings.table.by_name.get(name)
    if flag is None:
        section, _dot, key = name.partition(".")
        actual = (config.get(section) or {}).get(key)
        return bool(actual) if value == "given" else bool(actual) is value
    if value == "given":
        return settings.given(name)
    section = SECTIONS.get(settings.table.program, "")
    actual = ((config.get(section) or {}) if section else config).get(flag.field)
    actual = settings[name] if actual is None or settings.given(name) else actual
    return value in actual if isinstance(actual, (list, tuple)) else bool(actual == value)


@pytest.fixture(scope="module")
def manifests() -> Manifests:
    return Manifests([one for role in roles.ROLES for one in roles.everything(role)])


def accounts() -> list[str]:
    return sorted(
        one["metadata"]["name"]
        for role in roles.ROLES
        for one in roles.everything(role)
        if one["kind"] == "ServiceAccount"
    )


@pytest.mark.parametrize("account", accounts())
def test_an_account_may_send_the_requests_of_its_programs_and_no_others(manifests: Manifests, account: str) -> None:
    needed = manifests.needed(account)
    excepted = {request for name, request in NOT_NEEDED if name == account}
    assert excepted <= needed
    assert manifests.granted(account) == needed - excepted


@pytest.mark.parametrize(
    "change", [lambda verbs: verbs.append("watch"), lambda verbs: verbs.pop()], ids=["more", "less"]
)
def test_a_right_more_or_less_is_seen(change: t.Callable[[list[str]], t.Any]) -> None:
    changed = Manifests([one for role in roles.ROLES for one in roles.everything(role)])
    change(next(one for one in changed.of_kind("Role") if one["metadata"]["name"] == "nfd-worker")["rules"][0]["verbs"])
    assert changed.granted("nfd-worker") != changed.needed("nfd-worker")


def test_most_accounts_have_programs_with_calls(manifests: Manifests) -> None:
    without = {account for account in accounts() if not manifests.needed(account)}
    assert without == {"nvidia-device-plugin", "nvidia-dcgm-exporter"}


@pytest.mark.parametrize(
    ("workload", "variable", "value", "more"),
    [
        (
            "nvidia-driver",
            "ENABLE_GPU_POD_EVICTION",
            "true",
            {("create", "", "pods/eviction"), ("get", "", "pods"), ("get", "apps", "daemonsets")},
        ),
        ("gpu-feature-discovery", "GFD_USE_NODE_FEATURE_API", "false", set()),
    ],
)
def test_other_settings_need_other_rights(workload: str, variable: str, value: str, more: set[Request]) -> None:
    objects = [one for role in roles.ROLES for one in roles.everything(role)]
    spec = next(one for one in objects if one["kind"] == "DaemonSet" and one["metadata"]["name"] == workload)["spec"][
        "template"
    ]["spec"]
    container = [*spec["initContainers"], *spec["containers"]][0 if workload == "nvidia-driver" else -1]
    container["env"] = [one for one in container["env"] if one["name"] != variable] + [
        {"name": variable, "value": value}
    ]
    manifests = Manifests(objects)
    assert manifests.needed(workload) == (manifests.granted(workload) | more if more else set())
