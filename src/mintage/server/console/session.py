"""Sign-in: a session is a cookie that the service signs, so that it need not remember it.

The key of the signatures is new at each start of the service, and all its workers have it. A session ends after
:data:`SESSION_S`, when its user signs out, and with the service. Each form carries a token of its session, so that no
other site can send one (CSRF).
"""

from __future__ import annotations

import hmac
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from multiprocessing.process import current_process
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from mintage.errors import RequestError, StoreError
from mintage.server.core.journal import MOST_RECORDS, Journal

SESSION_S: Final = 8 * 3600
"""The longest time that a session lasts."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session: of a key by its name, or of anybody (``""``) until a key signs in."""

    id: str
    began_s: int
    """When it began, in seconds since the Unix epoch."""
    key: str = ""
    is_new: bool = False
    """True if its browser does not know it yet."""


class Sessions:
    """The sessions of the console, of all workers of the service."""

    def __init__(self) -> None:
        # The workers inherit it from the process that starts them, whether it forks or spawns them.
        authkey: bytes = current_process().authkey
        self._secret = hmac.digest(authkey, b"mintage console", "sha256")
        self._ended = Journal("console-sessions")

    def find(self, request: Request, kind: Literal["console", "form"]) -> Session | None:
        """Return the valid session of a request: of a key, ``console``, or of anybody, ``form``."""
        body, _, signature = request.cookies.get(cookie_name(request, kind), "").partition(".")
        try:
            text = urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
        except ValueError:
            return None
        if not hmac.compare_digest(self._sign("cookie", text).encode(), signature.encode()):
            return None
        session_id, began, key = text.split(" ")
        session = Session(session_id, int(began), key)
        return None if self._has_ended(session) else session

    def begin(self, key: str = "") -> Session:
        """Return a new session. The answer needs :meth:`write`, or the browser does not learn of it."""
        return Session(os.urandom(16).hex(), int(time.time()), key, is_new=True)

    def end(self, session: Session) -> None:
        """End a session for all workers.

        :raises StoreError: ``store.unavailable``: the workers cannot be told now, as on a full disk.
        """
        if session.key and not self._ended.append({"id": session.id, "at": int(time.time())}):
            raise StoreError(
                "the service cannot end the session now, as it cannot write its temporary directory: try again",
                code="store.unavailable",
            )

    def token(self, session: Session) -> str:
        """Return the token of the session's forms."""
        return self._sign("token", session.id)

    def check(self, session: Session, token: str) -> None:
        """Refuse a form that no page of the session has sent.

        :raises RequestError: ``request.rights``.
        """
        if not hmac.compare_digest(self.token(session).encode(), token.encode()):
            raise RequestError(
                "the form is not from a page of this session, which may have ended: open its page again and fill it in",
                code="request.rights",
            )

    def write(self, session: Session, request: Request, response: Response) -> None:
        """Set the cookie of a session that began with this request."""
        if not session.is_new:
            return
        text = f"{session.id} {session.began_s} {session.key}"
        proxied = request.headers.get("x-forwarded-proto", "").partition(",")[0]  # further proxies add theirs
        response.set_cookie(
            cookie_name(request, "console" if session.key else "form"),
            f"{urlsafe_b64encode(text.encode()).decode().rstrip('=')}.{self._sign('cookie', text)}",
            max_age=SESSION_S,
            path="/console",
            secure="https" in {request.scope["scheme"], proxied},
            httponly=True,
            samesite="strict",
        )

    def _has_ended(self, session: Session) -> bool:
        ended = self._ended.read()
        # What the journal has forgotten counts as ended, so that no session comes back.
        forgotten_s = ended[0]["at"] if len(ended) >= MOST_RECORDS else 0
        oldest_s = max(forgotten_s, time.time() - SESSION_S)
        return session.began_s < oldest_s or any(each["id"] == session.id for each in ended)

    def _sign(self, purpose: Literal["cookie", "token"], text: str) -> str:
        """Return a signature that is worth nothing for another purpose: everybody gets the token of a session."""
        return hmac.digest(self._secret, f"{purpose} {text}".encode(), "sha256").hex()


def cookie_name(request: Request, kind: Literal["console", "form"]) -> str:
    """Return the name of the cookie. A browser shares cookies among the ports of a host, so it has the port.

    It is the port that the browser sees, if the request has it: two tunnels may lead to equal ports of two services.
    Anybody's session has a cookie of its own: over plain HTTP a link of another site leads to the sign-in without the
    cookie of the key, which the form there must not replace.
    """
    port = request.headers.get("host", "").rpartition(":")[2]
    server = request.scope.get("server") or ("", "")
    return f"mintage_{kind}_{port if port.isascii() and port.isdigit() else server[1]}"
