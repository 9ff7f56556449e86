# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pointers for machines that are added to an installed cluster of OpenShift, with the authority that the cluster itself names."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import pointers
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.pointers import Pointer
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.bootstrap import CONFIG_MAP

#: Namespace, name and key, in this order: only the first one follows a rotation, and older releases do not have it.
_AUTHORITIES = (
    ("openshift-machine-config-operator", "machine-config-server-ca", "ca-bundle.crt"),
    ("kube-system", "root-ca", "ca.crt"),
)
_WORKER = "worker.ign"
_WHAT = "the authority of port 22623 is unknown"


def found(client: Client, domain: str, pools: c.Iterable[str], folder: str) -> dict[str, t.Any]:
    """Result of the module. folder: of the installation on this host, "" if there is none.

    Raises HwaccelError if no ConfigMap has the authority, or what it has is no certificate.
    """
    authorities, config_map = _authorities(client)
    before = _before(folder)
    pointer = Pointer(before.version if before else pointers.VERSION, authorities)
    rotated = before is not None and not pointers.same(before.authorities, authorities)
    return {
        "pointers": {pool: pointer.of(domain, pool) for pool in pools},
        "config_map": config_map,
        "ignition_version": pointer.version,
        "rotated": rotated,
    }


def _authorities(client: Client) -> tuple[str, str]:
    """The certificates, and the ConfigMap that has them."""
    for namespace, name, key in _AUTHORITIES:
        where = f"ConfigMap {namespace}/{name}"
        try:
            data = client.get(CONFIG_MAP, name, namespace).get("data") or {}
        except NotFound:
            continue
        text = str(data.get(key) or "")
        if why := pointers.why_not(text):
            next_step = (
                f"correct {key} of {where}: machine-config-operator writes it (oc get clusteroperator machine-config)"
            )
            raise HwaccelError(_WHAT, where, why, next_step)
        return text, f"{namespace}/{name}"
    places = " nor ".join(f"{namespace}/{name}" for namespace, name, _key in _AUTHORITIES)
    next_step = "check that this is a cluster of OpenShift that is installed, and its operator machine-config"
    raise HwaccelError(_WHAT, client.where, f"there is neither ConfigMap {places}", next_step)


def _before(folder: str) -> Pointer | None:
    """Of the files of the installation, which may be lost."""
    if not folder:
        return None
    try:
        return pointers.read((pathlib.Path(folder) / _WORKER).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        next_step = "run as a user who can read the folder of the installation"
        raise HwaccelError(f"{_WORKER} cannot be read", f"{folder}/{_WORKER}", str(error.strerror), next_step) from None
