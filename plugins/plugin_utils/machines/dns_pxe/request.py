# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role dns_pxe observes of a boot server, before its system is known."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record, restoring
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers, model, systems, units
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import (
    ANSWERS,
    CONFIG,
    FILES,
    IGNITION,
    MEMORY,
    ROLE,
    SECRET,
    WISHES,
    WRITTEN,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Request

_SERVICES = (units.DNSMASQ, units.NGINX, units.ONCE)
#: Files of package managers, which dnsmasq skips in its folder. nginx reads all files.
_LEFT, _NONE = r"/README$|\.dpkg-|\.rpm", "(?!)"


def request(settings: c.Mapping[str, t.Any]) -> Request:
    """settings: the role's variables by their names without dns_pxe_."""
    packages, programs = systems.candidates(settings)
    return Request(
        files=(record.path(ROLE), MEMORY, WISHES, WRITTEN, *map(units.path, _SERVICES)),
        patterns=(f"{CONFIG}/*", *restoring.beside(map(units.path, units.DROPPED_IN))),
        checksums=(FILES, IGNITION, ANSWERS, SECRET, *programs),
        excluded=(f"{FILES}/{model.IMAGES}",),
        units=_SERVICES,
        facts={
            "packages": ("installed", *packages),
            "gpgv": ("program", "gpgv"),
            **{name: ("program", name) for name in answers.CHECKERS},
            "foreign_dnsmasq": ("own", "dnsmasq", _LEFT, "/etc/dnsmasq.conf", "/etc/dnsmasq.d/*"),
            "foreign_nginx": ("own", "nginx-common", _NONE, "/etc/nginx/sites-enabled/*", "/etc/nginx/conf.d/*.conf"),
            **{f"{unit}_loaded": ("changed_at", units.stamp(unit)) for unit in units.DROPPED_IN},
        },
        network=True,
    )
