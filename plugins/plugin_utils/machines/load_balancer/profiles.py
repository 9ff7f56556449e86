# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that distributions need, without members."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, WORKER

_READYZ = {"type": "https", "path": "/readyz"}
# K3s and RKE2 refuse anonymous requests: 401 is the answer of the API server, 503 that of an agent that waits for it.
_ANSWERS = {**_READYZ, "status": "200|401"}
_OPENSHIFT_INGRESS = {"type": "http", "path": "/healthz/ready", "port": 1936}
_RANCHER_INGRESS = {"type": "http", "path": "/healthz", "port": 80}


def _api(check: dict[str, str]) -> dict[str, t.Any]:
    """API servers beside an etcd of their own.

    One whose machine or etcd is away does not answer, so it must be noticed within seconds. Until then requests wait on it, and with leastconn new ones go to
    the others. It also spreads the long connections of clients again once a server is back.
    """
    return {
        "name": "api",
        "port": 6443,
        "roles": [MASTER],
        "balance": "leastconn",
        "check": {**check, "interval": "1s"},
    }


#: Without workers, as in compact clusters, masters take their role.
#: machines_only: reachable only by machines of the cluster, because it serves the cluster's secrets to whoever asks.
PROFILES: dict[str, tuple[dict[str, t.Any], ...]] = {
    "openshift": (
        {"name": "api", "port": 6443, "roles": [MASTER, BOOTSTRAP], "check": _READYZ},
        {
            "name": "machine-config",
            "port": 22623,
            "roles": [MASTER, BOOTSTRAP],
            "check": {"type": "https", "path": "/healthz"},
            "machines_only": True,
        },
        {"name": "ingress-https", "port": 443, "roles": [WORKER], "balance": "source", "check": _OPENSHIFT_INGRESS},
        {"name": "ingress-http", "port": 80, "roles": [WORKER], "balance": "source", "check": _OPENSHIFT_INGRESS},
    ),
    "kubeadm": (_api(_READYZ),),
    "k3s": (_api(_ANSWERS),),
    "rke2": (
        _api(_ANSWERS),
        {"name": "supervisor", "port": 9345, "roles": [MASTER], "check": {"type": "https", "path": "/ping"}},
        {"name": "ingress-https", "port": 443, "roles": [WORKER], "check": _RANCHER_INGRESS},
        {"name": "ingress-http", "port": 80, "roles": [WORKER], "check": _RANCHER_INGRESS},
    ),
}
PROFILES["rancher"] = PROFILES["rke2"]
#: Values of hwaccel_distribution without a profile.
WITHOUT = ("", "none", "kubernetes")
