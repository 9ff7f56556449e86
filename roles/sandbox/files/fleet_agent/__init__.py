# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays kubelet, container runtime and the programs of the GPU stack on every simulated node. The standard library and PyYAML only.

Start with agent.py. kubelet runs pods, programs are what their images have, shell runs their scripts, machine is what lies on disks and in the kernel,
cluster asks the API server; each imports those after it. One thread runs it all (loop.py), in simulated time (clock.py).
"""
