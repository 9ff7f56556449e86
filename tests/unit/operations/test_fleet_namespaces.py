# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of namespaces: who made them, which pods they admit, and what pods may ask for in them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet_namespaces import namespaces

ENFORCE = "pod-security.kubernetes.io/enforce"


class Cluster:
    """Namespaces by name; None is one that may not be read."""

    def __init__(self, **found: dict[str, t.Any] | None) -> None:
        self.found = found

    def get(
        self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False
    ) -> dict[str, t.Any]:
        assert (resource.kind, metadata_only) == ("Namespace", True)
        if name not in self.found:
            raise NotFound(f"no {name}")
        metadata = self.found[name]
        if metadata is None:
            raise Forbidden(f"no right to {name}")
        return {"metadata": {"name": name, **metadata}}

    def pages(self, resource: Resource, namespace: str = "", *, metadata_only: bool = False) -> c.Iterator[Page]:
        assert metadata_only
        if (resource.kind, namespace) == ("Secret", "theirs"):
            raise Forbidden("no right to secrets")
        yield Page([{"metadata": {"name": f"{namespace}-{resource.kind}-{letter}"}} for letter in "ba"], "1")


def test_namespaces_tell_their_maker_and_their_level() -> None:
    ours = {
        "managedFields": [{"manager": "kubectl"}, {"manager": "hwaccel.gpu/driver"}],
        "labels": {ENFORCE: "privileged"},
    }
    cluster = Cluster(ours=ours, theirs={}, going={"deletionTimestamp": "2026-01-01T00:00:00Z"}, hidden=None)
    assert namespaces(t.cast(t.Any, cluster), ["theirs", "ours", "ours", "going", "hidden", "nowhere"]) == [
        {
            "name": "ours",
            "set": "driver",
            "pod_security": "privileged",
            "config_maps": ["ours-ConfigMap-a", "ours-ConfigMap-b"],
            "secrets": ["ours-Secret-a", "ours-Secret-b"],
        },
        {
            "name": "theirs",
            "set": "",
            "pod_security": "",
            "config_maps": ["theirs-ConfigMap-a", "theirs-ConfigMap-b"],
            "secrets": None,
        },
    ]
