# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the benchmark that need no server: its objects and its proxy."""

from __future__ import annotations

import importlib
import json
import pathlib
import socket
import threading
import time
from types import ModuleType

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCH))

    def one(name: str) -> ModuleType:
        return importlib.import_module(name)

    return one


def test_the_set_has_forty_objects_of_eight_kinds(load) -> None:
    found = load("subjects").objects("bench")
    keys = {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in found}
    assert len(keys) == len(found) == 40
    assert len({item["kind"] for item in found}) == 8


def test_a_large_node_has_the_size_of_a_real_one(load) -> None:
    assert 25_000 < len(json.dumps(load("subjects").fat_node(1))) < 40_000


def echo(server: socket.socket) -> None:
    connection = server.accept()[0]
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def test_the_proxy_adds_the_round_trip_and_keeps_the_bytes(load) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=echo, args=(server,))
        thread.start()
        with (
            load("delay_proxy").delayed("127.0.0.1", server.getsockname()[1], 0.05) as port,
            socket.create_connection(("127.0.0.1", port)) as client,
        ):
            for message in (b"one", b"two"):
                began = time.monotonic()
                client.sendall(message)
                assert client.recv(4096) == message
                assert time.monotonic() - began >= 0.05
        thread.join(timeout=240)
        assert not thread.is_alive()


def missed(load, **costs: tuple[str, float, int]) -> list[str]:
    """Budgets that are exceeded. costs: by row, what it has run, its CPU seconds, and its requests."""
    bench, cost = load("bench"), load("measure").Cost
    names = {"site": bench.SITE, "before": bench.SITE_BEFORE}
    rows = [
        (names.get(name, bench.PREFLIGHT), what, cost(4.0, cpu, 100.0, requests, 0, 0))
        for name, (what, cpu, requests) in costs.items()
    ]
    return [budget.what for budget in bench.budgets(rows) if not budget.met]


@pytest.mark.parametrize(
    ("cpu", "requests", "expected"),
    [
        (10.2, 70, []),
        (10.4, 70, ["site, no-op: CPU seconds"]),
        (10.0, 71, ["site, no-op: requests"]),
    ],
)
def test_site_is_compared_with_that_of_another_commit(load, cpu: float, requests: int, expected: list[str]) -> None:
    assert missed(load, site=("no-op", cpu, requests), before=("no-op", 10.0, 70)) == expected


@pytest.mark.parametrize(("cpu", "expected"), [(60.0, 0), (80.0, 1)])
def test_what_one_machine_more_costs_may_not_grow(load, cpu: float, expected: int) -> None:
    few, some, many = (f"{total} machines" for total in load("bench").TOTALS)
    found = missed(load, few=(few, 15.0, 0), some=(some, 30.0, 0), many=(many, cpu, 0))
    assert len(found) == expected and all("one more" in text for text in found)
