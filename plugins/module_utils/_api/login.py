# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs in with a kubeconfig's exec plugin or authentication provider, using the `kubernetes` package."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import _deps
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError


def through_kubernetes(config: dict[str, t.Any], context: str, base: Credentials, source: str) -> Credentials:
    """base: the kubeconfig's settings of the cluster; the package adds the user's credentials."""
    kube_config = _deps.kubernetes_config()
    from kubernetes.client import Configuration

    found = Configuration()
    found.api_key = {}
    try:
        kube_config.load_kube_config_from_dict(
            config, context=context, client_configuration=found, persist_config=False
        )
        cert, key = _content(found.cert_file), _content(found.key_file)
    except Exception as error:  # Plugins may raise any exception.
        raise HwaccelError(
            "logging in with the kubeconfig's exec plugin or authentication provider failed",
            source,
            " ".join(str(error).split())[:300],
            f"run 'kubectl --context {context} get nodes' as the same user on {os.uname().nodename}",
        ) from None
    finally:
        # The package keeps certificates in files until the process ends. They are no longer needed once they are read.
        getattr(kube_config, "_cleanup_temp_files", lambda: None)()
    token = str((found.api_key or {}).get("authorization") or (found.api_key or {}).get("BearerToken") or "")
    token = token.removeprefix("Bearer ").strip()
    if not token and not cert:
        raise HwaccelError(
            "the kubeconfig's exec plugin gave neither a token nor a certificate",
            source,
            "its command failed or its output does not have the expected format",
            f"run 'kubectl --context {context} get nodes' as the same user on {os.uname().nodename}",
        )
    return dataclasses.replace(
        base,
        token=token,
        client_cert=cert,
        client_key=key,
        source=source,
        refresh=lambda: through_kubernetes(config, context, base, source),
    )


def _content(path: str | None) -> str:
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()
