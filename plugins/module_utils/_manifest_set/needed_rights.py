# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions that a plan lacks, reported before anything is written."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.parallel import map_or_raise
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.rights import Right, refused

#: Applying an object that does not exist needs both.
_APPLY_VERBS = ("patch", "create")
#: A dry run that fails with an immutable field proves the permission to patch the object, not the one to recreate it.
_RECREATE_VERBS = ("delete", "create")


def missing(client: Client, steps: c.Sequence[Step], threads: int) -> list[Right]:
    """Permissions that dry runs lacked, and the results of access reviews if a dry run was not possible."""
    found = {right for step in steps for right in step.rights}
    asking = [step for step in steps if step.write and not step.rights]
    questions = {
        (verb, step.resource, step.key.namespace, "") for step in asking if step.unvalidated for verb in _APPLY_VERBS
    }
    # Permissions can be granted for single objects by name.
    questions |= {
        (verb, step.resource, step.key.namespace, step.key.name)
        for step in asking
        if step.propagation
        for verb in _RECREATE_VERBS
    }
    reviews = sorted(questions)
    answers = map_or_raise(lambda question: client.allowed(*question), reviews, threads)
    found |= {
        (verb, resource.plural, resource.group, namespace)
        for (verb, resource, namespace, _name), yes in zip(reviews, answers, strict=True)
        if not yes
    }
    return sorted(found)


def record_rights(client: Client, resource: Resource, namespace: str, *, stored: bool) -> list[Right]:
    """Permissions to write the record. A real run detects missing ones at its first write. Check mode, which does not write, sends access reviews."""
    verbs = ("update",) if stored else ("create", "update")
    return refused(client, [(verb, resource, "") for verb in verbs], namespace)
