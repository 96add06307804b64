"""What the organiser's pages share: actions with their rights and messages, heads, uploaded files."""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st

from creamtea.access import rights
from creamtea.access.sessions import Identity
from creamtea.errors import InfrastructureError, InputError, about
from creamtea.human.formats.base import import_options
from creamtea.human.making import campaigns
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.making.settings import declarations
from creamtea.human.rating.raters import RaterProgress
from creamtea.human.results.ratings import fingerprint
from creamtea.report.human.build import build_human
from creamtea.report.model import Document
from creamtea.store.database import Database
from creamtea.store.tables import Campaign
from creamtea.wording import on_page, uploaded_to
from creamtea_webapp import session
from creamtea_webapp.markup import note, render, show, show_missing

TEMPLATE = "organise/shared.html"
NOTICE, FRESH_LINK, FRESH_FILE = "organise-notice", "organise-link", "organise-links"
LINKS_AT = "organise-links-at"  # the place of the fresh links; a fresh file is a name with its data
FOR_ONE = " and send it to this rater only. It works once, within 14 days"
Read = TypeVar("Read")
Act = Callable[[Database, str], str]  # acts in one transaction; returns what to tell the organiser

# option on the command line, as messages name it -> label on pages
LABELS = {name.replace("_", "-"): asked.title for name, (_, asked) in import_options().items()} | {
    "rater": "Pseudonym",
    "format": "Kind of file",
    "replace": "Change the draft",
    "reason": "Reason",
    "surplus": "Also for raters who may find nothing to rate",
    "apart": "Points apart",
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
        refused = "You may not do this, or your link has been revoked. Nothing was changed."
        st.session_state[NOTICE] = ActionNotice("error", refused)
        return
    actor = f"organiser, session {who.session_id}"  # sessions have no names of their own
    try:
        titles = {key: declared.setting.title for key, declared in declarations().items()}
        with on_page(LABELS | titles):
            notice = ActionNotice("done", do(session.database(), actor), done_at)
    except InfrastructureError as error:  # a full disk, say, or one that may not be written
        notice = ActionNotice("error", str(error), errors_at)
    except InputError as error:
        fields = getattr(error, "by_key", None) or {error.about or usual_field: str(error)}
        notice = ActionNotice("error", str(error), errors_at, fields)
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
        errors = st.session_state[NOTICE].fields
        message = "; ".join(errors[option] for option in options if option in errors)
        show("parts.html", "field_error", message=message)


def fresh_link(address: str, advice: str = "") -> dict[str, object]:
    """Return the session's entry for a link to show. `advice` follows "Copy the link now"."""
    return {FRESH_LINK: (address, advice)}


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
    """Return a campaign's name as a part of a file name."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def entry(secret: str) -> str:
    """Return the address of a fresh link."""
    return f"{site()}/enter#{secret}"


def site() -> str:
    """Return the address at which this browser reaches the server."""
    address = urlsplit(str(st.context.url or ""))
    return f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}"


def find(campaign_id: int) -> CampaignSummary:
    """Return the campaign; if there is none, show a page that says only that."""
    with session.database().session() as reading:
        row = reading.get(Campaign, campaign_id)
    if row is None:
        missing()
        st.stop()
        raise KeyError(campaign_id)
    return campaigns.summary(session.database(), row.name)


def missing() -> None:
    show_missing("No such campaign", "All campaigns", "?campaigns=all")


def head(who: Identity, campaign: CampaignSummary, view: str = "") -> None:
    """Show the campaign's name and facts, its other pages, and what the last action did."""
    reads, organises = rights.may(who, rights.READ_STUDIES), rights.may(who, rights.SEE_RATERS, campaign.id)
    show(TEMPLATE, "head", campaign=campaign, view=view, reads=reads, organises=organises)
    show_notice()


def campaign_report(campaign: int, name: str, *depends_on: Any) -> Document:
    """Return the whole report of a launched campaign, the same for every reader.

    It is cached until a rating comes or goes, or until one of `depends_on` changes.
    """
    with session.database().session() as reading:
        state = (depends_on, fingerprint(reading, campaign))
    return _campaign_report(session.database().url.render_as_string(), name, state)


@st.cache_resource(max_entries=64, show_spinner="Comparing human scores …")
def _campaign_report(database: str, name: str, state: tuple[Any, ...]) -> Document:
    return build_human(session.database(), name)


def rater_link(campaign_id: int, rater: RaterProgress) -> str:
    """Return HTML of a link to the rater's page."""
    address = f"?campaign={campaign_id}&view=raters&rater={rater.id}"
    return render("parts.html", "link", address=address, text=rater.pseudonym)


# ---------------------------------------------------------------- buttons that act once for a double click
#
# Streamlit answers the second press of a double click in a new thread. It stops the first press' thread at
# its next access to the session: perhaps after its result was stored, but before the page knew of it. So the
# result of a press waits here for the second one, which shows it instead of making another.

TAB = "organise-tab"
DOUBLE_CLICK = 1.0  # [s] generous: a busy browser sends the second press late
FORGET = 60.0  # [s]


@dataclass(frozen=True)
class Made:
    """The result of a press: a message for the organiser, and values to put into the session."""

    message: str
    state: Mapping[str, object] = field(default_factory=dict)


# Acts. It reads the session before its first transaction: from then on, it must not be stopped.
Make = Callable[[Database, str], Made]


@dataclass
class Press:
    """The last press of a button, in one tab."""

    made: Made | None = None
    at: float = field(default_factory=time.monotonic)  # when the result was made
    lock: threading.Lock = field(default_factory=threading.Lock)


_lock = threading.Lock()
_presses: dict[tuple[str, str], Press] = {}  # by tab and place


def on_press(
    right: str,
    campaign_id: int | None,
    make: Make,
    place: str,
    done_at: str | None = None,
    usual_field: str = "",
) -> Callable[[], None]:
    """Return the callback of a button that is drawn now: it calls `act`, once for a double click.

    `place`: where errors and fresh links are shown; each button has its own. `done_at`: where the message
    stands if all went well, by default also at `place`.
    """
    tab = st.session_state.setdefault(TAB, secrets.token_hex(8))
    do = partial(_once, tab, time.monotonic(), place, make)
    done = place if done_at is None else done_at
    return partial(act, right, campaign_id, do, errors_at=place, done_at=done, usual_field=usual_field)


def _once(tab: str, drawn: float, place: str, make: Make, database: Database, actor: str) -> str:
    now = time.monotonic()
    with _lock:
        for old, press in list(_presses.items()):
            if now - press.at > FORGET and not press.lock.locked():
                del _presses[old]
        press = _presses.setdefault((tab, place), Press())
    with press.lock:  # a second press waits for what the first one makes
        made, age = press.made, time.monotonic() - press.at
        # do not act again if the button was pressed before the page showed the result, or soon afterwards
        if made is None or (drawn > press.at and age > DOUBLE_CLICK):
            made = make(database, actor)
            press.made, press.at = made, time.monotonic()
    for key, value in made.state.items():
        st.session_state[key] = value
    st.session_state[LINKS_AT] = place
    return made.message


def read_uploaded(field: str, file: Any, read: Callable[[Path], Read]) -> Read:
    """Read an uploaded file as one on the disk is. InputError about the field, with the file's own name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.getvalue())
        with about(field), uploaded_to(Path(folder)):
            return read(path)
