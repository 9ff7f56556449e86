# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as YAML that people read: sorted, strings of several lines as blocks. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

import yaml


class _Plain(yaml.SafeDumper):
    """Indents lists, writes strings of several lines as blocks, and uses no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: t.Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _text)


def text(objects: c.Sequence[dict[str, t.Any]], *, start: bool = False) -> str:
    """start: whether each document begins with a line of dashes."""
    return yaml.dump_all(objects, Dumper=_Plain, sort_keys=True, width=160, explicit_start=start, allow_unicode=True)
