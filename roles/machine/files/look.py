# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a machine for a host role and writes nothing: look.py REQUEST. Prints one line of JSON.

plugins/plugin_utils/machines/host.py defines both: the request as Request, the output as Host. Missing things give empty values, and the controller decides
whether these are problems. Needs Python 3.6 or newer, and nothing else.
"""

import glob
import gzip
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time

PATH = ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROPERTIES = (
    "LoadState,ActiveState,UnitFileState,ExecMainStartTimestampMonotonic,StateChangeTimestampMonotonic,LimitNOFILE"
)
#: Timeout of a program, in seconds.
PATIENCE = 60
#: CLOCK_BOOTTIME of Linux. Python has a name for it since 3.7.
CLOCK_BOOTTIME = 7


def which(program):
    return shutil.which(program, path=os.environ["PATH"])


def run(argv):
    """Exit status, output and errors of a program; 127 if it is not installed."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        done = subprocess.run(argv, check=False, timeout=PATIENCE, **pipes)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, decoded(done.stdout), decoded(done.stderr)


def output(*argv):
    return run(argv)[1]


def decoded(text):
    # Surrogates keep bytes that are not UTF-8, so that texts are compared byte by byte.
    return text.decode("utf-8", "surrogateescape")


def content(path):
    try:
        with open(path, "rb") as file:
            return decoded(file.read())
    except OSError:
        return ""


def booted_at():
    # Nothing is read between the two clocks, because a delay would falsify the age of services.
    return time.time() - time.clock_gettime(CLOCK_BOOTTIME)


def file(path):
    # Follows links.
    status = os.stat(path)
    return {
        "text": content(path),
        "mode": "%04o" % (status.st_mode & 0o7777),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "changed_at": status.st_ctime,
    }


def files(request):
    requested = request["files"] + [path for pattern in request["patterns"] for path in sorted(glob.glob(pattern))]
    return {path: file(path) for path in requested if os.path.isfile(path)}


def imports(main):
    """Paths that a configuration of containerd imports, in its order."""
    found = re.search(r"^[ \t]*imports[ \t]*=[ \t]*\[((?:#[^\n]*|[^]#])*)\]", content(main), re.M)
    patterns = re.findall(r"[\"']([^\"']*)[\"']", re.sub(r"#[^\n]*", "", found.group(1))) if found else []
    absolute = [os.path.join(os.path.dirname(main), pattern) for pattern in patterns]
    return [path for pattern in absolute for path in sorted(glob.glob(pattern)) or [pattern]]


def units(names):
    """Properties of systemd units, by name."""
    blocks = output("systemctl", "show", "--property=" + PROPERTIES, *names).strip("\n").split("\n\n") if names else []
    read = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks]
    return {name: read[at] for at, name in enumerate(names) if at < len(read)}


def commands(requested):
    done = {}
    for one in requested:
        if not which(one["argv"][0]):
            continue
        if one["active"] and output("systemctl", "is-active", one["active"]).strip() != "active":
            continue
        if (one["file"] and not os.path.isfile(one["file"])) or (one["no_file"] and os.path.isfile(one["no_file"])):
            continue
        status, printed, error = run(one["argv"])
        done[one["name"]] = {"status": status, "output": printed, "error": error}
    return done


def packages(names):
    """Versions of installed packages, by name."""
    if which("dpkg-query"):
        printed = output("dpkg-query", "-W", "-f=${db:Status-Abbrev} ${Package} ${Version}\\n", *names)
        # The first letter is what is wanted, such as h for one that is held.
        rows = [line.split()[1:] for line in printed.splitlines() if line[1:2] == "i"]
    else:
        rows = [
            line.split()
            for line in output("rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", *names).splitlines()
        ]
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[0] in names}


def listeners():
    """Sockets that listen for connections or datagrams."""
    rows = [line.split(None, 6) for line in output("ss", "-Hlntup").splitlines()]
    found = []
    for row in (row for row in rows if len(row) > 5):
        address, _colon, port = row[4].rpartition(":")
        address, _percent, device = address.strip("[]").partition("%")
        process = re.search(r'\("([^"]*)",pid=(\d+)', row[6] if len(row) > 6 else "")
        one = {"protocol": row[0], "address": address.strip("[]"), "device": device.strip("]"), "port": int(port)}
        one.update(process=process.group(1) if process else "", pid=process.group(2) if process else "")
        found.append(one)
    pids = ",".join(sorted({one["pid"] for one in found if one["pid"]}))
    printed = output("ps", "-o", "pid=,unit=", "-p", pids) if pids else ""
    owners = dict(line.split() for line in printed.splitlines() if len(line.split()) == 2)
    for one in found:
        one["unit"] = owners.get(one.pop("pid"), "").strip("-")
    return found


def network():
    rows = (line.split() for line in output("ip", "-o", "address", "show").splitlines())
    firewalls = [
        name for name in ("firewalld", "nftables") if output("systemctl", "is-active", name).strip() == "active"
    ]
    return {
        "addresses": {row[3].split("/")[0]: row[1] for row in rows if len(row) > 3},
        "listeners": listeners(),
        "firewalls": firewalls + ["ufw"] * ("Status: active" in output("ufw", "status")),
    }


def checksum(path):
    found = hashlib.sha256()
    with open(path, "rb") as source:
        for piece in iter(lambda: source.read(1 << 20), b""):
            found.update(piece)
    return found.hexdigest()


def checksums(paths, excluded):
    """Checksums of files, and of all files below folders except excluded ones."""
    found = [path for path in paths if os.path.isfile(path)]
    for path in paths:
        for folder, inner, names in os.walk(path):
            inner[:] = [name for name in inner if os.path.join(folder, name) not in excluded]
            found += [os.path.join(folder, name) for name in names]
    return {path: checksum(path) for path in found if os.path.isfile(path)}


def started_at(pid):
    """Start of a process, in seconds since 1970, 0 if it has ended meanwhile."""
    fields = content("/proc/" + pid + "/stat").rpartition(")")[2].split()
    return booted_at() + int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0.0


def processes(programs):
    """Start of the processes of these programs, by process ID."""
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()] if programs else []
    return {pid: started_at(pid) for pid in pids if content("/proc/" + pid + "/comm").strip() in programs}


def answer(path, command):
    """Response of a service to a command on its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try:
            connection.connect(path)
            connection.sendall(command.encode() + b"\n")
            return decoded(b"".join(iter(lambda: connection.recv(65536), b"")))
        except OSError:
            return ""


# -- facts: functions that the request names, with arguments. Each returns a text or a list of lines.


def lines(path, pattern):
    return [line for line in content(path).split("\n") if re.search(pattern, line)]


def count(path, pattern):
    """Number of matching lines, empty if the file does not exist."""
    return str(len(lines(path, pattern))) if os.path.isfile(path) else ""


def having(pattern, *globs):
    """Paths of files with a matching line, which may be a secret."""
    return [path for path in paths_of(globs) if lines(path, pattern)]


def lines_in(pattern, *globs):
    """Matching lines of several files, without those that are empty or repeated."""
    return sorted({line.strip() for path in paths_of(globs) for line in lines(path, pattern)})


def found_in(pattern, *globs):
    """What the pattern's group has found in several files, and nothing else of their lines, which may have secrets."""
    return sorted({one for path in paths_of(globs) for one in re.findall(pattern, content(path))})


def paths_of(globs):
    return [path for one in globs for path in paths(one) if os.path.isfile(path)]


def exists(*paths):
    return [path for path in paths if os.path.exists(path)]


def writable(*paths):
    return [path for path in paths if os.access(path, os.W_OK)]


def paths(pattern):
    return sorted(glob.glob(pattern))


def program(*names):
    """Path of the first installed program."""
    return ([found for found in map(which, names) if found] or [""])[0]


def programs(*names):
    return [name for name in names if which(name)]


def version(package):
    return packages([package]).get(package, "")


def installed(*names):
    return sorted(packages(names))


def libraries(*names):
    return [name for name in names if importlib.util.find_spec(name)]


def free(folder):
    """Free bytes of the file system of a folder, which may not exist."""
    state = file_system(folder)
    return str(state.f_bavail * state.f_frsize)


def size(folder):
    """All bytes of it."""
    state = file_system(folder)
    return str(state.f_blocks * state.f_frsize)


def read_only(*folders):
    """Those whose file system nobody can write to."""
    return [folder for folder in folders if file_system(folder).f_flag & os.ST_RDONLY]


def file_system(folder):
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.statvfs(folder)


def mount(folder):
    """Device, as two numbers, and type of the file system of a folder, which may not exist."""
    found = [("", "", "")]
    for line in content("/proc/self/mountinfo").splitlines():
        before, _dash, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        if (os.path.realpath(folder) + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(found[-1][0]):
            found.append((point, before.split()[2], after.split()[0]))
    return found[-1][1:]


def mounted(folder):
    """Type of the file system of a folder, such as ext4."""
    return mount(folder)[1]


def medium(folder):
    """SD or MMC if a card or a soldered chip has the folder, empty for other disks."""
    return card(os.path.realpath("/sys/dev/block/" + mount(folder)[0]))


def card(device):
    below = [card(os.path.realpath(one)) for one in sorted(glob.glob(device + "/slaves/*"))]
    # A partition is in the folder of its disk.
    found = below + [content(path + "/device/type").strip() for path in (device, os.path.dirname(device))]
    return ([one for one in found if one in ("SD", "MMC")] or [""])[0]


def kernel_options(*names):
    """Where the kernel that runs tells how it was built, and what it says of these options. Empty if it does not."""
    release = platform.release()
    for path in ("/proc/config.gz", "/boot/config-" + release, "/lib/modules/" + release + "/config"):
        try:
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as opened:
                text = decoded(opened.read())
        except OSError:
            continue
        rows = re.findall(r"^CONFIG_(\w+)=([ym])$", text, re.M)
        return [path] + [name + "=" + value for name, value in rows if name in names]
    return []


def changed_at(path):
    """Last change of a file, or of a program by its name."""
    found = path if os.path.isabs(path) else which(path)
    return str(round(os.stat(found).st_ctime, 6)) if found and os.path.exists(found) else ""


def modified_at(path):
    """Last change of a file's contents."""
    return str(round(os.stat(path).st_mtime, 6)) if os.path.exists(path) else ""


def pci(vendor, pattern):
    """Matching classes of the devices of a vendor."""
    devices = [one for one in glob.glob("/sys/bus/pci/devices/*") if content(one + "/vendor").strip() == vendor]
    return [found for found in (content(one + "/class").strip() for one in devices) if re.search(pattern, found)]


def modules(*names):
    """Loaded kernel modules."""
    loaded = {line.split(" ", 1)[0] for line in content("/proc/modules").splitlines()}
    return [name for name in names if name in loaded]


def own(package, excluded, *patterns):
    """Custom files: those with a line that is not a comment, and that differ from the original of a Debian package."""
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if not re.search(excluded, path)]
    brought = output("dpkg-query", "-W", "-f=${Conffiles}\\n", package) if which("dpkg-query") else ""
    return [path for path in found if re.search(r"^\s*[^#\s]", content(path), re.M) and not brought_by(path, brought)]


def brought_by(path, conffiles):
    """Whether a file is unchanged. conffiles: paths and checksums of a package. Without an entry no MD5 is computed, because a system may forbid it."""
    real = " " + os.path.realpath(path) + " "
    if real not in conffiles:
        return False
    digest = hashlib.new("md5", content(path).encode("utf-8", "surrogateescape")).hexdigest()
    return real + digest in conffiles


FACTS = {
    one.__name__: one
    for one in (
        changed_at,
        count,
        exists,
        found_in,
        free,
        having,
        installed,
        kernel_options,
        libraries,
        lines,
        lines_in,
        medium,
        modified_at,
        modules,
        mounted,
        output,
        own,
        paths,
        pci,
        program,
        programs,
        read_only,
        size,
        version,
        writable,
    )
}


def always():
    release = content("/etc/os-release") or content("/usr/lib/os-release")
    return {"os_release": release, "kernel": platform.release(), "selinux": output("getenforce").strip()}


def fact(kind, *arguments):
    found = FACTS[kind](*arguments)
    return found.strip() if isinstance(found, str) else "\n".join(found)


def main(request):
    os.environ.update(PATH=":".join([os.environ.get("PATH", "") + PATH] + request["path"]), LC_ALL="C")
    followed = [path for main_file in request["imports"] for path in imports(main_file)]
    request["files"] += followed
    folders = {os.path.dirname(path) for path in request["files"]}
    # The current time is read last, so that no file appears to be from the future.
    observed = {
        "files": files(request),
        "imports": followed,
        "folders": sorted(path for path in folders if os.path.isdir(path)),
        "checksums": checksums(request["checksums"], request["excluded"]),
        "units": units(request["units"]),
        "commands": commands(request["commands"]),
        "answers": {path: {text: answer(path, text) for text in texts} for path, texts in request["sockets"].items()},
        "processes": processes(request["processes"]),
        "facts": dict(always(), **{name: fact(*given) for name, given in request["facts"].items()}),
        "booted_at": booted_at(),
        "now": time.time(),
    }
    if request["network"]:
        observed.update(network())
    print(json.dumps({"observed": observed}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
