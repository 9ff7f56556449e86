# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines must get from a boot server: names, and files with their checksums. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries, systems
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Settings, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import FILES
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest

_API_PORT = 6443


def expected(observed: Host, site: Site, settings: Settings, contents: c.Mapping[str, str]) -> dict[str, t.Any]:
    """Requests of machines with the expected answers. contents: texts of files by path."""
    found: dict[str, t.Any] = {"server": str(site.address), "names": _names(site) if settings["dns"] else []}
    found["apis"] = _apis(site, settings)
    if not settings["pxe"]:
        return {**found, "tftp": [], "http": [], "refused": []}
    served = {path.removeprefix(f"{FILES}/"): digest(text) for path, text in contents.items() if path.startswith(FILES)}
    images = {site.place(one.path): one.checksum.removeprefix("sha256:") for one in site.artifacts if not one.secret}
    boots = {
        name: sums for name in systems.needed(site, settings) if (sums := observed.checksums.get(f"{FILES}/{name}"))
    }
    by_tftp = {site.place(path) for one in site.profiles for path in (one.kernel, one.initramfs)}
    small = served | boots
    base = entries.http(site, settings["http_port"])
    return {
        **found,
        "tftp": sorted((small | {path: images[path] for path in images if path in by_tftp}).items()),
        "http": sorted((f"{base}/{path}", checksum) for path, checksum in (small | images).items()),
        "refused": [
            f"{base}/{path}"
            for path, _file, readers in site.protected()
            if site.address not in [reader.address for reader in readers]
        ]
        + [f"{base}{answer.fetched(machine)}" for machine, _profile, answer in site.answered()],
    }


def _names(site: Site) -> list[tuple[str, str, list[str]]]:
    """Name, type of the query, and all answers."""
    names: list[tuple[str, str, list[str]]] = []
    for machine in site.machines:
        names.append((site.fqdn(machine), "A" if machine.address.version == 4 else "AAAA", [str(machine.address)]))
        names.append((machine.address.reverse_pointer, "PTR", [site.fqdn(machine)]))
    for cluster in site.clusters:
        given = (
            ("api", cluster.api),
            ("api-int", cluster.api_int),
            ("any.name.apps", cluster.ingress),
            ("console.apps", cluster.ingress),
        )
        for name, addresses in given:
            # A query for the other address family is answered with no address instead of NXDOMAIN.
            for version, kind in ((4, "A"), (6, "AAAA")):
                answers = sorted(str(one) for one in addresses if one.version == version)
                names.append((f"{name}.{cluster.domain}", kind, answers))
    return names


def _apis(site: Site, settings: Settings) -> list[dict[str, t.Any]]:
    """API servers behind load balancers. there: whether the cluster has a node, so that they must answer."""
    joined = settings["joined"] or {}
    return [
        {
            "name": f"api.{cluster.domain}",
            "address": str(address),
            "port": _API_PORT,
            "there": bool(joined.get(cluster.name)),
        }
        for cluster in site.clusters
        for address in cluster.api
    ]
