# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of nginx, and rules of nftables for clients: the models of their templates. Pure."""

from __future__ import annotations

import ipaddress
import itertools

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import IMAGES, Settings, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Network

TABLE = "inet hwaccel_dns_pxe"
#: A log of complete downloads of files by which a machine counts as written. logrotate takes only names that end with .log.
FETCHED = "/var/log/nginx/hwaccel-gpu-fetched"
#: URLs of files for everybody.
_OPEN = f"/{IMAGES}/"
#: Families of nftables by IP version.
_FAMILIES = ((4, "ip"), (6, "ip6"))


def nginx(site: Site, settings: Settings, user: str, state: str) -> str:
    """The whole configuration. state: folder with the served files."""
    return templating.render(
        "dns_pxe",
        "nginx.conf",
        user=user,
        address=site.address,
        port=settings["http_port"],
        state=state,
        clients=[*site.clients, *_own(site)],
        extra=settings["nginx_extra"],
        fetched=FETCHED,
        answers=[
            (answer.path(machine, name), machine.address)
            for machine, _profile, answer in site.answered()
            for name in answers.KINDS[answer.kind].templates
        ],
        protected=[(path, readers) for path, _file, readers in site.protected() if readers],
        logged=sorted(path for path in set(itertools.chain(*site.wanted().paths.values())) if path.startswith(_OPEN)),
    )


def clients(site: Site, settings: Settings) -> str:
    """Rules of nftables that allow only clients, because dnsmasq does not check senders if interfaces are set.

    The rules apply only to served ports on these interfaces: other programs may use the ports elsewhere on this server.
    """
    networks = [(word, [one for one in site.clients if one.version == version]) for version, word in _FAMILIES]
    served = [("udp", 53), ("tcp", 53)] if settings["dns"] else []
    return templating.render(
        "dns_pxe",
        "clients.nft",
        table=TABLE,
        clients=[(word, found) for word, found in networks if found],
        interfaces=[f'"{name}"' for name in settings["interfaces"]],
        ports=served + ([("udp", 69)] if settings["pxe"] else []),
    )


def _own(site: Site) -> list[Network]:
    """The server's own addresses, for its self-test."""
    return [] if any(site.address in network for network in site.clients) else [ipaddress.ip_network(str(site.address))]
