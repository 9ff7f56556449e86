# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role load_balancer: services of clusters as configuration of HAProxy and keepalived. Pure.

For the filters load_balancer_*. Imports _model and what machines share. Start with plan.py; services.py is the model that it renders.
"""
