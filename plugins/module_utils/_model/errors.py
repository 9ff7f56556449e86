# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exceptions of the collection."""

from __future__ import annotations

import dataclasses
import sys

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable


@dataclasses.dataclass(frozen=True)
class Fault:
    """One error, described so that the user can act.

    what: what failed ("applying DaemonSet hwaccel-gpu/driver"); where: the file, server or field;
    why: the cause as far as known; next_step: what to do next. All are made printable, because they contain text from elsewhere.
    """

    what: str
    where: str = ""
    why: str = ""
    next_step: str = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, printable(getattr(self, field.name)))

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.what + (f" ({self.where})" if self.where else ""), self.why) if part)
        # Text from elsewhere often ends with a period, and a suggestion is a question.
        return (
            f"{text.removesuffix('.')}{'' if text.endswith('?') else '.'} Next: {self.next_step}"
            if self.next_step
            else text
        )

    def as_dict(self) -> dict[str, str]:
        """The error for results: its fields, and all of them as one `text`."""
        return {**dataclasses.asdict(self), "text": str(self)}


class HwaccelError(Exception):
    """Base of every error that the collection raises on purpose; `_module` turns it into a failed task.

    faults: every error, so that one run reports all of them.
    """

    def __init__(self, what: str, where: str = "", why: str = "", next_step: str = "") -> None:
        self.faults: tuple[Fault, ...] = (Fault(what, where, why, next_step),)
        super().__init__(str(self.faults[0]))


class ManyFaults(HwaccelError):
    """Several independent errors that were detected before any change."""

    def __init__(self, faults: list[Fault] | tuple[Fault, ...]) -> None:
        super().__init__(f"{len(faults)} errors, nothing was changed")
        self.faults = tuple(faults)
        self.args = ("\n".join(f"- {fault}" for fault in faults),)


class MissingPackage(HwaccelError):
    """A Python package is not installed for the interpreter of the module."""

    def __init__(self, package: str, purpose: str, cause: ImportError) -> None:
        super().__init__(
            f"the Python package {package} is needed {purpose}",
            sys.executable,
            f"it cannot be imported: {cause}",
            f"install it for this Python ('{sys.executable} -m pip install {package}'), or set ansible_python_interpreter to one that has it",
        )


class ApiError(HwaccelError):
    """The API server, or the connection to it, failed the request. status: HTTP status, 0 without an answer."""

    status = 0

    def __init__(
        self, what: str, where: str = "", why: str = "", next_step: str = "", *, body: dict | None = None
    ) -> None:
        super().__init__(what, where, why, next_step)
        #: The server's Status object (meta/v1), {} if it sent none.
        self.body: dict = body or {}


class Unreachable(ApiError):
    """No answer: name, route, TLS handshake, dropped connection or timeout, after all safe retries."""


class CertificateRejected(Unreachable):
    """The certificate of the server or client was not accepted."""


class Unauthorized(ApiError):
    status = 401


class Forbidden(ApiError):
    """RBAC or admission refused the request; why names the missing verb and resource."""

    status = 403


class WebhookDenied(ApiError):
    """An admission webhook refused, or could not be called; why names the webhook."""


class NotFound(ApiError):
    status = 404


class UnknownKind(NotFound):
    """Discovery does not have this apiVersion and kind."""


class Conflict(ApiError):
    """409: another writer was first, or fields belong to another manager (body.details.causes has them)."""

    status = 409


class Gone(ApiError):
    """410: the resourceVersion or continue token has expired."""

    status = 410


class Invalid(ApiError):
    """400 or 422: the object does not match its schema, or an immutable field would change."""

    status = 422


class BudgetRefused(ApiError):
    """429 for an eviction: a PodDisruptionBudget currently prevents it; why has its message. This is not an overload, so the request is not retried."""

    status = 429


class Overloaded(ApiError):
    """429 or 5xx after all retries."""

    status = 503
