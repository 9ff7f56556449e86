# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role load_balancer: configuration of HAProxy and keepalived for services of clusters. Pure.

For the filters machine_*. Imports _model and the shared modules of machines. Start with plan.py; services.py is the model that it renders.
"""
