# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods of the validation, and objects that a platform needs to admit them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import patched, platforms
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    Sources,
    StagePlan,
    finish,
    take,
    text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet

ACCOUNT = "gpu-validation"


def _pod(
    manifests: c.Sequence[Manifest], name: str, changes: c.Mapping[str, t.Any], account: str, sources: Sources
) -> Manifest:
    """The role's pod under this name, with its labels and the image from the configured source. changes: image, command or script instead of the manifest's."""
    made = take(manifests, "Pod", "gpu-validation")
    made["metadata"]["name"] = name
    container = made["spec"]["containers"][0]
    container["image"] = changes.get("image") or container["image"]
    container["command"] = [str(word) for word in changes.get("command") or container["command"]]
    container["args"] = [changes["script"]] if changes.get("script") else container["args"]
    if account:
        made["spec"]["serviceAccountName"] = account
    # The pod is wrapped as the template of a workload, in which labels and image sources are set.
    carrier = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": made["metadata"]["name"]},
        "spec": {"template": made},
    }
    return dict(finish([carrier], sources, "gpu-validation")[0]["spec"]["template"])


def plan(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `gpu-validation`, and `pods`: the pods in the settings by their names, for node_validate.

    OpenShift admits a pod that sets its user only if its ServiceAccount may use a matching SecurityContextConstraints. On other platforms
    a pod that does not use the API needs no account. With provider `existing` the account must exist.
    """
    sources = Sources.of(settings)
    observed = text(((facts or {}).get("platform") or {}).get("distribution"))
    # Only the platform is checked here. A cluster that is too old is reported by the roles whose objects depend on its version.
    awaited = bool((facts or {}).get("awaited"))
    of_cluster = Fleet((), (), bool(observed) and not awaited, distribution=observed or "kubernetes", awaited=awaited)
    fleet = platforms.as_declared(of_cluster, settings)
    made = StagePlan(faults=platforms.identity_faults(fleet, {"distribution": settings.get("distribution")}))
    provider = text(settings.get("provider")) or "hwaccel"
    needed = platforms.of(fleet.distribution).scc
    if needed and provider == "hwaccel":
        account = take(manifests, "ServiceAccount", ACCOUNT)
        bound = platforms.scc_rights(account["metadata"]["namespace"], ACCOUNT, platforms.NONROOT)
        made.objects = finish([account, *bound], sources, "gpu-validation")
        made.notes.append(
            f"validation pods run as ServiceAccount {ACCOUNT}, which may use SecurityContextConstraints {platforms.NONROOT}"
        )
    made.faults += patched.faults(made.objects, settings, "gpu_validation_patches")
    pods = settings.get("pods") or {}
    return made.as_dict(provider) | {
        "pods": {name: _pod(manifests, name, pods[name] or {}, ACCOUNT if needed else "", sources) for name in pods}
    }
