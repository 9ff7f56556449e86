# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot server lets in, and what it is needed for. Pure."""

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
    """A machine that asks for an address has none that it could be let in by."""
    if not settings["firewall"]:
        return ()
    ports = [(53, "udp"), (53, "tcp")] if settings["dns"] else []
    # What TFTP sends goes out from another port, and answers to that are let in as such.
    ports += [(69, "udp"), (int(settings["http_port"]), "tcp")] if settings["pxe"] else []
    found = [firewall.opening(port, str(network), protocol) for port, protocol in ports for network in site.clients]
    return firewall.distinct([*found, *([firewall.opening(67, "", "udp")] if settings["dhcp"] else [])])


def recorded(observed: Host, desired: c.Sequence[Opening], before: Record) -> Record:
    """The record with what is going to be opened: also where a run is cut off, teardown closes it."""
    every = [*before.openings, *(desired if observed.firewalls else ())]
    return dataclasses.replace(before, openings=firewall.distinct(every), due=())


def faults(observed: Host, settings: Settings) -> list[Fault]:
    """Collections that are missing on the controller, where this server needs them."""
    needed = firewall.needed(observed.firewalls) if settings["firewall"] else {}
    if observed.selinux:
        needed["community.general"] = "SELinux has to know what the files are that are served"
    return firewall.lacking("the boot server cannot be configured", needed, settings["collections"])
