# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Go's decoders say about the configuration file of the device plugin (NVIDIA/k8s-device-plugin v0.19.0 and v0.20.0, recorded of the former).

api/config/v1: config.go, resources.go and replicas.go; sigs.k8s.io/yaml v1.6.0, which makes JSON of YAML; encoding/json.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

PREFIX = "nvidia.com/"
#: MaxResourceNameLength in api/config/v1/consts.go.
_LONGEST = 63
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def of_yaml(error: yaml.YAMLError) -> str:
    """The message about a file that is no YAML. PyYAML and Go's decoder find the same, and say it in other words."""
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "context_mark", None) or getattr(error, "problem_mark", None)
    line = f"line {mark.line + 1}: " if mark else ""
    missing = re.match("expected (.*?)(, but .*)?$", problem)
    return f"error converting YAML to JSON: yaml: {line}{f'did not find expected {missing[1]}' if missing else problem}"


def of_kind(value: Any, field: str, wanted: str) -> str:
    """The message about a value of another kind than that of its field."""
    return f"json: cannot unmarshal {_KINDS.get(type(value), 'null')} into Go {field} of type {wanted}"


def resource_name(text: str) -> str:
    """NewResourceName: with the vendor's prefix, which every resource of the plugin has."""
    return text if text.startswith(PREFIX) else PREFIX + text


def of_resource_name(text: str) -> str:
    """The message about a name that is none, empty if it is one."""
    name = resource_name(text)
    if len(name) > _LONGEST:
        return f"fully-qualified resource name must be {_LONGEST} characters or less: {name}"
    if re.fullmatch(_SUBDOMAIN, name.removeprefix(PREFIX)):
        return ""
    return (
        f"incorrect format for resource name '{name}': [a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        f"'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')]"
    )
