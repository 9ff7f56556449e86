# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the live tests: real control planes with simulated fleets.

make_sandbox(fleet, name=, start=)  another sandbox; killed and deleted when the tests of the file end, or by its close()
sandbox                             one small sandbox (2 GPU nodes, 1 without GPUs) that all tests of the session share
client                              a client of the file's sandbox
sets, name                          calls of manifest_set against it, in the namespace that the file calls SPACE, and a set for one test
lifecycle                           one cluster from before site to after teardown, with disturbances of its nodes in between

Files whose tests share a cluster of the session run first, and it ends after the last of them, because an idle sandbox uses a twelfth of a core.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import pathlib
import uuid

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import components
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.live.support.life import Lifecycle, run_lifecycle
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import Sets, config_map
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox, Sandboxes, find_programs
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_filled

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
MakeSandbox = c.Callable[..., Sandbox]


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


#: Session fixtures that are clusters, in the order of their use.
SHARED = ("lifecycle", "sandbox")
#: Sandboxes that are to be closed, by their fixture.
_RUNNING: dict[str, Sandboxes] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    users: dict[pathlib.Path, set[str]] = {}
    for item in items:
        users.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    items.sort(
        key=lambda item: next((place for place, name in enumerate(SHARED) if name in users[item.path]), len(SHARED))
    )


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Closes clusters of the session that no later test uses, at the end of a file."""
    if nextitem and nextitem.path != item.path:
        needed = {
            name
            for later in item.session.items[item.session.items.index(nextitem) :]
            for name in getattr(later, "fixturenames", ())
        }
        for name in set(_RUNNING) - needed:
            _RUNNING.pop(name).close()


@pytest.fixture(scope="session")
def programs() -> components.Components:
    return find_programs()


@pytest.fixture(scope="session")
def shared(programs: components.Components) -> c.Iterator[c.Callable[[str], Sandboxes]]:
    """Sandboxes of a session fixture, which are closed after the last file that uses it."""

    def create(fixture: str) -> Sandboxes:
        _RUNNING[fixture] = Sandboxes(programs)
        return _RUNNING[fixture]

    yield create
    while _RUNNING:
        _RUNNING.popitem()[1].close()


@pytest.fixture(scope="module")
def make_sandbox(programs: components.Components) -> c.Iterator[MakeSandbox]:
    """These sandboxes end with the file, because ten idle control planes use a whole core."""
    with contextlib.closing(Sandboxes(programs)) as sandboxes:
        yield sandboxes.make


@pytest.fixture(scope="session")
def sandbox(shared: c.Callable[[str], Sandboxes]) -> Sandbox:
    return shared("sandbox").make()


@pytest.fixture
def client(sandbox: Sandbox) -> Client:
    """A file that defines its own fixture `sandbox` gets a client of that sandbox."""
    return connect({"kubeconfig": sandbox.kubeconfig})


@pytest.fixture(scope="module")
def sets(sandbox: Sandbox, request: pytest.FixtureRequest) -> c.Iterator[Sets]:
    """The set `anchor` keeps the namespace of the records, whose deletion would slow down the removal of the other sets."""
    calls, space = Sets(sandbox.kubeconfig), request.module.SPACE
    client = calls.client()
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, NAMESPACE)
    await_filled(client, space)
    calls.apply("anchor", config_map("anchor", space))
    yield calls
    calls.remove("anchor")
    client.delete(NAMESPACE, space)


@pytest.fixture
def name(sets: Sets) -> c.Iterator[str]:
    """Name of a set that is removed after the test."""
    unique = f"t-{uuid.uuid4().hex[:8]}"
    yield unique
    sets.remove(unique)


@pytest.fixture(scope="session")
def lifecycle(shared: c.Callable[[str], Sandboxes]) -> Lifecycle:
    return run_lifecycle(shared("lifecycle").make)
