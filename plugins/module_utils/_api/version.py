# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's version from galaxy.yml (a test compares them), which is sent to the API server in the user agent."""

from __future__ import annotations

VERSION = "0.2.0"
USER_AGENT = f"hwaccel.gpu/{VERSION}"
