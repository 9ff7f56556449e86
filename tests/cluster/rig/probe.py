# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the API server at its endpoint ten times a second, as clients do: each request is a new connection through the load balancer, and waits for no other.

with Probe(address) as probe:
    ...
assert probe.gap < 3
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import ssl
import threading
import time
import types
import typing as t
import urllib.request

INTERVAL, PATIENCE = 0.1, 3.0
#: Everyone may read it, and it comes from etcd.
PATH = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


@dataclasses.dataclass
class Probe:
    """authority: certificate authority that clients trust, in PEM; empty if they take any, as it is only known once the cluster is there. path: that is asked.

    answered: times of answers, in seconds of time.monotonic(). lost: times and reasons of requests that failed.
    """

    address: str
    authority: str = ""
    path: str = PATH
    answered: list[float] = dataclasses.field(default_factory=list)
    lost: list[tuple[float, str]] = dataclasses.field(default_factory=list)

    def __enter__(self) -> t.Self:
        trusting = ssl.create_default_context(cadata=self.authority) if self.authority else None
        self._tls = trusting or ssl._create_unverified_context()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: types.TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def gap(self) -> float:
        """The longest time without an answer, in seconds."""
        times = sorted(self.answered)
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    @property
    def share_lost(self) -> float:
        return len(self.lost) / (len(self.lost) + len(self.answered))

    def _run(self) -> None:
        # As many as can wait for an answer at the same time.
        with concurrent.futures.ThreadPoolExecutor(int(PATIENCE / INTERVAL) + 1) as requests:
            while not self._stop.wait(INTERVAL):
                requests.submit(self._ask)

    def _ask(self) -> None:
        try:
            urllib.request.urlopen(
                f"https://{self.address}:6443{self.path}", timeout=PATIENCE, context=self._tls
            ).read()
            self.answered.append(time.monotonic())
        except OSError as error:
            self.lost.append((time.monotonic(), str(error)))
