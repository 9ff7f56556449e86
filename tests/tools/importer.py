# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the collection's tarball and runs galaxy-importer on it, as Galaxy and Automation Hub do. A warning is a failure.

ansible-lint and ansible-test have their own jobs, because galaxy-importer ends ansible-lint after three minutes, even on a busy machine, and
runs ansible-test in a container.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import dist
import tarball

#: The address of a repository, as a publication has it.
REPOSITORY = "https://example.com/hwaccel/gpu"
SETTINGS = {
    "run_ansible_lint": "False",
    "run_ansible_test": "False",
    "run_ansible_doc": "True",
    "run_flake8": "False",
    "check_changelog": "True",
    "check_required_tags": "True",
}
TROUBLE = re.compile(r"^(WARNING|ERROR|CRITICAL): .*", re.MULTILINE)
DONE = "Importer processing completed successfully"


def faults(output: str) -> list[str]:
    """Problems in galaxy-importer's output that prevent an import."""
    problems = [match.group(0) for match in TROUBLE.finditer(output)]
    return problems or ([] if DONE in output else ["galaxy-importer has not come to its end"])


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        copy = dist.published(pathlib.Path(scratch), REPOSITORY)
        built = tarball.build(scratch, copy)
        environment = os.environ | {f"GALAXY_IMPORTER_{name.upper()}": value for name, value in SETTINGS.items()}
        # galaxy-importer searches these paths for the collection, and must not use the checkout.
        environment = {
            name: value for name, value in environment.items() if name not in ("PYTHONPATH", "ANSIBLE_COLLECTIONS_PATH")
        }
        command = [sys.executable, "-m", "galaxy_importer.main", str(built)]
        done = subprocess.run(
            command,
            cwd=scratch,
            env=environment,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    print(done.stdout)
    problems = faults(done.stdout)
    print("\n".join(problems) or f"{built.name}: galaxy-importer takes it")
    return 1 if problems or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
