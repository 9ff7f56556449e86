# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof that a pod has computed on every GPU of a node, and for which state of the node it holds.

Kept on the Node as JSON in one annotation. Written by validation only; gates read nothing from it and write nothing to it.
Private to the collection: it can change in any release.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts

_VERSION = 1


@dataclasses.dataclass(frozen=True)
class ProofKey:
    """A proof holds as long as none of these differs."""

    boot_id: str
    driver: str
    plugin_config: str
    validator_image: str
    #: Digest of the set of GPUs: UUIDs where they are known, else resources and counts.
    gpus: str


@dataclasses.dataclass(frozen=True)
class Proof:
    key: ProofKey
    #: When it was made, as the server writes times.
    at: str

    def holds(self, key: ProofKey) -> bool:
        return bool(key.boot_id) and self.key == key


def key_of(node: NodeFacts, *, driver: str, plugin_config: t.Any, validator_image: str, gpus: c.Iterable[str] = ()) -> ProofKey:
    """plugin_config: the configuration itself, because its name may stay while it changes."""
    devices = sorted(gpus) or [f"{name}={count}" for name, count in node.allocatable]
    return ProofKey(node.boot_id, driver, _digest(plugin_config), validator_image, _digest(devices))


def dump(proof: Proof) -> str:
    return json.dumps({"v": _VERSION, "at": proof.at, **dataclasses.asdict(proof.key)}, sort_keys=True, separators=(",", ":"))


def load(text: str) -> Proof | None:
    """None for no proof, for one of another version and for what somebody wrote there by hand."""
    try:
        data = json.loads(text)
        if data.pop("v") != _VERSION or not all(isinstance(value, str) for value in data.values()):
            return None
        return Proof(at=data.pop("at"), key=ProofKey(**data))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _digest(value: t.Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
