"""The log of a campaign: who decided what, when and why."""

from __future__ import annotations

from typing import Any

from creamtea.access import audit, rights
from creamtea_webapp import session
from creamtea_webapp.components import show_list
from creamtea_webapp.markup import moment, note
from creamtea_webapp.pages.organise.shared import find, head


def page(campaign_id: int) -> None:
    who = session.require(rights.READ_LOG, campaign_id)
    head(who, find(campaign_id), "log")
    rows = [
        [
            moment(entry.at),
            entry.actor,
            entry.action,
            entry.rater or "",
            entry.reason,
            ", ".join(_detail(key, value) for key, value in entry.detail.items()),
        ]
        for entry in reversed(audit.read(session.database(), campaign_id))
    ]
    show_list("log", ["when", "who", "what", "rater", "why", "detail"], rows, words=range(6))
    note("Newest first. Entries are never changed or removed.")


def _detail(key: str, value: Any) -> str:
    """As "items: 35", "made anew: no"."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif key == "digest":
        value = str(value)[:16]  # as the campaign's page shows it
    return f"{key.replace('_', ' ')}: {value}"
