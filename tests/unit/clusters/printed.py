# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods as the API server prints them for `kubectl get -o wide` (Kubernetes 1.36, pkg/printers/internalversion/printers.go, printPod)."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj


def printed(pod: Obj) -> Obj:
    """The columns that tests need. Sidecars are not among their pods."""
    status, spec = pod.get("status") or {}, pod["spec"]
    containers = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) and "running" in (one.get("state") or {}) for one in containers)
    return {
        "name": pod["metadata"]["name"],
        "ready": f"{ready}/{len(spec.get('containers') or [])}",
        "status": _status(pod),
        "node": spec.get("nodeName") or "<none>",
    }


def _status(pod: Obj) -> str:
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    inits = status.get("initContainerStatuses") or []
    for number, one in enumerate(inits):
        state = one.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0:
            continue
        why = (state.get("terminated") or state.get("waiting") or {}).get("reason") or ""
        reason = f"Init:{why}" if why not in ("", "PodInitializing") else f"Init:{number}/{len(inits)}"
        break
    else:
        for one in reversed(status.get("containerStatuses") or []):
            state = one.get("state") or {}
            reason = (state.get("waiting") or state.get("terminated") or {}).get("reason") or reason
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else reason
