# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows that a pod of this machine reaches the API server and the cluster's DNS by their Services, and the pods of DNS on other nodes by their own addresses,
from within the network namespace of a pod.

network.py PLACES NODE SERVER SERVICES IMAGE SECONDS [DNS]
        prints what the pod does not reach after so many seconds, and ends with status 0 if it reaches everything. SERVER: host and port of an API server that
        knows the pod; SERVICES: the network of Services, whose first address is that of the API server; IMAGE: of a container that does nothing; DNS: with
        `none` it is not asked, with `if-ready` it may have no pod that is ready, for which a Service refuses connections; PLACES: as for member.py, and
        dns, the number of its address in that network and the domain, where the configuration of the kubelet does not have them

The pod is a static one, as taints and a cordoned node do not hold it up, and as it needs no credentials but those of the kubelet. It is removed at the end.
A Service may answer from a pod on the same node: those on others show the network between nodes. Needs Python 3.6 or newer, and nothing else.
"""

import ctypes
import glob
import ipaddress
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

NAME = "hwaccel-network-check"
PROCESSES = "/proc"
#: Seconds for an answer, and between two attempts.
PATIENCE, PAUSE = 3, 1
HTTPS, DNS = 443, 53
#: Of DNS (RFC 1035, RFC 3596).
TYPES = {4: 1, 6: 28}
#: See above.
PLACES = {}


def manifest(image):
    container = {
        "name": "pause",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": "kube-system"},
        "spec": {
            "containers": [container],
            "enableServiceLinks": False,
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": 0,
        },
    }


def manifest_path():
    return f"{PLACES['manifests']}/{NAME}.yaml"


def create(image):
    # The packages of kubeadm have the folder, kubeadm itself makes it on servers only, and the kubelet looks for it.
    os.makedirs(PLACES["manifests"], 0o700, exist_ok=True)
    # The kubelet reads no hidden files.
    hidden = f"{PLACES['manifests']}/.{NAME}.yaml"
    with open(hidden, "w", encoding="utf-8") as file:
        json.dump(manifest(image), file)
    os.replace(hidden, manifest_path())


def read(server, path):
    """An object in kube-system, with the credentials of the kubelet. Raises OSError."""
    tls = ssl.create_default_context(cafile=PLACES["authority"])
    tls.load_cert_chain(PLACES["kubelet"]["certificate"], PLACES["kubelet"].get("key"))
    url = f"https://{server}/api/v1/namespaces/kube-system/{path}"
    with urllib.request.urlopen(url, timeout=PATIENCE, context=tls) as response:
        return json.loads(response.read().decode("utf-8"))


def address(node, server):
    """Of the pod, as its kubelet tells the API server. Raises OSError."""
    status = read(server, f"pods/{NAME}-{node}").get("status", {})
    if not status.get("podIP"):
        states = [one["state"] for one in status.get("containerStatuses", ())]
        why = [found.get("message") or found.get("reason", "") for state in states for found in state.values()]
        raise OSError(f"it is {status.get('phase', 'not known')} and has no address yet: {'; '.join(why)}")
    return status["podIP"]


def enter(pod):
    """Makes the network namespace with this address the one of this process. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    with open(f"{PROCESSES}/self/ns/net", "rb") as home:
        seen = {os.fstat(home.fileno()).st_ino}
        for path in glob.glob(f"{PROCESSES}/[0-9]*/ns/net"):
            try:
                with open(path, "rb") as file:
                    if os.fstat(file.fileno()).st_ino in seen:
                        continue
                    seen.add(os.fstat(file.fileno()).st_ino)
                    if library.setns(file.fileno(), 0) == 0 and owns(pod):
                        return
            except OSError:
                # The process has ended.
                continue
        library.setns(home.fileno(), 0)
    raise OSError(f"no network namespace of this machine has the address {pod}")


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def owns(host):
    with socket.socket(family(host), socket.SOCK_DGRAM) as made:
        try:
            made.bind((host, 0))
        except OSError:
            return False
    return True


def api(host):
    tls = ssl.create_default_context(cafile=PLACES["authority"])
    with socket.create_connection((host, HTTPS), timeout=PATIENCE) as made:
        tls.wrap_socket(made, server_hostname=host).close()


def elsewhere(server, node):
    """Node, address and port of each pod of DNS on another node that is ready. The policy of Kubernetes lets nodes get Endpoints (NodeRules of
    plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go), but no EndpointSlices. Raises OSError.
    """
    try:
        subsets = read(server, "endpoints/kube-dns").get("subsets", ())
    except urllib.error.HTTPError as error:
        # DNS that was installed otherwise, or a policy of somebody else.
        if error.code in (403, 404):
            return []
        raise
    return [
        (one["nodeName"], one["ip"], port["port"])
        for subset in subsets
        for one in subset.get("addresses", ())
        for port in subset.get("ports", ())
        if port.get("protocol") == "UDP" and one.get("nodeName", node) != node
    ]


def resolve_elsewhere(server, node, *asked):
    """Where pods of DNS are is read again at each attempt, as they move. Raises OSError."""
    for other, host, port in elsewhere(server, node):
        try:
            resolve(host, *asked, port=port)
        except OSError as error:
            raise OSError(f"{host} on {other}: {error}") from error


def resolve(server, name, expected, port=DNS):
    kind = TYPES[ipaddress.ip_address(expected).version]
    labels = b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split("."))
    query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00" + bytes([kind]) + b"\x00\x01"
    with socket.socket(family(server), socket.SOCK_DGRAM) as made:
        made.settimeout(PATIENCE)
        made.connect((server, port))
        made.send(query)
        answer = made.recv(4096)
    if ipaddress.ip_address(expected).packed not in answer:
        raise OSError(f"no answer with {expected} for {name} (status {answer[3] & 15})")


def setting(name, text):
    """Of the kubelet's configuration: a value, or the first one of a list."""
    found = re.search(rf"^{name}:\s*(?:-\s*)?(\S+)", text, re.M)
    return found.group(1).strip("\"'") if found else ""


def domain_service(services):
    """Address of the cluster's DNS, empty if there is none, and the domain."""
    if "dns" in PLACES:
        return str(ipaddress.ip_network(services.split(",")[0])[PLACES["dns"]["number"]]), PLACES["dns"]["domain"]
    with open(PLACES["kubelet"]["configuration"], encoding="utf-8") as file:
        text = file.read()
    return setting("clusterDNS", text), setting("clusterDomain", text)


def resolve_if_ready(*given):
    try:
        resolve(*given)
    except ConnectionRefusedError:
        # So it does without endpoints: pods of DNS may wait for the node that is cordoned.
        return


def targets(services, dns, node):
    """What is to be reached, each with a text for messages and a function."""
    first = str(ipaddress.ip_network(services.split(",")[0])[1])
    wanted = [(f"the API server's Service at {first}:{HTTPS}", lambda: api(first))]
    server, domain = domain_service(services)
    if server and dns != "none":
        name = f"kubernetes.default.svc.{domain or 'cluster.local'}"
        ask = resolve_if_ready if dns == "if-ready" else resolve
        wanted.append((f"the cluster's DNS at {server}:{DNS}", lambda: ask(server, name, first)))
        own = f"[{first}]:{HTTPS}" if ":" in first else f"{first}:{HTTPS}"
        wanted.append(("pods of DNS on other nodes", lambda: resolve_elsewhere(own, node, name, first)))
    return wanted


def patient(call, until):
    """Why it does not succeed in time, empty if it does."""
    while True:
        try:
            call()
            return ""
        except (OSError, ssl.CertificateError) as error:
            if time.monotonic() > until:
                return str(error)
        time.sleep(PAUSE)


def main(places, node, server, services, image, seconds, dns=""):
    PLACES.update(json.loads(places))
    until = time.monotonic() + float(seconds)
    wanted = targets(services, dns, node)
    create(image)
    try:
        why = patient(lambda: enter(address(node, server)), until)
        if why:
            print(f"the pod {NAME}-{node}: {why}")
            return 1
        reasons = [f"{what}: {why}" for what, call in wanted for why in [patient(call, until)] if why]
    finally:
        os.unlink(manifest_path())
    for one in reasons:
        print(one)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
