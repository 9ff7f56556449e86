# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of nginx, and of who may ask at all. Pure."""

from __future__ import annotations

import ipaddress

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Ignition, Settings, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Network

TABLE = "inet hwaccel_dns_pxe"


def nginx(site: Site, settings: Settings, user: str, state: str) -> str:
    """The whole configuration. state: the folder with what is served. An ignition file holds keys: only machines that need it now get it."""
    networks = [*site.clients, *_own(site)]
    allowed = "".join(f"    allow {network};\n" for network in networks)
    ignition = "".join(_ignition(site, one, state) for one in site.ignitions if site.readers(one))
    extra = "".join(f"    {line}\n" for line in settings["nginx_extra"])
    return (
        f"{entries.HEADER}user {user};\nworker_processes auto;\npid /run/nginx.pid;\nerror_log /var/log/nginx/error.log;\n"
        "events {\n  worker_connections 1024;\n}\n"
        "http {\n  access_log /var/log/nginx/access.log;\n  default_type application/octet-stream;\n  sendfile on;\n  tcp_nopush on;\n  server_tokens off;\n"
        f"  server {{\n    listen {entries.host(site.address)}:{settings['http_port']};\n    root {state}/files;\n{allowed}    deny all;\n{extra}"
        f"    location /ignition/ {{\n      return 404;\n    }}\n{ignition}  }}\n}}\n"
    )


def clients(site: Site, settings: Settings) -> str:
    """Rules of nftables by which nobody but clients is answered: dnsmasq looks at no sender once it has been given interfaces. Set anew as a whole.

    They are about what is served and where it is: others may have these ports elsewhere on this server.
    """
    rules = []
    for version, word in ((4, "ip"), (6, "ip6")):
        networks = ", ".join(str(one) for one in site.clients if one.version == version)
        if networks:
            rules.append(f"    {word} saddr {{ {networks} }} accept\n")
    interfaces = ", ".join(f'"{name}"' for name in settings["interfaces"])
    served = [("udp", 53), ("tcp", 53)] if settings["dns"] else []
    served += [("udp", 69)] if settings["pxe"] else []
    ports = "".join(f"    iifname {{ {interfaces} }} {protocol} dport {port} jump who\n" for protocol, port in served)
    return (
        f"{entries.HEADER}table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n"
        f"  chain who {{\n{''.join(rules)}    drop\n  }}\n"
        f"  chain input {{\n    type filter hook input priority filter - 5; policy accept;\n{ports}  }}\n}}\n"
    )


def _ignition(site: Site, ignition: Ignition, state: str) -> str:
    allowed = "".join(f"      allow {machine.address};\n" for machine in site.readers(ignition))
    return f"    location = /ignition/{ignition.path} {{\n      root {state};\n{allowed}      deny all;\n    }}\n"


def _own(site: Site) -> list[Network]:
    """The server itself, which tests what it serves."""
    return [] if any(site.address in network for network in site.clients) else [ipaddress.ip_network(str(site.address))]
