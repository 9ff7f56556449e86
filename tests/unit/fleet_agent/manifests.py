# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendered manifests of the roles, and which programs with a table their containers start, with which settings."""

from __future__ import annotations

import functools
import posixpath
import re
import sys
import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.roles import stack as roles

sys.path.insert(0, str(roles.TOP / "roles" / "sandbox" / "files"))

from fleet_agent.machine import images
from fleet_agent.programs import registry, tables

Obj = dict[str, t.Any]
Request = tuple[str, str, str]
SHELLS = ("sh", "bash")
#: The part of the configuration file that has what flags have, where that is not the whole file.
SECTIONS = {"nfd-worker": "core", "gpu-feature-discovery": "flags"}


#: Of the container runtime, which reads them before the program starts (nvidia-container-toolkit v1.20.0, internal/config/image/envvars.go).
OF_THE_RUNTIME = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"}
#: What nobody reads, and where the manifests have it from.
UNREAD = {
    (
        "nvidia-driver",
        "NODE_NAME",
    ): "gpu-operator v26.7.0, assets/state-driver/0500_daemonset.yaml; no script of gpu-driver-container 06a208c reads it",
    (
        "nvidia-driver",
        "NODE_IP",
    ): "gpu-operator v26.7.0, assets/state-driver/0500_daemonset.yaml; no script of gpu-driver-container 06a208c reads it",
    (
        "nvidia-device-plugin",
        "CDI_ENABLED",
    ): "gpu-operator v26.7.0, controllers/object_controls.go; no program of k8s-device-plugin v0.20.0 reads it",
}


class Manifests:
    """Objects, by what their containers do."""

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

    def containers(self) -> t.Iterator[tuple[str, Obj, Obj]]:
        """The name of the workload, its pod's spec, and each container."""
        for workload in self.of_kind("DaemonSet", "Deployment", "Job"):
            spec = workload["spec"]["template"]["spec"]
            for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
                yield workload["metadata"]["name"], spec, container

    def needed(self, account: str) -> set[Request]:
        return {
            request
            for _workload, spec, container in self.containers()
            if spec["serviceAccountName"] == account
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
        for name in [one for one in registry.PROGRAMS.get(image.family, {}) if one in text]:
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
            volume = next((one for one in spec.get("volumes") or () if one["name"] == mount["name"]), {})
            if "configMap" in volume and path.startswith(mount["mountPath"] + "/"):
                return str(self.maps.get(volume["configMap"]["name"], {}).get(posixpath.basename(path), ""))
        return ""

    def calls(self, spec: Obj, container: Obj, settings: tables.Settings) -> set[Request]:
        table = settings.table
        path = next((settings[name] for name in ("config", "config-file") if name in table.by_name), "")
        config = _parsed(self.file(spec, container, path))
        token = spec.get("automountServiceAccountToken") is not False
        return {
            (call.verb, call.group, call.resource)
            for call in table.calls
            if all(_holds(settings, config, token, name, value) for name, value in call.condition)
        }


@functools.cache
def _parsed(text: str) -> Obj:
    return roles.yaml.safe_load(text) or {}


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


def unread(manifests: Manifests, *, certain: bool = False) -> set[tuple[str, str]]:
    """Workload and name of each variable that no program of its container reads. certain: not of containers that start no program with a table."""
    found = set()
    for workload, spec, container in manifests.containers():
        programs = [settings.table for settings in manifests.programs(spec, container)]
        names = {name for table in programs for flag in table.flags for name in flag.env} | OF_THE_RUNTIME
        names |= {name for table in programs for name in table.environment}
        if programs or not certain:
            found |= {(workload, one["name"]) for one in container.get("env") or () if one["name"] not in names}
    return found


def rendered() -> Manifests:
    """All objects of the roles, also those of a teardown."""
    return Manifests([one for role in roles.ROLES for one in roles.everything(role)])
