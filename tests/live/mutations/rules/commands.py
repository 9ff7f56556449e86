# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers, probes and hooks run: programs, shells, scripts and the configuration that these read."""

from __future__ import annotations

import collections.abc as c
import posixpath
import re

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, Workload, where
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent import manifests

_SHELLS = ("sh", "bash")
#: Images with several programs, or whose entry point is another one than a container wants.
_SEVERAL = re.compile(
    r"/(gpu-operator|driver|k8s-driver-manager|node-feature-discovery|k8s-device-plugin|container-toolkit):"
)
#: Where Node Feature Discovery looks if it is not told (node-feature-discovery v0.19.0, cmd/nfd-worker/main.go and cmd/nfd-master/main.go).
_DEFAULT_CONFIG = "/etc/kubernetes/node-feature-discovery"
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def commanded(found: Manifests) -> c.Iterator[Finding]:
    """A container of an image with several programs says which of them it runs."""
    for one in found.workloads:
        for at, container in one.containers():
            if _SEVERAL.search(str(container.get("image"))) and not container.get("command"):
                yield f"{at}.command is missing, and {container['image']} has several programs"


def shells(found: Manifests) -> c.Iterator[Finding]:
    """A shell is given a script: without one it ends at once, and well, whatever is wrong on the node."""
    for one in found.workloads:
        for at, words in _commands(one):
            if posixpath.basename(words[0]) in _SHELLS and not _script(words):
                yield f"{at} (command, args) starts {words[0]} without a script"


def _commands(one: Workload) -> c.Iterator[tuple[str, list[str]]]:
    """Field and words of each command line of a workload."""
    for at, container in one.containers():
        if words := [*(container.get("command") or ()), *(container.get("args") or ())]:
            yield at, words
        for kind in _PROBES:
            if words := ((container.get(kind) or {}).get("exec") or {}).get("command"):
                yield f"{at}.{kind}.exec", words
        if words := (((container.get("lifecycle") or {}).get("preStop") or {}).get("exec") or {}).get("command"):
            yield f"{at}.lifecycle.preStop.exec", words


def _script(words: list[str]) -> str:
    """What a shell runs: the text after -c, or a file."""
    rest = words[1:]
    while rest and re.fullmatch(r"-[a-z]+", rest[0]):
        rest = rest[1:]
    return rest[0].strip() if rest else ""


def scripts(found: Manifests) -> c.Iterator[Finding]:
    """Every script of a ConfigMap has commands, and a container, a probe or another script runs it. An empty one ends well whatever is wrong."""
    texts = [str(text) for item in found.of("ConfigMap") for text in (item.get("data") or {}).values()]
    lines = [word for one in found.workloads for _at, words in _commands(one) for word in words]
    for item in found.of("ConfigMap"):
        for name, text in (item.get("data") or {}).items():
            if not name.endswith(".sh"):
                continue
            if not re.search(r"^\s*[^#\s]", text, re.MULTILINE):
                yield f"{where(item)} data.{name} has no command"
            if not any(line.endswith(f"/{name}") for line in lines) and not any(f"/{name}" in one for one in texts):
                yield f"{where(item)} data.{name} is run by no command of a container or probe"


def known(found: Manifests) -> c.Iterator[Finding]:
    """The program reads each variable, by its table (fleet_agent/data/programs), or the runtime does. One that nobody reads looks like a setting."""
    kept = set(manifests.UNREAD)
    for workload, name in sorted(manifests.unread(manifests.Manifests(found.all), certain=True)):
        if not any(workload.startswith(one) and name == variable for one, variable in kept):
            yield f"DaemonSet {workload}: spec.template.spec: {name} in env is read by no program of its container"


def asked(found: Manifests) -> c.Iterator[Finding]:
    """A probe runs a shell with a script of a ConfigMap that its container mounts: a command that is not there fails for ever, and nothing says why."""
    for one in found.workloads:
        for at, container in one.containers():
            there = _files(one, container, found)
            for kind in _PROBES:
                words = ((container.get(kind) or {}).get("exec") or {}).get("command")
                if words is not None and (posixpath.basename(words[0]) not in _SHELLS or _script(words) not in there):
                    yield f"{at}.{kind}.exec.command {words} is not a shell with one of {sorted(there)}"


def _files(one: Workload, container: Obj, found: Manifests) -> dict[str, str]:
    """Path and content of the files of ConfigMaps that a container mounts."""
    files, there = (
        {item["metadata"]["name"]: item.get("data") or {} for item in found.of("ConfigMap")},
        dict[str, str](),
    )
    for mount in container.get("volumeMounts") or ():
        data = files.get((one.volume(mount["name"]).get("configMap") or {}).get("name"), {})
        if mount.get("subPath"):
            there[mount["mountPath"]] = str(data.get(mount["subPath"]))
        else:
            there |= {f"{mount['mountPath']}/{name}": str(text) for name, text in data.items()}
    return there


def gated(found: Manifests) -> c.Iterator[Finding]:
    """What waits for a gate is ended when the gate closes: the script for which a container waits before it starts, is what its probes run."""
    for one in found.workloads:
        for at, container in one.containers():
            text = _files(one, container, found).get(_script(_words(container)), "")
            waits = re.findall(r"^until sh (\S+);", text, re.MULTILINE)
            for script in waits:
                for kind in ("startupProbe", "livenessProbe"):
                    words = ((container.get(kind) or {}).get("exec") or {}).get("command") or [""]
                    if _script(words) != script:
                        yield f"{at}.{kind} does not run {script}, for which the container waits"


def read(found: Manifests) -> c.Iterator[Finding]:
    """Configuration that a container mounts is read: a variable, an argument or a script names a file beneath the mount."""
    files = {item["metadata"]["name"]: item.get("data") or {} for item in found.of("ConfigMap")}
    for one in found.workloads:
        commands = [word for _at, words in _commands(one) for word in words]
        for at, container in one.containers():
            values = [str(variable.get("value")) for variable in container.get("env") or ()]
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                config = (one.volume(mount["name"]).get("configMap") or {}).get("name")
                path = str(mount.get("mountPath"))
                if not files.get(config) or path == _DEFAULT_CONFIG:
                    continue
                paths = [path] if mount.get("subPath") else [f"{path}/{name}" for name in files.get(config, ())]
                if not any(path in word for path in paths for word in (*values, *commands)):
                    yield f"{at}.volumeMounts[{index}].mountPath: no env or command of {container['name']} names one of {paths}"


def repeated(found: Manifests) -> c.Iterator[Finding]:
    """A container that repeats the steps of init containers has their variables and mounts, but for the GPUs that the runtime gives it."""
    for one in found.workloads:
        steps = {_script(_words(step)): step for step in one.spec.get("initContainers") or ()}
        for index, container in enumerate(one.spec["containers"]):
            text = _files(one, container, found).get(_script(_words(container)), "")
            for script, step in steps.items():
                if script and f"sh {script}" in text:
                    for lacking in sorted(_things(step) - _things(container)):
                        yield f"{one.where}spec.containers[{index}] runs {script} as {step['name']} does, and has not its {lacking}"


def _words(container: Obj) -> list[str]:
    return [*(container.get("command") or [""]), *(container.get("args") or ())]


def _things(container: Obj) -> set[str]:
    """Variables and mounts, as text."""
    variables = [one for one in container.get("env") or () if one["name"] != "NVIDIA_VISIBLE_DEVICES"]
    mounts = container.get("volumeMounts") or ()
    return {
        *(f"env {one['name']}: {one.get('value', one.get('valueFrom'))}" for one in variables),
        *(f"volumeMounts {one['name']} at mountPath {one['mountPath']}" for one in mounts),
    }
