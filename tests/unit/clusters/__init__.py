# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory for unit tests: one, for all that speaks to an API server through `_model.client.Client`.

Start reading at `cluster.Cluster`: what it answers is true to the real API server as far as a test needs it, and what is not obvious of that cites the
Kubernetes documentation. `store.Store` has the objects: a test puts them there, and changes them, as other clients and controllers would.
A test that wants a request to fail, or something to happen beside it, says so with `Cluster.fail` and `Cluster.on`. `times.Time` is the time of all.

On top of it are clusters that have a controller or two: `workloads` (deletions that wait for pods), `jobs` (Jobs that end as a test says), `nodes` (watches
that play a script, evictions). What only one area needs lies in the folder of its tests and is a subclass of one of these. `rest` is for the fleet agent,
which makes its requests by path. Nothing here imports a test, but the samples of nodes and pods in `tests/unit/gpu/samples.py`.
"""
