# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns answers of the server into errors that say what, where, why and what to do next."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.credentials import REDACTED

_RBAC = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_RBAC_PATH = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) path "(?P<path>[^"]*)"')
_WEBHOOK = re.compile(r'(?:admission webhook|failed calling webhook|failed to call webhook:?) "(?P<name>[^"]+)"')
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<name>[^']+)'")
#: How structured-merge-diff shows a value that does not match its schema: `.stringData.pin: expected string, got …`.
_SECRET_VALUE = re.compile(r"(?<=, got ).*", re.DOTALL)
_LONGEST = 1200
#: Reason of the cause if a PodDisruptionBudget prevents an eviction (k8s.io/api, policy/v1: DisruptionBudgetCause).
_BUDGET = "DisruptionBudget"
_TWO_BUDGETS = "more than one PodDisruptionBudget"


def from_status(
    status: int, body: dict[str, t.Any], text: str, what: str, where: str, source: str = "", expired: str = ""
) -> e.ApiError:
    """The error of an answer that is not a success. body: the server's Status object, {} if it sent something else (then text).

    source: where the credentials are from. expired: when the client certificate expired, "" if it has not.
    """
    why = _reason(body, text, status)
    hook = _WEBHOOK.search(why) or _POLICY.search(why)
    if hook:
        error: e.ApiError = e.WebhookDenied(what, where, why, _webhook_next(why, hook["name"]), body=body)
    elif status == 401:
        error = _unauthorized(why, what, where, f" of {source}" if source else "", expired, body)
    elif status == 403:
        error = e.Forbidden(what, where, why, _forbidden_next(why), body=body)
    elif status == 404:
        step = "create the namespace first" if re.search(r'^namespaces "[^"]*" not found', why) else ""
        error = e.NotFound(what, where, why, step, body=body)
    elif status == 409:
        error = e.Conflict(
            what,
            where,
            why,
            "" if body.get("reason") == "AlreadyExists" else "run again, or find out what else writes it",
            body=body,
        )
    elif status == 410:
        error = e.Gone(what, where, why, "list again and continue from there", body=body)
    elif "HTTP request to an HTTPS server" in why:
        error = e.Unreachable(what, where, why, "begin host with https://", body=body)
    elif status in (400, 413, 415, 422) or is_final(why):
        step = "make sure that only one PodDisruptionBudget selects the pod" if _TWO_BUDGETS in why else ""
        error = e.Invalid(what, where, why, step, body=body)
    elif status == 429 and (causes := budgets(body)):
        step = "wait until the pods that it counts are ready on other nodes, or ask the owner of the budget"
        error = e.BudgetRefused(what, where, "; ".join(causes), step, body=body)
    elif status == 429 or status >= 500:
        step = "check the API server's health and load, and run again"
        error = e.Overloaded(what, where, f"the server answers {status}: {why}", step, body=body)
    elif 300 <= status < 400:
        error = e.Unreachable(
            what, where, f"the server redirects ({status})", "set host to the URL of the API server itself", body=body
        )
    else:
        error = e.ApiError(what, where, why, body=body)
    error.status = status
    return error


def _unauthorized(
    why: str, what: str, where: str, of_source: str, expired: str, body: dict[str, t.Any]
) -> e.Unauthorized:
    """The server never says why it rejected the credentials."""
    why = f"the server does not accept the credentials: {why}"
    if expired:
        return e.Unauthorized(
            what,
            where,
            f"{why}; the client certificate expired at {expired}",
            f"renew the client certificate{of_source}",
            body=body,
        )
    next_step = f"check that the token or client certificate{of_source} is for this cluster and has not expired"
    return e.Unauthorized(what, where, why, next_step, body=body)


def is_final(text: str) -> bool:
    """Whether a 500 is permanent: a server-side apply of an object that does not match its schema, or the eviction of a pod with two budgets."""
    return any(sign in text for sign in ("failed to create typed", "failed to convert", _TWO_BUDGETS))


def is_answer(status: int, body: dict[str, t.Any]) -> bool:
    """Whether a 429 or 500, which usually is an overloaded server, is the final answer about this object."""
    message = str(body.get("message") or "")
    return is_final(message) or (status == 429 and bool(budgets(body) or _WEBHOOK.search(message)))


def budgets(body: dict[str, t.Any]) -> list[str]:
    """Messages of the disruption budgets that prevent an eviction, [] if the answer has another reason."""
    causes = (body.get("details") or {}).get("causes") or []
    return [str(cause.get("message") or "").rstrip(".") for cause in causes if cause.get("reason") == _BUDGET]


def unreachable(cause: BaseException, what: str, where: str, proxy: str = "") -> e.Unreachable:
    """The error of a request without an answer."""
    chain = _chain(cause)
    text = _explained(chain)
    through = f" through the proxy {proxy}" if proxy else ""
    lowered = text.lower()
    if (
        any(type(item).__name__ in ("SSLCertVerificationError", "CertificateError") for item in chain)
        or "certificate verify failed" in lowered
    ):
        step = "set ca_cert to the cluster's CA, or correct host to a name in the certificate"
        return e.CertificateRejected(
            what, where, f"the server's certificate is not accepted{through}: {_certificate(text)}", step
        )
    if "alert" in lowered and ("certificate" in lowered or "unknown ca" in lowered or "unknown_ca" in lowered):
        return e.CertificateRejected(
            what,
            where,
            f"the server does not accept the client certificate{through}: {text}",
            "check client_cert and client_key",
        )
    if any(type(item).__name__ == "SSLError" for item in chain):
        return e.Unreachable(
            what,
            where,
            f"the TLS connection fails{through}: {text}",
            "check that host is https and the port is the API server's",
        )
    if (
        any(type(item).__name__ in ("NameResolutionError", "gaierror") for item in chain)
        or "name or service not known" in lowered
    ):
        return e.Unreachable(
            what,
            where,
            f"the name cannot be resolved{through}: {text}",
            "check host, and the DNS of the machine that the module runs on",
        )
    if any(type(item).__name__ == "ProxyError" for item in chain):
        return e.Unreachable(
            what, where, f"the proxy {proxy} refuses the connection: {text}", "check proxy, no_proxy and proxy_headers"
        )
    step = "check that the API server is running, and that a route and the firewall allow the machine that the module runs on"
    return e.Unreachable(what, where, f"no answer{through}: {text}", step)


def not_an_api_server(what: str, where: str, content_type: str) -> e.Unreachable:
    return e.Unreachable(
        what,
        where,
        f"the answer is not from a Kubernetes API server, or is incomplete (content type {content_type or 'unknown'})",
        "check host and proxy: a login page or a load balancer may answer instead",
    )


def _reason(body: dict[str, t.Any], text: str, status: int) -> str:
    message = (
        str(body.get("message") or "").strip()
        or " ".join(text.split())[:300]
        or f"HTTP {status} without an explanation"
    )
    causes = (body.get("details") or {}).get("causes") or []
    missing = [
        f"{cause.get('field', '')}: {cause.get('message', '')}".strip(": ")
        for cause in causes
        if str(cause.get("message", "")) not in message
    ]
    if missing:
        message += " (" + "; ".join(missing[:5]) + (f"; and {len(missing) - 5} more" if len(missing) > 5 else "") + ")"
    if re.search(r"\bKind=Secret\b", message):
        # Everything that follows is hidden, because a value can contain text that looks like the next error.
        message = _SECRET_VALUE.sub(REDACTED, message)
    return message.rstrip(".") if len(message) <= _LONGEST else message[:_LONGEST] + " …"


def _forbidden_next(why: str) -> str:
    match = _RBAC.search(why)
    if match:
        resource = f"{match['resource']}.{match['group']}" if match["group"] else match["resource"]
        scope = f" in namespace {match['namespace']}" if match["namespace"] else " (cluster-wide)"
        return f"allow {match['user'] or 'the user'} to {match['verb']} {resource}{scope}, with a Role or ClusterRole and its binding"
    match = _RBAC_PATH.search(why)
    if match:
        return f"allow {match['user'] or 'the user'} to {match['verb']} the path {match['path']}, with a ClusterRole that lists it in nonResourceURLs"
    if "violates PodSecurity" in why:
        return "label the namespace with the Pod Security level that these pods need"
    if "exceeded quota" in why:
        return "raise the namespace's ResourceQuota"
    if "is being terminated" in why:
        return "wait until the namespace is gone, and run again"
    return "ask the cluster's administrator what its admission control expects"


def _webhook_next(why: str, name: str) -> str:
    if "failed calling webhook" in why or "failed to call webhook" in why:
        return (
            f"check that the Service and pods behind the webhook {name} are running, and that its CA bundle is current"
        )
    return f"change the object so that {name} accepts it, or ask its owner"


def _chain(cause: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    item: BaseException | None = cause
    while item is not None and item not in found and len(found) < 6:
        found.append(item)
        inner = getattr(item, "reason", None) or getattr(item, "original_error", None)
        item = inner if isinstance(inner, BaseException) else item.__cause__ or item.__context__
    return found


def _explained(chain: list[BaseException]) -> str:
    """The messages of a chain of exceptions without repetitions, because each layer repeats the message of the one below."""
    found: list[str] = []
    for item in chain:
        text = item.strerror if isinstance(item, OSError) and item.strerror else " ".join(str(item).split())
        # urllib3 starts its messages with the connection object and its address.
        text = re.sub(r"^(<[^>]*>|\w+\(host=[^)]*\)):? ?", "", text)[:200].strip() or type(item).__name__
        if not any(text in known for known in found):
            found = [known for known in found if known not in text] + [text]
    return "; ".join(found)


def _certificate(text: str) -> str:
    match = re.search(r"certificate verify failed: ([^(\]]+)", text)
    return match[1].strip() if match else text
