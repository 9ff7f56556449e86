# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of each stage's role, from its plain manifests, its settings and a fleet. Pure.

For the filter stage_objects. Imports _model, _gpu and monitoring. Start with device_plugin.py. common.py has what all share.
"""
