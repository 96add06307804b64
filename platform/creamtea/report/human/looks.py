"""What a campaign says before its end: for organisers who look while it runs, and may end it early.

Items come in an order drawn at its beginning, so that what is complete so far is a random part of the whole.
The tests are those for all looks together (`creamtea.stats.aiming`), not those of the other tables.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.aiming import standings
from creamtea.report.human.material import Judged, count, estimate, p_value, table
from creamtea.report.model import Cell, Row, Table
from creamtea.stats.aiming import EARLY, Look, State
from creamtea.stats.estimate import Estimate
from creamtea.stats.sequential import BURN_IN

ABOUT = (
    "Means and p-values that hold whenever one looks: over the documents (or segments, where they stand "
    f"alone) of which every rating is in, from {BURN_IN} on. Better, worse and no larger difference are "
    "settled: a campaign that ends once all are keeps its 5 % (asymptotic confidence sequences, "
    f"Waudby-Smith et al. 2024; {EARLY:g} of the 5 % are for looks before the end). They are about these "
    "raters. p: after Holm's correction."
)
AIMED = (
    " This campaign aims: a system is rated on one segment in ten once its verdict is settled, or once what "
    "is planned is unlikely to decide it; means are by inverse probabilities."
)


def looks(session: Session, judged: Judged) -> list[Table]:
    """Nothing for a campaign that is complete and did not aim, and where scores are relative."""
    ratings = judged.ratings
    aims = ratings.campaign.settings.get("aim")
    if judged.protocol.relative or (ratings.submitted >= ratings.wanted and not aims):
        return []
    found = standings(session, ratings, judged.baseline, judged.delta)
    rows = [Row(judged.systems[one.system], _cells(judged, one.look, one.planned)) for one in found]
    columns = [
        Column("units", "complete", 0, note="documents, or segments where they stand alone"),
        Column("planned", "planned", 0),
        judged.points("difference", "difference", "95 % confidence sequence: it holds at all looks together"),
        Column("p_any", "p, any time", 3),
        Column("state", "so far", 0),
    ]
    title = f"If you look before the end, against {judged.systems[judged.baseline]}"
    return [table("looks", title, ABOUT + (AIMED if aims else ""), "system", columns, rows)]


def _cells(judged: Judged, found: Look, planned: int) -> dict[str, Cell]:
    few = f"from {BURN_IN} complete ones on"
    looked = found.low is not None
    words = found.state.value.replace("δ", judged.shown_delta()) if looked else "too early"
    if found.state is State.HOPELESS:
        words = "open; what is planned is unlikely to decide it"
    return {
        "units": count(found.units),
        "planned": count(planned),
        "difference": estimate(Estimate(found.mean, found.low, found.high, None if looked else few)),
        "p_any": p_value(found.p_value if looked else None, few),
        "state": Cell("ok", words=words),
    }
