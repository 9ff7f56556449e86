# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role machine_boot: what its BMC or hypervisor has to do so that a machine boots, and the progress of the boot. Pure.

For the filter machine_boot (role.py has its questions) and the action machine_power (run.py). Imports _model and what machines share. Start with plan.py for
the power of a machine, and with watch.py for its boot. Each provider has a file: redfish.py, ipmi.py and libvirt.py.
"""
