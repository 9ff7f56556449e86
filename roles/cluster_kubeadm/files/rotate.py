# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces the certificate authorities of this machine's cluster in phases, on the machine. Each may be repeated, and what it changes is printed.

rotate.py look             prints what was found, in JSON: authority, certificates that are trusted, in PEM; missing, keys of authorities that a server lacks;
                           signing, the certificate with which its kube-controller-manager signs; client, that of the kubelet, in PEM, and linked, whether
                           its kubeconfig refers to it; serves, stacked; new and old, the authorities in PEM; done, phases; replaced, by an earlier rotation
rotate.py begin            keeps the authorities of now, beside the new ones
rotate.py trust            lets this machine trust the new ones, too
rotate.py reissue          lets a server issue with the new ones, and issues its certificates again
rotate.py request TOKEN    lets the kubelet request its certificates again once it is restarted. TOKEN: file with a bootstrap token
rotate.py requested        prints why the kubelet has none yet, and ends with status 0 once it has
rotate.py drop             lets this machine trust the new ones only
rotate.py done PHASE       records that the machine runs with what the phase has changed
rotate.py end              removes what is kept of the rotation, but which authority was replaced

The phases are those of https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates. API servers also send a certificate of the new authority that
the old one has signed: pods and others that have read only the old one go on.

Needs Python 3.6 or newer, and nothing else.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys

#: For tests.
ROOT = ""
KUBERNETES = "/etc/kubernetes"
PKI = KUBERNETES + "/pki"
FOLDER = "/var/lib/hwaccel-gpu/cluster_kubeadm"
ROTATION, REPLACED = FOLDER + "/rotation", FOLDER + "/replaced-authority"
NEW, OLD, STATE, CROSS = (f"{ROTATION}/{name}" for name in ("new", "old", "done.json", "cross.crt"))
KUBELET, SERVING = (f"/var/lib/kubelet/pki/kubelet-{name}-current.pem" for name in ("client", "server"))
KUBELET_CONF, BOOTSTRAP = KUBERNETES + "/kubelet.conf", KUBERNETES + "/bootstrap-kubelet.conf"
MANAGER, API_SERVER, ETCD = (
    f"{KUBERNETES}/manifests/{name}.yaml" for name in ("kube-controller-manager", "kube-apiserver", "etcd")
)
#: The file with which kube-controller-manager signs may have one certificate only (pkg/controller/certificates/signer/ca_provider.go).
SIGNING = PKI + "/ca-signing.crt"
#: Of a server. Agents have the first one.
AUTHORITIES = ("ca", "front-proxy-ca", "etcd/ca")
#: With the authority in themselves.
KUBECONFIGS = tuple(
    f"{KUBERNETES}/{name}.conf" for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet")
)
#: Seconds for kubeadm, which asks the API server.
LONG = 120
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write(path, text, mode):
    """Replaces a file at once: it is read by programs that run, and is not changed if it has the text already. The kubelet reads no hidden manifests."""
    if read(path) == text:
        return
    hidden = f"{ROOT}{os.path.dirname(path)}/.{os.path.basename(path)}.hwaccel"
    if os.path.exists(hidden):
        os.remove(hidden)
    with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(hidden, mode)
    os.replace(hidden, ROOT + path)
    print(f"write {path}")


def exists(path):
    return os.path.exists(ROOT + path)


def certificates(text):
    return [one + "\n" for one in CERTIFICATE.findall(text)]


def fingerprint(text):
    der = ssl.PEM_cert_to_DER_cert(certificates(text)[0])
    return hashlib.sha256(der).hexdigest()


def state():
    return json.loads(read(STATE) or "{}").get("done")


def signing():
    found = re.search(r"^ +- --cluster-signing-cert-file=(\S+)$", read(MANAGER), re.M)
    return found.group(1) if found else ""


def stacked():
    """Whether etcd is the cluster's own. The authority of another one is its owner's."""
    return exists(ETCD)


def authorities():
    """Names of those that this machine has."""
    if not exists(API_SERVER):
        return AUTHORITIES[:1]
    return AUTHORITIES if stacked() else AUTHORITIES[:2]


def look():
    serves = exists(API_SERVER)
    kept = certificates(read(KUBELET))
    found = {
        "authority": "".join(certificates(read(PKI + "/ca.crt"))),
        "missing": [name + ".key" for name in authorities() if serves and not exists(f"{PKI}/{name}.key")],
        "signing": signing() if serves else "",
        "client": kept[0] if kept else "",
        "linked": KUBELET in read(KUBELET_CONF),
        "serves": serves,
        "stacked": stacked(),
        "new": read(NEW + "/ca.crt"),
        "old": read(OLD + "/ca.crt"),
        "done": state(),
        "replaced": read(REPLACED).strip(),
    }
    print(json.dumps(found))


def record(phases):
    write(STATE, json.dumps({"done": phases}) + "\n", 0o600)


def begin():
    for name in authorities():
        os.makedirs(os.path.dirname(f"{ROOT}{OLD}/{name}"), mode=0o700, exist_ok=True)
        if not exists(f"{OLD}/{name}.crt"):
            write(f"{OLD}/{name}.crt", certificates(read(f"{PKI}/{name}.crt"))[0], 0o600)
    record(state() or [])


def old(name):
    return certificates(read(f"{OLD}/{name}.crt"))[0]


def new(name):
    return certificates(read(f"{NEW}/{name}.crt"))[0]


def replaced(path, pattern, text, mode):
    """Every occurrence of the pattern's first group in a file of kubeadm."""
    there = read(path)
    if there:
        write(path, re.sub(pattern, lambda found: found.group(1) + text, there, flags=re.M), mode)


def trusted(bundle):
    """bundle: from the name of an authority to the certificates that this machine trusts instead of it."""
    for name in authorities():
        write(f"{PKI}/{name}.crt", bundle(name), 0o644)
    data = base64.b64encode(bundle("ca").encode("ascii")).decode("ascii")
    for path in KUBECONFIGS:
        replaced(path, r"^( +certificate-authority-data: )\S+$", data, 0o600)


def signs(path):
    replaced(MANAGER, r"^( +- --cluster-signing-cert-file=)\S+$", path, 0o600)


def trust():
    if exists(API_SERVER):
        # Before its own file has two certificates.
        write(SIGNING, old("ca"), 0o644)
        signs(SIGNING)
    trusted(lambda name: old(name) + new(name))


def reissue():
    for name in authorities():
        write(f"{PKI}/{name}.key", read(f"{NEW}/{name}.key"), 0o600)
    write(SIGNING, new("ca"), 0o644)
    # kubeadm issues with the first one (TryLoadCertFromDisk in cmd/kubeadm/app/util/pkiutil/pki_helpers.go).
    trusted(lambda name: new(name) + old(name))
    argv = ["kubeadm", "certs", "renew", "all"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG, check=False)
    if done.returncode:
        print(done.stdout.decode("utf-8", "replace").strip()[-2000:])
        return 1
    print("issue the certificates of the server again")
    # kubeconfigs have only the first one now.
    trusted(lambda name: new(name) + old(name))
    write(f"{PKI}/apiserver.crt", certificates(read(f"{PKI}/apiserver.crt"))[0] + read(CROSS), 0o644)
    return 0


def request(path):
    """As `kubeadm join` lets it, with the server and the authorities that it has."""
    token = read(path).strip()
    there = read(KUBELET_CONF)
    server, data = (
        re.search(rf"^ +{key}: (\S+)$", there, re.M).group(1) for key in ("server", "certificate-authority-data")
    )
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": {"server": server, "certificate-authority-data": data}}],
        "users": [{"name": "bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "kubernetes", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    }
    write(BOOTSTRAP, json.dumps(config) + "\n", 0o600)
    # Its kubeconfig is no valid one without it, so that it begins anew (LoadClientConfig in pkg/kubelet/certificate/bootstrap/bootstrap.go).
    if exists(KUBELET):
        os.remove(ROOT + KUBELET)
    # Where kubelets sign it themselves, there is none of this name.
    if exists(SERVING):
        os.remove(ROOT + SERVING)
    print("let the kubelet request its certificates again")


def requested():
    if not exists(KUBELET):
        print("the kubelet has not received its certificate yet")
        return 1
    if exists(BOOTSTRAP):
        os.remove(ROOT + BOOTSTRAP)
    return 0


def drop():
    trusted(new)
    if exists(API_SERVER):
        signs(PKI + "/ca.crt")
        if exists(SIGNING):
            os.remove(ROOT + SIGNING)


def done(phase):
    record([*(name for name in state() if name != phase), phase])


def end():
    if exists(OLD + "/ca.crt"):
        write(REPLACED, fingerprint(old("ca")) + "\n", 0o600)
    if exists(ROTATION):
        shutil.rmtree(ROOT + ROTATION)
        print(f"remove {ROTATION}")


def main(what, *arguments):
    does = {one.__name__: one for one in (look, begin, trust, reissue, request, requested, drop, done, end)}
    return does[what](*arguments) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
