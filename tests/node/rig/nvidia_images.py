# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Substitutes of NVIDIA's images, which would require their registry: NVIDIA's programs where they can be built, and stand-ins under the same names.

The names are read from the defaults of the roles and, for drivers, selected by _gpu for a node. Each image contains the programs that our manifests
start, and a shell if the real image has one.

The device plugin, GPU feature discovery and config-manager are real; NVIDIA's management library, which they load from the driver, is a stand-in.
The container toolkit is real, except libnvidia-container, which is not a Go module and is not loaded in CDI mode. Its installer creates no device
nodes here, because it would read their numbers from a real driver in /proc/devices.
"""

from __future__ import annotations

import collections.abc as c
import pathlib
import re
import subprocess

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import choose, os_tag
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Image, Layer, Link, Script
from ansible_collections.hwaccel.gpu.tests.node.rig.components import MANAGEMENT_LIBRARY, Components

ROLES = pathlib.Path(__file__).parents[3] / "roles"
_PROGRAM = "usr/lib/hwaccel/stand-in"
#: Folders of the driver's libraries, by architecture.
LIBRARIES = {"amd64": "usr/lib/x86_64-linux-gnu", "arm64": "usr/lib/aarch64-linux-gnu"}
_TOOLKIT = (
    "nvidia-cdi-hook",
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
    "nvidia-container-runtime.cdi",
    "nvidia-container-runtime.legacy",
    "nvidia-ctk",
)
DEVICE_PLUGIN = ("nvidia-device-plugin", "gpu-feature-discovery", "config-manager", "mps-control-daemon")
#: Programs of an image, and whether it has a shell, by role and variable.
_IMAGES: dict[tuple[str, str], tuple[tuple[str, ...], bool]] = {
    ("driver", "driver_manager_image"): (("driver-manager",), False),
    ("driver", "driver_validator_image"): (("nvidia-validator", "vectorAdd"), True),
    ("monitoring", "monitoring_image"): (("dcgm-exporter",), False),
    ("gpu_validation", "gpu_validation_integrated_image"): (("deviceQuery", "vectorAdd"), True),
}


def defaults(role: str) -> dict[str, str]:
    """Default values of a role's variables."""
    return dict(yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text(encoding="utf-8")))


def driver_images(kernel: str, os_id: str, os_version: str, versions: c.Iterable[str] = ()) -> dict[str, str]:
    """Reference of each driver image that a node may get, to the version in it. versions: none for the role's default.

    Where NVIDIA publishes none for the operating system, the tag is that of an image that users build: the play must name it in driver_build_images.
    """
    settings = defaults("driver")
    images = {}
    for version in tuple(versions) or (settings["driver_version"],):
        own = {f"{version}-{os_tag(os_id, os_version)}"}
        for release, source in ((kernel, ""), ("unknown", "build")):
            image = choose(release, os_id, os_version, architecture(), version, source, builds=own)
            images[f"{settings['driver_repository']}:{image.tag}"] = version
    return images


def stand_ins(components: Components, drivers: c.Mapping[str, str]) -> tuple[list[Image], dict[str, Layer]]:
    """All substitutes of NVIDIA's images. drivers: the result of driver_images. The layer `busybox` is defined in images.py."""
    layers: dict[str, Layer] = {
        "stand-in": {_PROGRAM: components.program("stand-in")},
        "toolkit": _toolkit(components),
        "device-plugin": device_plugin(components),
    }
    images = [
        Image(
            defaults("driver")["driver_toolkit_image"],
            ("busybox", "toolkit"),
            ("nvidia-toolkit",),
            environment=("CREATE_DEVICE_NODES=none",),
        ),
        Image(
            defaults("device_plugin")["device_plugin_image"], ("busybox", "device-plugin"), ("nvidia-device-plugin",)
        ),
    ]
    for (role, variable), (programs, shell) in _IMAGES.items():
        layers[variable] = {f"usr/bin/{name}": Link(f"/{_PROGRAM}") for name in programs}
        # The validator's image sets a user, which our manifests override where necessary.
        user = "1000:1000" if variable == "driver_validator_image" else ""
        images.append(
            Image(defaults(role)[variable], ("busybox",) * shell + ("stand-in", variable), programs[:1], user=user)
        )
    for reference, version in drivers.items():
        layers[f"driver {version}"] = _driver(components, version)
        environment = (f"DRIVER_VERSION={version}",)
        images.append(
            Image(reference, ("busybox", "stand-in", f"driver {version}"), ("nvidia-driver",), ("init",), environment)
        )
    return images, layers


def _driver(components: Components, version: str) -> Layer:
    """nvidia-smi is no link, because it is mounted into other containers under its name."""
    folder = LIBRARIES[architecture()]
    layer: Layer = {
        "usr/local/bin/nvidia-driver": Link(f"/{_PROGRAM}"),
        "usr/bin/nvidia-smi": components.program("stand-in"),
    }
    libraries: Layer = {
        "libcuda.so": f"stand-in for libcuda.so of NVIDIA's driver {version}\n",
        "libnvidia-ml.so": components.program(MANAGEMENT_LIBRARY),
    }
    for name, content in libraries.items():
        layer[f"{folder}/{name}.{version}"] = content
        layer[f"{folder}/{name}.1"] = Link(f"{name}.{version}")
    return layer


def device_plugin(components: Components) -> Layer:
    """NVIDIA's programs for the kubelet, with the libraries of this machine."""
    programs = {name: components.program(name) for name in DEVICE_PLUGIN}
    return {f"usr/bin/{name}": path for name, path in programs.items()} | libraries_of(programs["nvidia-device-plugin"])


def _toolkit(components: Components) -> Layer:
    """Files in the layout of unpacked packages, as the installer expects them (its artifact-root.go). It resolves links, so these are files."""
    packages = "artifacts/deb/usr"
    layer: Layer = {f"{packages}/bin/{name}": components.program(name) for name in _TOOLKIT}
    layer[f"{packages}/bin/nvidia-container-cli"] = Script(
        "#!/bin/sh\necho 'stand-in: there is no libnvidia-container' >&2\nexit 1\n"
    )
    for name in ("libnvidia-container.so.1", "libnvidia-container-go.so.1"):
        layer[f"artifacts/deb/{LIBRARIES[architecture()]}/{name}"] = f"stand-in for {name}\n"
    installer = components.program("nvidia-ctk-installer")
    layer |= {"usr/bin/nvidia-ctk-installer": installer, "usr/bin/nvidia-toolkit": Link("nvidia-ctk-installer")}
    return layer | libraries_of(installer)


def libraries_of(program: pathlib.Path) -> Layer:
    """Shared libraries of a dynamically linked program, from this machine and with the same paths."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=240).stdout
    paths = re.findall(r"(?:=> |^\s+)(/\S+) \(", listed, re.MULTILINE)
    return {path.lstrip("/"): pathlib.Path(path).resolve() for path in paths}
