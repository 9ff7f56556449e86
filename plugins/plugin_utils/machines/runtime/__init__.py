# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime: configuration of container engines with NVIDIA's container runtime. Pure.

For the filters machine_*. Imports _model and the shared modules of machines. Start with plan.py; each engine has a file.
"""
