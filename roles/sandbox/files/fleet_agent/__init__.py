# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulates kubelet, container runtime and the programs of the GPU stack on every node. Needs the standard library and PyYAML only.

Start with agent.py. kubelet runs pods, programs are those of images, shell runs their scripts, machine has disks and kernel, cluster sends requests to
the API server. Each imports those after it. One thread runs everything (loop.py), in simulated time (clock.py).
"""
