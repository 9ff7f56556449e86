# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet and the container runtime of a simulated node: pods from admission to deletion, with their volumes, probes and status.

Imports programs, shell, machine and cluster. Start with node.py, then pods.py and containers.py.
"""
