# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address and credentials of a cluster."""

from __future__ import annotations

import collections.abc as c
import dataclasses


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Address of the API server, and the credentials for it. Certificates and keys are PEM text, never paths."""

    host: str
    ca: str = ""
    verify: bool = True
    server_name: str = ""
    token: str = dataclasses.field(default="", repr=False)
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    client_cert: str = dataclasses.field(default="", repr=False)
    client_key: str = dataclasses.field(default="", repr=False)
    proxy: str = dataclasses.field(default="", repr=False)
    no_proxy: str = ""
    proxy_headers: dict[str, str] = dataclasses.field(default_factory=dict, repr=False)
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    #: Extra headers of impersonation (kubeconfig as-uid, as-user-extra).
    extra_headers: tuple[tuple[str, str], ...] = ()
    #: The source of the credentials, for messages: "kubeconfig /x, context y".
    source: str = ""
    #: Returns a new token after a 401 (a rotated token file, an exec plugin); None if there is no newer one.
    refresh: c.Callable[[], Credentials] | None = dataclasses.field(default=None, compare=False, repr=False)

    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        found = [
            self.token,
            self.password,
            self.client_key,
            *(value for name, value in self.proxy_headers.items() if name != "user_agent"),
        ]
        _scheme, _separator, rest = self.proxy.partition("://")
        userinfo, at, _host = rest.rpartition("@")
        if at:
            found += [userinfo, userinfo.partition(":")[2]]
        # Hiding shorter values would make messages unreadable and protect nothing.
        return tuple(value for value in found if len(value) >= 4)
