# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an ignition file in a process of its own, and prints what that needed since its start: processor time and memory. Its argument is the path of the file.

The peak that getrusage returns can be that of the process that has started this one, so it is read from /proc.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
import time

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import ignition_files

if __name__ == "__main__":
    found = ignition.read(ignition_files.content(sys.argv[1]), sys.argv[1])
    peak = re.search(r"^VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert peak
    needed = {
        "seconds": time.process_time(),
        "mib": int(peak[1]) / 1024,
        "certificates": len(found.certificates),
        "files": len(found.files),
    }
    print(json.dumps(needed))
