# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the role load_balancer on a machine."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record

ROLE = "load_balancer"
FOLDER = f"/etc/hwaccel-gpu/{ROLE}"
#: HAProxy reads every .cfg file in it.
CONFIG = f"{FOLDER}/haproxy"
USERS, EXTRA = f"{CONFIG}/10-users.cfg", f"{CONFIG}/20-extra.cfg"
MAIN = f"{CONFIG}/50-services.cfg"
#: The unit of the RedHat family also reads a folder of fragments. The role gives it an empty one.
FRAGMENTS = f"{FOLDER}/conf.d"
SETTINGS, DROP_IN = f"{FOLDER}/haproxy.env", "/etc/systemd/system/haproxy.service.d/hwaccel-gpu.conf"
KEEPALIVED = f"{FOLDER}/keepalived.conf"
#: SELinux allows keepalived to run programs of a folder of its package.
CHECKS = {"debian": f"{FOLDER}/check-haproxy", "redhat": "/usr/libexec/keepalived/hwaccel-gpu-check"}
KEEPALIVED_ENVIRONMENT = f"{FOLDER}/keepalived.env"
KEEPALIVED_DROP_IN = "/etc/systemd/system/keepalived.service.d/hwaccel-gpu.conf"
#: Configuration of the package, which users edit: read, never written.
FOREIGN = "/etc/haproxy/haproxy.cfg"
RECORD = record.path(ROLE)
#: HAProxy's checker reads the desired configuration from it, so that nothing is written before it is validated.
STDIN = "/dev/stdin"
#: A login that is not root's may lack the folders of HAProxy.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: The path differs by family, because of policies and packages.
SOCKETS = {"debian": "/run/haproxy/admin.sock", "redhat": "/var/lib/haproxy/stats"}
#: Packages of libraries for SELinux booleans, which not every system with SELinux has.
LIBRARIES = {
    "debian": {"selinux": "python3-selinux", "semanage": "python3-semanage"},
    "redhat": {"selinux": "python3-libselinux", "semanage": "python3-libsemanage"},
}
UNITS = ("haproxy", "keepalived")
