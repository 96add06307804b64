"""The addresses of signing in, and the page that was asked for before it."""

from __future__ import annotations

from collections.abc import Mapping

LOGIN = "/login"
CALLBACK = "/oauth2callback"
SIGN_IN_PATHS = frozenset({LOGIN, CALLBACK})
MAX_ID = 2**31 - 1  # of a row


def login_address(campaign_id: int | None) -> str:
    """Where to sign in, to come back to the campaign's page."""
    return LOGIN if campaign_id is None else f"{LOGIN}?campaign={campaign_id}"


def campaign_asked_for(query: Mapping[str, str]) -> int | None:
    """The campaign of an address's query. A number only, so that no sign-in leads to another site."""
    return row_id(query.get("campaign", ""))


def row_id(text: str) -> int | None:
    """The number of a row as an address has it; None for what is not one."""
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        return None
    return number if (number := int(text)) <= MAX_ID else None
