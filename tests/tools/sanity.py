# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible-test sanity` of the environment that runs this script, on a machine with access to package registries only.

sanity.py [option of ansible-test sanity ...]

At its start, ansible-test downloads a script that installs pip from the project's CI server. Because that server may not be reachable,
ansible-test's cache gets a replacement, which uses the pip in Python's distribution. Everything else is downloaded from the package
index. The home of ansible-test is a folder in our cache, so that the user's is not changed.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import ansible_test
import environments

STAND_IN = '''"""Stand-in for the script that installs pip: takes the pip that Python brings along."""
import subprocess
import sys

wanted = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
# In a process of its own: ensurepip run here would leave pip without its configuration, so without its index.
subprocess.run([sys.executable, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=False).returncode)
'''

#: pylint creates tens of millions of objects and keeps them until its end. With default settings, garbage collection takes a quarter of its time.
SELDOM = "import gc\n\ngc.set_threshold(200_000, 20, 100)\n"


def pip_versions() -> set[str]:
    """The pip versions that this ansible-test requires, which are part of the name of the script."""
    source = pathlib.Path(ansible_test.__path__[0]) / "_internal" / "python_requirements.py"
    return set(re.findall(r"\bpip=.([0-9][0-9.]*)", source.read_text(encoding="utf-8")))


def prepare_home() -> pathlib.Path:
    home = environments.cache_folder() / "ansible-test"
    scripts = home / ".ansible" / "test" / "cache"
    scripts.mkdir(parents=True, exist_ok=True)
    for version in pip_versions():
        script = scripts / f"get_pip_{version.replace('.', '_')}.py"
        if not script.exists():
            fresh = script.with_suffix(f".{os.getpid()}")
            fresh.write_text(STAND_IN, encoding="utf-8")
            fresh.replace(script)
    return home


def collect_seldom(home: pathlib.Path) -> None:
    """Changes the environment that ansible-test has created for pylint, because it passes on no variables. The first run, which creates it, is not changed."""
    for packages in home.glob(".ansible/test/venv/sanity.pylint/*/*/lib/python*/site-packages"):
        place = packages / "sitecustomize.py"
        if not place.exists() or place.read_text(encoding="utf-8") != SELDOM:
            fresh = place.with_suffix(f".{os.getpid()}")
            fresh.write_text(SELDOM, encoding="utf-8")
            fresh.replace(place)


def main() -> int:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = ["ansible-test", "sanity", "--local", "--python", python, "--color", "no", *sys.argv[1:]]
    pip_cache = os.environ.get("PIP_CACHE_DIR") or str(environments.cache_folder().parent / "pip")
    home = prepare_home()
    collect_seldom(home)
    here = os.environ | {"HOME": str(home), "PIP_CACHE_DIR": pip_cache}
    # Otherwise ansible-test gets its files from git of the clone, which ignores the tree.
    here["ANSIBLE_TEST_CONTENT_ROOT"] = str(environments.TREE)
    here.pop("PYTHONPATH", None)
    print("+ " + " ".join(command), flush=True)
    return subprocess.run(command, env=here, cwd=environments.TREE, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
