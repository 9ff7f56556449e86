# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI: whether a machine can generate the specification of its GPUs, which unit refreshes it, and whether it is complete."""

from __future__ import annotations

import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.prerequisites import is_tegra
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime.rendering import STAGING

SPEC = "/var/run/cdi/nvidia.yaml"
STAGED = f"{STAGING}/cdi/nvidia.yaml"
#: The unit of the toolkit, in its packages since 1.18, and the role's unit for older ones.
OF_TOOLKIT, OURS = "nvidia-cdi-refresh.path", "hwaccel-gpu-cdi.path"
_UNITS = "/etc/systemd/system"
UNIT_FILES = (f"{_UNITS}/hwaccel-gpu-cdi.service", f"{_UNITS}/{OURS}")
_LOST = re.compile(r'msg="?((?:Could not locate|Failed to locate|Could not find)[^"\n]*)')
_NAME = re.compile(r"^\S+/gpu=(\d+)(?::\d+)?$", re.MULTILINE)


def can(host: Host) -> bool:
    """Whether the driver is installed on the host. For a driver in a container, the toolkit's container generates the specification."""
    return is_tegra(host) or bool(host.fact("driver") and not host.fact("driver_in_container"))


def generate(host: Host, target: str) -> tuple[str, ...]:
    """The command that writes the specification: from CSV files on Jetson boards, because NVML does not support their GPU."""
    files = host.fact("csv").split() if is_tegra(host) else []
    mode = ["--mode=csv", *(f"--csv.file={path}" for path in files)] if files else []
    return ("nvidia-ctk", "cdi", "generate", *mode, f"--output={target}")


def list_staged() -> tuple[str, ...]:
    return ("nvidia-ctk", "cdi", "list", f"--spec-dir={STAGED.rpartition('/')[0]}")


def refreshed_by(host: Host) -> str:
    return OF_TOOLKIT if host.unit(OF_TOOLKIT).loaded else OURS


def units(host: Host) -> list[Content]:
    """The role's units. They generate the specification at each boot, as /var/run is empty then, and after changes of driver modules or JetPack files."""
    service = templating.render("node_runtime", "hwaccel-gpu-cdi.service", command=" ".join(generate(host, SPEC)))
    path = templating.render("node_runtime", "hwaccel-gpu-cdi.path", csv_files=host.fact("csv").split())
    return [Content(f"{_UNITS}/hwaccel-gpu-cdi.service", service), Content(f"{_UNITS}/{OURS}", path)]


def expected(host: Host) -> int:
    """Number of GPUs that the specification must contain."""
    return 1 if is_tegra(host) else len(host.fact("gpus").split())


def judged(host: Host, generated: Command, listed: Command) -> tuple[list[Fault], list[str]]:
    """Problems of a staged specification, and messages about it, because nvidia-ctk also succeeds without devices or libraries."""
    what = "the CDI specification cannot be generated"
    if generated.status:
        next_step = "verify that the driver works (nvidia-smi), and on a Jetson board that the files in JetPack's CSV files exist"
        return [Fault(what, "nvidia-ctk cdi generate", generated.error.strip()[-300:], next_step)], []
    named = {int(index) for index in _NAME.findall(listed.output)}
    lost = [f"CDI skips missing files: {text.strip()}" for text in _LOST.findall(generated.error)]
    if missing := sorted(set(range(expected(host))) - named):
        why = f"of {expected(host)} GPUs it lacks {', '.join(map(str, missing))}"
        return [
            Fault(
                what,
                STAGED,
                why,
                "verify that nvidia-smi shows all of them; reboot if a GPU has fallen off the bus",
            )
        ], lost
    return [], lost
