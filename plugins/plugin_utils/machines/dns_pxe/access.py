# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that a boot server opens, and collections for that. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Settings, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.firewall import Opening
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record


def openings(site: Site, settings: Settings) -> tuple[Opening, ...]:
    """DHCP is open to all sources, because a machine that requests an address has none."""
    if not settings["firewall"]:
        return ()
    ports = [(53, "udp"), (53, "tcp")] if settings["dns"] else []
    # TFTP sends from another port. Firewalls accept the answers because the connection is established.
    ports += [(69, "udp"), (int(settings["http_port"]), "tcp")] if settings["pxe"] else []
    found = [firewall.opening(port, str(network), protocol) for port, protocol in ports for network in site.clients]
    return firewall.distinct([*found, *([firewall.opening(67, "", "udp")] if settings["dhcp"] else [])])


def recorded(observed: Host, desired: c.Sequence[Opening], before: Record) -> Record:
    """The record with all openings before they are made, so that teardown closes them even if the run is interrupted."""
    every = [*before.openings, *(desired if observed.firewalls else ())]
    return dataclasses.replace(before, openings=firewall.distinct(every), due=())


def faults(observed: Host, settings: Settings) -> list[Fault]:
    """Missing collections on the controller that this server needs."""
    needed = firewall.needed(observed.firewalls) if settings["firewall"] else {}
    if observed.selinux:
        needed["community.general"] = "served files need SELinux labels"
    return firewall.lacking("the boot server cannot be configured", needed, settings["collections"])
