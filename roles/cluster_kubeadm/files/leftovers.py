# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes what kubeadm reset leaves on a machine (https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/#cleanup-notes).

leftovers.py [BEFORE...]   prints a line for each thing that was removed, or that stays because a program is missing. BEFORE: paths of network interfaces and
                           of configurations of network plugins that were there before the machine became a node, and stay

These are rules of kube-proxy, which removes them itself; chains of the kubelet; interfaces of known network plugins and their configuration; empty folders.
What others have made stays. Needs Python 3.6 or newer, and nothing else.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

#: Tests have another one.
ROOT = ""
#: Interfaces that network plugins and kube-proxy make, not those of pods, which end with them.
INTERFACES = re.compile(
    r"(cni0|flannel(-v6)?\..+|vxlan(-v6)?\.calico|wireguard\.cali|cilium_.+|kube-ipvs0|kube-bridge|nodelocaldns|weave|antrea-.+|ovn-k8s-mp\d+)$"
)
#: Of the kubelet, of kube-proxy in its mode iptables, and of the plugins portmap and bridge.
CHAINS = re.compile(r"\b(KUBE-|CNI-)")
FOLDERS = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", "/etc/cni/net.d", "/etc/cni", "/var/lib/cni")
#: Seconds for a program.
PATIENCE = 60


def run(*argv, given=None):
    """The output of a program, None if it fails or is not installed."""
    if not shutil.which(argv[0]):
        return None
    try:
        return subprocess.check_output(argv, input=given, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    except subprocess.SubprocessError:
        return None


def proxy():
    """kube-proxy knows the rules of all its modes. Its image is still there."""
    listed = (run("ctr", "--namespace", "k8s.io", "images", "list", "--quiet") or b"").decode("utf-8", "replace")
    images = [name for name in listed.split() if re.search(r"/kube-proxy:", name)]
    if not images:
        return
    name = "hwaccel-cleanup"
    command = ["ctr", "--namespace", "k8s.io", "run", "--rm", "--net-host", "--privileged", images[-1], name]
    ended = run(*command, "/usr/local/bin/kube-proxy", "--cleanup")
    print("remove the rules of kube-proxy" if ended is not None else "rules of kube-proxy stay until the next boot")


def chains():
    for tool in ("iptables", "ip6tables"):
        rules = run(tool + "-save")
        lines = (rules or b"").decode("utf-8", "replace").splitlines()
        kept = [line for line in lines if not CHAINS.search(line)]
        if (
            len(kept) < len(lines)
            and run(tool + "-restore", given=("\n".join(kept) + "\n").encode("utf-8")) is not None
        ):
            print(f"remove {len(lines) - len(kept)} rules and chains of {tool}")


def interfaces(before):
    for path in sorted(glob.glob(ROOT + "/sys/class/net/*")):
        name = os.path.basename(path)
        if INTERFACES.match(name) and path not in before and run("ip", "link", "delete", name) is not None:
            print(f"remove the interface {name}")


def configurations(before):
    for path in sorted(glob.glob(ROOT + "/etc/cni/net.d/*")):
        if path not in before and os.path.isfile(path):
            os.unlink(path)
            print(f"remove {path}")


def folders():
    for top in FOLDERS:
        for folder, _folders, _files in os.walk(ROOT + top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue
            print(f"remove {folder}")


def main(*before):
    proxy()
    chains()
    interfaces(before)
    configurations(before)
    folders()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
