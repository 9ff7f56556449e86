# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has to do until a cluster is installed, from its folder and from how far it is. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import decision, install_state
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines as kinds

Row = c.Mapping[str, t.Any]
_CREATES = {decision.CREATE: "create the files of the installation", decision.REGENERATE: "create its files again"}
_THERE = (install_state.INSTALLED, install_state.DEGRADED)
_STOPS = (install_state.FOREIGN, install_state.UNREACHABLE)


def planned(machines: c.Iterable[Row], decided: Row, far: Row, credentials: Row) -> dict[str, t.Any]:
    """steps: each with do, hosts and text; predicted: their texts; faults: each with text; awaited: whether the files are only going to be created.

    machines: with host and role. decided: as module openshift_install returns it in check mode. far: as openshift_wait does, empty without a kubeconfig.
    credentials: as openshift_credentials does, empty where nothing is installed.
    """
    faults = [str(decided["message"])] if decided["action"] == decision.FAIL or decided["silent"] else []
    if far.get("state") in _STOPS:
        faults.append(f"{far['why']}. Next: {far['next_step']}")
    elif credentials.get("msg"):
        faults.append(str(credentials["msg"]))
    found: dict[str, t.Any] = {"faults": [{"text": text} for text in faults], "steps": [], "awaited": False}
    if not faults:
        found |= {"steps": list(_steps(machines, decided, far, credentials)), "awaited": decided["action"] in _CREATES}
    return {**found, "predicted": [one["text"] for one in found["steps"]]}


def _steps(machines: c.Iterable[Row], decided: Row, far: Row, credentials: Row) -> c.Iterator[dict[str, t.Any]]:
    if text := _CREATES.get(decided["action"]):
        yield {"do": "files", "hosts": [], "text": text}
    if far.get("state") not in _THERE:
        masters = [str(one["host"]) for one in machines if one["role"] == kinds.MASTER]
        yield {"do": "init", "hosts": masters, "text": f"install OpenShift on {some(masters)}"}
    # Named only if the user goes. Tasks decide for themselves what counts as a change.
    if credentials.get("administrator"):
        yield {"do": "kubeadmin", "hosts": [], "text": f"remove the user kubeadmin, since {credentials['why']}"}
