# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no text of the project may have, because it is of one machine only: home directories, and addresses with ports other than loopback's."""

from __future__ import annotations

import re

LOCAL = re.compile(
    r"/root/|/home/(?!me/)\w+/|/Users/\w+/|\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}:\d+/"
)
