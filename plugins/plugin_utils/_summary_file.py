# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with the summary of a run."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

from ansible.errors import AnsibleActionFail

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _variables


def write(path: str, summary: dict[str, t.Any]) -> None:
    """As docs/summary.md documents it, also in check mode. path: relative to the folder of the user, and not to that of the collection; empty for no file.

    summary: clusters or machines. Raises AnsibleActionFail if the file cannot be written.
    """
    if not path:
        return
    target = pathlib.Path(os.environ.get("PWD") or ".", path)
    text = json.dumps({"version": 1, **_variables.plain(summary)}, indent=2, sort_keys=True)
    try:
        target.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise AnsibleActionFail(
            f"hwaccel_summary_file: {target} cannot be written: {error.strerror}. Next: create its folder, or set another path"
        ) from error
