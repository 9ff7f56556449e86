# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Supported systems: packages, boot programs, and their paths. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import dnsmasq
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Settings, Site

#: Packages that teardown keeps, because the server may boot with them, or have its own firewall rules.
STAYING = frozenset({"shim-signed", "grub-efi-amd64-signed", "shim-x64", "grub2-efi-x64", "nftables"})
#: Boot programs by the tag of the client, or for iPXE: names below the served folder.
_FILES = {
    "client-bios": ("pxelinux.0", "ldlinux.c32"),
    "client-efi64": ("shimx64.efi", "grubx64.efi"),
    "client-arm64": ("shimaa64.efi", "grubaa64.efi"),
    "client-http64": ("httpx64.efi",),
    "client-httparm64": ("httpaa64.efi",),
}


@dataclasses.dataclass(frozen=True)
class Family:
    """web_user: of nginx. sources: paths of boot programs in packages, by name. linuxefi: whether GRUB starts kernels with that command.

    apt: whether apt installs its packages.
    """

    web_user: str
    packages: c.Mapping[str, tuple[str, ...]]
    sources: c.Mapping[str, str]
    linuxefi: bool
    apt: bool = False


def family(os_release: c.Mapping[str, str]) -> Family | None:
    """The family of a system, None if it is not supported."""
    names = {os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()}
    if "debian" in names:
        return _DEBIAN
    return _redhat(os_release.get("ID", "")) if names & {"rhel", "fedora"} else None


def needed(site: Site, settings: Settings) -> tuple[str, ...]:
    """Names of the boot programs of the site's machines."""
    if not settings["pxe"]:
        return ()
    found: list[str] = []
    for boot in dict.fromkeys(one for machine in site.machines for one in dnsmasq.boot_kinds(machine)):
        if boot.by_http and boot.file not in settings["loaders"]:
            continue
        if boot.ipxe_file and settings["ipxe"] == dnsmasq.ALWAYS:
            # iPXE with UEFI starts GRUB to boot a disk.
            found += (boot.ipxe_file, *(name for name in _FILES[boot.tag] if name.startswith("grub")))
        else:
            found += _FILES[boot.tag]
    if settings["ipxe"] == dnsmasq.CLIENTS:
        keyed = [one for machine in site.machines if site.boots_keys(machine) for one in dnsmasq.boot_kinds(machine)]
        found += dict.fromkeys(one.ipxe_file for one in keyed if one.ipxe_file)
    return tuple(found)


def packages(kind: Family, site: Site, settings: Settings, selinux: bool) -> list[str]:
    """Packages of services, and of boot programs without a path in dns_pxe_loaders. selinux: whether files and ports need labels."""
    desired = [*kind.packages["dnsmasq"], *(kind.packages.get("selinux", ()) if selinux else ())]
    if settings["pxe"]:
        desired += kind.packages["nginx"]
        # Packages of another architecture cannot be installed.
        desired += [
            package
            for name in needed(site, settings)
            if name not in settings["loaders"]
            for package in kind.packages.get(name, ())
        ]
    return list(dict.fromkeys(desired))


def sources(kind: Family, site: Site, settings: Settings) -> dict[str, str]:
    """Paths on the boot server by name, empty if unknown."""
    return {name: str(settings["loaders"].get(name) or kind.sources.get(name, "")) for name in needed(site, settings)}


def candidates(settings: Settings) -> tuple[list[str], list[str]]:
    """All possible packages, and paths of boot programs, to observe before the system is known."""
    kinds = [_DEBIAN, *(_redhat(name) for name in ("rhel", "rocky", "almalinux", "centos", "fedora"))]
    names = {name for kind in kinds for packages in kind.packages.values() for name in packages}
    return sorted(names), sorted(
        {*(path for kind in kinds for path in kind.sources.values()), *map(str, settings["loaders"].values())}
    )


_SHIM, _SIGNED_GRUB = ("shim-signed",), ("grub-efi-amd64-signed",)
_DEBIAN = Family(
    "www-data",
    {
        "dnsmasq": ("dnsmasq", "nftables"),
        "nginx": ("nginx",),
        "pxelinux.0": ("pxelinux",),
        "ldlinux.c32": ("syslinux-common",),
        "shimx64.efi": _SHIM,
        "grubx64.efi": _SIGNED_GRUB,
        "undionly.kpxe": ("ipxe",),
        "snponly.efi": ("ipxe",),
    },
    {
        "pxelinux.0": "/usr/lib/PXELINUX/pxelinux.0",
        "ldlinux.c32": "/usr/lib/syslinux/modules/bios/ldlinux.c32",
        "shimx64.efi": "/usr/lib/shim/shimx64.efi.signed",
        "grubx64.efi": "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
        "undionly.kpxe": "/usr/lib/ipxe/undionly.kpxe",
        "snponly.efi": "/usr/lib/ipxe/snponly.efi",
        "shimaa64.efi": "/usr/lib/shim/shimaa64.efi.signed",
        "grubaa64.efi": "/usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed",
    },
    linuxefi=False,
    apt=True,
)


def _redhat(name: str) -> Family:
    efi = f"/boot/efi/EFI/{'redhat' if name == 'rhel' else name}"
    return Family(
        "nginx",
        {
            # Labels of files and ports need a library that minimal installations lack.
            "selinux": ("python3-policycoreutils",),
            "dnsmasq": ("dnsmasq", "nftables"),
            "nginx": ("nginx",),
            "pxelinux.0": ("syslinux-tftpboot",),
            "ldlinux.c32": ("syslinux-tftpboot",),
            "shimx64.efi": ("shim-x64",),
            "grubx64.efi": ("grub2-efi-x64",),
            "undionly.kpxe": ("ipxe-bootimgs-x86",),
            "snponly.efi": ("ipxe-bootimgs-x86",),
        },
        {
            "pxelinux.0": "/tftpboot/pxelinux.0",
            "ldlinux.c32": "/tftpboot/ldlinux.c32",
            "shimx64.efi": f"{efi}/shimx64.efi",
            "grubx64.efi": f"{efi}/grubx64.efi",
            "undionly.kpxe": "/usr/share/ipxe/undionly.kpxe",
            "snponly.efi": "/usr/share/ipxe/ipxe-snponly-x86_64.efi",
            "shimaa64.efi": f"{efi}/shimaa64.efi",
            "grubaa64.efi": f"{efi}/grubaa64.efi",
        },
        linuxefi=True,
    )
