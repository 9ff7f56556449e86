# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role machine_boot: what one machine needs to boot by network, by its BMC or its hypervisor, and how far it has come. Pure.

For the filters machine_boot_*. Imports _model and what machines share. Start with plan.py; what each way of power control reads is in redfish.py, ipmi.py
and libvirt.py.
"""
