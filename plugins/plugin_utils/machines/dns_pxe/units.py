# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd drop-ins with which services read only the files of this role, and the unit of the role's own service. Pure."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import web
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.dnsmasq import PID

#: Lost at a reboot. The stamp in it has the time of the last reload of the service.
RUNTIME = "hwaccel-gpu-dns-pxe"
DNSMASQ, NGINX = DROPPED_IN = "dnsmasq", "nginx"
#: It turns boot entries of machines to their disks.
ONCE = "hwaccel-gpu-once"


def path(unit: str) -> str:
    if unit == ONCE:
        return f"/etc/systemd/system/{ONCE}.service"
    return f"/etc/systemd/system/{unit}.service.d/hwaccel-gpu.conf"


def stamp(unit: str) -> str:
    return f"/run/{RUNTIME}/{unit}.loaded"


def dnsmasq(folder: str) -> str:
    """The drop-in of dnsmasq. folder: of its configuration."""
    return templating.render(
        "dns_pxe",
        "dnsmasq.service.conf",
        folder=folder,
        pid_file=PID,
        runtime=RUNTIME,
        stamp=stamp(DNSMASQ),
        table=web.TABLE,
    )


def nginx(folder: str) -> str:
    """The drop-in of nginx. folder: of its configuration."""
    return templating.render("dns_pxe", "nginx.service.conf", folder=folder, runtime=RUNTIME, stamp=stamp(NGINX))


def once(python: str, program: str, state: str) -> str:
    """The unit of the role's own service. python: path of the interpreter. program: path of once.py. state: the role's folder."""
    return templating.render("dns_pxe", "once.service", python=python, program=program, state=state, log=web.FETCHED)
