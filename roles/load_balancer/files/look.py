# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a machine for the role load_balancer and writes nothing: one line of JSON. plugins/plugin_utils/machines/load_balancer/seen.py reads it.

look.py FOLDER FILE...

Runs with the Python of the machine, 3.7 or newer. What is not there gives an empty value: whether that is wrong is decided on the controller.
"""

from __future__ import annotations

import csv
import glob
import importlib.util
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

PATH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SOCKETS = {"debian": "/run/haproxy/admin.sock", "redhat": "/var/lib/haproxy/stats"}
UNITS = ("haproxy", "keepalived", "firewalld", "ufw", "nftables")


def output(*argv):
    """What a program prints, "" where it is not there or fails."""
    try:
        done = subprocess.run(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=20,
            env={"PATH": PATH, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def asked(path, command):
    """HAProxy's answer on its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try:
            connection.connect(path)
            connection.sendall(command.encode() + b"\n")
            parts = iter(lambda: connection.recv(65536), b"")
            return b"".join(parts).decode("utf-8", "replace")
        except OSError:
            return ""


def booted_at():
    # CLOCK_BOOTTIME of Linux, which Python 3.6 has no name for. Nothing is opened or read between the two, so that no pause makes services older.
    return time.time() - time.clock_gettime(7)


def started_at(pid):
    """When a process was started, in seconds since 1970."""
    fields = text("/proc/" + pid + "/stat").rpartition(")")[2].split()
    return booted_at() + int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0.0


def unit(name):
    printed = output(
        "systemctl",
        "show",
        name + ".service",
        "-p",
        "LoadState,ActiveState,UnitFileState,StateChangeTimestampMonotonic,LimitNOFILE",
    )
    told = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    active = told.get("ActiveState") in ("active", "reloading")
    since = int(told.get("StateChangeTimestampMonotonic") or 0) / 1e6
    limit = told.get("LimitNOFILE", "")
    return {
        "loaded": told.get("LoadState") == "loaded",
        "active": active,
        "enabled": told.get("UnitFileState") == "enabled",
        # A reload is a change of the unit's state and back.
        "loaded_at": booted_at() + since if active else 0.0,
        "limit": int(limit) if limit.isdigit() else 0,
    }


def seen_file(path):
    status = os.stat(path)
    return {
        "text": text(path),
        "mode": "%04o" % (status.st_mode & 0o7777),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "changed_at": status.st_ctime,
    }


def listeners():
    found = []
    for line in output("ss", "-Hltnp").splitlines():
        fields = line.split()
        address, _colon, port = fields[3].rpartition(":")
        process = re.search(r'\("([^"]*)"', line)
        found.append(
            {
                "address": address.split("%")[0].strip("[]"),
                "port": int(port),
                "process": process.group(1) if process else "",
            }
        )
    return found


def interfaces():
    rows = (line.split() for line in output("ip", "-o", "address", "show").splitlines())
    return {row[3].split("/")[0]: row[1] for row in rows}


def running(path):
    """Of the HAProxy behind a socket: its description, its servers, and when the worker that answers was started."""
    info = dict(line.split(": ", 1) for line in asked(path, "show info").splitlines() if ": " in line)
    rows = csv.DictReader(io.StringIO(asked(path, "show stat").lstrip("# ")))
    servers = [
        {"backend": row["pxname"], "name": row["svname"], "status": row["status"], "sessions": int(row["scur"] or 0)}
        for row in rows
        if row["svname"] not in ("FRONTEND", "BACKEND")
    ]
    return info.get("description", ""), servers, started_at(info["Pid"]) if "Pid" in info else 0.0


def free_bytes(folder):
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def main(folder, *paths):
    release = text("/etc/os-release")
    family = "redhat" if re.search(r"^ID(_LIKE)?=.*(rhel|fedora|centos)", release, re.M) else "debian"
    description, servers, worker = running(SOCKETS[family])
    units = {name: unit(name) for name in UNITS}
    units["haproxy"]["loaded_at"] = worker
    limit = re.search(r"^Max open files +\d+ +(\d+)", text("/proc/1/limits"), re.M)
    memory = re.search(r"^MemTotal: +(\d+)", text("/proc/meminfo"), re.M)
    files = [path for path in [*paths, *glob.glob(folder + "/*"), *glob.glob(folder + "/*/*")] if os.path.isfile(path)]
    ufw = "Status: active" in output("ufw", "status")
    print(
        json.dumps(
            {
                "family": family,
                "now": time.time(),
                "files": {path: seen_file(path) for path in files},
                "programs": [
                    name
                    for name in ("haproxy", "keepalived", "firewall-cmd", "ufw", "nft")
                    if shutil.which(name, path=PATH)
                ],
                "units": units,
                "listeners": listeners(),
                "interfaces": interfaces(),
                "description": description,
                "servers": servers,
                "limit": int(limit.group(1)) if limit else 0,
                "memory_kib": int(memory.group(1)) if memory else 0,
                "free_bytes": free_bytes(folder),
                "libraries": [name for name in ("selinux", "semanage") if importlib.util.find_spec(name)],
                "selinux": output("getenforce").strip().lower(),
                "selinux_booleans": {"haproxy_connect_any": "--> on" in output("getsebool", "haproxy_connect_any")},
                "firewalls": [name for name in ("firewalld", "nftables") if units[name]["active"]]
                + (["ufw"] if ufw else []),
            }
        )
    )


main(*sys.argv[1:])
