# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the observed boot server. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers, model, units
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.findings import Findings, Source
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, Listener

ROLE = "dns_pxe"
CONFIG, STATE = f"/etc/hwaccel-gpu/{ROLE}", record.folder(ROLE)
#: What the unit hwaccel-gpu-once runs.
PROGRAM = f"{CONFIG}/once.py"
FILES, STAGING, IGNITION = f"{STATE}/files", f"{STATE}/staging", f"{STATE}/ignition"
#: Of artifacts that hold keys, outside of what TFTP serves.
SECRET = f"{STATE}/{model.SECRET}"
ANSWERS = f"{STATE}/{answers.FOLDER}"
#: The record of machines that have been nodes. Only teardown removes it.
MEMORY = f"{STATE}/joined.json"
#: The records of machines that have to be installed, and of those that have been written since.
WISHES, WRITTEN = f"{STATE}/wishes.json", f"{STATE}/written.json"
OTHER_DHCP, FOREIGN = "other_dhcp", "foreign_configuration"


def faults(observed: Host, settings: Settings, found: Findings) -> list[Fault]:
    """Problems of this server or its network."""
    return [
        *_addresses(observed, settings),
        *_ports(observed, settings),
        *_foreign(observed, settings),
        *_servers(observed, settings, found),
    ]


def _addresses(observed: Host, settings: Settings) -> c.Iterator[Fault]:
    address = str(settings["address"] or "")
    if address and observed.addresses and address not in observed.addresses:
        yield Fault(
            f"this server does not have the address {address}",
            "dns_pxe_address",
            f"it has {some(observed.addresses, 8)}",
            "correct one of them",
        )
    interfaces = set(observed.addresses.values())
    for name in settings["interfaces"]:
        if interfaces and name not in interfaces:
            yield Fault(
                f"this server has no interface {name} with an address",
                "dns_pxe_interfaces",
                f"it has {some(interfaces, 8)}",
                "correct the name",
            )
    if not settings["interfaces"]:
        next_step = "name those on which machines or relays reach this server"
        yield Fault("no interface to serve on is set", "dns_pxe_interfaces", "", next_step)


def _ports(observed: Host, settings: Settings) -> c.Iterator[Fault]:
    desired = [("tcp", 53), ("udp", 53)] if settings["dns"] else []
    desired += [("udp", 67)] if settings["dhcp"] else []
    desired += [("udp", 69), ("tcp", int(settings["http_port"]))] if settings["pxe"] else []
    mine = {address for address, interface in observed.addresses.items() if interface in settings["interfaces"]}
    for one in observed.listeners:
        near = (_everywhere(one) or one.address in mine) and one.device in ("", *settings["interfaces"])
        ours = one.unit in (f"{units.DNSMASQ}.service", f"{units.NGINX}.service")
        if near and not ours and (one.protocol, one.port) in desired:
            what = f"port {one.port}/{one.protocol} is in use by {one.process or 'an unknown program'}"
            where = f"{'all addresses' if _everywhere(one) else one.address}{f' of {one.unit}' if one.unit else ''}"
            yield Fault(
                what,
                where,
                "",
                "stop that service, or avoid the port with dns_pxe_dns, dns_pxe_dhcp or dns_pxe_http_port",
            )


def _everywhere(listener: Listener) -> bool:
    """Whether it listens on all addresses."""
    return listener.address in ("*", "") or ipaddress.ip_address(listener.address).is_unspecified


def _foreign(observed: Host, settings: Settings) -> c.Iterator[Fault]:
    """Existing configurations that services would not serve any more."""
    if FOREIGN in settings["skipped_checks"]:
        return
    desired = {units.DNSMASQ: True, units.NGINX: settings["pxe"]}
    for unit, files in ((unit, observed.fact(f"foreign_{unit}").split()) for unit in desired if desired[unit]):
        if files and observed.unit(unit).active and units.path(unit) not in observed.files:
            why = f"{some(files)} would not be served any more, because the role replaces the configuration of the service"
            next_step = f"move it to another server, or add {FOREIGN} to dns_pxe_skipped_checks if it is not needed"
            yield Fault(f"{unit} has an existing configuration", files[0], why, next_step)


def _servers(observed: Host, settings: Settings, found: Findings) -> c.Iterator[Fault]:
    if OTHER_DHCP in settings["skipped_checks"]:
        return
    # The probe cannot run on a missing interface, which is reported separately.
    if found.unasked and set(settings["interfaces"]) <= set(observed.addresses.values()):
        next_step = f"correct what it reports; or add {OTHER_DHCP} to dns_pxe_skipped_checks if there is no other"
        yield Fault("it is unknown whether another DHCP server answers", "", found.unasked, next_step)
    for one in found.dhcp_servers:
        what = f"another DHCP server answers on {one['interface']}: {one['server']}"
        next_step = (
            f"disable it there, or add {OTHER_DHCP} to dns_pxe_skipped_checks if it does not answer these machines"
        )
        yield Fault(what, "", f"it has offered {one['offered']}; machines would boot from the faster server", next_step)


def unusable(path: str, source: str, checksum: str, found: Findings) -> Fault | None:
    """The problem of a file that cannot be downloaded. checksum: empty for any."""
    observed = found.sources.get(source, Source("it was not observed"))
    if observed.error:
        # Ansible searches relative paths beside the playbook, which may be in the collection.
        relative = not source.startswith(("/", "~", "http://", "https://"))
        absolute = "write it as an absolute path, with inventory_dir if it is beside the inventory"
        return Fault(
            f"{path} is missing",
            source,
            observed.error,
            absolute if relative else "correct the source, or add the file",
        )
    if checksum and observed.checksum and f"sha256:{observed.checksum}" != checksum:
        return Fault(
            f"{path} has another checksum than expected",
            source,
            f"it has sha256:{observed.checksum} instead of {checksum}",
            "correct one of them",
        )
    return None
