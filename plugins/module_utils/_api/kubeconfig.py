# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads kubeconfigs and the service account of a pod."""

from __future__ import annotations

import base64
import binascii
import collections.abc as c
import copy
import os
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import _deps
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

DEFAULT_PATH = "~/.kube/config"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_LISTS = ("clusters", "contexts", "users")

#: Characters of a header's name beside letters and digits (RFC 9110, 5.6.2), but for "%". The API server decodes the rest of the name of Impersonate-Extra
#: (k8s.io/apiserver v0.36.4, pkg/endpoints/filters/impersonation/impersonation.go, unescapeExtraKey).
_OF_HEADERS = "!#$&'*+-.^_`|~"


class MissingKubeconfig(HwaccelError):
    """No file is at the path of the kubeconfig."""


def load(kubeconfig: t.Any, context: str = "") -> Credentials:
    """kubeconfig: a dictionary, YAML text, a path or several paths separated by the system's separator."""
    config, source = _read(kubeconfig)
    name = context or config.get("current-context") or ""
    if not name:
        raise HwaccelError(
            "the kubeconfig has no current context", source, "", f"set context to one of: {_names(config, 'contexts')}"
        )
    chosen = _entry(config, "contexts", name, source)
    cluster = _entry(config, "clusters", chosen.get("cluster") or "", source)
    user = _entry(config, "users", chosen["user"], source) if chosen.get("user") else {}
    source = f"{source}, context {name}"
    if user.get("exec") or user.get("auth-provider"):
        from ansible_collections.hwaccel.gpu.plugins.module_utils._api import login

        return login.through_kubernetes(config, name, _plain(cluster, {}, source), source)
    return _plain(cluster, user, source)


def contexts(kubeconfig: t.Any) -> list[str]:
    """Names of its contexts. kubeconfig: as for `load`."""
    config, _source = _read(kubeconfig)
    return [str(entry.get("name")) for entry in config.get("contexts") or []]


def _plain(cluster: dict[str, t.Any], user: dict[str, t.Any], source: str) -> Credentials:
    if not cluster.get("server"):
        raise HwaccelError("the kubeconfig's cluster has no server", source, "", "add clusters[].cluster.server")
    token_file = user.get("tokenFile") or ""
    extra = [("Impersonate-Uid", user["as-uid"])] if user.get("as-uid") else []
    extra += [
        (f"Impersonate-Extra-{urllib.parse.quote(str(key), safe=_OF_HEADERS)}", value)
        for key, values in (user.get("as-user-extra") or {}).items()
        for value in values
    ]
    return Credentials(
        host=cluster["server"],
        ca=_pem(cluster, "certificate-authority", source),
        verify=not cluster.get("insecure-skip-tls-verify", False),
        server_name=cluster.get("tls-server-name") or "",
        token=_token(token_file, source) if token_file else str(user.get("token") or ""),
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        client_cert=_pem(user, "client-certificate", source),
        client_key=_pem(user, "client-key", source),
        proxy=cluster.get("proxy-url") or "",
        impersonate_user=user.get("as") or "",
        impersonate_groups=tuple(user.get("as-groups") or ()),
        extra_headers=tuple(extra),
        source=source,
        refresh=(lambda: _plain(cluster, user, source)) if token_file else None,
    )


def in_cluster(environ: c.Mapping[str, str], folder: str = SERVICE_ACCOUNT) -> Credentials | None:
    """The service account of the pod that the module runs in, None outside a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token = os.path.join(folder, "token")
    if not host or not port or not os.path.exists(token):
        return None
    host = f"[{host}]" if ":" in host else host
    source = "service account of this pod"
    return Credentials(
        host=f"https://{host}:{port}",
        ca=read_pem(os.path.join(folder, "ca.crt"), "ca.crt"),
        token=_token(token, source),
        source=source,
        # The file is read each time, because the kubelet writes a new token well before the old one expires.
        refresh=lambda: t.cast("Credentials", in_cluster(environ, folder)),
    )


def read_pem(path: str, what: str) -> str:
    return _text(path, what)


def _read(kubeconfig: t.Any) -> tuple[dict[str, t.Any], str]:
    if isinstance(kubeconfig, c.Mapping):
        return _checked(
            copy.deepcopy(dict(kubeconfig)), "kubeconfig given as a dictionary"
        ), "kubeconfig given as a dictionary"
    text = str(kubeconfig)
    if "\n" in text or text.lstrip().startswith("{"):
        return _checked(
            _parsed(text, "kubeconfig given as text"), "kubeconfig given as text"
        ), "kubeconfig given as text"
    paths = [os.path.expanduser(os.path.expandvars(path)) for path in text.split(os.pathsep) if path]
    found = [path for path in paths if os.path.exists(path)]
    if not found:
        raise MissingKubeconfig(
            "the kubeconfig does not exist",
            text,
            f"the module runs on {os.uname().nodename} and looks for it there",
            "set kubeconfig to an existing file, or to its content",
        )
    merged: dict[str, t.Any] = {}
    for path in found:
        config = _absolute(
            _checked(_parsed(_text(path, "kubeconfig"), path), path), os.path.dirname(os.path.abspath(path))
        )
        for key, value in config.items():
            if key in _LISTS:
                known = {entry["name"] for entry in merged.get(key, [])}
                merged[key] = merged.get(key, []) + [entry for entry in value if entry["name"] not in known]
            elif not merged.get(key):
                merged[key] = value
    return merged, f"kubeconfig {os.pathsep.join(found)}"


def _text(path: str, what: str) -> str:
    path = os.path.expanduser(path)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise HwaccelError(
            f"{what} cannot be read",
            path,
            str(reason),
            "check the path and its permissions for the user that the module runs as",
        ) from None


def _parsed(text: str, where: str) -> t.Any:
    yaml = _deps.yaml("to read a kubeconfig")
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        # The error's own text is not shown, because it quotes the line, which can contain a token.
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise HwaccelError(
            "the kubeconfig is not valid YAML", where, f"it fails at {line}", "check it with 'kubectl config view'"
        ) from None


def _checked(config: t.Any, where: str) -> dict[str, t.Any]:
    if not isinstance(config, dict):
        raise HwaccelError("the kubeconfig is empty or not a mapping", where, "", "use a file that kubectl can read")
    for key in _LISTS:
        entries = config.get(key) or []
        singular = key[:-1]
        fine = isinstance(entries, list) and all(
            isinstance(entry, dict) and entry.get("name") and isinstance(entry.get(singular) or {}, dict)
            for entry in entries
        )
        if not fine:
            raise HwaccelError(
                f"{key} of the kubeconfig is malformed",
                where,
                f"it is not a list of name and {singular}",
                "use a file that kubectl can read",
            )
        config[key] = entries
    return config


def _absolute(config: dict[str, t.Any], folder: str) -> dict[str, t.Any]:
    """Paths in a kubeconfig are relative to it."""
    for key, names in (
        ("clusters", ("certificate-authority",)),
        ("users", ("client-certificate", "client-key", "tokenFile")),
    ):
        for entry in config[key]:
            inner = entry.get(key[:-1]) or {}
            for name in names:
                if inner.get(name):
                    inner[name] = os.path.join(folder, os.path.expanduser(inner[name]))
    for entry in config["users"]:
        command = ((entry.get("user") or {}).get("exec") or {}).get("command") or ""
        if "/" in command:
            entry["user"]["exec"]["command"] = os.path.join(folder, command)
    return config


def _entry(config: dict[str, t.Any], key: str, name: str, source: str) -> dict[str, t.Any]:
    for entry in config.get(key, []):
        if entry["name"] == name:
            return entry.get(key[:-1]) or {}
    raise HwaccelError(
        f"the kubeconfig has no {key[:-1]} named {name!r}",
        source,
        f"it has: {_names(config, key)}",
        "correct context, or the kubeconfig",
    )


def _names(config: dict[str, t.Any], key: str) -> str:
    return ", ".join(str(entry["name"]) for entry in config.get(key, [])[:20]) or "none"


def _pem(section: dict[str, t.Any], key: str, source: str) -> str:
    """The PEM text of `key`-data or of the file that `key` names."""
    data = section.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(data, validate=False).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError, TypeError, ValueError):
            raise HwaccelError(
                f"{key}-data of the kubeconfig is not a base64-encoded PEM file",
                source,
                "",
                "check it with 'kubectl config view --raw'",
            ) from None
    return read_pem(section[key], f"{key} of the {source}") if section.get(key) else ""


def _token(path: str, source: str) -> str:
    return _text(path, f"the token file of the {source}").strip()
