"""The columns of human scores in a test set's main table, from the tables of its campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from creamtea.contract.columns import Column
from creamtea.report.human.section import CampaignReport
from creamtea.report.model import SIGNIFICANT, Cell, Delta, Table
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


def human_columns(reports: Sequence[CampaignReport], test_set: str) -> list[HumanColumns]:
    """Of the campaigns on this test set that have ratings; with their names in the titles where there are
    several. A column without a number is omitted."""
    of_test_set = [report for report in reports if report.test_set == test_set and report.tables]
    return [_columns(report, named=len(of_test_set) > 1) for report in of_test_set]


def _columns(report: CampaignReport, named: bool) -> HumanColumns:
    means, comparisons = _by_system(report.table("means")), _by_system(report.table("comparisons"))
    of_campaign = f" ({report.campaign})" if named else ""
    note = (
        f"campaign {report.campaign}, {report.state}: {report.progress}; {report.protocol.name}, "
        f"{report.protocol.scale_range}; p: paired t / signed-rank, after Holm"
    )
    score = replace(
        report.points,
        key=f"human:{report.campaign}",
        title=f"human score{of_campaign}",
        better="higher",
        signature=f"{report.signature} ({note})",
    )
    percent = Column(
        f"human_percent:{report.campaign}",
        f"human score{of_campaign}, % of baseline",
        1,
        "higher",
        note=f"of {report.baseline}; interval by the delta method; depends on the scale's zero point",
    )
    verdict = Column(
        f"human_verdict:{report.campaign}", f"verdict{of_campaign}", 0, note=f"against {report.baseline}"
    )
    cells = {}
    for system, mean in means.items():
        compared = comparisons.get(system)
        cells[system] = {
            score.key: replace(mean["mean"], delta=_delta(compared) if compared else None, seeds=1),
            percent.key: mean.get("percent", Cell("absent", report.protocol.ratio_note)),
            verdict.key: compared["verdict"] if compared else Cell("ok", words="baseline"),
        }
    known = any(cell[percent.key].value is not None for cell in cells.values())
    shown = (score, percent, verdict) if known else (score, verdict)
    return HumanColumns(shown, cells, NOT_RATED.format(report.campaign))


def _by_system(table: Table | None) -> dict[str, dict[str, Cell]]:
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
