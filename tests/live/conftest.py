# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the live tests: real control planes with simulated fleets.

make_sandbox(fleet, name=, start=)  a sandbox more; killed and deleted when the tests of the file end, or by its close()
sandbox                             one small sandbox (2 GPU nodes, 1 without) that all tests of the session share
sets, name                          calls of manifest_set against it, in the namespace that the file calls SPACE, and a set of the test's own
life                                one cluster from before site to after teardown, with what happens to nodes in between
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import uuid

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import components
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.live.support.life import Life, lived
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import Sets, config_map
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox, Sandboxes, find_programs
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_filled

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
MakeSandbox = c.Callable[..., Sandbox]


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


@pytest.fixture(scope="session")
def programs() -> components.Components:
    return find_programs()


@pytest.fixture(scope="session")
def make_shared_sandbox(programs: components.Components) -> c.Iterator[MakeSandbox]:
    with contextlib.closing(Sandboxes(programs)) as sandboxes:
        yield sandboxes.make


@pytest.fixture(scope="module")
def make_sandbox(programs: components.Components) -> c.Iterator[MakeSandbox]:
    """Not of the session: ten control planes that nobody asks anything any more cost a core."""
    with contextlib.closing(Sandboxes(programs)) as sandboxes:
        yield sandboxes.make


@pytest.fixture(scope="session")
def sandbox(make_shared_sandbox: MakeSandbox) -> Sandbox:
    return make_shared_sandbox()


@pytest.fixture(scope="module")
def sets(sandbox: Sandbox, request: pytest.FixtureRequest) -> c.Iterator[Sets]:
    """An anchor set keeps the namespace of the records alive, so that removing the others does not take its time."""
    found, space = Sets(sandbox.kubeconfig), request.module.SPACE
    client = found.client()
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, NAMESPACE)
    await_filled(client, space)
    found.apply("anchor", config_map("anchor", space))
    yield found
    found.remove("anchor")
    client.delete(NAMESPACE, space)


@pytest.fixture
def name(sets: Sets) -> c.Iterator[str]:
    """A set of the test's own, removed afterwards."""
    made = f"t-{uuid.uuid4().hex[:8]}"
    yield made
    sets.remove(made)


@pytest.fixture(scope="session")
def life(make_shared_sandbox: MakeSandbox) -> Life:
    return lived(make_shared_sandbox)
