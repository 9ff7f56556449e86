# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the API server at its endpoint ten times a second, as clients do: each request is a new connection through the load balancer, and waits for no other.

with Probe(address) as probe:
    ...
assert probe.gap < 3

with asked_from(machine.port.namespace, address) as probe:    the same from another network namespace, by this file as a program: probe.py ADDRESS
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import ssl
import subprocess
import sys
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

    answered: times of answers, in seconds of time.monotonic(). lost: times and reasons of requests that failed. began, ended: between which it has asked.
    """

    address: str
    authority: str = ""
    path: str = PATH
    answered: list[float] = dataclasses.field(default_factory=list)
    lost: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0

    def __enter__(self) -> t.Self:
        trusting = ssl.create_default_context(cadata=self.authority) if self.authority else None
        self._tls = trusting or ssl._create_unverified_context()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: types.TracebackType | None
    ) -> None:
        self.ended = time.monotonic()
        self._stop.set()
        self._thread.join()

    @property
    def gap(self) -> float:
        """The longest time without an answer, in seconds, also before the first one and after the last one."""
        times = sorted([self.began, *self.answered, self.ended])
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


@contextlib.contextmanager
def asked_from(namespace: str, address: str) -> c.Iterator[Probe]:
    """What it has asked is known at the end. All namespaces have the same time.monotonic()."""
    found = Probe(address)
    argv = ["nsenter", f"--net={namespace}", sys.executable, __file__, address]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield found
        told = json.loads(process.communicate()[0])
    found.answered, found.began, found.ended = told["answered"], told["began"], told["ended"]
    found.lost = list(map(tuple, told["lost"]))


if __name__ == "__main__":
    with Probe(sys.argv[1]) as asking:
        # Until whoever has started it closes it.
        sys.stdin.read()
    json.dump({name: getattr(asking, name) for name in ("answered", "lost", "began", "ended")}, sys.stdout)
