# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role dns_pxe: configuration of dnsmasq and nginx with names, addresses and boot files for a site's machines. Pure.

For the filters machine_*. Imports _model and the shared modules of machines. Start with model.py, the declared site; plan.py computes the changes.
"""
