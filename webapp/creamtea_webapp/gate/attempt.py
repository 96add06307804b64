"""What a sign-in keeps from its start to its end: an encrypted cookie of the browser that began it.

The cookie rather than the database or this process's memory, so that any server behind a load balancer can
finish what another began, nothing has to be cleaned up, and the sign-in is tied to its browser. Its key is
made from the client's secret, which these servers share anyway. That a way back is used only once is the
provider's promise about its codes (RFC 6749, section 4.1.2).
"""

from __future__ import annotations

import hashlib
import time
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey
from starlette.requests import Request
from starlette.responses import Response

from creamtea.settings import SignIn
from creamtea_webapp import session
from creamtea_webapp.gate.paths import CALLBACK

MINUTES = 10  # to sign in
ENCRYPTION = {"alg": "dir", "enc": "A256GCM"}
REGISTRY = JWERegistry(algorithms=list(ENCRYPTION.values()))


class AttemptCookie:
    def __init__(self, settings: SignIn) -> None:
        secret = f"creamtea sign-in {settings.issuer} {settings.client_secret}".encode()
        self._key = OctKey.import_key(hashlib.sha256(secret).digest())

    def keep(self, response: Response, request: Request, attempt: dict[str, Any]) -> None:
        """`attempt` is JSON; the browser brings it back to the callback only."""
        response.set_cookie(
            self.name,
            self.sealed(attempt),
            max_age=MINUTES * 60,
            path=request.scope["below"] + CALLBACK,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def brought_by(self, request: Request) -> dict[str, Any]:
        """What was kept; empty where it was never begun, is over, or was changed."""
        return self.opened(request.cookies.get(self.name, ""))

    def forget(self, response: Response, request: Request) -> None:
        response.delete_cookie(self.name, path=request.scope["below"] + CALLBACK)

    @property
    def name(self) -> str:
        return f"{session.cookie_name()}-sign-in"

    def sealed(self, attempt: dict[str, Any]) -> str:
        claims = {"attempt": attempt, "exp": int(time.time()) + MINUTES * 60}
        return jwt.encode(ENCRYPTION, claims, self._key, registry=REGISTRY)

    def opened(self, sealed: str) -> dict[str, Any]:
        try:
            claims = jwt.decode(sealed, self._key, registry=REGISTRY).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
        except (JoseError, ValueError):
            return {}
        attempt: dict[str, Any] = claims["attempt"]
        return attempt
