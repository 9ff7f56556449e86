# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a cluster is reached, as `hwaccel_connection` has it: which options there are, and what is wrong with what was given. Pure.

No message repeats what may be a secret.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Another name to the name of an option. kubernetes.core has the same.
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
    return [] if values.scalar(value) else [Fault("it is no text", where, "", "give a text in quotes")]


def _host(value: t.Any, where: str) -> list[Fault]:
    written = str(value).strip()
    if values.scalar(value) and "@" in written.partition("://")[2].partition("/")[0]:
        return [
            Fault(
                "the address has a user or password in it",
                where,
                "",
                "give these as api_key, or as username and password",
            )
        ]
    if values.scalar(value) and _HOST.fullmatch(written):
        return []
    return [
        Fault(
            f"{values.shown(value)} is no address of an API server",
            where,
            "",
            "give one such as https://api.example.com:6443",
        )
    ]


def _kubeconfig(value: t.Any, where: str) -> list[Fault]:
    """A path, several of them, or the content, which may hold a token."""
    if not isinstance(value, (str, dict)):
        return [Fault(f"{values.shown(value)} is no kubeconfig", where, "", "give a path, or the content of one")]
    if isinstance(value, dict) and not isinstance(value.get("clusters"), (list, tuple)):
        return [Fault("the kubeconfig has no list of clusters", where, "", "give a path, or the whole content of one")]
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
    """What is wrong with the options of a connection."""
    if not isinstance(value, dict):
        # Never the text itself: it may be a token.
        what = "a connection is no list" if isinstance(value, (list, tuple)) else "a connection is more than one text"
        return [
            Fault(
                what,
                where,
                "",
                "give its options by name, such as {kubeconfig: PATH}, or {host: ADDRESS, api_key: TOKEN}",
            )
        ]
    given = {key for key, option in value.items() if not values.unset(option)}
    faults = _FIELDS(value, where)
    faults += [
        Fault(f"{alias} and {name} are the same option", where, "", f"leave out {alias}")
        for alias, name in ALIASES.items()
        if {alias, name} <= given
    ]
    if {"api_key", "username"} <= given:
        faults.append(
            Fault(
                "api_key and username contradict each other",
                where,
                "a request has one of them",
                "leave one of them out",
            )
        )
    return faults
