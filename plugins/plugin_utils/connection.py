# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a cluster in `hwaccel_connection`: options and their validation. Pure.

Messages never contain values that may be secrets.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Aliases of options, which are those of kubernetes.core.
ALIASES = {
    "cert_file": "client_cert",
    "key_file": "client_key",
    "ssl_ca_cert": "ca_cert",
    "verify_ssl": "validate_certs",
}
_HOST = re.compile(
    r"(https?://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)(:[0-9]{1,5})?(/[^\s@]*)?"
)


def _secret(value: t.Any, where: str) -> list[Fault]:
    return [] if values.scalar(value) else [Fault("it is not a string", where, "", "write it as a string in quotes")]


def _host(value: t.Any, where: str) -> list[Fault]:
    written = str(value).strip()
    if values.scalar(value) and "@" in written.partition("://")[2].partition("/")[0]:
        return [
            Fault(
                "the address contains a user or password",
                where,
                "",
                "use api_key, or username and password",
            )
        ]
    if values.scalar(value) and _HOST.fullmatch(written):
        return []
    return [
        Fault(
            f"{values.shown(value)} is not the address of an API server",
            where,
            "",
            "set one such as https://api.example.com:6443",
        )
    ]


def _kubeconfig(value: t.Any, where: str) -> list[Fault]:
    """A path, several paths, or the content, which may contain a token."""
    if not isinstance(value, (str, dict)):
        return [
            Fault(f"{values.shown(value)} is not a kubeconfig", where, "", "set a path, or the content of a kubeconfig")
        ]
    if isinstance(value, dict) and not isinstance(value.get("clusters"), (list, tuple)):
        return [
            Fault(
                "the kubeconfig has no list of clusters", where, "", "set a path, or the whole content of a kubeconfig"
            )
        ]
    return []


def _groups(value: t.Any, where: str) -> list[Fault]:
    return [] if isinstance(value, str) else values.listed(values.text, "groups")(value, where)


_CHECKS: dict[str, values.Check] = {
    "kubeconfig": _kubeconfig,
    "context": values.text,
    "host": _host,
    "api_key": _secret,
    "username": values.text,
    "password": _secret,
    "client_cert": values.text,
    "client_key": values.text,
    "ca_cert": values.text,
    "validate_certs": values.truth,
    "proxy": _secret,
    "no_proxy": values.text,
    "proxy_headers": values.fields(
        {"proxy_basic_auth": _secret, "basic_auth": _secret, "user_agent": values.text}, "proxy_headers"
    ),
    "impersonate_user": values.text,
    "impersonate_groups": _groups,
    "retry_timeout": values.seconds(),
}
OPTIONS = {**_CHECKS, **{alias: _CHECKS[name] for alias, name in ALIASES.items()}}
_FIELDS = values.fields(OPTIONS, "a connection")


def check(value: t.Any, where: str) -> list[Fault]:
    """Errors in the options of a connection."""
    if not isinstance(value, dict):
        # The string itself is not shown, because it may be a token.
        what = "a connection is not a list" if isinstance(value, (list, tuple)) else "a connection is not a string"
        return [
            Fault(
                what,
                where,
                "",
                "set its options by name, such as {kubeconfig: PATH}, or {host: ADDRESS, api_key: TOKEN}",
            )
        ]
    given = {key for key, option in value.items() if not values.unset(option)}
    faults = _FIELDS(value, where)
    faults += [
        Fault(f"{alias} and {name} are the same option", where, "", f"remove {alias}")
        for alias, name in ALIASES.items()
        if {alias, name} <= given
    ]
    if {"api_key", "username"} <= given:
        faults.append(
            Fault(
                "api_key and username contradict each other",
                where,
                "a request can only use one of them",
                "remove one of them",
            )
        )
    return faults
