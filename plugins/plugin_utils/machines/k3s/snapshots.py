# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where snapshots of etcd go beside the servers' disks: S3, by a Secret. Pure.

K3s takes the Secret only if no other option of S3 is set (GetClient in pkg/etcd/s3/s3.go), so all of them are in it, and no credentials are in a file.
"""

from __future__ import annotations

import base64
import collections.abc as c
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

Settings = c.Mapping[str, t.Any]
#: The one that the role makes, in kube-system.
SECRET = "hwaccel-gpu-etcd-s3"
#: What the Secret has by its keys without etcd-s3- (getConfigFromSecret in pkg/etcd/s3/config_secret.go).
OPTIONS = (
    "bucket",
    "bucket_lookup_type",
    "endpoint",
    "endpoint_ca",
    "folder",
    "insecure",
    "proxy",
    "region",
    "skip_ssl_verify",
    "timeout",
)
_WHERE = "cluster_k3s_snapshot_s3"


def settings_of(settings: Settings) -> dict[str, t.Any]:
    """Options of K3s on servers with etcd."""
    given = settings["snapshot_s3"]
    found: dict[str, t.Any] = {
        "etcd-snapshot-retention": settings["snapshot_retention"],
        "etcd-snapshot-schedule-cron": settings["snapshot_schedule"],
    }
    if given:
        found |= {"etcd-s3": True, "etcd-s3-config-secret": given.get("secret") or SECRET}
    return found


def faults(settings: Settings, *, embedded: bool) -> list[Fault]:
    given = settings["snapshot_s3"]
    if not given:
        return []
    found = []
    if not embedded:
        what, next_step = "snapshots cannot go to S3", "set cluster_k3s_datastore: etcd, or unset it"
        found.append(Fault(what, _WHERE, "only etcd has snapshots, and the server has another datastore", next_step))
    if bool(given.get("bucket")) == bool(given.get("secret")):
        next_step = "set bucket, or secret, the name of a Secret in kube-system that has all of it"
        found.append(Fault("neither or both of bucket and secret are set", _WHERE, "", next_step))
    elif given.get("secret") and len(given) > 1:
        others = ", ".join(sorted(set(given) - {"secret"}))
        found.append(Fault(f"{others} would not be used", _WHERE, "the Secret has all of it", "remove it"))
    set_too = [
        name
        for name in ("configuration", "server_configuration")
        for key in settings[name]
        if key.startswith("etcd-s3")
    ]
    if set_too:
        why = "K3s does not read the Secret if another option of S3 is set"
        next_step = "remove etcd-s3 options there"
        found.append(Fault("options of S3 are set twice", f"cluster_k3s_{set_too[0]}", why, next_step))
    return found


def secret(settings: Settings, access_key: str, secret_key: str) -> str:
    """The Secret as a manifest, empty if somebody else makes it."""
    given = settings["snapshot_s3"]
    if not given or given.get("secret"):
        return ""
    texts = {name: _text(given[name]) for name in OPTIONS if given.get(name) not in (None, "")}
    texts |= {name: value for name, value in (("access_key", access_key), ("secret_key", secret_key)) if value}
    made = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": "kube-system"},
        # https://docs.k3s.io/cli/etcd-snapshot#s3-configuration-secret-support
        "type": "etcd.k3s.cattle.io/s3-config-secret",
        "data": {
            f"etcd-s3-{name.replace('_', '-')}": base64.b64encode(text.encode()).decode()
            for name, text in texts.items()
        },
    }
    return yaml.safe_dump(made, width=160)


def _text(value: t.Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
