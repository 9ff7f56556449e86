# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O, K3s and RKE2: engines that read a drop-in of the role."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import toml
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import (
    STAGING,
    Check,
    Rendered,
    RuntimeSettings,
)

CRIO_DROP_IN = "/etc/crio/crio.conf.d/99-hwaccel-gpu.conf"
_STAGED_CRIO = f"{STAGING}/crio/99-hwaccel-gpu.conf"
#: K3s has the option default-runtime since 1.28.5 (k3s-io/k3s#8936). RKE2 uses the agent of K3s with its options.
_DEFAULT_RUNTIME_SINCE = (1, 28, 5)
#: The template of containerd 1.x, and that of 2.x (K3s 1.31.6, 1.32.2 and later).
TEMPLATES = ("config.toml.tmpl", "config-v3.toml.tmpl")


def drop_in(product: str) -> str:
    """product: k3s or rke2."""
    return f"/etc/rancher/{product}/config.yaml.d/90-hwaccel-gpu.yaml"


def template_paths(product: str) -> list[str]:
    return [f"/var/lib/rancher/{product}/agent/etc/containerd/{name}" for name in TEMPLATES]


def render_crio(desired: RuntimeSettings) -> Rendered:
    """CDI needs no setting: it is enabled by default, in /etc/cdi and /var/run/cdi (README of tags.cncf.io/container-device-interface v1.1.1)."""
    text = templating.render(
        "node_runtime",
        "crio.conf",
        default=desired.default,
        key=toml.as_key(desired.handler),
        handler=toml.as_value(desired.handler),
        binary=toml.as_value(desired.binary),
    )
    return Rendered(
        contents=[Content(CRIO_DROP_IN, text)],
        staged=[Content(_STAGED_CRIO, text)],
        checks=[Check("crio", ("crio", "--config-dir", _STAGED_CRIO.rpartition("/")[0], "config"))],
    )


def render_rancher(host: Host, product: str, desired: RuntimeSettings) -> Rendered:
    """product: k3s or rke2. These detect the runtime at their start and write containerd's configuration themselves, so only the default is set."""
    made = Rendered()
    if host.fact(f"{product}_generated") == "0":
        made.stale = f"{product} has not detected NVIDIA's runtime, which it searches only at its start"
    for path in template_paths(product):
        template = host.text(path)
        if template and 'template "base"' not in template and "nvidia" not in template.lower():
            why = "it is a complete configuration without the detected runtimes"
            next_step = 'start it with {{ template "base" . }} and keep only the additions below, or remove it'
            made.faults.append(
                Fault(
                    f"{product} generates containerd's configuration from a template without NVIDIA's runtime",
                    path,
                    why,
                    next_step,
                )
            )
    path = drop_in(product)
    if not desired.default:
        made.absent = [path]
    elif (version := host.version(product)) and version < _DEFAULT_RUNTIME_SINCE:
        why, next_step = (
            f"this is {'.'.join(map(str, version))}, but the option exists since 1.28.5",
            "upgrade it, or set the RuntimeClass in pods",
        )
        made.faults.append(Fault(f"{product} cannot make NVIDIA's runtime the default", path, why, next_step))
    else:
        made.contents = [Content(path, templating.render("node_runtime", "rancher.yaml", handler=desired.handler))]
    return made
