# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Third-party packages, imported only when needed.

The common credentials (token, client certificate, service account) never import `kubernetes`, which costs a quarter of a second.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import MissingPackage


def urllib3(purpose: str = "to connect to the API server") -> t.Any:
    try:
        import urllib3 as module
    except ImportError as error:
        raise MissingPackage("urllib3", purpose, error) from None
    return module


def yaml(purpose: str = "to read a kubeconfig or a manifest") -> t.Any:
    try:
        import yaml as module
    except ImportError as error:
        raise MissingPackage("PyYAML", purpose, error) from None
    return module


def jmespath(purpose: str = "to evaluate a query") -> t.Any:
    try:
        import jmespath as module
    except ImportError as error:
        raise MissingPackage("jmespath", purpose, error) from None
    return module


def jsonpatch(purpose: str = "to apply JSON patches (RFC 6902)") -> t.Any:
    try:
        import jsonpatch as module
    except ImportError as error:
        raise MissingPackage("jsonpatch", purpose, error) from None
    return module


def kubernetes_config(
    purpose: str = "to log in with an exec plugin or an authentication provider of a kubeconfig",
) -> t.Any:
    """The module kubernetes.config.kube_config; it also imports kubernetes.client."""
    try:
        from kubernetes.config import kube_config as module
    except ImportError as error:
        raise MissingPackage("kubernetes", purpose, error) from None
    return module
