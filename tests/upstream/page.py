# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/upstream.md: every field that differs between manifests of other projects and ours, with its reason."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.hwaccel.gpu.tests.upstream import records
from ansible_collections.hwaccel.gpu.tests.upstream.records import Compared

HEAD = """<!-- Generated from tests/upstream by `make docs`: change the reasons there. -->

# Against upstream

Manifests of NVIDIA's GPU Operator, device plugin, GPU feature discovery and DCGM exporter and of Node Feature Discovery, held against ours field by field.
Ours are the objects that the roles apply to a plain cluster with default values; theirs are the manifests in their repositories at the versions below,
the GPU Operator's with what its code sets for a default ClusterPolicy. A test renders ours and fails if a field is not recorded here, differs from what
is recorded, or has no reason.

- `pod.` stands for `spec.template.spec.`. Elements of lists whose order has no meaning are known by a key in brackets.
- A mount, a volume, a toleration and a requirement of labels are one value each. A volume is known by its source, since its name has a meaning within
  its pod only.
- Scripts and files within a manifest are compared by size and digest; the reason says what ours does otherwise.
  Configuration in YAML is compared by its fields.
- In schemas, `properties` is left out of a path.
- An account is compared by what it may do: verbs by resource, in the cluster or in its namespace.
- `FILLED BY THE OPERATOR` is what stands in the operator's manifest for a value that it fills in.
- A dash is a field that is not there.

How to take a new version: [contributing](contributing.md#take-a-new-version-of-an-upstream-project).
"""


def page() -> str:
    sources, reasons = records.load("sources"), records.load("reasons")
    lines = [HEAD, *_summary(sources), *_reasons(reasons)]
    for name, component in sources["components"].items():
        source = sources["sources"][component["source"]]
        lines += [f"## {source['title']}: {name}", ""]
        for pair in records.pairs(component):
            one = records.read(name)[pair["title"]]
            lines += [f"### {one.title}", "", *_pair(pair, source, one)]
    lines += _left_out(sources["sources"]) + _ours_only(sources["ours_only"])
    return "\n".join(lines).rstrip() + "\n"


def _summary(sources: dict[str, t.Any]) -> list[str]:
    lines = ["| project | version | fields of theirs or ours | the same | different |", "|---|---|---|---|---|"]
    total = [0, 0]
    for key, source in sources["sources"].items():
        found = [
            one
            for name, component in sources["components"].items()
            if component["source"] == key
            for one in records.read(name).values()
        ]
        same, different = sum(len(one.same) for one in found), sum(len(one.different) for one in found)
        total = [total[0] + same, total[1] + different]
        lines.append(
            f"| [{source['title']}](https://github.com/{source['repository']}) | {source['tag']} | {same + different} | {same} | {different} |"
        )
    return [*lines, f"| together | | {sum(total)} | {total[0]} | {total[1]} |", ""]


def _reasons(reasons: dict[str, t.Any]) -> list[str]:
    lines = ["## Reasons", "", "| reason | why | where it can be verified |", "|---|---|---|"]
    for name, reason in reasons.items():
        places = ", ".join(f"`{place}`" for place in reason["at"])
        lines.append(f'| <a name="{name}"></a>{name} | {reason["why"]} | {places} |')
    return [*lines, ""]


def _pair(pair: dict[str, t.Any], source: dict[str, t.Any], one: Compared) -> list[str]:
    theirs = pair["theirs"]
    files = theirs.get("rules") or [theirs.get("file") or theirs.get("conf") or "deployments/gpu-operator/values.yaml"]
    where = ", ".join(f"`{path}`" for path in files)
    functions = [f"`{entry['function']}`" for entry in pair.get("code", ())]
    also = f", with what {', '.join(functions)} set" if functions else ""
    lines = [f"{where} at {source['tag']}{also}. {len(one.same)} fields are the same."]
    if not pair.get("ours"):
        lines.append("Ours has no such object.")
    lines += ["", "| field | theirs | ours | why |", "|---|---|---|---|"]
    for path, (their, our) in one.different.items():
        reason = one.reasons[path]
        lines.append(f"| {_code(path)} | {_value(their)} | {_value(our)} | [{reason}](#{reason}) |")
    return [*lines, ""]


def _value(value: t.Any) -> str:
    if value is records.ABSENT:
        return "-"
    return _code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) if value != "" else '`""`'


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _left_out(sources: dict[str, t.Any]) -> list[str]:
    lines = ["## What is not compared", "", "| project | files | why |", "|---|---|---|"]
    for source in sources.values():
        for one in source["left_out"]:
            lines.append(f"| {source['title']} | {', '.join(_code(path) for path in one['files'])} | {one['why']} |")
    return [*lines, ""]


def _ours_only(roles: dict[str, dict[str, str]]) -> list[str]:
    lines = ["## What only ours has", "", "| role | object | why |", "|---|---|---|"]
    for role, rows in roles.items():
        lines += [f"| {role} | {_code(name)} | {why.strip()} |" for name, why in rows.items()]
    return [*lines, ""]
