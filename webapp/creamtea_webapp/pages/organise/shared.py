"""What the organiser's pages share: acting with a right, telling what came of it, and the head of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import streamlit as st

from creamtea.access import rights
from creamtea.access.sessions import Identity
from creamtea.errors import InfrastructureError, InputError
from creamtea.human.formats.base import import_options
from creamtea.human.making import campaigns
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.making.settings import titles
from creamtea.human.rating.raters import RaterProgress
from creamtea.store.database import Database
from creamtea.store.tables import Campaign
from creamtea.wording import on_page
from creamtea_webapp import session
from creamtea_webapp.markup import note, render, show

TEMPLATE = "organise/shared.html"
NOTICE, FRESH_LINK, FRESH_FILE = "organise-notice", "organise-link", "organise-links"
LINKS_AT = "organise-links-at"  # the place of the fresh links
FOR_ONE = " and send it to this rater only. It works once, within 14 days"
Act = Callable[[Database, str], str]  # does it in one transaction; what to tell the organiser

# what messages call by its option on the command line, and pages by its label
LABELS = {name.replace("_", "-"): asked.title for name, (_, asked) in import_options().items()} | {
    "rater": "Pseudonym",
    "format": "Kind of file",
    "replace": "Change the draft",
    "reason": "Reason",
    "surplus": "Also for raters who may find nothing to rate",
}


@dataclass(frozen=True)
class ActionNotice:
    """The message that an action leaves on the page.

    `place`: where on the page it stands ("" is below the heading); `fields`: what is wrong with each field,
    by its option or key.
    """

    kind: str  # "done" or "error"
    message: str
    place: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def act(
    right: str,
    campaign_id: int | None,
    do: Act,
    errors_at: str = "",
    done_at: str = "",
    usual_field: str = "",
) -> None:
    """Run `do` if the person who clicked has the right. Every callback of a widget writes through this.

    The right is looked up at the moment of the click: a page that was drawn is not an authorisation.
    `errors_at` and `done_at`: the places of `show_notice` for the message, in view of what was pressed.
    `usual_field`: the field that an error concerns if it does not name one.
    """
    for key in (FRESH_LINK, FRESH_FILE):
        st.session_state.pop(key, None)
    who = session.identity()
    if who is None or not rights.may(who, right, campaign_id):
        _show_after_run(
            ActionNotice(
                "error", "You may not do this, or your link has been withdrawn. Nothing was changed."
            )
        )
        return
    try:
        with on_page(LABELS | titles()):
            _show_after_run(ActionNotice("done", do(session.database(), actor(who)), done_at))
    except InfrastructureError as error:  # a full disk, say, or one that may not be written
        _show_after_run(ActionNotice("error", str(error), errors_at))
    except InputError as error:
        fields = getattr(error, "by_key", None) or {error.about or usual_field: str(error)}
        _show_after_run(ActionNotice("error", str(error), errors_at, fields))


def actor(who: Identity) -> str:
    """Return the organiser's name in the log. Sessions have no names of their own."""
    return f"organiser, session {who.session_id}"


def _show_after_run(notice: ActionNotice) -> None:
    st.session_state[NOTICE] = notice


def show_notice(place: str = "") -> None:
    """Show the last action's message, and the links that it made, if they belong to this `place`.

    They stay until the next action: if they went when a field loses its focus, the button below would move
    away under the press that took the focus.
    """
    notice = st.session_state.get(NOTICE)
    if notice is not None and notice.place == place:
        show(TEMPLATE, "notice", kind=notice.kind, message=notice.message)
    if st.session_state.get(LINKS_AT, "") == place:
        _show_links()


def is_wrong(*options: str) -> bool:
    """Return True if the last action found one of these fields wrong."""
    notice = st.session_state.get(NOTICE)
    return (
        notice is not None and notice.kind == "error" and any(option in notice.fields for option in options)
    )


def field_error(*options: str) -> None:
    """Show below a field, or a row of fields, what the last action found wrong with it."""
    if is_wrong(*options):
        said = st.session_state[NOTICE].fields
        show(TEMPLATE, "field_error", message="; ".join(said[option] for option in options if option in said))


def fresh_link(address: str, advice: str = "") -> dict[str, object]:
    """Return the session's entry for a link to show. `advice` follows "Copy the link now"."""
    return {FRESH_LINK: (address, advice)}


def fresh_file(name: str, data: str) -> dict[str, object]:
    """Return the session's entry for a file of links to download."""
    return {FRESH_FILE: (name, data)}


def _show_links() -> None:
    if (link := st.session_state.get(FRESH_LINK)) is not None:
        address, advice = link
        note(f"Copy the link now{advice}. It disappears from here when you do anything else.")
        st.code(address, language=None, wrap_lines=True)
    if (file := st.session_state.get(FRESH_FILE)) is not None:
        note("Download the links now: the file disappears from here when you do anything else.")
        name, data = file
        st.download_button("Download the links (CSV)", data, name, "text/csv", on_click="ignore")


def safe_name(name: str) -> str:
    """A campaign's name as part of a file's."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def entry(secret: str) -> str:
    """A fresh link's address."""
    return f"{site()}/enter#{secret}"


def site() -> str:
    """Where this browser reaches the server."""
    address = urlsplit(str(st.context.url or ""))
    return f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}"


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
    show(TEMPLATE, "head", campaign=campaign, view=view, reads=rights.may(who, rights.READ_STUDIES))
    show_notice()


def rater_link(campaign_id: int, rater: RaterProgress) -> str:
    """HTML of a link to the rater's page."""
    return render(TEMPLATE, "rater_link", campaign_id=campaign_id, rater=rater)
