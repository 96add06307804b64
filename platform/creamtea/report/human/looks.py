"""What a campaign says before its end: for organisers who look while it runs, and may end it early.

Items come in an order drawn at its beginning, so that what is complete so far is a random part of the whole.
The tests are those for all looks together (`creamtea.stats.aiming`), not those of the other tables.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.rating.aiming import Standing, standings
from creamtea.report.human.material import Judged, count, estimate, number, p_value, table
from creamtea.report.model import Cell, Row, Table
from creamtea.stats.aiming import State
from creamtea.stats.estimate import Estimate
from creamtea.stats.sequential import BURN_IN, LOOKS

ABOUT = (
    "Differences, intervals and p-values that hold whenever you look: over documents (or single segments) "
    "with all their ratings. Better, worse and no difference > δ are "
    "settled: a campaign that ends once all are keeps its 5 %. (A group-sequential test with "
    f"{LOOKS} looks, from {BURN_IN} documents or segments on; the power family of error spending, Kim and "
    "DeMets 1987. What came after the last of these looks counts at the next.) They are about these raters. "
    "p: after Holm's correction."
)
AIMED = (
    " This campaign aims: a system is rated on one document or segment in twenty once its verdict is "
    "settled, or once what is planned is unlikely to decide it; the others go on without it. The verdict "
    "and its difference are of ratings before that. Unbiased, but noisier: the mean difference over all "
    "that was planned, by inverse probabilities. Outputs that a rater has skipped are left out."
)


def looks(session: Session, judged: Judged) -> list[Table]:
    """Nothing for a campaign that is complete and did not aim."""
    ratings = judged.ratings
    aims = ratings.campaign.settings.aim
    if ratings.submitted >= ratings.wanted and not aims:
        return []
    found = standings(session, ratings, judged.baseline, judged.delta)
    rows = [Row(judged.systems[one.system], _cells(judged, one)) for one in found]
    columns = [
        Column("units", "complete", 0, note="documents, or segments where they stand alone"),
        Column("planned", "planned", 0),
        judged.points(
            "difference", "difference", "95 % repeated confidence interval: it holds at all looks together"
        ),
        judged.points("unbiased", "unbiased", "over all that was planned, by inverse probabilities"),
        Column("p_any", "p, any time", 3),
        Column("state", "so far", 0),
    ]
    title = f"If you look before the end, against {judged.systems[judged.baseline]}"
    return [table("looks", title, ABOUT + (AIMED if aims else ""), "system", columns, rows)]


def _cells(judged: Judged, standing: Standing) -> dict[str, Cell]:
    found, few = standing.look, f"from {BURN_IN} complete ones on"
    looked = found.low is not None or found.state.settled
    words = found.state.value.replace("δ", judged.shown_delta()) if looked else "too early"
    if found.state is State.HOPELESS:
        ended = standing.complete == standing.planned
        words = "not decided" if ended else "open; what is planned is unlikely to decide it"
    cells = {
        "units": count(standing.complete),
        "planned": count(standing.planned),
        "difference": estimate(
            Estimate(found.mean, found.low, found.high) if looked else Estimate(reason=few)
        ),
        "p_any": p_value(found.p_value if looked else None, few),
        "state": Cell("ok", words=words),
    }
    if judged.ratings.campaign.settings.aim:
        cells["unbiased"] = number(standing.unbiased, "not before the end")
    return cells
