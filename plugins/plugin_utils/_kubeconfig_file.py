# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that gets the kubeconfig of a cluster which was installed. It never replaces the credentials of another cluster."""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import tempfile
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError

_VARIABLE = "hwaccel_kubeconfig_file"
_MODE = 0o600


def place(path: str) -> pathlib.Path:
    """The file. A relative path is relative to the folder of the user, and not to that of the collection; a link stays one."""
    return pathlib.Path(os.path.realpath(os.path.join(os.environ.get("PWD") or ".", os.path.expanduser(path))))


def differs(path: pathlib.Path, text: str) -> bool:
    """Whether the file has another text, or others may read it. Raises HwaccelError as _read does."""
    return _read(path) != text or path.stat().st_mode & 0o777 != _MODE


def refused(path: pathlib.Path, server: str) -> list[Fault]:
    """Why the file cannot be written: it has something else, or its folder lacks. server: host and port of the cluster's endpoint.

    Raises HwaccelError as _read does.
    """
    present = _read(path)
    if present is None and not os.access(path.parent, os.W_OK | os.X_OK):
        why = "it cannot be written to" if path.parent.is_dir() else "it is not there"
        return [
            Fault("the kubeconfig has no folder", f"{_VARIABLE}: {path.parent}", why, "create it, or set another path")
        ]
    if present and _servers(present) != {f"https://{server}"}:
        what = "the file has something else than the kubeconfig of this cluster"
        why = f"it is none with the single server https://{server}, and would be replaced"
        return [Fault(what, f"{_VARIABLE}: {path}", why, "set another path, or remove the file if it is not needed")]
    return []


def kept(path: pathlib.Path, kubeconfig: c.Mapping[str, t.Any], server: str) -> str | None:
    """Why the file is not removed: somebody else's text, "" if it can go, None if there is none. server: as in refused.

    Another cluster under the same name has other users. Certificates that are trusted may have changed since. Raises HwaccelError as _read does.
    """
    present = _read(path)
    if present is None:
        return None
    if _servers(present) != {f"https://{server}"}:
        return f"{path} is kept: it is not the kubeconfig of the single server https://{server}"
    if yaml.safe_load(present).get("users") != kubeconfig.get("users"):
        return f"{path} is kept: its credentials are not those of the installation"
    return ""


def remove(path: pathlib.Path) -> None:
    """Raises HwaccelError."""
    try:
        path.unlink()
    except OSError as error:
        raise _failed("cannot be removed", path, error) from None


def written(kubeconfig: c.Mapping[str, t.Any]) -> str:
    """The text of the file."""
    return yaml.safe_dump(dict(kubeconfig), sort_keys=False)


def write(path: pathlib.Path, text: str) -> None:
    """Replaces the file at once, so that nobody reads a part of it, or reads it before its mode is set. Raises HwaccelError."""
    try:
        # The mode of such a file is 0600.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError as error:
        raise _failed("cannot be written", path, error) from None


def _read(path: pathlib.Path) -> str | None:
    """The text of the file, None if there is none. Raises HwaccelError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _failed("cannot be read", path, error) from None


def _servers(text: str) -> set[str]:
    """Of the clusters of a kubeconfig. The text may hold a token, so nothing is shown of what it is otherwise."""
    try:
        return {str(one["cluster"]["server"]) for one in yaml.safe_load(text)["clusters"]}
    except (yaml.YAMLError, KeyError, TypeError):
        return set()


def _failed(what: str, path: pathlib.Path, error: Exception) -> HwaccelError:
    why = str(error.strerror) if isinstance(error, OSError) else "it is not a text file"
    return HwaccelError(f"the file {what}", f"{_VARIABLE}: {path}", why, "correct its permissions, or set another path")
