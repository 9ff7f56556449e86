# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json with NVIDIA's runtime.

Docker has no drop-ins, so keys are set and removed in the file itself. Integers stay exact, keys keep their order, and a file with the desired settings
is not changed. `nvidia-ctk runtime configure` sorts keys, rounds integers above 2^53 and does not remove keys that it no longer sets.
"""

from __future__ import annotations

import copy
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import (
    STAGING,
    Check,
    Rendered,
    RuntimeSettings,
)

CONFIG = "/etc/docker/daemon.json"
#: The daemon supports `features.cdi` since Docker 25, and the option --validate since 23.0 (moby's cmd/dockerd: daemon.go of v25.0.0, options.go of v23.0.0).
_CDI_SINCE, _VALIDATES_SINCE = (25,), (23,)
_STAGED = f"{STAGING}/docker/daemon.json"
Settings = dict[str, t.Any]


def render(host: Host, desired: RuntimeSettings, original: str = "") -> Rendered:
    """original: the file before the first run. Raises HwaccelError for a file that is not a JSON object."""
    old = host.files.get(CONFIG)
    text = old.text if old else ""
    version = host.version("docker")
    new = with_runtime(text, desired, knows_cdi=version >= _CDI_SINCE, original=original)
    # The file may contain credentials of proxies.
    made = Rendered(contents=[Content.instead_of(old, CONFIG, new, sensitive="prox" in new)])
    if version >= _VALIDATES_SINCE:
        made.staged = [Content(_STAGED, new, "0600")]
        made.checks = [Check("docker", ("dockerd", "--validate", "--config-file", _STAGED))]
    if desired.cdi and version < _CDI_SINCE:
        made.messages = [
            f"Docker {'.'.join(map(str, version))} does not support CDI (25 does): containers get GPUs only with the runtime {desired.handler}"
        ]
    return made


def has_runtime(host: Host, handler: str) -> bool:
    """Whether it is configured already. Raises HwaccelError for a file that is not a JSON object."""
    return handler in (_parsed(host.text(CONFIG)).get("runtimes") or {})


def keeps_containers(host: Host) -> bool:
    """Whether containers survive a restart (https://docs.docker.com/engine/daemon/live-restore/).

    Both the running daemon and the one that is started, which reads the file, must have the setting.
    """
    running = host.commands.get("docker_live_restore", Command(1, ""))
    try:
        desired = _parsed(host.text(CONFIG)).get("live-restore", True)
    except HwaccelError:
        return False
    return running.status == 0 and running.output.strip() == "true" and desired is True


def with_runtime(text: str, desired: RuntimeSettings, *, knows_cdi: bool, original: str = "") -> str:
    """Settings with the runtime. If it is no longer the default, the original default is restored. Raises HwaccelError if the text is not a JSON object."""
    before = _parsed(text)
    after = copy.deepcopy(before)
    runtime = (after.setdefault("runtimes", {}) or {}).get(desired.handler) or {"args": []}
    after["runtimes"] = {**(after["runtimes"] or {}), desired.handler: {**runtime, "path": desired.binary}}
    if desired.default:
        after["default-runtime"] = desired.handler
    elif after.get("default-runtime") == desired.handler:
        del after["default-runtime"]
        if (first := _parsed(original).get("default-runtime", desired.handler)) != desired.handler:
            after["default-runtime"] = first
    if knows_cdi:
        features = {**(after.get("features") or {}), "cdi": desired.cdi}
        after["features"] = features
    return _written(text, before, after)


def without_runtime(text: str, original: str, handler: str) -> str:
    """Restores the settings of with_runtime from the original, and keeps other changes."""
    before, first = _parsed(text), _parsed(original)
    after = copy.deepcopy(before)
    _restore(after, first, "default-runtime")
    for section, key in (("runtimes", handler), ("features", "cdi")):
        inner = after.get(section) or {}
        _restore(inner, first.get(section) or {}, key)
        if inner or section in first:
            after[section] = inner
        else:
            after.pop(section, None)
    return _written(text, before, after)


def _restore(now: Settings, first: Settings, key: str) -> None:
    if key in first:
        now[key] = first[key]
    else:
        now.pop(key, None)


def _written(text: str, before: Settings, after: Settings) -> str:
    if before == after and text:
        return text
    indent = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    flat = bool(text.strip()) and "\n" not in text.strip()
    made = json.dumps(after, indent=None if flat else indent.group(1) if indent else 4, ensure_ascii=False)
    return made + ("\n" if not text or text.endswith("\n") else "")


def _parsed(text: str) -> Settings:
    what, next_step = (
        "Docker's configuration cannot be changed",
        "correct the file: the daemon would not start with it either",
    )

    def once(pairs: list[tuple[str, t.Any]]) -> Settings:
        keys = [key for key, _value in pairs]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise HwaccelError(what, CONFIG, f"it has {', '.join(twice)} twice", next_step)
        return dict(pairs)

    if not text.strip():
        return {}
    try:
        found = json.loads(text, object_pairs_hook=once)
    except ValueError as error:
        raise HwaccelError(what, CONFIG, f"it is not JSON: {error}", next_step) from None
    if not isinstance(found, dict):
        raise HwaccelError(what, CONFIG, "it is not a JSON object", next_step)
    return found
