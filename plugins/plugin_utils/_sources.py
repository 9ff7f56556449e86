# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates and files of manifests, found and rendered on the controller."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.loader import lookup_loader

_ENDINGS = (".yml", ".yaml", ".json")


def texts(action: t.Any, task_vars: dict[str, t.Any], template: t.Any, src: t.Any) -> list[dict[str, str]]:
    """[{origin, text}] of the options `template` and `src` of an action plugin's task.

    action: the ActionBase that the task runs in. All files of a folder are used, sorted by path, so that the order does not depend on the file system.
    """
    found = []
    for option, folder, values in (
        ("template", "templates", _paths("template", template)),
        ("src", "files", _paths("src", src)),
    ):
        for value in values:
            for path in _files(_find(action, option, folder, value)):
                text = _rendered(action, task_vars, path) if option == "template" else _read(action, path)
                found.append({"origin": _origin(path, task_vars), "text": text})
    return found


def _paths(option: str, value: t.Any) -> list[str]:
    values = value if isinstance(value, (list, tuple)) else [value]
    values = [item for item in values if item not in (None, "")]
    wrong = [type(item).__name__ for item in values if not isinstance(item, str)]
    if wrong:
        raise AnsibleActionFail(f"{option} is a path or a list of paths of files or folders, not a {wrong[0]}")
    return values


def _find(action: t.Any, option: str, folder: str, value: str) -> str:
    try:
        return action._find_needle(folder, value)
    except AnsibleError:
        raise AnsibleActionFail(
            f"{option} {value!r} does not exist: it must be in {folder}/ of the role or the playbook, or next to them, on the controller"
        ) from None


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith("."))
        found += [
            os.path.join(folder, name)
            for name in files
            if name.removesuffix(".j2").endswith(_ENDINGS) and not name.startswith(".")
        ]
    if not found:
        raise AnsibleActionFail(f"the folder {path} has no file that ends in {', '.join(_ENDINGS)} (or these with .j2)")
    return sorted(found)


def _rendered(action: t.Any, task_vars: dict[str, t.Any], path: str) -> str:
    lookup = lookup_loader.get("ansible.builtin.template", loader=action._loader, templar=action._templar)
    try:
        return str(lookup.run([path], variables=task_vars, convert_data=False)[0])
    except AnsibleError as error:
        raise AnsibleActionFail(f"the template {path} cannot be rendered: {_message(error)}") from None


def _read(action: t.Any, path: str) -> str:
    # The loader also decrypts files of Ansible Vault.
    real = action._loader.get_real_file(path)
    try:
        with open(real, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise AnsibleActionFail(f"{path} is not UTF-8 text") from None
    finally:
        action._loader.cleanup_tmp_file(real)


def _origin(path: str, task_vars: dict[str, t.Any]) -> str:
    """The path for messages: relative to the playbook if it is below it."""
    base = task_vars.get("playbook_dir") or ""
    relative = os.path.relpath(path, base) if base else path
    return path if relative.startswith("..") else relative


def _message(error: BaseException) -> str:
    return " ".join(str(getattr(error, "message", "") or error).split())[:600]
