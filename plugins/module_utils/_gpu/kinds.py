# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of values that follow the rules of Kubernetes, container registries and NVIDIA. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import driver_matrix, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_QUALIFIED = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# distribution/reference v0.6.0, regexp.go: domain, path, tag and digest. A first part is a host only if it has a dot or a port, or is localhost.
_HOST = (
    r"(?:localhost(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?|[A-Za-z0-9][-A-Za-z0-9]*(?:\.[A-Za-z0-9][-A-Za-z0-9]*)+(?::[0-9]{1,5})?|"
    r"[A-Za-z0-9][-A-Za-z0-9]*:[0-9]{1,5})"
)
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY = rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*"
_TAG, _DIGEST = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}", r"sha256:[0-9a-f]{64}"
_UNITS = r"(?:ns|us|\u00b5s|ms|s|m|h)"

#: RFC 1123 as Kubernetes applies it: names of Namespaces, and of most other objects.
namespace = values.matching(
    re.compile(_LABEL), "not a name of a namespace (lower case letters, digits and dashes, at most 63)", "hwaccel-gpu"
)
object_name = values.matching(
    re.compile(_SUBDOMAIN),
    "not a name of an object (lower case letters, digits, dashes and dots)",
    "mirror-credentials",
    253,
)
node_name = values.matching(
    re.compile(_SUBDOMAIN), "not a name of a node (lower case letters, digits, dashes and dots)", "gpu-node-1", 253
)
label_key = values.matching(re.compile(rf"(?:{_SUBDOMAIN}/)?{_QUALIFIED}"), "not a label key", "node.example.com/pool")
label_value = values.matching(
    re.compile(rf"(?:{_QUALIFIED})?"),
    "not a label value (at most 63 letters, digits, dashes, dots and underscores)",
    "training",
)
resource_name = values.matching(
    re.compile(rf"(?:{_SUBDOMAIN}/)?{_QUALIFIED}"), "not a name of a resource", "rdma/hca_shared_devices_a"
)
#: Kubernetes 1.30 and newer accept more; shells and NVIDIA's programs do not.
environment_name = values.matching(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "not a name of an environment variable", "NCCL_IB_GID_INDEX"
)
image = values.matching(
    re.compile(rf"{_REPOSITORY}(?::{_TAG})?(?:@{_DIGEST})?"),
    "not an image reference",
    "registry.example.com/gpu/toolkit:v1.20.0",
    512,
)
repository = values.matching(
    re.compile(_REPOSITORY), "not an image repository, which has neither scheme nor tag", "nvcr.io/nvidia/driver", 255
)
image_tag = values.matching(re.compile(_TAG), "not an image tag", "595-6.8.0-134-generic-ubuntu24.04")
web_address = values.matching(
    re.compile(r"https?://[^\s/]+(/\S*)?"), "not the address of a page", "https://docs.example.com/alerts"
)
_absolute = values.matching(re.compile(r"/[^\x00-\x1f:]*"), "not an absolute path", "/var/lib/kubelet", 4096)
_go_duration = values.matching(
    re.compile(rf"(?=.*[1-9])(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+){_UNITS})+"),
    "not a duration, which has a unit and is greater than 0",
    "60s, 5m or 1h",
)
_prometheus = re.compile(r"(?=.*[1-9])(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?", re.ASCII)
#: The format of Prometheus: the largest unit first (prometheus/common v0.67, model/time.go, durationRE).
prometheus_duration = values.matching(
    _prometheus,
    "not a duration of Prometheus, which has units, the largest first, and is greater than 0",
    "30s or 1h30m",
)


def duration(value: t.Any, where: str) -> list[Fault]:
    """As Go reads it (time.ParseDuration)."""
    return _go_duration(value, where)


def path(value: t.Any, where: str) -> list[Fault]:
    """Path of a hostPath, in which Kubernetes refuses ".." (kubernetes v1.36, validation.go, validatePathNoBacksteps)."""
    if isinstance(value, str) and ".." in value.split("/"):
        return [
            Fault(
                f"{values.shown(value)} contains ..",
                where,
                "Kubernetes refuses such a hostPath",
                "set the path without ..",
            )
        ]
    return _absolute(value, where)


def selector(value: t.Any, where: str) -> list[Fault]:
    if not isinstance(value, str):
        return [
            Fault(
                f"{values.shown(value)} is not a label selector",
                where,
                "",
                "write it as a string, as for kubectl -l: pool=training",
            )
        ]
    try:
        selectors.parse(value)
    except selectors.SelectorError as error:
        return [Fault("the selector cannot be read", where, str(error), "write it as for kubectl -l")]
    return []


def registry(value: t.Any, where: str) -> list[Fault]:
    """Replacement of a registry's host: a host, optionally with a path."""
    written = str(value).strip() if values.scalar(value) else ""
    if "://" in written:
        why, next_step = (
            "image references have no scheme",
            f"set {written.partition('://')[2].rpartition('@')[2].rstrip('/') or 'the host'} alone",
        )
    elif "@" in written:
        return [
            Fault(
                "the registry contains a user or password",
                where,
                "image references are readable for everyone",
                "use a pull secret instead",
            )
        ]
    elif written.endswith("/"):
        why, next_step = (
            "a slash is put between it and the image",
            f"set {written.rstrip('/') or 'mirror.example.com/gpu'}",
        )
    elif re.fullmatch(rf"{_HOST}(?:/{_PART})*", written):
        return []
    elif re.fullmatch(_REPOSITORY, written):
        why = "its first part has neither a dot nor a port, so that it would be a path on docker.io"
        next_step = "set a host, such as mirror.example.com/gpu"
    else:
        why, next_step = "", "set a host with a port and a path as needed, such as mirror.example.com:5000/gpu"
    return [Fault(f"{values.shown(value)} is not a registry", where, why, next_step)]


def driver_version(value: t.Any, where: str) -> list[Fault]:
    """A version, or a branch. YAML reads an unquoted 580.10 as the number 580.1."""
    if isinstance(value, float):
        why = "without quotes YAML reads 580.10 as the number 580.1"
        return [Fault(f"{value} is a number, not a version", where, why, f'write it in quotes, as "{value}0"')]
    written = str(value).strip() if values.scalar(value) else ""
    if driver_matrix.is_version(written):
        return []
    why = (
        "the version that it means would change over time"
        if written.casefold() in ("latest", "newest", "stable")
        else ""
    )
    return [
        Fault(
            f"{values.shown(value)} is not a driver version",
            where,
            why,
            f"set one such as {driver_matrix.DEFAULT_VERSION}, or a branch such as 595",
        )
    ]


def kubernetes_version(value: t.Any, where: str) -> list[Fault]:
    if isinstance(value, str) and re.fullmatch(r"v?1\.[0-9]{2,}([.+-].*)?", value.strip()):
        return []
    why = "without quotes YAML reads 1.30 as the number 1.3" if isinstance(value, float) else ""
    return [
        Fault(f"Kubernetes version {values.shown(value)} cannot be read", where, why, 'write it in quotes, as "1.36"')
    ]


def pattern(value: t.Any, where: str) -> list[Fault]:
    """A regular expression of Go, which supports neither lookarounds nor backreferences."""
    if not isinstance(value, str):
        return [
            Fault(f"{values.shown(value)} is not a regular expression", where, "", "write it as a string in quotes")
        ]
    if found := re.search(r"\(\?(=|!|<=|<!)", value):
        return [
            Fault(
                "the regular expression cannot be used",
                where,
                f"Go's regular expressions do not support {found[0]}…)",
                "write it without that",
            )
        ]
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        return [Fault("the regular expression cannot be used", where, str(error), "correct it")]
    return []
