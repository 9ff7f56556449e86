# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime: NVIDIA's container runtime in the configuration of container engines. Pure.

For the filters node_runtime_*. Imports _model and what machines share. Start with plan.py; each engine has a file of its own.
"""
