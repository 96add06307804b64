"""One rater: the report with its plots, links, exclusion, and deletion of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from creamtea.access import rights, sessions
from creamtea.errors import InputError
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.quality import RaterReport, described_in_words
from creamtea.human.rating import raters
from creamtea.human.rating.raters import RaterProgress
from creamtea.store.database import Database
from creamtea.wording import counted
from creamtea_webapp import session
from creamtea_webapp.components import show_list
from creamtea_webapp.markup import note, render, show
from creamtea_webapp.pages.organise.campaign import standing
from creamtea_webapp.pages.organise.press import Made, on_press
from creamtea_webapp.pages.organise.reports import rater_reports
from creamtea_webapp.pages.organise.shared import (
    FOR_ONE,
    act,
    entry,
    find,
    fresh_link,
    head,
    missing,
    show_notice,
)

TEMPLATE = "organise/rater.html"
DECISIONS = "decisions"  # the place of what came of one
MAX_BARS, USUAL_BARS = 60, 30  # of a histogram of scores
BAR_WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # points, where a scale is not filled
MAX_SECONDS = 300  # longer times are drawn in the last bar


def page(campaign_id: int, rater_id: int) -> None:
    who = session.require(rights.SEE_RATERS, campaign_id)
    campaign = find(campaign_id)
    person = next(
        (rater for rater in raters.overview(session.database(), campaign_id) if rater.id == rater_id), None
    )
    if person is None:
        missing()
        return
    head(who, campaign, "raters")
    show(TEMPLATE, "facts", rater=person, standing=standing(person))
    reports = rater_reports(campaign_id)
    report = next((report for report in reports if report.rater_id == rater_id), None)
    if report is None:
        note("No answers yet, so there is nothing to report.")
    else:
        _report(report)
        others = [other for other in reports if other.rater_id != rater_id]
        _plots(report, others, find_protocol(campaign.protocol))
    _actions(campaign_id, person)


def _report(report: RaterReport) -> None:
    show(TEMPLATE, "suggestion", text=report.suggestion.capitalize())
    rows = [
        [
            check.title,
            render(TEMPLATE, "check_state", check=check),
            check.shown,
            check.bound,
            render(TEMPLATE, "reason", text=check.reason, measured=check.measured),
        ]
        for check in report.checks
    ]
    show_list("checks", ["check", "", "result", "flagged if", "why this limit"], rows, words=range(5))
    note(f"Such a report gives a description to {described_in_words()}.")


# ---------------------------------------------------------------- plots


def _plots(report: RaterReport, others: list[RaterReport], protocol: Protocol) -> None:
    times = [min(value, MAX_SECONDS) for value in report.seconds]
    usual = [min(value, MAX_SECONDS) for other in others for value in other.seconds]
    left, right = st.columns(2)
    with left:
        _histogram(
            "Time per item",
            times,
            usual,
            "seconds (300 and more in the last bar)",
            MAX_SECONDS / 30,
            (0, MAX_SECONDS),
        )
    with right:
        values = [value for other in others for value in other.values]
        width, domain = score_axis(protocol, [*report.values, *values])
        _histogram("Scores", list(report.values), values, "points", width, domain)


def score_axis(protocol: Protocol, values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The width of a bar, and where the first begins and the last ends: the whole scale, or of a scale
    that nobody fills, as that of MQM from -1000 to 0, what was given."""
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
    """Shares of the rater's values, and of all others' as a line."""
    show(TEMPLATE, "plot_title", text=name)
    if not own:
        note("Nothing was recorded.")
        return
    start, end = domain
    bars = round((end - start) / width)

    def rows(values: list[float], of: str) -> list[dict[str, Any]]:
        bar = ((np.array(values) - start) / width + 1e-9).astype(int).clip(0, bars - 1)
        shares = np.bincount(bar, minlength=bars) / len(values)
        return [
            {
                "from": start + index * width,
                "to": start + (index + 1) * width,
                "share": share,
                "of": of,
            }
            for index, share in enumerate(shares.tolist())
        ]

    x = {"field": "from", "type": "quantitative", "title": title, "scale": {"domain": [start, end]}}
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


def _actions(campaign_id: int, person: RaterProgress) -> None:
    manage = partial(act, rights.MANAGE_RATERS, campaign_id, done_at=DECISIONS)
    st.header("Decisions", anchor=False)
    show_notice(DECISIONS)
    with st.container(horizontal=True):
        if person.forgotten_at is None:
            st.button(
                "New link",
                key="new-link",
                on_click=on_press(
                    rights.MANAGE_RATERS, campaign_id, partial(_new_link, person.id), DECISIONS
                ),
            )
            st.button(
                "Withdraw links",
                key="withdraw",
                on_click=partial(manage, partial(_withdraw, person.id), DECISIONS),
            )
        with st.popover("Include again" if person.excluded_at else "Exclude"):
            effect = (
                "The rater's ratings will count again."
                if person.excluded_at
                else "The rater's ratings are kept but no longer count, and other raters get the items."
            )
            note(f"{effect} The log keeps your reason.")
            st.text_area("Reason", key="reason")
            show_notice("reason")
            decide = raters.include if person.excluded_at else raters.exclude
            st.button(
                "Include" if person.excluded_at else "Exclude this rater",
                key="decide",
                on_click=partial(manage, partial(_decide, decide, person.id), "reason"),
            )
        if person.forgotten_at is None:
            with st.popover("Forget who this is"):
                show(TEMPLATE, "forgetting", pseudonym=person.pseudonym)
                st.text_input("Pseudonym", key="forget-confirmation")
                show_notice("forget")
                st.button(
                    "Delete the identity",
                    key="forget",
                    on_click=partial(manage, partial(_forget, person), "forget"),
                )


def _new_link(rater_id: int, database: Database, actor: str) -> Made:
    secret = sessions.create_link(database, "rater", rater_id=rater_id, actor=actor)
    return Made("A new link has been made.", fresh_link(entry(secret), FOR_ONE))


def _withdraw(rater_id: int, database: Database, actor: str) -> str:
    withdrawn = sessions.revoke_rater(database, rater_id, actor)
    return f"{counted(withdrawn, 'link')} withdrawn."


def _decide(decide: Any, rater_id: int, database: Database, actor: str) -> str:
    decide(database, rater_id, actor, str(st.session_state.get("reason", "")))
    st.session_state["reason"] = ""
    return "Done. The log has your decision and its reason."


def _forget(person: RaterProgress, database: Database, actor: str) -> str:
    if str(st.session_state.get("forget-confirmation", "")).strip() != person.pseudonym:
        raise InputError("nothing was deleted: this is not the rater's pseudonym")
    raters.forget(database, person.id, actor)
    return "The identity has been deleted."
