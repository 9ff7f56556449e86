# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as YAML that people read: sorted, strings of several lines as blocks."""

from __future__ import annotations

import collections.abc as c
import functools
import json
import typing as t


def text(objects: c.Sequence[dict[str, t.Any]], *, start: bool = False) -> str:
    """start: whether each document begins with a line of dashes. JSON where PyYAML is missing, which modules need only for manifests as text."""
    try:
        import yaml
    except ImportError:
        return "\n".join(json.dumps(body, indent=2, sort_keys=True) for body in objects) + "\n"
    written: str = yaml.dump_all(
        objects, Dumper=_dumper(), sort_keys=True, width=160, explicit_start=start, allow_unicode=True
    )
    return written


@functools.cache
def _dumper() -> t.Any:
    import yaml

    class Plain(yaml.SafeDumper):
        """Indents lists, writes strings of several lines as blocks, and uses no aliases."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: t.Any) -> bool:
            return True

    Plain.add_representer(str, _string)
    return Plain


def _string(dumper: t.Any, value: str) -> t.Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)
