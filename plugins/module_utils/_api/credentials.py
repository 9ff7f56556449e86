# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the credentials of one cluster from options and environment.

Names are kubernetes.core's. An option takes precedence over its K8S_AUTH_* variable, which takes precedence over the kubeconfig. An empty string is no value.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import os
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import kubeconfig as kubeconfigs
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

#: Option -> environment variables that can set it. The first one that is set counts.
ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "kubeconfig": ("K8S_AUTH_KUBECONFIG",),
    "context": ("K8S_AUTH_CONTEXT",),
    "host": ("K8S_AUTH_HOST",),
    "api_key": ("K8S_AUTH_API_KEY",),
    "username": ("K8S_AUTH_USERNAME",),
    "password": ("K8S_AUTH_PASSWORD",),
    "client_cert": ("K8S_AUTH_CLIENT_CERT", "K8S_AUTH_CERT_FILE"),
    "client_key": ("K8S_AUTH_CLIENT_KEY", "K8S_AUTH_KEY_FILE"),
    "ca_cert": ("K8S_AUTH_CA_CERT", "K8S_AUTH_SSL_CA_CERT"),
    "validate_certs": ("K8S_AUTH_VALIDATE_CERTS", "K8S_AUTH_VERIFY_SSL"),
    "proxy": ("K8S_AUTH_PROXY",),
    "no_proxy": ("K8S_AUTH_NO_PROXY",),
    "impersonate_user": ("K8S_AUTH_IMPERSONATE_USER",),
    "impersonate_groups": ("K8S_AUTH_IMPERSONATE_GROUPS",),
}
_PROXY_HEADERS = ("proxy_basic_auth", "basic_auth", "user_agent")
#: Options that identify user and server. They are not taken from the environment if a kubeconfig was given as an option,
#: because otherwise the token of one cluster could be sent to another.
_IDENTITY = (
    "host",
    "api_key",
    "username",
    "password",
    "client_cert",
    "client_key",
    "ca_cert",
    "validate_certs",
    "impersonate_user",
    "impersonate_groups",
)


def resolve(options: c.Mapping[str, t.Any], environ: c.Mapping[str, str] | None = None) -> Credentials:
    """Credentials from module options (unknown ones are ignored), the environment and the kubeconfig that they name."""
    environ = os.environ if environ is None else environ
    values = _merged(options, environ)
    credentials = _base(values, environ)
    return _overlaid(credentials, values)


def decided_by(options: c.Mapping[str, t.Any], environ: c.Mapping[str, str] | None = None) -> str:
    """The setting of this machine that selects the cluster; empty if the options alone select it.

    A context selects a cluster of a kubeconfig that may differ from machine to machine. If a kubeconfig has several contexts and none is
    named, its current-context counts, which kubectl writes.
    """
    environ = os.environ if environ is None else environ
    values = _merged(options, environ)
    context = values.get("context", "")
    if _set(options.get("host")):
        return ""
    if _set(options.get("kubeconfig")):
        several = not context and len(kubeconfigs.contexts(options["kubeconfig"])) > 1
        own = _set(options.get("context")) or not context
        return (
            "the current context of that kubeconfig"
            if several
            else ""
            if own
            else "K8S_AUTH_CONTEXT of the environment"
        )
    if values.get("host"):
        return "K8S_AUTH_HOST of the environment"
    if values.get("kubeconfig"):
        return "K8S_AUTH_KUBECONFIG of the environment"
    if environ.get("KUBECONFIG"):
        return "KUBECONFIG of the environment"
    if context or os.path.exists(os.path.expanduser(kubeconfigs.DEFAULT_PATH)):
        return "the default kubeconfig"
    return "the pod that this runs in"


def _set(value: t.Any) -> bool:
    return value is not None and value != "" and value != [] and value != {}


def _merged(options: c.Mapping[str, t.Any], environ: c.Mapping[str, str]) -> dict[str, t.Any]:
    values = {name: options[name] for name in (*ENVIRONMENT, "proxy_headers") if _set(options.get(name))}
    given_kubeconfig = "kubeconfig" in values or "context" in values
    for name, variables in ENVIRONMENT.items():
        if name in values or (given_kubeconfig and name in _IDENTITY):
            continue
        found = next((environ[variable] for variable in variables if environ.get(variable)), "")
        if found:
            values[name] = found
    headers = {name: environ.get(f"K8S_AUTH_PROXY_HEADERS_{name.upper()}", "") for name in _PROXY_HEADERS}
    headers |= {name: value for name, value in (values.get("proxy_headers") or {}).items() if _set(value)}
    values["proxy_headers"] = {name: value for name, value in headers.items() if value}
    values["validate_certs"] = _boolean("validate_certs", values.get("validate_certs"))
    groups = values.get("impersonate_groups")
    values["impersonate_groups"] = tuple(groups.split(",") if isinstance(groups, str) else groups or ())
    return values


def _boolean(name: str, value: t.Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on", "y", "t"):
        return True
    if text in ("0", "false", "no", "off", "n", "f"):
        return False
    raise HwaccelError(
        f"{name} is neither true nor false",
        ENVIRONMENT[name][-1],
        f"its value is {text[:20]!r}",
        "set it to true or false",
    )


def _base(values: dict[str, t.Any], environ: c.Mapping[str, str]) -> Credentials:
    """The credentials that options are added to: none, a kubeconfig, or the service account of this pod."""
    host = values.get("host", "")
    whole = host and (
        values.get("api_key")
        or (values.get("username") and values.get("password"))
        or (values.get("client_cert") and values.get("client_key"))
    )
    chosen = values.get("kubeconfig")
    if whole or (host and not chosen and not values.get("context")):
        # With a host alone no credentials are used, because those of the default kubeconfig belong to another server.
        return Credentials(host=host, source="the given options")
    if chosen:
        return kubeconfigs.load(chosen, values.get("context", ""))
    default = environ.get("KUBECONFIG") or kubeconfigs.DEFAULT_PATH
    if values.get("context") or environ.get("KUBECONFIG") or os.path.exists(os.path.expanduser(default)):
        return kubeconfigs.load(default, values.get("context", ""))
    found = kubeconfigs.in_cluster(environ)
    if found:
        return found
    raise HwaccelError(
        "no cluster is configured",
        why=f"there is no option host or kubeconfig, no K8S_AUTH_HOST or K8S_AUTH_KUBECONFIG, no {kubeconfigs.DEFAULT_PATH}, "
        "and the module does not run in a pod with a service account",
        next_step="set kubeconfig, or host and api_key, for example in hwaccel_connection",
    )


def _overlaid(base: Credentials, values: dict[str, t.Any]) -> Credentials:
    changes: dict[str, t.Any] = {}
    identity: dict[str, t.Any] = {}
    if values.get("api_key"):
        identity["token"] = values["api_key"].strip().removeprefix("Bearer ").strip()
    if values.get("username"):
        identity |= {"username": values["username"], "password": values.get("password", "")}
    if values.get("client_cert"):
        identity["client_cert"] = kubeconfigs.read_pem(values["client_cert"], "client_cert")
        # One file may contain both certificate and key.
        identity["client_key"] = kubeconfigs.read_pem(values.get("client_key") or values["client_cert"], "client_key")
    if identity:
        # If an option names the user, nothing of the kubeconfig's user is kept.
        changes |= {
            "token": "",
            "username": "",
            "password": "",
            "client_cert": "",
            "client_key": "",
            "refresh": None,
        } | identity
    if values.get("ca_cert"):
        changes["ca"] = kubeconfigs.read_pem(values["ca_cert"], "ca_cert")
    if values["validate_certs"] is not None:
        changes["verify"] = values["validate_certs"]
    for name in ("proxy", "no_proxy", "impersonate_user", "impersonate_groups", "proxy_headers"):
        if values.get(name):
            changes[name] = values[name]
    changes["host"] = _url(values.get("host") or base.host, base.source)
    refresh = changes.get("refresh", base.refresh)
    result = _printable(dataclasses.replace(base, **changes))
    if refresh is not None:
        return dataclasses.replace(result, refresh=lambda: _overlaid(refresh(), values))
    return result


def _printable(found: Credentials) -> Credentials:
    """Raises an error if a value cannot be sent in a header, because the HTTP library would show the value in its message."""
    sent = {
        "token": found.token,
        "user name": found.username,
        "impersonated user": found.impersonate_user,
        "group": "".join(found.impersonate_groups),
    }
    for name, value in sent.items():
        if any(ord(character) < 32 or ord(character) > 255 for character in value):
            why = "it has a line break, or a character that is invalid in HTTP headers"
            raise HwaccelError(f"the {name} cannot be sent", found.source, why, "check how it was copied")
    return found


def _url(host: str, source: str) -> str:
    host = host.strip().rstrip("/")
    if "://" not in host:
        host = "https://" + host
    if not _is_url(host):
        raise HwaccelError(f"{host!r} is not the URL of an API server", source, "", "write it as https://name:port")
    return host


def _is_url(text: str) -> bool:
    if any(character.isspace() for character in text):
        return False
    try:
        parts = urllib.parse.urlsplit(text)
        # A port that is none is an error only here, where it is read.
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
