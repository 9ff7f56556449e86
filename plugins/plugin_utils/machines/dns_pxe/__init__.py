# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role dns_pxe: names, addresses and boot files of a site's machines, as configuration of dnsmasq and nginx. Pure.

For the filters dns_pxe_*. Imports _model and what machines share. Start with model.py, the site as it is declared; plan.py is what is done.
"""
