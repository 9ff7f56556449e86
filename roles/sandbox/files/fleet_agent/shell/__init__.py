# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell of containers and the small programs beside it.

Imports machine. Start with scripts.py; parse.py makes a script into nodes, run.py runs these.
"""
