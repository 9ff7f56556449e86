# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes what kubeadm keeps in a cluster, on one of its servers.

control.py configured ENDPOINT           prints the version of Kubernetes in the cluster's configuration, which kubeadm upgrades to at the end of the
                                         first server's upgrade
control.py etcd VERSION                  prints `same` if an upgrade of this server to this version would only restart its etcd
control.py configure ADDRESS PATH        writes ConfigMaps, and restarts kube-proxy if its own is among them. PATH: of a list of them, in JSON
control.py proxied ADDRESS               prints why kube-proxy has not loaded its configuration on all nodes, and ends with status 0 once it has
control.py publish ADDRESS               writes the certificate authorities of this server where clients read them
control.py reencrypt ADDRESS             lets the API server of this machine write all Secrets again, and so encrypt them with the key of now
control.py restart POD...                lets the kubelet restart these static pods, as kubectl rollout restart does it: by an annotation
control.py extend ADDRESS SECONDS [left] lets bootstrap tokens of this run end after this time, and so the certificates that kubeadm has uploaded.
                                         left: there may be none any more
control.py withdraw ADDRESS              deletes bootstrap tokens of this run, and of any that was killed, and the certificates that kubeadm has uploaded

Needs Python 3.6 or newer, and nothing else.
"""

import base64
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

FOLDER = "/etc/kubernetes"
AUTHORITY = FOLDER + "/pki/ca.crt"
#: Annotation of a static pod, in its manifest and in the API.
RESTARTED = "hwaccel.gpu/restarted-at"
#: Annotation of a ConfigMap whose contents are not loaded yet.
PENDING = "hwaccel.gpu/pending"
MERGE = "application/merge-patch+json"
#: Description of bootstrap tokens that the role creates.
OURS = b"hwaccel.gpu"
#: Description of those that own certificates only to end them (createShortLivedBootstrapToken in cmd/kubeadm/app/phases/copycerts). Each upload makes one, and
#: leaves that of the one before, which was killed, without anything to end.
OWNER = b"Proxy for managing TTL for the kubeadm-certs secret"
#: Seconds for an answer.
PATIENCE = 10
#: How often secrets are tried to be deleted.
TRIES = 5
#: Objects of an answer.
PAGE = 200


def ask(url, tls, method="GET", body=None, kind="application/json"):
    """The body of the response. Raises OSError, also for a status that is an error."""
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=PATIENCE, context=tls) as response:
        return response.read().decode("utf-8", "replace")


def joined(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def administrator():
    """TLS with the credentials of admin.conf, which are in the file itself. OpenSSL reads them from files only."""
    with open(FOLDER + "/admin.conf", encoding="utf-8") as file:
        text = file.read()
    pair = {
        name: base64.b64decode(re.search(rf"client-{name}-data: (\S+)", text).group(1))
        for name in ("certificate", "key")
    }
    with tempfile.NamedTemporaryFile(dir="/run") as file:
        file.write(pair["certificate"] + b"\n" + pair["key"])
        file.flush()
        made = ssl.create_default_context(cafile=AUTHORITY)
        made.load_cert_chain(file.name)
        return made


def found(url, tls, method="GET"):
    """The body of the response, None if there is no such object."""
    try:
        return ask(url, tls, method)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    return None


def deleted(url, tls):
    return found(url, tls, "DELETE") is not None


def system(address, kind, name=""):
    group = "apis/apps/v1" if kind == "daemonsets" else "api/v1"
    return f"https://{joined(address, '6443')}/{group}/namespaces/kube-system/{kind}/{name}".rstrip("/")


def patch(url, tls, body):
    ask(url, tls, "PATCH", json.dumps(body).encode("utf-8"), MERGE)


def configure(address, path):
    tls = administrator()
    with open(path, encoding="utf-8") as file:
        maps = json.load(file)
    for one in maps:
        # Refused if others have written it since it was read.
        meta = {"resourceVersion": one["version"]}
        if one["restarts"]:
            meta["annotations"] = {PENDING: "true"}
        patch(system(address, "configmaps", one["name"]), tls, {"metadata": meta, "data": {one["key"]: one["text"]}})
        print(f"write the ConfigMap {one['name']}")
    if any(one["restarts"] for one in maps):
        template = {"metadata": {"annotations": {RESTARTED: now()}}}
        patch(system(address, "daemonsets", "kube-proxy"), tls, {"spec": {"template": template}})
        print("restart kube-proxy")


def proxied(address):
    """Why kube-proxy does not run everywhere with its configuration."""
    tls = administrator()
    body = json.loads(ask(system(address, "daemonsets", "kube-proxy"), tls))
    status, wanted = body["status"], body["status"]["desiredNumberScheduled"]
    seen = status.get("observedGeneration", 0) >= body["metadata"]["generation"]
    ready = min(status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)) if seen else 0
    if ready < wanted:
        return [f"kube-proxy has loaded its configuration on {ready} of {wanted} nodes"]
    patch(system(address, "configmaps", "kube-proxy"), tls, {"metadata": {"annotations": {PENDING: None}}})
    return []


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def restart(*pods):
    moment = now()
    for pod in pods:
        path = f"{FOLDER}/manifests/{pod}.yaml"
        with open(path, encoding="utf-8") as file:
            text = re.sub(rf"^ +{RESTARTED}: .*\n", "", file.read(), flags=re.M)
        # kubeadm sorts the keys, so that annotations come first.
        made, count = re.subn(
            r"^metadata:\n(?:  annotations:\n)?",
            f'metadata:\n  annotations:\n    {RESTARTED}: "{moment}"\n',
            text,
            count=1,
            flags=re.M,
        )
        if not count:
            raise ValueError(f"{path} is no manifest as kubeadm writes them")
        # The kubelet reads no hidden files.
        hidden = f"{FOLDER}/manifests/.{pod}.yaml"
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(made)
        os.replace(hidden, path)
        print(f"restart the static pod {pod}")


def publish(address):
    """API servers only add to what is in extension-apiserver-authentication (pkg/controlplane/controller/clusterauthenticationtrust)."""
    tls, texts = administrator(), {}
    for key, path in (
        ("client-ca-file", AUTHORITY),
        ("requestheader-client-ca-file", FOLDER + "/pki/front-proxy-ca.crt"),
    ):
        with open(path, encoding="utf-8") as file:
            texts[key] = file.read()
    patch(system(address, "configmaps", "extension-apiserver-authentication"), tls, {"data": texts})
    url = f"https://{joined(address, '6443')}/api/v1/namespaces/kube-public/configmaps/cluster-info"
    body = json.loads(found(url, tls) or "{}")
    if body:
        data = base64.b64encode(texts["client-ca-file"].encode("ascii")).decode("ascii")
        text = re.sub(r"(certificate-authority-data: )\S+", lambda one: one.group(1) + data, body["data"]["kubeconfig"])
        patch(url, tls, {"data": {"kubeconfig": text}})
    print("publish the certificate authorities")


def secrets_of_runs(secrets, tls):
    """Names of the tokens of runs, and of those that own certificates."""
    tokens = json.loads(ask(secrets + "?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken", tls))["items"]

    def described(text):
        encoded = base64.b64encode(text).decode("ascii")
        return [one["metadata"]["name"] for one in tokens if one.get("data", {}).get("description") == encoded]

    return described(OURS), described(OWNER)


def extend(address, seconds, left=""):
    """kube-controller-manager deletes tokens that have ended (pkg/controller/bootstrap/tokencleaner.go), and what they own."""
    tls, secrets = administrator(), system(address, "secrets")
    names, owners = secrets_of_runs(secrets, tls)
    if not names and not left:
        raise SystemExit(
            "the token with which machines join has ended. Next: run the playbook again, which makes another one"
        )
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(seconds)))
    body = {"data": {"expiration": base64.b64encode(ends.encode("ascii")).decode("ascii")}}
    for name in [*names, *owners]:
        try:
            patch(f"{secrets}/{name}", tls, body)
        except urllib.error.HTTPError as error:
            # Of a run that was killed, and has ended now.
            if error.code != 404:
                raise


def withdraw(address):
    tls, secrets = administrator(), system(address, "secrets")
    names, owners = secrets_of_runs(secrets, tls)
    for name in [*names, *owners, "kubeadm-certs"]:
        if deleted(f"{secrets}/{name}", tls):
            print(f"delete the secret {name}")


def patient(does, *arguments):
    """Until an API server answers that is busy, or starts."""
    for _try in range(TRIES - 1):
        try:
            return does(*arguments)
        except OSError:
            time.sleep(2)
    return does(*arguments)


def reencrypt(address):
    """Only those are written that are stored with another key (noopGuard and transformState in storage/etcd3 of Kubernetes)."""
    tls, server = administrator(), f"https://{joined(address, '6443')}"
    following, count = "", 0
    while True:
        body = json.loads(ask(f"{server}/api/v1/secrets?limit={PAGE}{following}", tls))
        for one in body["items"]:
            meta = one["metadata"]
            url = f"{server}/api/v1/namespaces/{meta['namespace']}/secrets/{meta['name']}"
            try:
                ask(url, tls, "PUT", json.dumps({"apiVersion": "v1", "kind": "Secret", **one}).encode("utf-8"))
            except urllib.error.HTTPError as error:
                # It was deleted, or others have written it since it was read: all API servers encrypt with the key.
                if error.code not in (404, 409):
                    raise OSError(
                        f"the Secret {meta['namespace']}/{meta['name']} could not be written: {error}"
                    ) from None
        count += len(body["items"])
        if not body["metadata"].get("continue"):
            break
        following = "&continue=" + urllib.parse.quote(body["metadata"]["continue"], safe="")
    print(f"write {count} Secrets")


def configured(endpoint):
    url = f"https://{endpoint}/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
    text = json.loads(ask(url, administrator()))["data"]["ClusterConfiguration"]
    print(re.search(r"^kubernetesVersion: *v?(\S+)", text, re.M).group(1))


def tag(name, text):
    """Of an image with this name, in a manifest or a list. Empty if there is none."""
    matched = re.search(rf"\S+/{name}:([^\s@]+)", text)
    return matched.group(1) if matched else ""


def etcd(version):
    """With another minor version kubeadm may run the same etcd with other arguments. A registry's digest may follow a tag, so only tags are compared."""
    manifests = []
    for name in ("etcd", "kube-apiserver"):
        try:
            with open(f"{FOLDER}/manifests/{name}.yaml", encoding="utf-8") as file:
                manifests.append(tag(name, file.read()))
        except FileNotFoundError:
            # It runs on other machines.
            manifests.append("")
    argv = ["kubeadm", "config", "images", "list", f"--kubernetes-version=v{version}"]
    listed = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=60).stdout.decode("utf-8")
    minor = "v" + version.rpartition(".")[0] + "."
    same = manifests[0] and manifests[0] == tag("etcd", listed) and manifests[1].startswith(minor)
    print("same" if same else "other")


def main(command, *arguments):
    does = {one.__name__: one for one in (configure, configured, etcd, extend, publish, reencrypt, restart)}
    if command == "withdraw":
        # Whoever calls it goes on without.
        try:
            patient(withdraw, *arguments)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    if command in does:
        does[command](*arguments)
        return 0
    try:
        reasons = proxied(*arguments)
    except (OSError, ValueError, KeyError) as error:
        reasons = [f"kube-proxy: {error}"]
    for one in reasons:
        print(one)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
