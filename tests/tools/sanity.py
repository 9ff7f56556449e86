# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible-test sanity` of the environment that runs this script, on a machine that reaches package registries only.

sanity.py [option of ansible-test sanity ...]

ansible-test fetches a script that installs pip from the project's CI server, before anything else. Where that server cannot
be reached, its place in ansible-test's cache is taken by a few lines that use the pip that Python brings along. Everything
else comes from the package index. ansible-test's own home is a folder in our cache, so the user's is left alone.
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

#: pylint makes tens of millions of objects and keeps them to its end: looking for cycles among them again and again takes a quarter of its time.
SELDOM = "import gc\n\ngc.set_threshold(200_000, 20, 100)\n"


def pip_versions() -> set[str]:
    """The pip versions that this ansible-test asks for: it names the script after them."""
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
    """In the environment that ansible-test has made for pylint: it hands on no variable that would say so. The first run makes it, and has to wait."""
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
    # Without it ansible-test asks the clone's git for its files, and there the tree is ignored.
    here["ANSIBLE_TEST_CONTENT_ROOT"] = str(environments.TREE)
    here.pop("PYTHONPATH", None)
    print("+ " + " ".join(command), flush=True)
    return subprocess.run(command, env=here, cwd=environments.TREE, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
