# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that sends requests until it is killed, and prints the time of each response in seconds since 1970, one per line.

prober.py ADDRESS PORT
"""

from __future__ import annotations

import socket
import sys
import time

while True:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.2) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if connection.recv(100).startswith(b"HTTP/1.0 200"):
                print(time.time(), flush=True)
    except OSError:
        pass
    time.sleep(0.02)
