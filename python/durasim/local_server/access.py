"""Access to a local page: this computer alone, one token, one cookie.

A page of another site can make a browser send requests to this server, and a name of another site can be made to
resolve to 127.0.0.1. So the names in `Host` and `Origin` have to be those of this server, and all data needs a cookie
that only the holder of the token gets.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

ADDRESS = "127.0.0.1"
"""The address at which the server listens: only processes of this computer reach it."""
_TOKEN_BYTES = 16

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for the requests to one server.

    Attributes:
        port: The port at which it listens.
        token: The secret in the address that the user opens, of 128 bits.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))

    @property
    def address(self) -> str:
        """The address that the user opens. A browser does not send the part after `#` to any server."""
        return f"http://{ADDRESS}:{self.port}/#{self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie: cookies of all ports of a computer are in one place."""
        return f"durasim_{self.port}"

    def problem_of(self, host: str | None, origins: list[str]) -> str | None:
        """Returns the sentence that refuses a request because of its `Host` or `Origin`, or None."""
        hosts = {f"{ADDRESS}:{self.port}", f"localhost:{self.port}"}
        if host not in hosts:
            return "the Host of the request is not this server"
        if any(origin != f"http://{host}" for origin in origins):
            return "the Origin of the request is not this server"
        return None

    def exchanged(self, token: str) -> str | None:
        """Returns the value of the cookie for the right token, else None."""
        return self._session if secrets.compare_digest(token.encode(), self.token.encode()) else None

    def is_session(self, value: str | None) -> bool:
        """Whether a cookie has the right value."""
        return value is not None and secrets.compare_digest(value.encode(), self._session.encode())
