# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of openshift_wait is shared by all modules that wait. With a redirect in meta/runtime.yml, ansible-lint would use the other module's name."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.action.manifest_set import ActionModule

__all__ = ["ActionModule"]
