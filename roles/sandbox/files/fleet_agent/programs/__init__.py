# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the GPU stack, by image. Each file names the sources that it follows.

Imports shell, machine and cluster. Start with registry.py, and with misc.py for the shortest ones.
"""
