# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role cluster_openshift, before the install: install-config and agent-config from the inventory, their checks, manifests, MachineConfigs. Pure.

Start with role.py. A rule is a function that yields findings, and a row of the table in rules.py.
"""
