# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of other managers, and the table of known controllers."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.foreign import foreign_fields, is_rightful
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey


@pytest.mark.parametrize(
    ("kind", "manager", "subresource", "path", "rightful"),
    [
        ("Deployment", "kube-controller-manager", "scale", "spec.replicas", True),
        ("Deployment", "kubectl", "scale", "spec.replicas", False),
        ("Deployment", "kube-controller-manager", "", "spec.replicas", False),
        ("Deployment", "kube-controller-manager", "scale", "spec.replicasX", False),
        ("ServiceAccount", "kube-controller-manager", "", 'secrets[name="x"]', True),
        ("ValidatingWebhookConfiguration", "cainjector", "", 'webhooks[name="x"].clientConfig.caBundle', True),
        ("ValidatingWebhookConfiguration", "kubectl", "", 'webhooks[name="x"].failurePolicy', False),
        ("ConfigMap", "kubectl", "", "data.x", False),
    ],
)
def test_known_controllers_may_own_their_fields(
    kind: str, manager: str, subresource: str, path: str, rightful: bool
) -> None:
    assert is_rightful(kind, manager, subresource, path) is rightful


def test_foreign_fields_are_reported_once_at_the_topmost_path() -> None:
    sidecar = {'k:{"name":"side"}': {".": {}, "f:name": {}, "f:image": {}}}
    live = {
        "metadata": {
            "managedFields": [
                {
                    "manager": "me",
                    "operation": "Apply",
                    "fieldsV1": {
                        "f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"main"}': {".": {}, "f:name": {}}}}
                    },
                },
                {
                    "manager": "other",
                    "operation": "Update",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:x": {}}},
                        "f:spec": {"f:replicas": {}, "f:containers": sidecar},
                    },
                },
                {
                    "manager": "kubelet",
                    "operation": "Update",
                    "subresource": "status",
                    "fieldsV1": {"f:status": {"f:x": {}}},
                },
            ]
        }
    }
    found = foreign_fields(ObjectKey("", "Pod", "n", "p"), live, "me", fieldsets.of_object(live, "me"))
    assert [(item["path"], item["manager"]) for item in found] == [('spec.containers[name="side"]', "other")]
