# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specs that modules share. They must match the documentation fragments."""

from __future__ import annotations

import typing as t

PROXY_HEADERS_SPEC: dict[str, t.Any] = {
    "proxy_basic_auth": {"type": "str", "no_log": True},
    "basic_auth": {"type": "str", "no_log": True},
    "user_agent": {"type": "str"},
}

#: Connection to the cluster, with the names and aliases of kubernetes.core, so that one `module_defaults` serves both
#: (only `retry_timeout` does not exist there).
CLUSTER_SPEC: dict[str, t.Any] = {
    "kubeconfig": {"type": "raw"},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "proxy_headers": {"type": "dict", "options": PROXY_HEADERS_SPEC},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
    "retry_timeout": {"type": "float"},
}

#: Set by the shared action plugin, not by users: a long wait is split into slices so that progress can be shown.
WAITING_SPEC: dict[str, t.Any] = {
    "wait_slice": {"type": "float"},
    "wait_resume": {"type": "dict", "no_log": False},
    "wait_task": {"type": "str"},
}

#: Manifests from files. `template` and `src` are read and rendered on the controller by the action plugin, which passes the module
#: `texts` instead; the module itself never gets the first two.
SOURCES_SPEC: dict[str, t.Any] = {
    "template": {"type": "raw"},
    "src": {"type": "raw"},
    "texts": {
        "type": "list",
        "elements": "dict",
        "no_log": False,
        "options": {"origin": {"type": "str", "required": True}, "text": {"type": "str", "required": True}},
    },
}

#: Documented in doc_fragments/tries.py.
TRIES_SPEC: dict[str, t.Any] = {
    "namespace": {"type": "str", "default": "hwaccel-gpu"},
    "max_failed": {"type": "str", "default": "0"},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "schedule_timeout": {"type": "float", "default": 30},
    "start_timeout": {"type": "float", "default": 300},
    "timeout": {"type": "float", "default": 300},
    "sample": {"type": "int", "default": 20},
}
