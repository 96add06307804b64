"""A campaign's report: what was computed, its blocks and figures, its columns in a study's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from creamtea import languages
from creamtea.contract.step import Column
from creamtea.human.results.ratings import Ratings
from creamtea.report import vega
from creamtea.report.human.verdicts import Pair, RatedCampaign, SystemMean, estimate, p_value, verdict_cell
from creamtea.report.model import (
    Block,
    Cell,
    Choice,
    Delta,
    Fact,
    Facts,
    Figure,
    Notes,
    PValue,
    Row,
    Section,
    Spec,
    Table,
    Texts,
    column_meanings,
)
from creamtea.stats.paired import FEW_RATERS, SIGNIFICANT
from creamtea.stats.verdict import Outcome
from creamtea.wording import counted

# beginnings of table keys; the other tables are in the folded section
UNFOLDED = (
    "means",
    "ranks",
    "comparisons",
    "documents",
    "random_means",
    "random_comparisons",
    "scale_",
    "looks",
    "origins",
    "repairs",
)


@dataclass(frozen=True)
class CampaignReport:
    """The results of one campaign. Means, pairs and tables are empty until a rating counts."""

    judged: RatedCampaign
    means: tuple[SystemMean, ...]
    pairs: tuple[Pair, ...]  # with the baseline
    tables: tuple[Table, ...]
    texts: tuple[Texts, ...]
    styles: vega.Styles  # of its systems

    def section(self) -> Section:
        campaign = self.judged.ratings.campaign
        blocks: list[Block] = [table for table in self.tables if table.key.startswith(UNFOLDED)]
        more = tuple(table for table in self.tables if not table.key.startswith(UNFOLDED))
        blocks += figures(self)
        if more:
            blocks.append(Section("more", "More tables", more, folded=True))
        blocks += [*self.texts, Notes("notes", tuple(_notes(self.judged)))]
        blocks += column_meanings(column for table in self.tables for column in table.columns)
        blocks.append(Facts("signature", "", (Fact("signature", signature(self.judged), code=True),)))
        pair = languages.pair(campaign.source_language, campaign.target_language)
        facts = (
            f"{campaign.protocol.title}, {campaign.protocol.scale_range}",
            f"{campaign.state}: {progress(self.judged.ratings)}",
            f"{campaign.test_set}, {pair}",
        )
        return Section(campaign.name, campaign.name, tuple(blocks), facts=facts, test_set=campaign.test_set)


# ---------------------------------------------------------------- words


def progress(ratings: Ratings) -> str:
    """Say how far a campaign is: "360 of 400 item ratings (90 %) by 2 raters".

    For ratings made elsewhere, the planned number is unknown and omitted.
    """
    raters = len(ratings.raters)
    by = f"by {counted(raters, 'rater')}"
    if not ratings.campaign.is_planned:
        return f"{counted(ratings.submitted, 'item rating')} {by}"
    share = f" ({100 * ratings.submitted / ratings.wanted:.0f} %)" if ratings.wanted else ""
    return f"{ratings.submitted:,} of {counted(ratings.wanted, 'item rating')}{share} {by}"


def signature(judged: RatedCampaign) -> str:
    facts = judged.ratings.campaign
    shown, between = facts.settings.show_reference, facts.settings.differ_between
    return "|".join(
        [
            f"campaign:{facts.name}",
            f"protocol:{facts.protocol.name}",
            f"items:{judged.ratings.items}",
            *([f"select:{facts.settings.select}"] if facts.settings.select else []),
            *([f"reference-shown:{','.join(map(str, shown))}"] if shown else []),
            *([f"differ-between:{','.join(between)}"] if between else []),
            f"raters:{len(judged.ratings.raters)}",
            f"ratings-per-item:{facts.ratings_per_item}",
            f"delta:{judged.delta:g}",
            f"seed:{facts.seed}",
            f"state:{facts.state}",
        ]
    )


def _notes(judged: RatedCampaign) -> list[str]:
    ratings = judged.ratings
    out = ratings.left_out
    others = out.excluded_ratings + out.control_ratings + out.third_ratings + out.skipped
    if not len(ratings.value) and not others:
        return ["The campaign has no ratings yet."]
    notes = [_left_out(judged)]
    weighted = "Means, differences and their tests are weighted; the signed-rank test takes no weights."
    if len(set(ratings.weight.tolist())) > 1:
        notes.append(f"Items have weights. {weighted}")
    if shown := ratings.campaign.settings.show_reference:
        which = "a reference" if len(shown) == 1 else f"{len(shown)} references"
        notes.append(f"Raters saw {which} beside each source.")
    estimates = judged.estimates if judged.in_blocks else None
    if judged.documents is not None and (estimates is not None or not judged.in_blocks):
        # an adaptive design estimates from the pages of its last look
        groups = len(set(judged.documents.tolist())) if estimates is None else estimates.clusters
        if ratings.together == "segment":
            notes.append(
                f"Pairs of a segment are grouped: intervals of means are over {counted(groups, 'segment')}."
            )
        else:
            notes.append(
                "Segments of a document are grouped: intervals and tests are over "
                f"{counted(groups, 'document')}, each of which weighs as much as its segments."
            )
    elif len(ratings.document) > 1 and not ratings.document.any():  # all have the number of the only document
        notes.append(
            "All segments are from one document: intervals and tests take them as independent, and are about "
            "no other document."
        )
    if times := ratings.campaign.reopened:
        notes.append(
            f"The campaign was closed and opened again ({counted(times, 'time')}; its log says why). If the "
            "results were a reason, verdicts err more often than the tests say."
        )
    if judged.protocol.relative:
        notes.append(judged.protocol.ratio_note)
    if len(ratings.raters) == 1:
        notes.append("One rater: how others would judge, and how far they would agree, is unknown.")
    if 1 < len(ratings.raters) < FEW_RATERS:
        notes.append(
            f"{len(ratings.raters)} raters are too few to show how raters differ: intervals that allow for "
            "other raters are wide, and verdicts, which depend on them, often undecided."
        )
    if not len(ratings.value):
        notes.append("No rating of the systems counts yet.")
    return notes


def _left_out(judged: RatedCampaign) -> str:
    """Count the scores that count (systems of equal outputs share a rating), and by reason what does not."""
    ratings, out = judged.ratings, judged.ratings.left_out
    after = int((judged.weights[ratings.unit] == 0).sum()) if judged.is_adaptive else 0
    counting = len(ratings.value) - after
    closed = ratings.campaign.state == "closed"
    parts = {
        f"scores after the last look{'' if closed else ', until the next look'}": after,
        f"scores by excluded raters ({out.excluded_raters})": out.excluded_ratings,
        "scores that a rater revised later": out.replaced_ratings,
        "scores of controls, practice items and attention checks": out.control_ratings,
        "scores of third ratings, shown beside those that disagree": out.third_ratings,
        "skips": out.skipped,
        "items without a rating": out.unrated_items,
        "items that the adaptive design did not give to raters": out.passed_over,
    }
    listed = [f"{words}: {number:,}" for words, number in parts.items() if number]
    if out.excluded_raters and not out.excluded_ratings:
        listed.append(f"excluded raters without ratings: {out.excluded_raters:,}")
    what = f"{counted(counting, 'score')} count{'s' * (counting == 1)}"
    if ratings.submitted:
        what += (
            f" (from {counted(ratings.submitted, 'item rating')}, one for each system whose output was rated)"
        )
    if out.incomplete_items:
        wanted = ratings.campaign.ratings_per_item
        what += f", with fewer than {wanted} raters on {out.incomplete_items:,} of the items"
    return f"{what}. Left out: {'; '.join(listed)}." if listed else f"{what}. Nothing was left out."


# ---------------------------------------------------------------- figures


def figures(report: CampaignReport) -> list[Figure | Choice]:
    """Draw every figure that a campaign has data for."""
    drawn: list[Figure | Choice] = []
    tables = {table.key: table for table in report.tables}
    campaign = report.judged.ratings.campaign.name
    if any(mean.ratio is not None for mean in report.means):
        drawn.append(baseline_is_hundred(report))
    if (ranking := tables.get("ranks", tables.get("wmt"))) is not None:
        drawn.append(rank_ranges(ranking, campaign, report.styles))
    if (scores := tables.get("people_and_metrics")) is not None:
        metrics = [column for column in scores.columns if column.key != "people"]
        compared = tuple(people_against_metric(report, scores, metric) for metric in metrics)
        drawn.append(
            Choice("metrics", "Human scores against a metric", ("Metric to compare",), compared, "no metrics")
        )
    return drawn


def baseline_is_hundred(report: CampaignReport) -> Figure:
    """Draw each system's percentage of the baseline, with both intervals."""
    judged, styles = report.judged, report.styles
    baseline, campaign = judged.systems[judged.baseline], judged.ratings.campaign.name
    rows, missing = [], []
    for mean in report.means:
        if (ratio := mean.ratio) is None:
            continue
        if ratio.delta.value is None:
            missing.append(f"{judged.systems[mean.system]} ({'no ratio' if mean.items else 'not rated'})")
        rows.append(
            {
                "system": judged.systems[mean.system],
                "percent": ratio.delta.value,
                "low": ratio.delta.low,
                "high": ratio.delta.high,
                "paired_low": ratio.paired_t.low,
                "paired_high": ratio.paired_t.high,
                "baseline": 100.0,
            }
        )
    title = f"% of {baseline}"
    names = [judged.systems[mean.system] for mean in report.means]
    y = vega.named("system", names)
    style = vega.by_style("system", {name: styles[name] for name in names}, legend={})
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("percent", title, ".1f"),
        ("low", "delta method, from", ".1f"),
        ("high", "to", ".1f"),
        ("paired_low", "paired t, from", ".1f"),
        ("paired_high", "to", ".1f"),
    )

    fields = ("baseline", "low", "paired_low", "percent")
    x = {field: vega.quantity(field, title, zero=False) for field in fields}
    delta = {"x": x["low"], "x2": {"field": "high"}, "y": y, "color": style["color"]}
    paired = delta | {"x": x["paired_low"], "x2": {"field": "paired_high"}}
    layers = [
        vega.rule({"x": x["baseline"], "color": {"value": vega.GREY}}, strokeDash=[4, 3]),
        vega.rule(delta, strokeWidth=6, opacity=0.35),
        vega.rule(paired, strokeWidth=2),
        vega.points({"x": x["percent"], "y": y, **style, "tooltip": tooltip}, size=80),
    ]
    heading = f"Human scores: {baseline} = 100 % ({campaign})"
    about = "Thick: delta method. Thin: paired t."
    return vega.figure("hundred", heading, rows, layers, missing, names=names, about=about)


def people_against_metric(report: CampaignReport, scores: Table, metric: Column) -> Figure:
    """Draw each system's mean human score over the metric's mean, on the same outputs."""
    styles, campaign = report.styles, report.judged.ratings.campaign.name
    points = next(column for column in scores.columns if column.key == "people")
    intervals = {report.judged.systems[mean.system]: mean.mean for mean in report.means}
    rows, missing = [], []
    for row in scores.rows:
        people, score, mean = row.cells["people"], row.cells[metric.key], intervals[row.name]
        shown = vega.with_bounds(replace(people, low=mean.low, high=mean.high), points, "people")
        rows.append({"system": row.name, **shown, "metric": score.value})
        if people.value is None or score.value is None:
            missing.append(f"{row.name} (not measured)")
    x = vega.quantity("metric", f"{metric.title}, mean of segments", zero=False, padding=30)
    y = vega.quantity("people", f"human score, {points.unit or 'points'}", zero=False)
    own = {row.name: styles[row.name] for row in scores.rows}
    tooltip = vega.tooltip(
        ("system", "system", ""),
        *vega.with_interval("people", points),
        ("metric", metric.title, vega.digits(metric)),
    )
    up = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    return vega.figure(
        metric.key,
        f"Human scores against {metric.title} ({campaign})",
        rows,
        vega.systems_at(x, y, rows, own, tooltip, [up]),
        missing,
        choice=(metric.title,),
    )


def rank_ranges(ranking: Table, campaign: str, styles: vega.Styles) -> Figure:
    """Draw a bar over each system's possible ranks, with a line between clusters."""
    rows: list[dict[str, Any]] = [
        {
            "system": row.name,
            "low": row.cells["rank_low"].value,
            "high": row.cells["rank_high"].value,
            "cluster": f"{row.cells['cluster'].value:.0f}",
            "begins": False,
        }
        for row in ranking.rows
        if row.cells["rank_low"].value is not None
    ]
    absent = [
        (row.name, row.cells["rank_low"]) for row in ranking.rows if row.cells["rank_low"].value is None
    ]
    missing = [f"{name} ({cell.note if ranking.key == 'ranks' else 'not rated'})" for name, cell in absent]
    for row, above in zip(rows[1:], rows, strict=False):
        row["begins"] = row["cluster"] != above["cluster"]
    names = [row.name for row in ranking.rows]
    y = vega.named("system", names)
    style = vega.by_style("system", {name: styles[name] for name in names}, legend={})
    x: Spec = {
        "field": "low",
        "type": "quantitative",
        "title": "rank",
        "scale": {"domain": [0.5, max(1, len(rows)) + 0.5], "nice": False},
        "axis": {"values": list(range(1, len(rows) + 1)), "format": "d", "grid": False},
    }
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("low", "from rank", "d"),
        ("high", "to rank", "d"),
        ("cluster", "cluster", ""),
    )
    bar = vega.rule({"x": x, "x2": {"field": "high"}, "y": y, "color": style["color"]}, strokeWidth=5)
    between = vega.rule({"y": y | {"bandPosition": 0}}, strokeDash=[4, 4], color=vega.GREY)
    between = {"transform": [{"filter": "datum.begins"}], **between}
    point = {"y": y, **style, "tooltip": tooltip}
    ends = [vega.points({"x": x | {"field": end}, **point}, size=80) for end in ("low", "high")]
    source = "over pages" if ranking.key == "ranks" else "WMT mode"
    title, about = f"Rank ranges, {source} ({campaign})", "Dashed lines stand between clusters."
    return vega.figure("rank_ranges", title, rows, [between, bar, *ends], missing, names=names, about=about)


# ---------------------------------------------------------------- columns of a study's table

ONE_CAMPAIGN = "human scores"


def human_columns(reports: Sequence[CampaignReport], test_set: str) -> list[Table]:
    """Return a table of two or three columns for each campaign on this test set that has ratings.

    Headings name the campaign if there are several. A column without a number is omitted.
    """
    rated = [
        report for report in reports if report.judged.ratings.campaign.test_set == test_set and report.tables
    ]
    return [_columns(report, named=len(rated) > 1) for report in rated]


def _columns(report: CampaignReport, named: bool) -> Table:
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
        note=f"of {baseline}, over the items rated for both; interval by the delta method; depends on the "
        "scale's zero point",
    )
    verdict = Column(f"human_verdict:{campaign.name}", f"verdict{of_campaign}", 0, note=f"against {baseline}")
    pairs = {pair.system: pair for pair in report.pairs}
    rows = []
    for mean in report.means:
        pair = pairs.get(mean.system)
        ratio = mean.ratio
        cells = {
            score.key: replace(estimate(mean.mean), delta=_delta(judged, pair) if pair else None, seeds=1),
            percent.key: Cell("absent", protocol.ratio_note) if ratio is None else estimate(ratio.delta),
            verdict.key: verdict_cell(judged, pair.verdict) if pair else Cell("ok", words="baseline"),
        }
        rows.append(Row(judged.systems[mean.system], cells))
    known = any(row.cells[percent.key].value is not None for row in rows)
    shown = (score, percent, verdict) if known else (score, verdict)
    group = f"people: {campaign.name}"
    columns = tuple(replace(column, group=group, one_of=ONE_CAMPAIGN) for column in shown)
    return Table("people", campaign.name, "system", columns, tuple(rows))


def _delta(judged: RatedCampaign, pair: Pair) -> Delta:
    """Return the comparison with the baseline as the other columns show it.

    A mark needs both tests to agree, and a verdict that few or differing raters do not leave undecided. In
    blocks, the verdict alone decides, and the difference is over all pages.
    """
    if judged.in_blocks:
        estimates, decided = judged.estimates, pair.verdict.outcome in (Outcome.BETTER, Outcome.WORSE)
        if estimates is None or estimates.reason is not None:
            return Delta("absent", pair.verdict.reason or "")
        matrices = (estimates.difference, estimates.half)
        size, half = (float(matrix[pair.system, pair.baseline]) for matrix in matrices)
        return Delta("ok", value=size, low=size - half, high=size + half, significant=decided)
    assert pair.tests is not None
    tests, difference, ranks = pair.tests, pair.tests.comparison.estimate, pair.tests.signed_rank
    known = [p for p in (tests.t, ranks) if p is not None]  # no t if all differences are equal
    if difference.value is None or not known:
        why = estimate(difference).note or p_value(None, tests.comparison.t_test.reason).note
        return Delta("absent", why)
    return Delta(
        "ok",
        value=difference.value,
        low=difference.low,
        high=difference.high,
        p_values={"t": PValue(corrected=tests.t), "signed_rank": PValue(corrected=ranks)},
        significant=max(known) < SIGNIFICANT and pair.verdict.outcome in (Outcome.BETTER, Outcome.WORSE),
    )
