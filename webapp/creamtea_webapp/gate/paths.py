"""The addresses of signing in, and the page that was asked for before it.

Browsers get addresses relative to the page, "./" or one beside it, so that these also work if the app is
served below a path.
"""

from __future__ import annotations

from collections.abc import Mapping

from creamtea.store.rows import row_id

ENTRANCE = "/enter"
SIGN_OUT = "/sign-out"
LOGIN = "/login"
CALLBACK = "/oauth2callback"
DOCUMENTATION = "documentation"
SIGN_IN_PATHS = frozenset({LOGIN, CALLBACK})
MAX_QUERY = 1000  # characters; what a cookie can keep during a sign-in


def address_of_media(digest: str) -> str:
    """Return the address of a media file (gate/routes.py)."""
    return f"beside-source/{digest}"


def kept_query(query: str) -> str:
    """Return the requested page's query, to open that page after a sign-in; "" if it is too long.

    Every page is at "./" (docs/decisions/one-page-at-the-root.md), so its query is all that has to be kept,
    and no query leads to another site.
    """
    return query if len(query) <= MAX_QUERY else ""


def page_address(query: str) -> str:
    """Return the address of the page with this query."""
    return f"./?{query}" if query else "./"


def login_address(query: str) -> str:
    """Return the address of the sign-in that leads back to the page with this query."""
    return f".{LOGIN}?{query}" if query else f".{LOGIN}"


def campaign_asked_for(query: Mapping[str, str]) -> int | None:
    """Return the campaign that an address's query names."""
    return row_id(query.get("campaign", ""))
