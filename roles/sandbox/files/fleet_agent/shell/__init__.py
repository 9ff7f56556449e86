# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell of containers and its small programs.

Imports machine. Start with scripts.py; parse.py converts a script to nodes, and run.py runs them.
"""
