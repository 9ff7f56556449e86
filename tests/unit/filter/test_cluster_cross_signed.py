# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate that connects an old authority with a new one, as tasks ask for it."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_cross_signed import cluster_cross_signed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import made


def test_the_old_authority_has_issued_it() -> None:
    old, new = made(), made()
    assert authority.issued(cluster_cross_signed(new.pem, old.pem, old.key_pem), old.pem)


def test_a_wrong_key_is_not_told() -> None:
    old, new = made(), made()
    with pytest.raises(AnsibleFilterError, match="cannot sign its successor") as error:
        cluster_cross_signed(new.pem, old.pem, new.key_pem)
    assert "PRIVATE" not in str(error.value)
