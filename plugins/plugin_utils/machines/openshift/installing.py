# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has to do until a cluster is installed, and has all its machines, from its folder and from how far it is. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import decision, install_state
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines as kinds
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import joining

Row = c.Mapping[str, t.Any]
_CREATES = {decision.CREATE: "create the files of the installation", decision.REGENERATE: "create its files again"}
_THERE = (install_state.INSTALLED, install_state.DEGRADED)
_STOPS = (install_state.FOREIGN, install_state.UNREACHABLE)


def planned(
    machines: c.Iterable[Row], decided: Row, far: Row, credentials: Row, joins: c.Sequence[Row] = ()
) -> dict[str, t.Any]:
    """steps: each with do, hosts and text; predicted: their texts; faults: each with text; awaited: whether the files are only going to be created.

    joining: hosts of machines that are added to a cluster that is installed, None of another one.

    machines: with host and role. decided: as module openshift_install returns it in check mode, empty of a cluster without a folder. far: as openshift_wait
    does, empty without a connection. credentials: as openshift_credentials does, empty where nothing is installed. joins: as joining.read returns them.
    """
    faults = [str(decided["message"])] if decided and (decided["action"] == decision.FAIL or decided["silent"]) else []
    if far.get("state") in _STOPS:
        faults.append(f"{far['why']}. Next: {far['next_step']}")
    elif credentials.get("msg"):
        faults.append(str(credentials["msg"]))
    found: dict[str, t.Any] = {"faults": [{"text": text} for text in faults], "steps": [], "awaited": False}
    if not faults:
        action = decided["action"] if decided else ""
        found |= {"steps": list(_steps(machines, action, far, credentials, joins)), "awaited": action in _CREATES}
    there = far.get("state") in _THERE and not faults
    return {
        **found,
        "predicted": [one["text"] for one in found["steps"]],
        "joining": joining.awaited(joins, far.get("missing_nodes") or ()) if there else None,
    }


def _steps(
    machines: c.Iterable[Row], action: str, far: Row, credentials: Row, joins: c.Iterable[Row]
) -> c.Iterator[dict[str, t.Any]]:
    if text := _CREATES.get(action):
        yield {"do": "files", "hosts": [], "text": text}
    if far.get("state") not in _THERE:
        masters = [str(one["host"]) for one in machines if one["role"] == kinds.MASTER]
        yield {"do": "init", "hosts": masters, "text": f"install OpenShift on {some(masters)}"}
    else:
        missing = far.get("missing_nodes") or ()
        yield from (
            {"do": "join", "hosts": [one["host"]], "text": one["text"]} for one in joins if one["node"] in missing
        )
    # Named only if the user goes. Tasks decide for themselves what counts as a change.
    if credentials.get("administrator"):
        yield {"do": "kubeadmin", "hosts": [], "text": f"remove the user kubeadmin, since {credentials['why']}"}
