# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each machine boots by network: its own entry for each boot loader, by its MAC. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Profile, Site, listed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import AARCH64, X86_64, Machine

#: Below the folder that TFTP and HTTP serve alike.
PXELINUX, GRUB, IPXE, IMAGES = "pxelinux.cfg", "grub", "ipxe", "images"
#: What kernel arguments may name between braces.
PLACEHOLDERS = frozenset(
    {"http", "rootfs_url", "ignition_url", "install_device", "name", "fqdn", "address", "mac", "bootif"}
)
HEADER = "# Written by the role hwaccel.gpu.dns_pxe, which writes it anew: changes are lost.\n"
# The signed GRUB of Debian reads the first, that of the RedHat family the second.
_DISPATCH = ("grub/grub.cfg", "grub.cfg")
# Netboot knows the MAC by one of two names.
_GRUB = (
    HEADER
    + """set timeout=0
set mac="$net_default_mac"
if [ -z "$mac" ]; then set mac="$net_efinet0_dhcp_mac"; fi
if [ -z "$mac" ]; then set mac="$net_efinet0_mac"; fi
regexp --set=1:m1 --set=2:m2 --set=3:m3 --set=4:m4 --set=5:m5 --set=6:m6 '(..):(..):(..):(..):(..):(..)' "$mac"
configfile "/grub/01-$m1-$m2-$m3-$m4-$m5-$m6"
exit 1
"""
)
# Vendors in whose folder the disk's own boot loader is looked for, before the one that removable media have.
_VENDORS = ("redhat", "fedora", "centos", "rocky", "almalinux", "debian", "ubuntu")
#: What firmware and boot loaders call an architecture.
_SUFFIXES = {X86_64: "x64", AARCH64: "aa64"}


def http(site: Site, port: int | str) -> str:
    """Where machines find files by HTTP."""
    return f"http://{host(site.address)}:{port}"


def host(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


def file_name(machine: Machine) -> str:
    """As pxelinux looks for it: the type of the hardware, and its address."""
    return "01-" + machine.mac.replace(":", "-")


def grub(architecture: str) -> str:
    """GRUB's name below the folder that is served."""
    return f"grub{_SUFFIXES[architecture]}.efi"


def files(site: Site, port: int, linuxefi: bool) -> dict[str, str]:
    """Text by path of all entries, and of what leads to them. linuxefi: GRUB of the RedHat family starts kernels by another command."""
    base = http(site, port)
    made = dict.fromkeys(_DISPATCH, _GRUB)
    made["ipxe/boot.ipxe"] = f"#!ipxe\n{HEADER}chain {base}/{IPXE}/01-${{mac:hexhyp}}.ipxe || exit 1\n"
    for machine in site.machines:
        made |= _entry(site, machine, base, linuxefi)
    return made


def arguments(site: Site, machine: Machine, profile: Profile, base: str) -> str:
    """Kernel arguments. Raises KeyError and ValueError for braces that name nothing."""
    device = str(machine.more.get("install_device") or profile.install_device)
    values = {
        "http": base,
        "rootfs_url": f"{base}/{IMAGES}/{profile.rootfs}",
        "ignition_url": f"{base}/ignition/{profile.ignition}",
        "install_device": device,
        "name": machine.name,
        "fqdn": site.fqdn(machine),
        "address": machine.address,
        "mac": machine.mac,
        "bootif": file_name(machine),
    }
    given = (
        ("coreos.live.rootfs_url={rootfs_url}", profile.rootfs),
        ("coreos.inst.install_dev={install_device}", device),
        ("coreos.inst.ignition_url={ignition_url}", profile.ignition),
    )
    wanted = (
        [text for text, there in given if there]
        + list(profile.arguments)
        + [str(one) for one in listed(machine.more.get("arguments"))]
    )
    return " ".join(one.format(**values) for one in wanted)


def _entry(site: Site, machine: Machine, base: str, linuxefi: bool) -> dict[str, str]:
    name = file_name(machine)
    profile = site.profile(machine) if site.installed_now(machine) else None
    does = "is installed" if profile else "boots its disk"
    title = f"# {site.fqdn(machine)}, {machine.role}: {does}\n"
    texts = _install(site, machine, profile, base, linuxefi) if profile else _local(machine, base)
    return {
        f"{PXELINUX}/{name}": HEADER + title + texts[PXELINUX],
        f"{GRUB}/{name}": HEADER + title + texts[GRUB],
        f"{IPXE}/{name}.ipxe": "#!ipxe\n" + HEADER + title + texts[IPXE],
    }


def _install(site: Site, machine: Machine, profile: Profile, base: str, linuxefi: bool) -> dict[str, t.Any]:
    kernel, initramfs = f"{IMAGES}/{profile.kernel}", f"{IMAGES}/{profile.initramfs}"
    told = arguments(site, machine, profile, base)
    suffix = "efi" if linuxefi and machine.architecture != AARCH64 else ""
    return {
        PXELINUX: f"DEFAULT install\nPROMPT 0\nLABEL install\n  KERNEL /{kernel}\n  APPEND initrd=/{initramfs} {told}\n",
        GRUB: f"linux{suffix} /{kernel} {_quoted(told)}\ninitrd{suffix} /{initramfs}\nboot\n",
        # UEFI needs the name of the initramfs among the arguments.
        IPXE: f"kernel {base}/{kernel} initrd=main {told} || exit 1\ninitrd --name main {base}/{initramfs} || exit 1\nboot || exit 1\n",
    }


def _local(machine: Machine, base: str) -> dict[str, str]:
    """Of UEFI the disk's boot loader is started from here: a firmware to which a loader returns without an error shows its menu and stays there.

    GRUB of Debian and iPXE before 2020 always return without one. GRUB finds the disk, so iPXE hands over to it.
    """
    suffix = _SUFFIXES[machine.architecture]
    loaders = " ".join([*(f"{vendor}/shim{suffix}.efi" for vendor in _VENDORS), f"BOOT/BOOT{suffix.upper()}.EFI"])
    return {
        PXELINUX: "DEFAULT local\nPROMPT 0\nLABEL local\n  LOCALBOOT 0\n",
        # Only from its root does GRUB tell a program the device that it comes from.
        GRUB: (
            f"for loader in {loaders}; do\n"
            '  if search --no-floppy --file --set=root "/EFI/$loader"; then\n    chainloader "/EFI/$loader"\n    boot\n  fi\n'
            "done\nexit 1\n"
        ),
        # A BIOS is told to take its first disk.
        IPXE: f"iseq ${{platform}} efi && chain {base}/{grub(machine.architecture)} ||\nsanboot --no-describe --drive 0x80 || exit 1\n",
    }


def _quoted(told: str) -> str:
    """For GRUB, whose language would end a command at a semicolon and put variables in."""
    return " ".join(f"'{one}'" if set(one) & set(';$&|<>{}"\\#*?') else one for one in told.split(" "))
