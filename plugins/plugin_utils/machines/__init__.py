# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles on machines decide on the controller, from the observed state of a machine. Pure.

For the filters of host roles, with a package for each role. Shared modules lie beside these, and no role's package imports another's. Imports _model.
Start with load_balancer/plan.py.
"""
