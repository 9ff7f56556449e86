# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd is told, so that the services read this role's files and no others. Pure."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries, web
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.dnsmasq import PID

#: Gone with a reboot. A stamp there is as old as the last time that the service was asked to read its files.
RUNTIME = "hwaccel-gpu-dns-pxe"
DNSMASQ, NGINX = "dnsmasq", "nginx"


def path(unit: str) -> str:
    return f"/etc/systemd/system/{unit}.service.d/hwaccel-gpu.conf"


def stamp(unit: str) -> str:
    return f"/run/{RUNTIME}/{unit}.loaded"


def dnsmasq(folder: str) -> str:
    # The condition lets packages be installed before there is a configuration: nothing is started with somebody else's meanwhile.
    # The stamp comes before the signal: files that change between the two are read once more, never missed.
    return f"""{entries.HEADER}[Unit]
Wants=network-online.target
After=network-online.target
ConditionPathExists={folder}/dnsmasq.conf
[Service]
Type=forking
PIDFile={PID}
RuntimeDirectory={RUNTIME}
RuntimeDirectoryPreserve=yes
ExecStartPre=
ExecStartPre=/usr/sbin/nft --file {folder}/clients.nft
ExecStart=
ExecStart=/usr/sbin/dnsmasq --conf-file={folder}/dnsmasq.conf
ExecStartPost=
ExecReload=
ExecReload=/usr/sbin/nft --file {folder}/clients.nft
ExecReload=/usr/bin/touch {stamp(DNSMASQ)}
ExecReload=/bin/kill -HUP $MAINPID
ExecStop=
ExecStopPost=
ExecStopPost=-/usr/sbin/nft delete table {web.TABLE}
"""


def nginx(folder: str) -> str:
    return f"""{entries.HEADER}[Unit]
Wants=network-online.target
After=network-online.target
ConditionPathExists={folder}/nginx.conf
[Service]
Type=forking
PIDFile=/run/nginx.pid
RuntimeDirectory={RUNTIME}
RuntimeDirectoryPreserve=yes
ExecStartPre=
ExecStartPre=/usr/sbin/nginx -t -q -c {folder}/nginx.conf
ExecStart=
ExecStart=/usr/sbin/nginx -c {folder}/nginx.conf
ExecReload=
ExecReload=/usr/sbin/nginx -t -q -c {folder}/nginx.conf
ExecReload=/usr/bin/touch {stamp(NGINX)}
ExecReload=/bin/kill -HUP $MAINPID
"""
