# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things of the role load_balancer are on a machine."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record

ROLE = "load_balancer"
FOLDER = f"/etc/hwaccel-gpu/{ROLE}"
#: HAProxy reads every .cfg in it.
CONFIG = f"{FOLDER}/haproxy"
USERS, EXTRA = f"{CONFIG}/10-users.cfg", f"{CONFIG}/20-extra.cfg"
MAIN = f"{CONFIG}/50-services.cfg"
#: The folder of fragments that the unit of RedHat's family reads as well: an empty one of ours.
FRAGMENTS = f"{FOLDER}/conf.d"
SETTINGS, DROP_IN = f"{FOLDER}/haproxy.env", "/etc/systemd/system/haproxy.service.d/hwaccel-gpu.conf"
KEEPALIVED = f"{FOLDER}/keepalived.conf"
#: SELinux lets keepalived run programs of a folder that its package brings.
CHECKS = {"debian": f"{FOLDER}/check-haproxy", "redhat": "/usr/libexec/keepalived/hwaccel-gpu-check"}
KEEPALIVED_ENVIRONMENT = f"{FOLDER}/keepalived.env"
KEEPALIVED_DROP_IN = "/etc/systemd/system/keepalived.service.d/hwaccel-gpu.conf"
#: What the packages bring and others edit: read, never written.
FOREIGN = "/etc/haproxy/haproxy.cfg"
RECORD = record.path(ROLE)
#: HAProxy's checker reads from it what is to be: nothing is on disk before it is found good.
STDIN = "/dev/stdin"
#: Where each family's policies and packages want it.
SOCKETS = {"debian": "/run/haproxy/admin.sock", "redhat": "/var/lib/haproxy/stats"}
#: Packages of the libraries that booleans of SELinux are switched by: not everywhere where SELinux is.
LIBRARIES = {
    "debian": {"selinux": "python3-selinux", "semanage": "python3-semanage"},
    "redhat": {"selinux": "python3-libselinux", "semanage": "python3-libsemanage"},
}
UNITS = ("haproxy", "keepalived")
