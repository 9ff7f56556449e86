# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine: the fleet file, its disks, kernel and GPUs, a container's view of them, and faults.

Imports none of the other packages. Start with fleet.py and hostfs.py.
"""
