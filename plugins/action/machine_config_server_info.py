# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of machine_config_server_info, which is shared by all modules on a cluster that do not wait."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.action.node_info import ActionModule

__all__ = ["ActionModule"]
