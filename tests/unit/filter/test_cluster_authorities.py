# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New certificate authorities of K3s, as tasks ask for them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_authorities import cluster_authorities
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_authorities import NOW, first


def test_they_are_texts_by_the_names_of_their_files() -> None:
    found = cluster_authorities(first(), NOW)
    assert found.keys() == first().keys()
    assert authority.fingerprint(found["server-ca.crt"]) != authority.fingerprint(first()["server-ca.crt"])


def test_a_file_that_is_missing_is_named_without_the_others() -> None:
    given = {name: text for name, text in first().items() if name != "client-ca.key"}
    with pytest.raises(AnsibleFilterError, match=r"client-ca\.key") as error:
        cluster_authorities(given, NOW)
    assert "PRIVATE" not in str(error.value)
