# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""python -m fleet_agent: simulates kubelet, container runtime and the programs of the GPU stack on every node of the fleet file."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from fleet_agent.agent import Agent
from fleet_agent.kubelet.logserver import serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="fleet_agent", description=__doc__)
    parser.add_argument(
        "--kubeconfig", required=True, help="kubeconfig of an identity that may impersonate nodes and service accounts"
    )
    parser.add_argument("--fleet", required=True, help="fleet.json")
    parser.add_argument("--state", required=True, help="folder with pki/, for agent-status.json and control.jsonl")
    parser.add_argument(
        "--listen-port", type=int, default=0, help="port of the log endpoint on 127.0.0.1; 0 uses a free one"
    )
    parser.add_argument(
        "--joined",
        action="store_true",
        help="nodes have joined by themselves: only their pods and devices are simulated",
    )
    options = parser.parse_args()
    agent = Agent(options.kubeconfig, options.fleet, options.state, options.listen_port, options.joined)
    agent.port = serve(agent, options.listen_port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: agent.loop.stop())
    agent.start()
    print(f"fleet agent: log endpoint on port {agent.port}", file=sys.stderr, flush=True)
    agent.loop.run()
    sys.stderr.flush()
    os._exit(0)  # Threads that wait for the API server must not delay the end.


if __name__ == "__main__":
    sys.exit(main())
