# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpacks the programs of an archive into a folder, and notes which of them it has made there.

unpack.py ARCHIVE FOLDER NOTE CHECKSUM

ARCHIVE: a tar file, compressed or not, whose programs lie at its top, as those of github.com/containernetworking/plugins do. NOTE: written before the first
program, in JSON: made, names of the programs that nobody else has brought, and at the end checksum. Other notes lie beside it. Prints a line for each program
that it writes. A program that is there, is another one, and was not unpacked from an archive, is not replaced: that is an error before anything is written.
Needs Python 3.6 or newer, and nothing else.
"""

import glob
import json
import os
import shutil
import sys
import tarfile

#: A program until it is whole. The plan of a machine that leaves knows the name.
NEW = "hwaccel-gpu.new"


def programs(archive):
    """Files at the top that can be executed, by name."""
    found = {}
    for member in archive.getmembers():
        name = member.name[2:] if member.name.startswith("./") else member.name
        if member.isreg() and member.mode & 0o111 and "/" not in name:
            found[name] = member
    return found


def read(path):
    """What a note says."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def write(path, note):
    with open(path + ".new", "w") as file:
        json.dump(note, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def same(archive, member, path):
    """Whether the file at the path is this program."""
    packed = archive.extractfile(member)
    with open(path, "rb") as file:
        while True:
            piece = packed.read(1 << 20)
            if piece != file.read(1 << 20):
                return False
            if not piece:
                return True


def place(archive, member, path):
    new = os.path.join(os.path.dirname(path), NEW)
    with open(new, "wb") as file:
        shutil.copyfileobj(archive.extractfile(member), file, 1 << 20)
    os.chmod(new, 0o755)
    os.replace(new, path)


def main(source, folder, note, checksum):
    made = {name for path in glob.glob(os.path.dirname(note) + "/*") for name in read(path).get("made", [])}
    with tarfile.open(source) as archive:
        found = programs(archive)
        if not found:
            return f"{source} has no programs. Next: take a release of CNI plugins for this architecture"
        there = {name for name in found if os.path.exists(os.path.join(folder, name))}
        wanted = sorted(
            name for name in found if name not in there or not same(archive, found[name], os.path.join(folder, name))
        )
        others = sorted(there.intersection(wanted) - made)
        if others:
            next_step = "remove the package that has brought it, or leave cluster_kubeadm_cni_plugins empty"
            return f"{', '.join(others)} in {folder} is there, and is not that of {os.path.basename(source)}. Next: {next_step}"
        ours = sorted((set(found) - there) | (made & set(found)) | set(read(note).get("made", [])))
        write(note, {"made": ours})
        for name in wanted:
            place(archive, found[name], os.path.join(folder, name))
            print(f"unpack {os.path.join(folder, name)}")
    write(note, {"made": ours, "checksum": checksum})
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
