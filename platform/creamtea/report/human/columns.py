"""The columns of human scores in a test set's main table, from the tables of its campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from creamtea.contract.columns import Column
from creamtea.report.cells import absent
from creamtea.report.human.section import CampaignReport, progress, signature
from creamtea.report.model import Cell, Delta, PValue, Table
from creamtea.stats.correction import SIGNIFICANT
from creamtea.stats.verdict import Outcome

ONE_CAMPAIGN = "human scores"
DECIDED = (Outcome.BETTER.value, Outcome.WORSE.value)


@dataclass(frozen=True)
class HumanColumns:
    """Two or three columns of one campaign; `cells` by system and column key."""

    campaign: str
    columns: tuple[Column, ...]
    cells: dict[str, dict[str, Cell]]

    def of(self, system: str) -> dict[str, Cell]:
        missing = absent(f"the system does not take part in campaign {self.campaign}")
        return self.cells.get(system) or {column.key: missing for column in self.columns}


def human_columns(reports: Sequence[CampaignReport], test_set: str) -> list[HumanColumns]:
    """Of the campaigns on this test set that have ratings; with their names in the titles where there are
    several. A column without a number is omitted."""
    here = [
        report for report in reports if report.judged.ratings.campaign.test_set == test_set and report.tables
    ]
    return [_columns(report, named=len(here) > 1) for report in here]


def _columns(report: CampaignReport, named: bool) -> HumanColumns:
    means, comparisons = (_by_system(report.tables, key) for key in ("means", "comparisons"))
    judged, campaign, protocol = report.judged, report.judged.ratings.campaign, report.judged.protocol
    baseline = judged.systems[judged.baseline]
    of_campaign = f" ({campaign.name})" if named else ""
    note = (
        f"campaign {campaign.name}, {campaign.state}: {progress(judged.ratings)}; {protocol.name}, "
        f"{protocol.scale_range}; p: paired t / signed-rank, after Holm"
    )
    score = replace(
        judged.points(f"human:{campaign.name}", f"human score{of_campaign}", better="higher"),
        signature=f"{signature(judged)} ({note})",
    )
    percent = Column(
        f"human_percent:{campaign.name}",
        f"human score{of_campaign}, % of baseline",
        1,
        "higher",
        note=f"of {baseline}; interval by the delta method; depends on the scale's zero point",
    )
    verdict = Column(f"human_verdict:{campaign.name}", f"verdict{of_campaign}", 0, note=f"against {baseline}")
    cells = {}
    for system, mean in means.items():
        compared = comparisons.get(system)
        cells[system] = {
            score.key: replace(mean["mean"], delta=_delta(compared) if compared else None, seeds=1),
            percent.key: mean.get("percent", absent(protocol.ratio_note)),
            verdict.key: compared["verdict"] if compared else Cell("ok", words="baseline"),
        }
    known = any(cell[percent.key].value is not None for cell in cells.values())
    shown = (score, percent, verdict) if known else (score, verdict)
    group = f"people: {campaign.name}"
    columns = tuple(replace(column, group=group, one_of=ONE_CAMPAIGN) for column in shown)
    return HumanColumns(campaign.name, columns, cells)


def _by_system(tables: Sequence[Table], key: str) -> dict[str, dict[str, Cell]]:
    return {row.name: row.cells for table in tables if table.key == key for row in table.rows}


def _delta(cells: dict[str, Cell]) -> Delta:
    """The comparison with the baseline as the other columns have it: for a mark both tests must agree, and
    the verdict must not be undecided because of few raters, or raters who differ."""
    difference, t, ranks = (cells.get(key, Cell("absent")) for key in ("difference", "p_t", "p_signed_rank"))
    known = [p for p in (t.value, ranks.value) if p is not None]  # no t where all differences are equal
    if difference.value is None or not known:
        return Delta("absent", difference.note or t.note)
    return Delta(
        "ok",
        value=difference.value,
        low=difference.low,
        high=difference.high,
        p_values={"t": PValue(corrected=t.value), "signed_rank": PValue(corrected=ranks.value)},
        significant=max(known) < SIGNIFICANT and cells["verdict"].words in DECIDED,
    )
