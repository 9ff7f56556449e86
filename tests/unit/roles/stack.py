# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders templates of a role with its defaults, like Ansible, so that tests check the applied objects."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import typing as t

import jinja2
import yaml

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list
from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._manifests import parse_manifests

TOP = pathlib.Path(__file__).resolve().parents[3]
ROLES = ("feature_discovery", "driver", "device_plugin", "monitoring")
#: Templates that are rendered only at teardown.
APART = {"feature_discovery": ("prune.yml.j2",)}


def _environment(**options: t.Any) -> jinja2.Environment:
    """Jinja with the filters that Ansible adds for these templates."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, **options)
    environment.filters |= {"to_json": json.dumps, "hwaccel.gpu.as_list": as_list}
    return environment


def load(path: pathlib.Path) -> t.Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@functools.cache
def defaults(role: str) -> dict[str, t.Any]:
    """Defaults of a role, with templates rendered. Fleet-wide variables are unset."""
    environment = _environment()
    values = load(TOP / "roles" / role / "defaults" / "main.yml")
    filled = {}
    for name, value in values.items():
        filled[name] = (
            yaml.safe_load(environment.from_string(value).render() or "''")
            if isinstance(value, str) and "{{" in value
            else value
        )
    return filled


def texts(role: str, *, apart: bool = False, **more: t.Any) -> list[str]:
    """Rendered templates of the role, sorted by name. `apart`: only those for teardown, else all others."""
    environment = _environment(keep_trailing_newline=True)
    files = [
        path
        for path in sorted((TOP / "roles" / role / "templates").glob("*.j2"))
        if (path.name in APART.get(role, ())) == apart
    ]
    return [environment.from_string(path.read_text(encoding="utf-8")).render(defaults(role) | more) for path in files]


def validation_pod(**more: t.Any) -> dict[str, t.Any]:
    """The pod of gpu_validation. more: changes of it, and settings of the role."""
    changes = {key: more.pop(key) for key in ("image", "command", "script") if key in more}
    plan = stage_objects(texts("gpu_validation"), "gpu_validation", {**more, "pods": {"gpu-validation": changes}})
    pod: dict[str, t.Any] = plan["pods"]["gpu-validation"]
    return pod


def manifests(role: str, **more: t.Any) -> list[dict[str, t.Any]]:
    return parse_manifests(texts(role, **more))


def everything(role: str) -> list[dict[str, t.Any]]:
    """All objects that the role applies, including those of its teardown."""
    return manifests(role) + parse_manifests(texts(role, apart=True))


@functools.cache
def _image_users() -> dict[str, int]:
    """Users of images from their Dockerfiles by image name, like in the simulated fleet."""
    families = load(TOP / "roles" / "sandbox" / "files" / "fleet_agent" / "data" / "images.yaml")["families"]
    return {name: int(family.get("user", 0)) for name, family in families.items()}


def user_of(spec: dict[str, t.Any], container: dict[str, t.Any]) -> int:
    """User ID of a container's processes: from the container, else from the pod, else from the image."""
    for context in (container.get("securityContext", {}), spec.get("securityContext", {})):
        if "runAsUser" in context:
            return int(context["runAsUser"])
    return _image_users()[container["image"].rpartition(":")[0].rpartition("/")[2]]


def settings(role: str, **more: t.Any) -> dict[str, t.Any]:
    """Settings that the role passes to its filter, by their name without the role's prefix."""
    return {name.removeprefix(f"{role}_"): value for name, value in defaults(role).items()} | more


def fleet(*classes: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    """A fleet like node_info returns it."""
    return {
        "classes": list(classes),
        "platform": {"distribution": "kubernetes", "version": "v1.36.4"},
        "existing": {},
        "cluster_uid": "u-1",
    } | more


def node_class(pool: str = "training", kernel: str = "6.8.0-134-generic", **more: t.Any) -> dict[str, t.Any]:
    base = {
        "pool": pool,
        "kernel": kernel,
        "os_id": "ubuntu",
        "os_version": "24.04",
        "os_image": "Ubuntu 24.04.3 LTS",
        "architecture": "amd64",
        "runtime": "containerd",
        "runtime_version": "2.1.4",
        "gpu_present": True,
        "gpu_assumed": False,
        "gpu_product": "",
        "host_driver": "",
        "driver_version": "",
        "count": 2,
        "ready": 2,
        "unschedulable": 0,
    }
    return base | more


def re_match(pattern: str, text: str) -> bool:
    return re.match(pattern, text) is not None
