"""The OpenID Connect provider: where people are sent to sign in, and what it then says about them.

Authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636) by Authlib's Starlette client. Added to
it here: the provider's description of itself is checked before it is used, only signatures that nobody but
the provider can make are accepted, and its keys are fetched at each sign-in, so that new keys work at once.
"""

from __future__ import annotations

import re
from json import JSONDecodeError
from typing import Any

from authlib.integrations.base_client import OAuthError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.starlette_client import OAuth
from httpx2 import HTTPError, InvalidURL
from joserfc.errors import JoseError
from starlette.requests import Request
from starlette.responses import RedirectResponse

from creamtea.access.sign_in import Person
from creamtea.settings import SignIn, is_safe_url

TIMEOUT = 10.0  # seconds, for one answer of the provider
LEEWAY = 60  # seconds that its clock may differ
# Signatures by a key that only the provider has: neither "none" nor one by the shared secret.
ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
]
CLIENT_AUTHENTICATION = ("client_secret_basic", "client_secret_post")  # the better one first
NO_ANSWER = (HTTPError, InvalidURL, ValueError, TypeError)  # the last two: JSON of a wrong kind


class ProviderFailed(Exception):
    """The provider gave no answer, or none that can be used. Its text holds no secret."""


class NotBegun(Exception):
    """The answer belongs to no sign-in that this browser began."""


class NotProved(Exception):
    """What the provider answered proves nobody's identity. Its text holds no secret."""


class Provider:
    """From `redirect` to `person`, a sign-in keeps its state, nonce and PKCE verifier in `request.session`.
    The caller keeps that dictionary where only this browser can bring it back."""

    def __init__(self, settings: SignIn) -> None:
        self.settings = settings
        self.description = f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        self._client = OAuth().register(
            "provider",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            server_metadata_url=self.description,
            # no redirects: the secret goes where the provider said and no further
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "timeout": TIMEOUT,
                "follow_redirects": False,
            },
        )

    async def redirect(self, request: Request, redirect_uri: str) -> RedirectResponse:
        """Send the browser to sign in. ProviderFailed where the provider cannot be reached."""
        await self._discover()
        response: RedirectResponse = await self._client.authorize_redirect(request, redirect_uri)
        return response

    async def person(self, request: Request) -> Person:
        """Who came back with this request. Raises ProviderFailed, NotBegun, or NotProved where the ID token
        does not hold."""
        await self._discover()
        try:
            await self._client.fetch_jwk_set(force=True)
        except NO_ANSWER as error:
            raise ProviderFailed(f"no keys: {type(error).__name__}") from None
        try:
            token = await self._client.authorize_access_token(
                request,
                leeway=LEEWAY,
                claims_options={
                    "iss": {"essential": True, "value": self.settings.issuer},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "sub": {"essential": True},
                    "exp": {"essential": True},
                },
            )
            token["id_token"]  # what `userinfo` was read from, unless the provider itself wrote one
            return _person(token["userinfo"])
        except MismatchingStateError:
            raise NotBegun from None
        except OAuthError as error:
            raise NotProved(f"the provider refused the code: {_error_code(error.error)}") from None
        except JoseError as error:
            raise NotProved(
                f"the ID token: {_error_code(error.error)}: {error.description[:100]!r}"
            ) from None
        except (HTTPError, JSONDecodeError) as error:
            raise ProviderFailed(f"no answer to the code: {type(error).__name__}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotProved(f"the ID token or the keys are malformed: {type(error).__name__}") from None

    async def _discover(self) -> None:
        """The provider's description of itself, asked for once; kept is only what was checked."""
        try:
            metadata = await self._client.load_server_metadata()
        except NO_ANSWER as error:
            self._client.server_metadata = {}
            raise ProviderFailed(f"{self.description}: {type(error).__name__}") from None
        try:
            self._client.server_metadata = self._checked(metadata)
        except ProviderFailed:
            self._client.server_metadata = {}
            raise

    def _checked(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if metadata.get("issuer") != self.settings.issuer:
            raise ProviderFailed(
                f"{self.description} does not name the issuer {self.settings.issuer!r}, to the letter"
            )
        endpoints = {}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            endpoints[name] = metadata.get(name)
            if not is_safe_url(str(endpoints[name])):
                raise ProviderFailed(f"{self.description}: {name} is not an address with https://")
        offered = metadata.get("token_endpoint_auth_methods_supported") or CLIENT_AUTHENTICATION
        method = next((name for name in CLIENT_AUTHENTICATION if name in list(offered)), None)
        if method is None:
            raise ProviderFailed(f"{self.description}: takes no client secret")
        return {
            "_loaded_at": metadata["_loaded_at"],  # Authlib asks no more
            "issuer": self.settings.issuer,
            "token_endpoint_auth_method": method,
            "token_endpoint_auth_methods_supported": [method],
            "id_token_signing_alg_values_supported": ALGORITHMS,
            **endpoints,
        }


def _person(claims: dict[str, Any]) -> Person:
    email = claims.get("email")
    verified = claims.get("email_verified") is True and isinstance(email, str)
    if not claims["sub"] or not claims["sub"].isprintable():
        raise ValueError("no subject")
    return Person(claims["iss"], claims["sub"], email if verified else None)


def _error_code(code: object) -> str:
    """An error's code, if it looks like one: a provider may write anything."""
    return code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,60}", code) else "no known code"
