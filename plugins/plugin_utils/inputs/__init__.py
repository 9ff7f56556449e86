# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the public variables of roles and playbooks on clusters. Pure.

For the lookup input_faults. Imports _model, _gpu, objects and monitoring. Start with table.py, which lists the variables. judge.py uses it.
"""
