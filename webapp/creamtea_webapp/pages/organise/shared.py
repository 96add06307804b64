"""What the organiser's pages share: acting with a right, telling what came of it, and the head of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import streamlit as st

from creamtea.errors import InputError
from creamtea.human import campaigns, rights
from creamtea.human.access import Identity
from creamtea.human.campaigns import CampaignSummary
from creamtea.human.raters import RaterProgress
from creamtea.store.database import Database
from creamtea.store.tables import Campaign
from creamtea_webapp import session
from creamtea_webapp.markup import note, render, show

TEMPLATE = "organise/shared.html"
NOTICE, FRESH_LINK = "organise-notice", "organise-link"
Act = Callable[[Database, str], str]  # does it in one transaction; what to tell the organiser

# what messages of the platform call by its option on the command line, and pages by its label
LABELS = {
    "rater": "Pseudonym",
    "select": "Segments",
    "differ-between": "Only where these two differ",
    "items": "Segments at most",
    "ratings": "Raters for each item",
    "metrics": "Metrics",
    "strata": "In proportion to",
    "bad-references": "Bad references",
    "repeats": "Repeats",
    "documents": "Documents",
    "baseline": "Baseline",
    "protocol": "Protocol",
    "systems": "Systems",
    "seed": "Seed",
    "pairs": "Pairs",
    "format": "Kind of file",
    "test-set": "Test set",
    "source-language": "Source language",
    "target-language": "Target language",
    "sources": "Sources",
    "output-of": "Outputs",
    "first-segment": "First segment",
}


def act(right: str, campaign_id: int | None, do: Act) -> None:
    """Run `do` if whoever sent this may; for callbacks of widgets, which write here and nowhere else.

    The right is looked up again at the moment of the click: a page that was drawn is no authorisation.
    """
    st.session_state.pop(FRESH_LINK, None)
    who = session.identity()
    if who is None or not rights.may(who, right, campaign_id):
        _tell("error", "You may not do this, or your link has been withdrawn. Nothing was changed.")
        return
    try:
        _tell("done", do(session.database(), actor(who)))
    except InputError as error:
        _tell("error", in_words_of_pages(str(error)))


def actor(who: Identity) -> str:
    """How the log names an organiser: sessions have no names."""
    return f"organiser, session {who.session_id}"


def in_words_of_pages(message: str) -> str:
    """A message with the labels of the page's fields instead of the command line's options."""
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda option: f"“{LABELS.get(option[1], option[1])}”", message)


def _tell(kind: str, message: str) -> None:
    st.session_state[NOTICE] = (kind, message)


def show_notice() -> None:
    """What the last action did, once, and a link that it made, until the next one."""
    kind, message = st.session_state.pop(NOTICE, ("", ""))
    if message:
        show(TEMPLATE, "notice", kind=kind, message=message)
    link = st.session_state.get(FRESH_LINK)
    if link is not None:
        note(
            "Copy the link now and send it to this rater only. It works once, within 14 days, and disappears "
            "from here when you do anything else."
        )
        st.code(link, language=None, wrap_lines=True)


def keep_link(secret: str) -> None:
    """A fresh link's secret, for the next drawing of the page; stored nowhere else."""
    st.session_state[FRESH_LINK] = f"{origin()}/enter#{secret}"


def origin() -> str:
    """Where this browser reaches the server."""
    address = urlsplit(str(st.context.url or ""))
    return f"{address.scheme}://{address.netloc}"


def find(campaign_id: int) -> CampaignSummary:
    """The campaign; a page that says so and nothing else where there is none."""
    with session.database().session() as reading:
        row = reading.get(Campaign, campaign_id)
    if row is None:
        missing()
        st.stop()
        raise KeyError(campaign_id)
    return campaigns.summary(session.database(), row.name)


def missing() -> None:
    show(TEMPLATE, "missing")


def head(who: Identity, campaign: CampaignSummary, view: str = "") -> None:
    """The campaign's name and facts, its other pages, and what the last action did."""
    show(TEMPLATE, "head", campaign=campaign, view=view, all_campaigns=who.campaign_id is None)
    show_notice()


def rater_link(campaign_id: int, rater: RaterProgress) -> str:
    """HTML of a link to the rater's page."""
    return render(TEMPLATE, "rater_link", campaign_id=campaign_id, rater=rater)


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (), stacked: bool = True
) -> None:
    """A table of cells that are text or HTML of a template; `words`: columns of text, set to the left;
    `stacked`: too wide for a phone, where the cells of a row stand below each other."""
    show("parts.html", "table", heads=heads, rows=rows, words=words, stacked=stacked)
