# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that compute on a node. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.objects.common import Manifest, Sources, finish, take


def plan(manifests: c.Iterable[Manifest], settings: c.Mapping[str, t.Any]) -> Manifest:
    """The role's pod with its labels, and its image from where images come from. What the settings name beyond that is another than the manifest's."""
    pod = take(manifests, "Pod", "gpu-validation")
    pod["metadata"]["name"] = settings.get("name") or pod["metadata"]["name"]
    container = pod["spec"]["containers"][0]
    container["image"] = settings.get("image") or container["image"]
    container["command"] = settings.get("command") or container["command"]
    container["args"] = [settings["script"]] if settings.get("script") else container["args"]
    # As the template of a workload: that is what labels and image sources are laid over.
    carrier = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": pod["metadata"]["name"]}, "spec": {"template": pod}}
    return dict(finish([carrier], Sources.of(settings), "gpu-validation")[0]["spec"]["template"])
