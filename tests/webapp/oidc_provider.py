"""A small OpenID Connect provider on loopback, which can be made to lie."""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from limits import ANSWER, START, wait_until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

NAMES = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")  # of the settings CREAMTEA_OIDC_…
ID, SECRET = "creamtea-test", "s3cret-of-the-client-0123456789abcdef"
Claims = dict[str, Any]


class FakeProvider:
    """Signs in whoever `user` says, at once. `lie` may change the claims of the next ID tokens."""

    def __init__(self) -> None:
        self.issuer = ""
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.tell_the_truth({})
        self.codes: dict[str, dict[str, str]] = {}
        self.given: list[str] = []  # every code and verifier that was ever used

    def tell_the_truth(self, user: Claims) -> None:
        self.user = user
        self.lie: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
        self.described: dict[str, Any] = {}  # laid over its description of itself
        self.returns: dict[str, str] = {}  # laid over the parameters of the way back

    def signed(self, claims: Claims, key: Any = None, algorithm: str = "RS256") -> str:
        header = {"alg": algorithm, "kid": "one"}
        return jwt.encode(header, claims, key or self.key, algorithms=[algorithm, "none"])

    async def discovery(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            }
            | self.described
        )

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        wanted = {
            "client_id": ID,
            "response_type": "code",
            "code_challenge_method": "S256",
            "scope": "openid email",
        }
        if not wanted.items() <= asked.items():
            return Response(f"not as it should be: {asked}", 400)
        code = f"code-{len(self.given)}-{time.monotonic_ns()}"
        self.codes[code] = asked
        self.given.append(code)
        back = {"code": code, "state": asked["state"]} | self.returns
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 302)

    async def token(self, request: Request) -> Response:
        form = {key: values[0] for key, values in parse_qs((await request.body()).decode()).items()}
        basic = base64.b64encode(f"{ID}:{SECRET}".encode()).decode()
        asked = self.codes.pop(form["code"], None)  # a code works once
        self.given.append(form["code_verifier"])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        good = (
            asked is not None
            and request.headers["authorization"] == f"Basic {basic}"
            and form["grant_type"] == "authorization_code"
            and form["redirect_uri"] == asked["redirect_uri"]
            and challenge.decode().rstrip("=") == asked["code_challenge"]
        )
        if asked is None or not good:
            return JSONResponse({"error": "invalid_grant", "error_description": SECRET}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": ID, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        id_token = self.sign(self.lie(claims | self.user))
        return JSONResponse(self.answer({"access_token": "x", "token_type": "Bearer", "id_token": id_token}))

    async def jwks(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})


# ---------------------------------------------------------------- its lies


Lie = Callable[[FakeProvider], None]


def claiming(**wrong: Any) -> Lie:
    def change(claims: Claims) -> Claims:
        return {name: value for name, value in (claims | wrong).items() if value is not None}

    return lambda provider: setattr(provider, "lie", change)


def signing(**how: Any) -> Lie:
    return lambda provider: setattr(provider, "sign", partial(provider.signed, **how))


def answering(**token: Any) -> Lie:
    usual = {"access_token": "x", "token_type": "Bearer"}
    return lambda provider: setattr(provider, "answer", lambda _: usual | token)


def returning(**returns: str) -> Lie:
    return lambda provider: provider.returns.update(returns)


LIES: dict[str, Lie] = {
    "another nonce": claiming(nonce="another"),
    "no nonce": claiming(nonce=None),
    "for somebody else": claiming(aud="another"),
    "for several, and no word for whom": claiming(aud=[ID, "another"]),
    "for several, handed to another": claiming(aud=[ID, "another"], azp="another"),
    "for another, handed to us": claiming(aud="another", azp=ID),
    "for nobody": claiming(aud=None),
    "expired": claiming(exp=int(time.time()) - 3600),
    "never expires": claiming(exp=None),
    "from the future": claiming(iat=int(time.time()) + 3600),
    "another issuer": claiming(iss="https://evil.example"),
    "no subject": claiming(sub=None),
    "an empty subject": claiming(sub=""),
    "a subject that is a number": claiming(sub=7),
    "a subject that no database stores": claiming(sub="7\0"),
    "signed by a stranger": signing(key=RSAKey.generate_key(2048, {"kid": "one"})),
    "unsigned": signing(algorithm="none"),
    "signed by the shared secret": signing(key=OctKey.import_key(SECRET), algorithm="HS256"),
    "no ID token": answering(),
    "claims in place of an ID token": lambda provider: answering(
        userinfo={"iss": provider.issuer, **provider.user}
    )(provider),
    "no token at all": answering(id_token="x.y.z"),
    "a number for a token": answering(id_token=7),
    "another code": returning(code="guessed"),
    "an error": returning(error="access_denied"),
    "another provider's answer": returning(iss="https://evil.example"),
}


# ---------------------------------------------------------------- running it


@contextmanager
def running_provider() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    paths = {
        "/.well-known/openid-configuration": provider.discovery,
        "/authorize": provider.authorize,
        "/jwks": provider.jwks,
    }
    routes = [Route(path, endpoint) for path, endpoint in paths.items()]
    app = Starlette(routes=[*routes, Route("/token", provider.token, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, START)
    port = server.servers[0].sockets[0].getsockname()[1]
    provider.issuer = f"http://127.0.0.1:{port}"
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(ANSWER)
