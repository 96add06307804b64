"""The raters of a campaign: adding them, what their reports say, and a page for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from creamtea.access import rights, sessions
from creamtea.errors import InputError
from creamtea.files import lines_of
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.quality import RaterReport, described_in_words, reports_of
from creamtea.human.rating import raters
from creamtea.human.rating.raters import RaterProgress
from creamtea.human.results.disputes import ask_for_third_ratings, list_disputes
from creamtea.human.results.ratings import fingerprint
from creamtea.settings import SignIn
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, ItemKind
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.gate.paths import LOGIN
from creamtea_webapp.markup import moment, note, render, show, show_list
from creamtea_webapp.pages.organise.shared import (
    FOR_ONE,
    FRESH_FILE,
    LABELS,
    TEMPLATE,
    Made,
    act,
    entry,
    find,
    fresh_link,
    head,
    missing,
    on_press,
    rater_link,
    safe_name,
    show_notice,
    site,
)

RATER = "organise/rater.html"
DECISIONS = "decisions"  # the place of messages about them
MAX_BARS, USUAL_BARS = 60, 30  # of a histogram of scores
BAR_WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # points, if a scale is too long
MAX_SECONDS = 300  # longer times are drawn in the last bar
ADD = ("add-pseudonym", "add-name", "add-subject")  # fields


def page(campaign_id: int) -> None:
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign, "raters")
    if campaign.state == "closed":
        note("The campaign is closed, so nobody can be invited.")
    else:
        _add(campaign)
        _many(campaign)
    people = raters.overview(session.database(), campaign_id)
    if not people:
        return
    reports = {report.rater_id: report for report in rater_reports(campaign_id)}
    checked = ItemKind.ATTENTION in campaign.kinds
    rows = [_row(campaign_id, rater, reports.get(rater.id), checked) for rater in people]
    heads = ["rater", "name or participant", "state", "items", "skipped", "practice", "last saved (UTC)"]
    heads += [*["checks passed"] * checked, "flags", "suggestion"]
    show_list("raters", heads, rows, words=[0, 1, 2, len(heads) - 1])
    note(
        "A flag is a reason to look, not a verdict: honest raters get one now and then. A description, such "
        f"as “given at random”, would go to {described_in_words()}. Nobody is excluded automatically. "
        "Excluding a rater is your decision, needs a reason, and can be undone."
    )


def _row(campaign_id: int, rater: RaterProgress, report: RaterReport | None, checked: bool) -> list[str]:
    flags = len(report.flagged) if report else 0
    return [
        rater_link(campaign_id, rater),
        rater.name or rater.participant or "",
        rater.standing,
        f"{rater.submitted:,}",
        f"{rater.skipped:,}",
        f"{rater.tutorial:,}",
        moment(rater.last_submit).removesuffix(" UTC") if rater.last_submit else "",
        *([f"{rater.attention.passed} of {rater.attention.answered}"] * checked),
        render(TEMPLATE, "strong", text=flags) if flags else "0",
        report.suggestion if report else "no answers yet",
    ]


def _add(campaign: CampaignSummary) -> None:
    with st.form("add-rater", border=True), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Pseudonym", key="add-pseudonym", placeholder="the next unused one", width=220)
        st.text_input("Name (optional; only organisers see it)", key="add-name", width=320)
        if SignIn.load() is not None:
            st.text_input("E-mail address for signing in (instead of a link)", key="add-subject", width=320)
        press = on_press(rights.MANAGE_RATERS, campaign.id, partial(_add_rater, campaign), "add")
        st.form_submit_button("Add and make a link", on_click=press)
    show_notice("add")


def _many(campaign: CampaignSummary) -> None:
    """Show the forms for links to many raters at once, and for the link of a recruiting platform."""
    with session.database().session() as reading:
        now = session.database().now(reading)
        free = raters.additional_raters(reading, reading.get_one(Campaign, campaign.id), now)
    with st.expander("Many raters at once"):
        note(f"There is work for {counted(max(0, free), 'more rater')}.")
        with st.form("many-raters", border=False):
            st.text_area(
                "Pseudonyms, one per line",
                key="many-pseudonyms",
                help="Known raters get a new link; the others are added.",
            )
            label, most = "Or a number of new raters", raters.MAX_AT_ONCE
            st.number_input(label, 0, most, key="many-count", help="They are numbered.")
            st.checkbox(LABELS["surplus"], key="many-surplus")
            press = on_press(rights.MANAGE_RATERS, campaign.id, partial(_invite_many, campaign), "many")
            st.form_submit_button("Make links (CSV)", on_click=press)
        show_notice("many")  # outside: a form can hold no button to download with
    with st.expander("Participants of Prolific or another platform"):
        note(
            "One link for all participants, for 90 days. Anyone arriving with a participant number becomes "
            "a rater under a pseudonym, and continues where they left off on returning. Paste the link where "
            "Prolific asks for the address of your study. Elsewhere, replace what stands between “?” and “#” "
            "by participant=NUMBER. Set the link back in the draft's form."
        )
        press = on_press(rights.MANAGE_RATERS, campaign.id, partial(_recruit, campaign), "recruit")
        st.button("Make the link for participants", key="recruit", on_click=press)
        show_notice("recruit")


def _invite_many(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    state = st.session_state
    lines = lines_of(str(state.get("many-pseudonyms", "")), "The pseudonyms")
    names = [line.strip() for line in lines if line.strip()]
    count = int(state.get("many-count") or 0)
    if bool(names) == bool(count):
        raise InputError("Enter pseudonyms or a number of new raters, not both.")
    surplus = bool(state.get("many-surplus"))
    with database.transaction() as writing:
        made = raters.invite(writing, campaign.name, actor, names or count, surplus=surplus)
    return Made(
        f"{counted(len(made), 'link')} made. Each works once, within 14 days.",
        {
            FRESH_FILE: (f"{safe_name(campaign.name)}-links.csv", raters.links_csv(made, site())),
            "many-pseudonyms": "",
            "many-count": 0,
        },
    )


def _recruit(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    secret = raters.recruit(database, campaign.name, actor)
    address = raters.recruiting_address(site(), secret)
    return Made("The link for participants has been made.", fresh_link(address))


def _add_rater(campaign: CampaignSummary, database: Database, actor: str) -> Made:
    raters.check_invites(find(campaign.id))  # it may have been closed since the page was shown
    state = st.session_state
    cleared = {field: "" for field in ADD if field in state}
    given = {field.removeprefix("add-"): str(state.get(field, "")).strip() or None for field in ADD}
    rater_id = raters.add(database, campaign.name, actor, **given)
    if given["subject"]:
        where = f"{site()}{LOGIN}?campaign={campaign.id}"
        return Made(f"The rater has been added and signs in at {where}", cleared)
    secret = sessions.create_link(database, "rater", rater_id=rater_id, actor=actor)
    return Made("The rater has been added.", fresh_link(entry(secret), FOR_ONE) | cleared)


# ---------------------------------------------------------------- reports


def rater_reports(campaign_id: int) -> list[RaterReport]:
    """Return the campaign's rater reports, cached as long as no rating comes or goes.

    The right to see them is checked first: everyone who has it shares the cache.
    """
    session.require(rights.SEE_RATERS, campaign_id)
    with session.database().session() as reading:
        state = fingerprint(reading, campaign_id)
    return _reports(session.database().url.render_as_string(), campaign_id, state)


@st.cache_resource(max_entries=32, show_spinner="Looking at the raters' answers …")
def _reports(database: str, campaign_id: int, state: tuple[Any, ...]) -> list[RaterReport]:
    """Build the reports. Nobody changes the list; `state` changes with the data of the reports."""
    return reports_of(session.database(), campaign_id)


# ---------------------------------------------------------------- one rater


def one_rater(campaign_id: int, rater_id: int) -> None:
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    person = next(
        (rater for rater in raters.overview(session.database(), campaign_id) if rater.id == rater_id), None
    )
    if person is None:
        missing()
        return
    head(who, campaign, "raters")
    show(RATER, "facts", rater=person, standing=person.standing)
    reports = rater_reports(campaign_id)
    report = next((report for report in reports if report.rater_id == rater_id), None)
    if report is None:
        note("No answers yet, so there is nothing to report.")
    else:
        _checks(report)
        others = [other for other in reports if other.rater_id != rater_id]
        _plots(report, others, find_protocol(campaign.protocol))
    _actions(campaign, person)


def _checks(report: RaterReport) -> None:
    show(RATER, "suggestion", text=report.suggestion.capitalize())
    rows = [
        [
            check.title,
            render(RATER, "check_state", check=check),
            check.shown,
            check.bound,
            render(RATER, "reason", text=check.reason, measured=check.measured),
        ]
        for check in report.checks
    ]
    show_list("checks", ["check", "", "result", "flagged if", "why this limit"], rows, words=range(5))
    note(f"A description, such as “given at random”, would go to {described_in_words()}.")


# ---------------------------------------------------------------- plots


def _plots(report: RaterReport, others: list[RaterReport], protocol: Protocol) -> None:
    times = [min(value, MAX_SECONDS) for value in report.seconds]
    usual = [min(value, MAX_SECONDS) for other in others for value in other.seconds]
    left, right = st.columns(2)
    with left:
        title = f"seconds ({MAX_SECONDS} and more in the last bar)"
        _histogram("Time per item", times, usual, title, MAX_SECONDS / 30, (0, MAX_SECONDS))
    with right:
        values = [value for other in others for value in other.values]
        width, domain = score_axis(protocol, [*report.values, *values])
        _histogram("Scores", list(report.values), values, "points", width, domain)


def score_axis(protocol: Protocol, values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the width of a bar, and where the first bar begins and the last one ends.

    The bars cover the whole scale, or only the values given if the scale is too long (MQM's goes from -1000
    to 0).
    """
    lowest, highest = float(protocol.scale.lowest), float(protocol.scale.highest)
    width = protocol.bin_width
    if (highest - lowest) / width > MAX_BARS:
        lowest, highest = min(values, default=highest), max(values, default=highest)
        width = next(step for step in BAR_WIDTHS if (highest - lowest) / step < USUAL_BARS)
        lowest, highest = (round(end / width) * width for end in (lowest, highest))
    return width, (lowest - width / 2, highest + width / 2)


def _histogram(
    name: str, own: list[float], others: list[float], title: str, width: float, domain: tuple[float, float]
) -> None:
    """Draw the shares of the rater's values as bars, and of all others' as a line."""
    show("parts.html", "plot_title", title=name)
    if not own:
        note("Nothing was recorded.")
        return
    start, end = domain
    bars = round((end - start) / width)

    def rows(values: list[float], of: str) -> list[dict[str, Any]]:
        bar = ((np.array(values) - start) / width + 1e-9).astype(int).clip(0, bars - 1)
        shares = np.bincount(bar, minlength=bars) / len(values)
        edges = [start + index * width for index in range(bars + 1)]
        return [
            {"from": edges[index], "to": edges[index + 1], "share": share, "of": of}
            for index, share in enumerate(shares.tolist())
        ]

    x = {"field": "from", "type": "quantitative", "title": title, "scale": {"domain": [start, end]}}
    x["axis"] = {"labelFlush": True}  # else the last label is clipped
    y = {"field": "share", "type": "quantitative", "title": "share", "axis": {"format": "%"}}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": rows(own, "this rater")},
            "mark": {"type": "bar", "color": "#b5623f"},
            "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"datum": 0}},
        }
    ]
    if others:
        layers.append(
            {
                "data": {"values": rows(others, "others")},
                "mark": {"type": "line", "interpolate": "step-after", "color": "#2f6f8f", "strokeWidth": 2},
                "encoding": {"x": x, "y": y},
            }
        )
    st.vega_lite_chart({"description": name, "layer": layers, "height": 220}, width="stretch")
    note("Bars: this rater. Line: all others.")


# ---------------------------------------------------------------- actions


def _actions(campaign: CampaignSummary, person: RaterProgress) -> None:
    press = partial(on_press, rights.MANAGE_RATERS, campaign.id)
    manage = partial(act, rights.MANAGE_RATERS, campaign.id, done_at=DECISIONS)
    st.header("Decisions", anchor=False)
    show_notice(DECISIONS)
    with st.container(horizontal=True):
        if person.forgotten_at is None and campaign.state != "closed":
            make = partial(_new_link, campaign.id, person.id)
            st.button("New link", key="new-link", on_click=press(make, DECISIONS))
        if person.forgotten_at is None:
            revoke = partial(_revoke, person.id)
            st.button("Revoke links", key="revoke", on_click=partial(manage, revoke, DECISIONS))
        takes_part = campaign.state == "launched" and not (person.excluded_at or person.forgotten_at)
        if person.skipped and takes_part:
            with st.popover("Give skipped items again"):
                note("The rater gets the skipped items that still need a rating. The log keeps your reason.")
                st.text_area("Reason", key="reopen-reason")
                show_notice("reopen")
                give = partial(_reopen, person.id)
                st.button("Give them again", key="reopen", on_click=press(give, "reopen", DECISIONS))
        verb, button, decide = "Exclude", "Exclude this rater", raters.exclude
        effect = "The rater's ratings are kept but no longer count, and other raters get the items."
        if person.excluded_at:
            verb, button, decide = "Include again", "Include", raters.include
            effect = "The rater's ratings will count again."
        with st.popover(verb):
            note(f"{effect} The log keeps your reason.")
            st.text_area("Reason", key="reason")
            show_notice("reason")
            do = partial(_decide, decide, person.id)
            st.button(button, key="decide", on_click=partial(manage, do, "reason"))
        if person.forgotten_at is None:
            with st.popover("Forget who this is"):
                show(RATER, "forgetting", pseudonym=person.pseudonym)
                st.text_input("Pseudonym", key="forget-confirmation")
                show_notice("forget")
                forget = partial(_forget, person)
                st.button("Delete the identity", key="forget", on_click=partial(manage, forget, "forget"))


def _new_link(campaign_id: int, rater_id: int, database: Database, actor: str) -> Made:
    raters.check_invites(find(campaign_id))  # it may have been closed since the page was shown
    secret = sessions.create_link(database, "rater", rater_id=rater_id, actor=actor)
    return Made("A new link has been made.", fresh_link(entry(secret), FOR_ONE))


def _revoke(rater_id: int, database: Database, actor: str) -> str:
    revoked = sessions.revoke_rater(database, rater_id, actor)
    return f"{counted(revoked, 'link')} revoked."


def _reopen(rater_id: int, database: Database, actor: str) -> Made:
    pages = raters.reopen(database, rater_id, actor, str(st.session_state.get("reopen-reason", "")))
    return Made(f"The rater gets {counted(pages, 'skipped page')} again.", {"reopen-reason": ""})


def _decide(decide: Any, rater_id: int, database: Database, actor: str) -> str:
    decide(database, rater_id, actor, str(st.session_state.get("reason", "")))
    st.session_state["reason"] = ""
    return "Done. The log has your decision and its reason."


def _forget(person: RaterProgress, database: Database, actor: str) -> str:
    if str(st.session_state.get("forget-confirmation", "")).strip() != person.pseudonym:
        raise InputError("nothing was deleted: this is not the rater's pseudonym")
    raters.forget(database, person.id, actor)
    return "The identity has been deleted."


# ---------------------------------------------------------------- disputes


def disputes(campaign_id: int) -> None:
    """List the outputs whose raters lie far apart, for which an organiser can ask for a third rating."""
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    head(who, campaign, "disputes")
    usual = list_disputes(session.database(), campaign.name)
    bound = st.number_input(
        LABELS["apart"], min_value=0.01, value=usual.bound, key="disputes-bound", width=160
    )
    disputed = usual if bound == usual.bound else list_disputes(session.database(), campaign.name, bound)
    outputs = f"{counted(disputed.outputs, disputed.judged)} with two or more raters"
    note(f"{len(disputed.listed):,} of {outputs} have ratings that lie so far apart.")
    rows = [
        [each.segment, each.system, each.in_words, f"{each.apart:g}", each.third_in_words]
        for each in disputed.listed
    ]
    if rows:
        heads = ["segment", "system", "ratings", "apart", "third rating"]
        show_list("disputes", heads, rows, words=(0, 1, 2))
    show_notice("disputes")
    if campaign.state == "launched" and not all(each.asked for each in disputed.listed):
        note(
            "Each page with such an output goes to one more rater. Third ratings are shown beside the "
            "others, and count in no mean and no test."
        )
        ask = partial(_ask, campaign.name, bound)
        press = on_press(rights.RUN_CAMPAIGN, campaign_id, ask, "disputes")
        st.button("Ask for third ratings", key="ask", on_click=press)


def _ask(name: str, bound: float, database: Database, actor: str) -> Made:
    pages = ask_for_third_ratings(database, name, actor, bound)
    return Made(f"{counted(pages, 'page')} will be given to one more rater.")
