# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the shared action plugin sets on modules that can wait for long."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  wait_slice:
    description:
      - Seconds after which the module stops waiting and returns its state.
      - Internal, set by the action plugin of the same name, which runs the module repeatedly until it is done
        and prints its progress after each run. Do not set it in a playbook.
    type: float
  wait_resume:
    description: The result of the previous slice. Internal, set by the action plugin like O(wait_slice).
    type: dict
  wait_task:
    description: The process that runs the slices, which lives as long as the task. Internal, set by the action plugin like O(wait_slice).
    type: str
"""
