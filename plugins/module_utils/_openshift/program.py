# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program openshift-install: what it says of itself, and runs of it within a time limit."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Tool

#: Seconds for questions that it answers from its own data.
_QUICK = 60
#: Of a failed run: as many of its last errors are shown.
_SHOWN = 5
HIDDEN = "(hidden)"
#: Variables of the caller's that would change what it makes, such as OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE: what a folder holds follows from its inputs.
_OVERRIDES = "OPENSHIFT_INSTALL_"
#: Its log is that of logrus without times; a message ends with its line, and has quotes or not.
_ENTRY = re.compile(r"^level=(\w+) msg=(.*)$", re.MULTILINE)
#: Exit codes, from cmd/openshift-install/command/waitfor.go and create.go of openshift/installer.
_CODES = {
    3: "the install-config is invalid",
    4: "the infrastructure cannot be created",
    5: "the bootstrap failed",
    6: "the installation failed",
    7: "cluster operators are not stable",
    8: "it was interrupted",
}


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A file of CoreOS for network boot. sha256: as the stream has it."""

    location: str
    sha256: str


class Program:
    """Runs the program. secrets: texts that are hidden wherever its output is shown, because its errors can contain the whole pull secret."""

    def __init__(self, path: pathlib.Path, secrets: t.Iterable[str] = ()) -> None:
        self.path = path
        # The longest first: a secret can contain another one.
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    def tool(self) -> Tool:
        """As it describes itself. Raises HwaccelError if it is not openshift-install."""
        text = self._ask("version")
        found = re.match(r"\S*openshift-install(?:-fips)? v?(\S+)$", text, re.MULTILINE)
        image = re.search(r"^release image (\S+)$", text, re.MULTILINE)
        architecture = re.search(r"^release architecture (\S+)$", text, re.MULTILINE)
        if not found or not image:
            raise HwaccelError(
                "the program is not openshift-install",
                str(self.path),
                f"its version is {printable(text.strip()[:200]) or 'empty'}",
                "set the path of openshift-install, which `oc adm release extract --command=openshift-install` extracts from a release",
            )
        return Tool(found[1], image[1], architecture[1] if architecture else "")

    def pxe(self, architecture: str, stream: str = "") -> dict[str, Artifact]:
        """{kernel, initramfs, rootfs} of the release for network boot. architecture: "x86_64", "aarch64"; stream: where a release has several ("rhel-10")."""
        text = self._ask("coreos", "print-stream-json", *(("--stream", stream) if stream else ()))
        try:
            formats = json.loads(text)["architectures"][architecture]["artifacts"]["metal"]["formats"]["pxe"]
            return {
                name: Artifact(formats[name]["location"], formats[name]["sha256"])
                for name in ("kernel", "initramfs", "rootfs")
            }
        except (ValueError, KeyError, TypeError) as error:
            raise HwaccelError(
                "openshift-install has no artifacts for network boot",
                str(self.path),
                f"`coreos print-stream-json` has no {architecture}: {type(error).__name__} {error}",
                "use the openshift-install of a release for this architecture",
            ) from None

    def create(self, target: tuple[str, ...], folder: pathlib.Path, timeout: float, held: int) -> None:
        """`openshift-install TARGET --dir FOLDER`. timeout: seconds; held: descriptor of a lock, which is held as long as the program runs, even if this
        process is killed. Raises HwaccelError with what it printed."""
        self._run((*target, "--dir", str(folder), "--log-level", "info"), timeout, folder, (held,))

    def _ask(self, *arguments: str) -> str:
        return self._run(arguments, _QUICK, pathlib.Path("/"), ())

    def _run(self, arguments: tuple[str, ...], timeout: float, home: pathlib.Path, held: tuple[int, ...]) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OVERRIDES)}
        shown = " ".join(arguments[:2])
        try:
            # run_command of AnsibleModule has no time limit, and this code does not see Ansible.
            child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                (str(self.path), *arguments),
                cwd=home,
                env={**environment, "HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=held,
                start_new_session=True,
            )
        except OSError as error:
            next_step = "check the path, that the file is executable, and that it is for this architecture"
            raise HwaccelError("openshift-install cannot be started", str(self.path), str(error), next_step) from None
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise HwaccelError(
                f"openshift-install did not end within {timeout:g} seconds",
                f"{self.path} {shown}",
                next_step="increase the timeout, if the program has to download a lot; otherwise run it by hand with --log-level debug",
            ) from None
        finally:
            _end(child)
        if child.returncode:
            raise HwaccelError(
                "openshift-install failed",
                f"{self.path} {shown}",
                self._why(child.returncode, err.decode(errors="replace")),
                "correct what it reports, then run again",
            )
        return out.decode(errors="replace")

    def _why(self, code: int, text: str) -> str:
        entries = _ENTRY.findall(text)
        errors = [_unquoted(message) for level, message in entries if level in ("error", "fatal")]
        lines = errors or [line for line in text.splitlines() if line.strip()]
        meaning = _CODES.get(code, "")
        told = "; ".join(lines[-_SHOWN:]) or "it printed nothing"
        return self.redacted(f"exit code {code}{f' ({meaning})' if meaning else ''}: {told}")

    def redacted(self, text: str) -> str:
        for secret in self._secrets:
            # Errors quote values, and a pull secret consists of quotes.
            for form in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1]):
                text = text.replace(form, HIDDEN)
        return text


def _unquoted(message: str) -> str:
    try:
        return str(json.loads(message)) if message.startswith('"') else message
    except ValueError:
        return message


def _end(child: subprocess.Popen[bytes]) -> None:
    """Also what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdout, child.stderr):
        if pipe:
            pipe.close()
