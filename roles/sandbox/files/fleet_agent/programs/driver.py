# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver container.

Order and messages are those of NVIDIA/gpu-driver-container 06a208c, ubuntu24.04/nvidia-driver (built in place) and
ubuntu24.04/precompiled/nvidia-driver, which is that of all Ubuntus. The precompiled script of RHEL neither locks nor unloads; no image with it is
published.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from fleet_agent.loop import Park, Process, Sleep, Terminated
from fleet_agent.machine import images, products
from fleet_agent.machine.hostfs import DRIVER_FILES, firmware
from fleet_agent.machine.view import is_bidirectional

MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset")
ROOT = "/run/nvidia/driver"
STATE_FILE = "/run/nvidia/nvidia-driver.state"
DAEMONS = "/run/nvidia/validations/.driver-daemons-status"
# Kernels that a distribution's archive has headers for, by operating system; any other has none.
PACKAGED_KERNEL = {
    "ubuntu": r"\d+\.\d+\.\d+-\d+-[a-z0-9-]+",
    "rhel": r".*\.el\d+.*",
    "rocky": r".*\.el\d+.*",
    "sles": r".*-default",
}


def driver(proc: Any) -> Process:
    words: list[str] = proc.settings.words
    command, options = next(iter(words), ""), words[1:]
    if command == "init":
        unknown = next((word for word in options if word.startswith("-") and not _is_option(proc, word)), "")
        if unknown:  # The script ends with the exit status of getopt (set -e).
            proc.say(f"getopt: unrecognized option '{unknown}'")
            return 1
        return (yield from _init(proc))
    if command == "probe_nvidia_peermem":
        proc.say("MOFED drivers are not ready, skipping probe to avoid container restarts...")
        return 0
    if command == "reload_nvidia_peermem":
        proc.say("waiting for mellanox ofed and nvidia drivers to be installed")
        yield Park()
        return 0
    proc.say(
        "Usage: nvidia-driver COMMAND [ARG...]\n\nCommands:\n  init   [-a | --accept-license] [-m | --max-threads MAX_THREADS]"
    )
    return 1


def _is_option(proc: Any, word: str) -> bool:
    return word.lstrip("-").partition("=")[0] in proc.settings.table.by_name


def _content(proc: Any) -> images.DriverImage:
    """The content of the image. One with only a digest is assumed to match. One that is not published was pulled because the fleet names it."""
    spec, image = proc.host.spec, proc.container.image
    found = (images.driver_image(image.tag) or images.own_driver_image(image.tag)) if image.tag else None
    return found or images.DriverImage(images.tables()["families"]["driver"]["versions"][-1], spec.driver_os_tags[0])


def in_use(host: Any) -> bool:
    return "nvidia" in host.modules and bool(host.clients)


def unload(proc: Any) -> bool:
    """_unload_driver: unloads the modules unless they are in use."""
    host = proc.host
    proc.say("Unloading NVIDIA driver kernel modules...")
    if "nvidia" not in host.modules:
        return True
    if in_use(host):
        for name in MODULES:
            proc.say(f"{name:<20} 104071168  {host.references(name)}")
        proc.say("Could not unload NVIDIA driver kernel modules, driver is in use")
        return False
    for name in MODULES:
        host.modules.pop(name, None)
    host.initialized = False
    host.changed()
    return True


def _prerequisites(proc: Any, content: images.DriverImage) -> Process:
    """Packages, headers, compiler or precompiled packages. Returns the last message of the script, empty if it succeeds."""
    spec, clock = proc.host.spec, proc.clock
    if content.os_tag not in spec.driver_os_tags or (not content.precompiled and not _packaged(spec)):
        yield Sleep(clock.jitter(4))
        if content.precompiled:
            return _no_package(content, spec.kernel)
        return "Resolving Linux kernel version...\nCould not resolve Linux kernel version"
    if content.precompiled:
        if content.kernel != spec.kernel:
            yield Sleep(clock.jitter(4))
            return _no_package(content, spec.kernel)
        proc.say("Installing Open NVIDIA driver kernel modules...")
        yield Sleep(clock.delay("driver_precompiled"))
        return ""
    proc.say(
        "Updating the package cache...\nResolving Linux kernel version...\n"
        f"Proceeding with Linux kernel version {spec.kernel}\nInstalling Linux kernel headers..."
    )
    yield Sleep(clock.delay("driver_build") / 3)
    proc.say(
        "Installing Linux kernel module files...\nGenerating Linux kernel version string...\nVerifying archive integrity... OK\n"
        f"Welcome to the NVIDIA Software Installer for Unix/Linux\n\nBuilding kernel modules for {spec.kernel}"
    )
    yield Sleep(clock.delay("driver_build") * 2 / 3)
    return ""


def _packaged(spec: Any) -> bool:
    return re.fullmatch(PACKAGED_KERNEL.get(spec.os_id, r".*"), spec.kernel) is not None


def _no_package(content: images.DriverImage, kernel: str) -> str:
    branch = content.version.split(".", maxsplit=1)[0]
    return (
        "Reading package lists...\nBuilding dependency tree...\nReading state information...\n"
        f"E: Unable to locate package linux-modules-nvidia-{branch}-server-open-{kernel}\n"
        f"E: Couldn't find any package by glob 'linux-modules-nvidia-{branch}-server-open-{kernel}'"
    )


def _load_fault(proc: Any, content: images.DriverImage) -> str:
    """Why modprobe fails, with the kernel's messages; empty if it succeeds."""
    host = proc.host
    if not proc.privileged:
        return "modprobe: ERROR: could not insert 'nvidia': Operation not permitted"
    if "nouveau" in host.modules:
        return (
            "modprobe: ERROR: could not insert 'nvidia': No such device\n"
            "NVRM: The NVIDIA probe routine was not called for 8 device(s).\nNVRM: This can occur when another driver was loaded and\n"
            "NVRM: obtained ownership of the NVIDIA device(s).\nNVRM: Try unloading the conflicting kernel module (nouveau) and/or reconfigure"
        )
    if host.spec.gpu is None:
        return "modprobe: ERROR: could not insert 'nvidia': No such device\nNVRM: No NVIDIA GPU found."
    return proc.kubelet.agent.faults.driver_load(host.spec, content.version, _kernel_type(proc) == "open")


def _kernel_type(proc: Any) -> str:
    """_resolve_kernel_type: "open" or "proprietary", "" for a value that the script does not know."""
    value = proc.settings.variable("KERNEL_MODULE_TYPE") or "auto"
    if value == "auto":
        return "open" if products.recommended_open(proc.host.spec.gpu.product) else "proprietary"
    return value if value in ("open", "proprietary") else ""


def _invalid_kernel_type(proc: Any) -> int:
    proc.say(f"invalid value for the KERNEL_MODULE_TYPE variable: {proc.settings.variable('KERNEL_MODULE_TYPE')}")
    return 1


def _init(proc: Any) -> Process:
    host, view, container = proc.host, proc.view, proc.container
    content = _content(proc)
    if content.precompiled and host.spec.gpu is not None and not _kernel_type(proc):
        return _invalid_kernel_type(proc)
    kind = (
        f"branch {content.version.split('.', maxsplit=1)[0]}" if content.precompiled else f"version {content.version}"
    )
    proc.say("\n========== NVIDIA Software Installer ==========\n")
    proc.say(f"Starting installation of NVIDIA driver {kind} for Linux kernel version {host.spec.kernel}\n")
    if not view.is_folder("/run/nvidia"):
        proc.say("/usr/local/bin/nvidia-driver: line 747: /run/nvidia/nvidia-driver.pid: No such file or directory")
        return 1
    if host.driver_owner not in ("", container.container_id):
        proc.say("An instance of the NVIDIA driver is already running, aborting")
        return 1
    host.driver_owner = container.container_id
    container.at_exit.append(lambda: _released(host, container.container_id))
    if not content.precompiled:
        view.make_folder("/run/nvidia/validations", True)
        view.write(DAEMONS, "NotReady\n")
    if _stays_loaded(proc, content):
        proc.say(
            "The NVIDIA driver is already loaded with the desired configuration, performing userspace-only install"
        )
        _unmount(proc)
        yield Sleep(proc.clock.delay("driver_load"))
    else:
        if not unload(proc):
            return 1
        _unmount(proc)
        fault = yield from _prerequisites(proc, content)
        if fault:
            proc.say(fault)
            return 100 if fault.startswith("Reading") else 1
        if host.spec.gpu is not None and not _kernel_type(proc):
            return _invalid_kernel_type(proc)
        fault = yield from _load(proc, content)
        if fault:
            return 1
    _finish(proc, content)
    return (yield from _wait_for_signal(proc))


def _stays_loaded(proc: Any, content: images.DriverImage) -> bool:
    """_should_skip_kernel_module_reload. The script of a precompiled image does not have it: it unloads first, and fails if it cannot."""
    digest = proc.settings.variable("DRIVER_CONFIG_DIGEST")
    stored = proc.view.read(STATE_FILE).strip() if proc.view.is_file(STATE_FILE) else ""
    return bool(not content.precompiled and digest and "nvidia" in proc.host.modules and stored == digest)


def _released(host: Any, owner: str) -> None:
    """The lock ends with the process. Its mounts remain on the host, because the end of a mount namespace does not unmount them elsewhere."""
    if host.driver_owner == owner:
        host.driver_owner = ""


def _unmount(proc: Any) -> None:
    proc.say("Unmounting NVIDIA driver rootfs...")
    proc.host.unmount(ROOT)


#: The kernel's search path for firmware, which the script sets if it is empty (_load_driver).
FIRMWARE_PATH = "/sys/module/firmware_class/parameters/path"


def _search_firmware(proc: Any) -> None:
    path = f"{ROOT}/lib/firmware"
    proc.say(f"Configuring the following firmware search path in '{FIRMWARE_PATH}': {path}")
    try:
        if proc.view.is_file(FIRMWARE_PATH) and proc.view.read(FIRMWARE_PATH).strip():
            proc.say(
                f"WARNING: A search path is already configured in {FIRMWARE_PATH}\n         Retaining the current configuration"
            )
            return
        if proc.view.is_folder(FIRMWARE_PATH):
            raise IsADirectoryError(21, "Is a directory", FIRMWARE_PATH)
        proc.view.write(FIRMWARE_PATH, path)
    except OSError as error:
        proc.say(
            f"/usr/local/bin/nvidia-driver: {FIRMWARE_PATH}: {error.strerror}\nWARNING: Failed to configure firmware search path"
        )


def _install_firmware(proc: Any, content: images.DriverImage) -> str:
    """Into the container's own /lib/firmware, which a volume makes visible on the machine before the driver's files are mounted there."""
    path = f"/lib/firmware/{firmware(content.version)}"
    try:
        proc.view.make_folder(posixpath.dirname(path), True)
        proc.view.write(path, "")
    except OSError as error:
        # Who is not root cannot load modules either.
        return f"ERROR: Unable to create '{path}' for installation ({error.strerror})." if proc.privileged else ""
    return ""


def _load(proc: Any, content: images.DriverImage) -> Process:
    host = proc.host
    fault = _install_firmware(proc, content)
    if fault:
        proc.say(fault)
        return fault
    _search_firmware(proc)
    proc.say("Loading ipmi and i2c_core kernel modules...\nLoading NVIDIA driver kernel modules...\n+ modprobe nvidia")
    yield Sleep(proc.clock.delay("driver_load"))
    fault = _load_fault(proc, content)
    if fault:
        proc.say(fault)
        return fault
    proc.say("+ modprobe nvidia-uvm\n+ modprobe nvidia-modeset\nStarting NVIDIA persistence daemon...")
    host.modules.update(dict.fromkeys(MODULES, content.version))
    # The open modules run a part of the driver on the GSP, whose firmware the kernel loads when a program first opens a GPU.
    host.needs_firmware = _kernel_type(proc) == "open"
    host.changed()
    return ""


def _finish(proc: Any, content: images.DriverImage) -> None:
    """Mounts the root file system, which is only visible outside if the volume is mounted Bidirectional."""
    view = proc.view
    proc.say("Mounting NVIDIA driver rootfs...")
    files = dict.fromkeys((*DRIVER_FILES, f"/lib/firmware/{firmware(content.version)}"), "")
    if is_bidirectional(view.volume(ROOT)):
        proc.host.mount(view.locate(ROOT).path, files)
    view.own.update({ROOT + name: "" for name in files})
    proc.host.changed()
    if not content.precompiled:
        if not proc.kubelet.agent.faults.daemons_stuck(proc.host.spec):
            view.write(DAEMONS, "Ready\n")
        view.write(STATE_FILE, proc.settings.variable("DRIVER_CONFIG_DIGEST") + "\n")
        proc.say("Storing driver configuration digest...")
    proc.say("Done, now waiting for signal")


def _wait_for_signal(proc: Any) -> Process:
    while True:
        try:
            yield Park()
        except Terminated:
            proc.say("Caught signal")
            yield Sleep(proc.clock.delay("driver_unload"))
            if unload(proc):
                _unmount(proc)
                return 0
