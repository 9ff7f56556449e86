# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts, rules and dashboards as data. Pure.

For objects/monitoring.py. Imports _model and _gpu. Start with alerts.py; thresholds.py has the values that a user may change.
"""
