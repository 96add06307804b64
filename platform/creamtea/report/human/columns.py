"""The columns of people's judgements in a test set's main table, from the tables of its campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from creamtea.contract.columns import Column
from creamtea.human.protocols import find_protocol
from creamtea.report.model import SIGNIFICANT, AnalysisTable, Cell, Delta, HumanReport
from creamtea.stats.verdict import Outcome

DECIDED = (Outcome.BETTER.value, Outcome.WORSE.value)
NOT_RATED = "the system does not take part in campaign {}"


@dataclass(frozen=True)
class HumanColumns:
    """Three columns of one campaign; `cells` by system and column key."""

    columns: tuple[Column, ...]
    cells: dict[str, dict[str, Cell]]
    not_rated: str

    def of(self, system: str) -> dict[str, Cell]:
        absent = {column.key: Cell("absent", self.not_rated) for column in self.columns}
        return self.cells.get(system, absent)


def human_columns(reports: Sequence[HumanReport], test_set: str) -> list[HumanColumns]:
    """Of the campaigns on this test set that have ratings; with their names in the titles where there are
    several. A column without a number is left away."""
    of_test_set = [one for one in reports if one.test_set == test_set and one.tables]
    return [_columns(one, named=len(of_test_set) > 1) for one in of_test_set]


def _columns(report: HumanReport, named: bool) -> HumanColumns:
    means, comparisons = _by_system(report.table("means")), _by_system(report.table("comparisons"))
    by = f"people ({report.campaign})" if named else "people"
    note = (
        f"campaign {report.campaign}, {report.state}: {report.progress}; {report.protocol}, {report.scale}; "
        "p: paired t / signed-rank, after Holm"
    )
    score = replace(
        report.points,
        key=f"human:{report.campaign}",
        title=by,
        better="higher",
        signature=f"{report.signature} ({note})",
    )
    percent = Column(
        f"human_percent:{report.campaign}",
        f"{by} of {report.baseline}",
        1,
        "higher",
        unit="%",
        note="interval by the delta method; a ratio on this scale depends on its zero point",
    )
    verdict = Column(
        f"human_verdict:{report.campaign}", f"verdict of {by}", 0, note=f"against {report.baseline}"
    )
    cells = {}
    for system, mean in means.items():
        compared = comparisons.get(system)
        cells[system] = {
            score.key: replace(mean["mean"], delta=_delta(compared) if compared else None, seeds=1),
            percent.key: mean.get("percent", Cell("absent", find_protocol(report.protocol).ratio_note)),
            verdict.key: compared["verdict"] if compared else Cell("ok", words="baseline"),
        }
    known = any(cell[percent.key].value is not None for cell in cells.values())
    shown = (score, percent, verdict) if known else (score, verdict)
    return HumanColumns(shown, cells, NOT_RATED.format(report.campaign))


def _by_system(table: AnalysisTable | None) -> dict[str, dict[str, Cell]]:
    return {row.name: row.cells for row in table.rows} if table is not None else {}


def _delta(cells: dict[str, Cell]) -> Delta:
    """The comparison with the baseline as the other columns have it: for a mark both tests must agree, and
    the verdict must not be undecided because of few raters, or raters who differ."""
    difference, t, ranks = (cells.get(key, Cell("absent")) for key in ("difference", "p_t", "p_signed_rank"))
    if difference.value is None or t.value is None:
        return Delta("absent", difference.note or t.note)
    known = [p for p in (t.value, ranks.value) if p is not None]
    return Delta(
        "ok",
        value=difference.value,
        low=difference.low,
        high=difference.high,
        p_corrected=t.value,
        p_randomization_corrected=ranks.value,
        significant=max(known) < SIGNIFICANT and cells["verdict"].words in DECIDED,
    )
