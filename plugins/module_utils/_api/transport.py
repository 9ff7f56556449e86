# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to one API server: connection pool, credentials, retries."""

from __future__ import annotations

import base64
import collections.abc as c
import contextlib
import dataclasses
import json
import threading
import time
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import _deps, certificates, errors, proxy, retry, tls
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Failure, Policy, Repeat
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.version import USER_AGENT

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 40.0
#: Connections kept open: one for each thread of the engine.
POOL = 16


@dataclasses.dataclass(frozen=True)
class Request:
    """One request, and its name in messages. what: "applying DaemonSet a/b"."""

    method: str
    path: str
    what: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = ""
    accept: str = "application/json"
    repeat: Repeat = Repeat.UNSENT

    @property
    def url(self) -> str:
        return self.path + ("?" + urllib.parse.urlencode(self.query) if self.query else "")


@dataclasses.dataclass(frozen=True)
class Reply:
    """The server's answer. blind: an earlier attempt without an answer may have been carried out."""

    status: int
    headers: c.Mapping[str, str]
    body: t.Any
    text: str = ""
    blind: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def warnings(self) -> tuple[str, ...]:
        """The texts of the Warning headers, each `299 - "text"`."""
        found = []
        for part in _all(self.headers, "Warning"):
            for piece in part.split(", 299 "):
                _before, quote, rest = piece.partition('"')
                if quote:
                    found.append(rest.rpartition('"')[0].replace('\\"', '"'))
        return tuple(dict.fromkeys(found))


class Transport:
    """Sends requests. Threads may share one."""

    def __init__(
        self,
        credentials: Credentials,
        policy: Policy | None = None,
        *,
        met: bool = False,
        sleep: c.Callable[[float], None] = time.sleep,
        hide: c.Callable[[c.Iterable[str]], None] = lambda secrets: None,
    ) -> None:
        """met: the server has answered before. hide: called with every secret before it is sent, including those of refreshed credentials."""
        self.credentials = credentials
        self._hide = hide
        hide(credentials.secrets())
        #: The second policy is used once the server has answered.
        self._policies = (policy, policy) if policy else (Policy(), retry.PATIENT)
        self._met = met
        self.requests = 0
        self._sleep = sleep
        #: Called before a write without a resourceVersion is retried. An error that it raises ends the request.
        self.before_repeat: c.Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        #: Date of the last answer, and time.monotonic() at its arrival.
        self._server_date = ("", 0.0)
        self.urllib3 = _deps.urllib3()
        parts = urllib.parse.urlsplit(credentials.host)
        self._prefix = parts.path.rstrip("/")
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._prefix}"
        self._compressed = parts.hostname not in ("localhost", "127.0.0.1", "::1")
        self.through, self._pool = self._connection_pool(parts)
        self._headers = self._identity(credentials)

    def send(self, request: Request) -> Reply:
        """The server's answer, whether it is a success or not. Raises ApiError if there is none."""
        started = time.monotonic()
        blind = refreshed = False
        attempt = 0
        while True:
            attempt += 1
            token = self.credentials.token
            reply, failure, error = self._attempt(request)
            if reply is not None and reply.status == 401 and not refreshed and self._refresh(token):
                refreshed = True
                continue
            if failure is None and reply is not None:
                return dataclasses.replace(reply, blind=blind)
            retry_after = (
                retry.retry_after(reply.headers.get("Retry-After"), reply.headers.get("Date"))
                if reply is not None
                else None
            )
            delay = self._policies[self._met].delay(
                attempt, retry_after, time.monotonic() - started, answered=reply is not None
            )
            if failure is None or not retry.may_repeat(request.repeat, failure) or delay is None:
                if reply is not None:
                    return dataclasses.replace(reply, blind=blind)
                raise error or errors.not_an_api_server(request.what, self.where, "")
            blind = blind or failure is Failure.UNKNOWN
            self._sleep(delay)
            if request.method not in ("GET", "PUT"):
                self.before_repeat()

    def server_time(self) -> float | None:
        """Seconds since 1970 by the server's clock, to the second; None before its first answer, or if that has no Date."""
        date, heard = self._server_date
        moment = retry.moment(date)
        return None if moment is None else moment + time.monotonic() - heard

    def call(self, request: Request) -> Reply:
        """Like send, but raises ApiError if the answer is not a success."""
        reply = self.send(request)
        if not reply.ok:
            raise self.error(request, reply)
        return reply

    def error(self, request: Request, reply: Reply) -> errors.e.ApiError:
        body = reply.body if isinstance(reply.body, dict) and reply.body.get("kind") == "Status" else {}
        # The server has checked the certificate by its own clock.
        expired = certificates.expired(self.credentials.client_cert, self.server_time()) if reply.status == 401 else ""
        return errors.from_status(
            reply.status, body, reply.text, request.what, self.where + request.path, self.credentials.source, expired
        )

    def stream(self, request: Request, read_timeout: float, policy: Policy) -> t.Any:
        """An open response with an unread body. The caller closes it. policy: retries until it is open."""
        started = time.monotonic()
        attempt = 0
        refreshed = False
        while True:
            attempt += 1
            token = self.credentials.token
            response, failure, error = self._open(request, read_timeout)
            if response is not None and response.status == 200:
                return response
            reply = None if response is None else self._whole(request, response)[0]
            if reply is not None and reply.status == 401 and not refreshed and self._refresh(token):
                refreshed = True
                continue
            failure = failure or (self._status_failure(reply) if reply is not None else Failure.UNKNOWN)
            retry_after = (
                retry.retry_after(reply.headers.get("Retry-After"), reply.headers.get("Date"))
                if reply is not None
                else None
            )
            delay = policy.delay(attempt, retry_after, time.monotonic() - started)
            if failure in (None, Failure.FINAL) or delay is None:
                raise (
                    self.error(request, reply)
                    if reply is not None
                    else error or errors.not_an_api_server(request.what, self.where, "")
                )
            self._sleep(delay)

    def _attempt(self, request: Request) -> tuple[Reply | None, Failure | None, errors.e.ApiError | None]:
        response, failure, error = self._open(request, READ_TIMEOUT)
        if response is None:
            return None, failure, error
        return self._whole(request, response)

    def _open(self, request: Request, read_timeout: float) -> tuple[t.Any, Failure | None, errors.e.ApiError | None]:
        headers = self._headers.copy()
        headers["Accept"] = request.accept
        if request.content_type:
            headers["Content-Type"] = request.content_type
        with self._lock:
            self.requests += 1
        exceptions = self.urllib3.exceptions
        try:
            # This type keeps repeated headers (groups to impersonate) in every version of urllib3.
            response = self._pool.request_encode_url(
                request.method,
                self._target(request),
                body=request.body,
                headers=headers,
                retries=False,
                redirect=False,
                preload_content=False,
                timeout=self.urllib3.Timeout(connect=CONNECT_TIMEOUT, read=read_timeout),
                enforce_content_length=True,
                assert_same_host=False,
            )
        except (exceptions.HTTPError, OSError) as cause:
            error = errors.unreachable(cause, request.what, self.where, self.through)
            return None, self._failure(cause, error), error
        except ValueError as cause:
            # Its text is not shown, because it can quote a header with a token.
            failed = errors.e.Unreachable(
                request.what,
                self.where,
                f"the request cannot be sent: {type(cause).__name__}",
                "check host and credentials",
            )
            return None, Failure.FINAL, failed
        self._server_date = (response.headers.get("Date") or "", time.monotonic())
        return response, None, None

    def _whole(
        self, request: Request, response: t.Any
    ) -> tuple[Reply | None, Failure | None, errors.e.ApiError | None]:
        """Reads the body. An incomplete one counts as a broken connection."""
        try:
            data = response.read(decode_content=True)
        except (self.urllib3.exceptions.HTTPError, OSError) as cause:
            response.close()
            return None, Failure.UNKNOWN, errors.unreachable(cause, request.what, self.where, self.through)
        response.release_conn()
        content_type = response.headers.get("Content-Type", "")
        expects_json = request.accept.startswith("application/json")
        text, body = "", None
        with contextlib.suppress(ValueError):
            # An error is a Status object, even if another content type was requested.
            body = (
                json.loads(data)
                if data and (expects_json or (response.status >= 400 and "json" in content_type))
                else None
            )
        if body is None:
            text = (data if response.status < 400 and not expects_json else data[:2000]).decode("utf-8", "replace")
        reply = Reply(response.status, response.headers, body, text)
        self._met = self._met or (reply.status < 500 and reply.status != 429)
        if reply.ok and expects_json and not isinstance(body, dict):
            # An HTML page would be returned again, so only incomplete JSON is retried.
            failure = Failure.FINAL if "html" in content_type else Failure.UNKNOWN
            return None, failure, errors.not_an_api_server(request.what, self.where, content_type)
        return reply, self._status_failure(reply), None

    @staticmethod
    def _status_failure(reply: Reply) -> Failure | None:
        body = reply.body if isinstance(reply.body, dict) else {}
        return None if errors.is_answer(reply.status, body) else retry.of_status(reply.status)

    def _failure(self, cause: BaseException, error: errors.e.ApiError) -> Failure:
        exceptions = self.urllib3.exceptions
        if isinstance(error, errors.e.CertificateRejected):
            return Failure.FINAL
        if isinstance(cause, exceptions.ProxyError):
            cause = getattr(cause, "original_error", None) or cause
            return Failure.BEFORE
        if isinstance(cause, (exceptions.NewConnectionError, exceptions.ConnectTimeoutError)):
            return Failure.BEFORE
        if isinstance(cause, (exceptions.LocationValueError, exceptions.InvalidHeader)):
            return Failure.FINAL
        return Failure.UNKNOWN

    def _target(self, request: Request) -> str:
        # A plain HTTP proxy needs the whole URL. Through a tunnel, and without a proxy, the path is sufficient.
        if self.through and self.where.startswith("http://"):
            return self.where + request.url
        return self._prefix + request.url

    def _refresh(self, refused: str) -> bool:
        """Gets a newer token than the one refused with a 401; False if there is none. Another thread may have refreshed it already."""
        with self._lock:
            if self.credentials.refresh is None:
                return False
            if self.credentials.token == refused:
                fresh = self.credentials.refresh()
                self._hide(fresh.secrets())
                self.credentials = fresh
                self._headers = self._identity(fresh)
            return self.credentials.token != refused

    def _identity(self, credentials: Credentials) -> t.Any:
        headers = (
            self.urllib3.HTTPHeaderDict()
            if hasattr(self.urllib3, "HTTPHeaderDict")
            else self.urllib3._collections.HTTPHeaderDict()
        )
        headers["User-Agent"] = USER_AGENT
        if self._compressed:
            headers["Accept-Encoding"] = "gzip"
        if credentials.token:
            headers["Authorization"] = f"Bearer {credentials.token}"
        elif credentials.username:
            pair = base64.b64encode(f"{credentials.username}:{credentials.password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        if credentials.impersonate_user:
            headers["Impersonate-User"] = credentials.impersonate_user
        for group in credentials.impersonate_groups:
            headers.add("Impersonate-Group", group)
        for name, value in credentials.extra_headers:
            headers.add(name, value)
        return headers

    def _connection_pool(self, parts: urllib.parse.SplitResult) -> tuple[str, t.Any]:
        """(the proxy for messages, the pool)."""
        urllib3 = self.urllib3
        options: dict[str, t.Any] = {"maxsize": POOL, "block": False}
        if parts.scheme == "https":
            if not self.credentials.verify:
                urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
            options["ssl_context"] = tls.context(self.credentials)
            if urllib3.__version__.startswith("1."):
                # For addresses, urllib3 passes no name to OpenSSL and compares names itself.
                options["ssl_context"].check_hostname = False
            options["assert_hostname"] = (self.credentials.server_name or None) if self.credentials.verify else False
            if self.credentials.server_name:
                options["server_hostname"] = self.credentials.server_name
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        if not self.credentials.proxy or proxy.bypassed(host, self.credentials.no_proxy):
            return "", urllib3.PoolManager(num_pools=1, **options).connection_from_host(host, port, parts.scheme)
        address, userinfo = proxy.without_userinfo(self.credentials.proxy)
        if address.startswith("socks"):
            from urllib3.contrib import socks

            return address, socks.SOCKSProxyManager(self.credentials.proxy, **options).connection_from_host(
                host, port, parts.scheme
            )
        headers = urllib3.util.make_headers(**{"proxy_basic_auth": userinfo or None, **self.credentials.proxy_headers})
        manager = urllib3.ProxyManager(address, proxy_headers=headers, **options)
        return address, manager.connection_from_host(host, port, parts.scheme)


def _all(headers: t.Any, name: str) -> list[str]:
    if hasattr(headers, "getlist"):
        return list(headers.getlist(name))
    return [headers[name]] if name in headers else []
