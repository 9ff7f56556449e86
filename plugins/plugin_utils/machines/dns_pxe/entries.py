# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network boot entries of each machine, one for each boot loader, named by its MAC address. Pure."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Profile, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.reading import listed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import AARCH64, X86_64, Machine

#: Folders below the one that TFTP and HTTP serve.
PXELINUX, GRUB, IPXE = "pxelinux.cfg", "grub", "ipxe"
#: Placeholders that kernel arguments may contain in braces.
PLACEHOLDERS = frozenset(
    {"http", "rootfs_url", "ignition_url", "answer_url", "install_device", "name", "fqdn", "address", "mac", "bootif"}
)
# The signed GRUB of Debian reads the first path, that of the RedHat family the second.
_DISPATCH = ("grub/grub.cfg", "grub.cfg")
# Boot loaders on the disk, in the folders of vendors before that of removable media.
_VENDORS = ("redhat", "fedora", "centos", "rocky", "almalinux", "debian", "ubuntu")
#: Names of architectures in firmware and boot loaders.
_SUFFIXES = {X86_64: "x64", AARCH64: "aa64"}


@dataclasses.dataclass(frozen=True)
class _Install:
    """What a machine boots for its installation. kernel, initramfs: paths in URLs. grub_*: values in the syntax of GRUB."""

    kernel: str
    initramfs: str
    arguments: str
    grub_kernel: str
    grub_initramfs: str
    grub_arguments: str
    grub_suffix: str


def http(site: Site, port: int | str) -> str:
    """Base URL of files for machines."""
    return f"http://{templating.bracketed(site.address)}:{port}"


def file_name(machine: Machine) -> str:
    """The name that pxelinux requests: hardware type and MAC address."""
    return "01-" + machine.mac.replace(":", "-")


def grub(architecture: str) -> str:
    """Path of GRUB below the served folder."""
    return f"grub{_SUFFIXES[architecture]}.efi"


def files(site: Site, port: int, linuxefi: bool) -> dict[str, str]:
    """Texts of all entries, and of the files that load them, by path. linuxefi: whether GRUB starts kernels with that command, as in the RedHat family."""
    base = http(site, port)
    made = dict.fromkeys(_DISPATCH, templating.render("dns_pxe", "grub.cfg"))
    made[f"{IPXE}/boot.ipxe"] = templating.render("dns_pxe", "boot.ipxe", base=base)
    for machine in site.machines:
        made |= _entry(site, machine, base, linuxefi)
    return made


def arguments(site: Site, machine: Machine, profile: Profile, base: str) -> str:
    """Kernel arguments. Raises KeyError and ValueError for unknown placeholders."""
    device, answer = profile.device(machine), profile.answer
    kind = answers.KINDS[answer.kind] if answer else None
    values = {
        "http": base,
        "rootfs_url": f"{base}/{site.place(profile.rootfs)}",
        "ignition_url": f"{base}/ignition/{profile.ignition}",
        "answer_url": f"{base}{answer.path(machine, kind.url)}" if answer and kind else "",
        "install_device": device,
        "name": machine.name,
        "fqdn": site.fqdn(machine),
        "address": machine.address,
        "mac": machine.mac,
        "bootif": file_name(machine),
    }
    written = not (answer or profile.live)
    given = (
        ("coreos.live.rootfs_url={rootfs_url}", profile.rootfs),
        # Answer files and live systems have the disk themselves.
        ("coreos.inst.install_dev={install_device}", device and written),
        ("coreos.inst.ignition_url={ignition_url}", profile.ignition and written),
        # Without the platform Ignition does not run, and without the URL it reads the file in the initramfs.
        ("ignition.firstboot ignition.platform.id=metal", profile.live),
        ("ignition.config.url={ignition_url}", profile.ignition and profile.live),
    )
    texts = (
        [text for text, there in given if there]
        + list(kind.arguments if kind else ())
        + list(profile.arguments)
        + [str(one) for one in listed(machine.more.get("arguments"))]
    )
    return " ".join(one.format(**values) for one in texts)


def answer_files(site: Site, port: int) -> dict[str, str]:
    """Texts of the answer files of machines that need them now, by path."""
    base = http(site, port)
    return {
        answer.path(machine, name): text
        for machine, profile, answer in site.answered()
        for name, text in answers.files(answer, machine, profile.device(machine), base, site.domain(machine)).items()
    }


def _entry(site: Site, machine: Machine, base: str, linuxefi: bool) -> dict[str, str]:
    """Texts of the entries of one machine, by path. An entry that installs has a part for the disk too, and a line that chooses.

    With UEFI, the entry starts the boot loader of the disk instead of returning to the firmware: if a loader returns without an error, the firmware shows its
    menu and stays there. GRUB of Debian and iPXE before 2020 never return an error. GRUB can find the disk, so iPXE starts GRUB.
    """
    name, suffix = file_name(machine), _SUFFIXES[machine.architecture]
    profile = site.profile(machine) if site.to_be_installed(machine) else None
    model = {
        "fqdn": site.fqdn(machine),
        "machine_role": machine.role,
        "base": base,
        "install": _install(site, machine, profile, base, linuxefi) if profile else None,
        "word": "install" if site.installed_now(machine) else "disk",
        "grub": grub(machine.architecture),
        "disk_loaders": [*(f"{vendor}/shim{suffix}.efi" for vendor in _VENDORS), f"BOOT/BOOT{suffix.upper()}.EFI"],
    }
    # pxelinux has no HTTP, so that iPXE comes first.
    by_tftp = {**model, "install": None} if site.boots_keys(machine) else model
    return {
        f"{PXELINUX}/{name}": templating.render("dns_pxe", "machine.pxelinux.cfg", **by_tftp),
        f"{GRUB}/{name}": templating.render("dns_pxe", "machine.grub.cfg", **model),
        f"{IPXE}/{name}.ipxe": templating.render("dns_pxe", "machine.ipxe", **model),
    }


def _install(site: Site, machine: Machine, profile: Profile, base: str, linuxefi: bool) -> _Install:
    given = arguments(site, machine, profile, base)
    suffix = "efi" if linuxefi and machine.architecture != AARCH64 else ""
    paths = (profile.kernel, profile.initramfs)
    places = [site.place(one) for one in paths]
    # Without a device, GRUB loads a file in the way in which it was loaded itself.
    devices = [f"(http,{base.removeprefix('http://')})" if one in site.secrets else "" for one in paths]
    kernel, initramfs = (f"{device}/{place}" for device, place in zip(devices, places, strict=True))
    return _Install(places[0], places[1], given, kernel, initramfs, _quoted(given), suffix)


def _quoted(given: str) -> str:
    """Arguments for GRUB, quoted because GRUB ends a command at a semicolon and expands variables."""
    return " ".join(f"'{one}'" if set(one) & set(';$&|<>{}"\\#*?') else one for one in given.split(" "))
