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


def pod(manifests: c.Iterable[Manifest], settings: c.Mapping[str, t.Any]) -> Manifest:
    """The role's pod with its labels and the image from the configured source. Other settings replace values of the manifest."""
    made = take(manifests, "Pod", "gpu-validation")
    made["metadata"]["name"] = settings.get("name") or made["metadata"]["name"]
    container = made["spec"]["containers"][0]
    container["image"] = settings.get("image") or container["image"]
    container["command"] = settings.get("command") or container["command"]
    container["args"] = [settings["script"]] if settings.get("script") else container["args"]
    if settings.get("service_account"):
        made["spec"]["serviceAccountName"] = settings["service_account"]
    # The pod is wrapped as the template of a workload, in which labels and image sources are set.
    carrier = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": made["metadata"]["name"]},
        "spec": {"template": made},
    }
    return dict(finish([carrier], Sources.of(settings), "gpu-validation")[0]["spec"]["template"])


def plan(
    manifests: c.Iterable[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `gpu-validation`, and `service_account`: the name of its pods' account, "" for the namespace's default.

    OpenShift admits a pod that sets its user only if its ServiceAccount may use a matching SecurityContextConstraints. On other platforms
    a pod that does not use the API needs no account. With provider `existing` the account must exist.
    """
    observed = text(((facts or {}).get("platform") or {}).get("distribution"))
    # Only the platform is checked here. A cluster that is too old is reported by the roles whose objects depend on its version.
    fleet = platforms.as_declared(Fleet((), (), bool(observed), distribution=observed or "kubernetes"), settings)
    made = StagePlan(faults=platforms.identity_faults(fleet, {"distribution": settings.get("distribution")}))
    provider = text(settings.get("provider")) or "hwaccel"
    needed = platforms.of(fleet.distribution).scc
    if needed and provider == "hwaccel":
        account = take(manifests, "ServiceAccount", ACCOUNT)
        bound = platforms.scc_rights(account["metadata"]["namespace"], ACCOUNT, platforms.NONROOT)
        made.objects = finish([account, *bound], Sources.of(settings), "gpu-validation")
        made.notes.append(
            f"validation pods run as ServiceAccount {ACCOUNT}, which may use SecurityContextConstraints {platforms.NONROOT}"
        )
    made.faults += patched.faults(made.objects, settings, "gpu_validation_patches")
    return made.as_dict(provider) | {"service_account": ACCOUNT if needed else ""}
