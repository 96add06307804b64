"""Agreement of raters with each other and with metrics, their severity, and the ranking by WMT's rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.human.formats.appraise import REFERENCE
from creamtea.human.media import kind_of
from creamtea.human.record import files_of
from creamtea.human.results.disputes import disputes_of, rated_twice
from creamtea.human.results.ratings import Array, Booleans, Integers, Ratings, ScoresByRater
from creamtea.report.cells import StudyResults
from creamtea.report.human.verdicts import ITEMS, RatedCampaign, count, estimate, number, table
from creamtea.report.model import Cell, Entry, Passage, Row, Table, Texts
from creamtea.stats.agreement import intraclass, krippendorff_alpha, rater_agreement
from creamtea.stats.estimate import ROUNDING
from creamtea.stats.human_metric import (
    Kind,
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from creamtea.stats.paired import SIGNIFICANT
from creamtea.stats.wmt import BAD, RATED, REPEAT, WmtRule, wmt_ranking
from creamtea.store.tables import Item, ItemKind, SegmentScore
from creamtea.wording import counted, with_minus

MAX_TEXTS = 8  # outputs in a list
MAX_DISPUTES = 50  # with their texts
RATINGS = Column("ratings", "ratings", 0)
AGREEMENT = (
    Column("raters", "raters", 0),
    RATINGS,
    Column(
        "alpha",
        "Krippendorff's α",
        2,
        note="interval distances; 1: full agreement, 0: chance; 95 % jackknife interval over items",
    ),
    Column(
        "icc_absolute", "ICC(2,1)", 2, note="reliability of one rating; a rater's severity counts as error"
    ),
    Column("icc_consistency", "ICC(3,1)", 2, note="reliability of one rating; severity does not count"),
    Column("icc_mean", "ICC(2,k)", 2, note="reliability of the mean over an output's ratings"),
)


def agreement(judged: RatedCampaign, outputs: ScoresByRater) -> list[Table]:
    """Build the tables of agreement: of all raters, and of each rater. Empty if no output has two raters."""
    matrix, units = outputs.scores, outputs.unit
    if not ((~np.isnan(matrix)).sum(axis=1) > 1).any():
        return []
    together_with = units if judged.documents is None else judged.documents[units]
    alpha = krippendorff_alpha(matrix, groups=together_with)
    icc = intraclass(matrix)
    each = judged.protocol.scores_each
    cells = {
        "outputs": count(alpha.units // each),
        "raters": count(alpha.raters),
        "ratings": count(alpha.ratings // each),
        "alpha": estimate(alpha),
        "icc_absolute": number(icc.two_1, icc.reason),
        "icc_consistency": number(icc.three_1, icc.reason),
        "icc_mean": number(icc.two_k, icc.reason),
    }
    about = "Over single outputs; a text that several systems share was judged once and counts once."
    if judged.protocol.relative:
        about = "Over pairs, whichever side an output was shown on."
    columns = [_outputs(judged, "with ratings by two or more raters"), *AGREEMENT]
    together = table("agreement", "Agreement", about, "raters", columns, [Row("all raters", cells)])
    return [together, _each_rater(judged, matrix, units)]


def _outputs(judged: RatedCampaign, note: str) -> Column:
    return Column("outputs", judged.protocol.judged, 0, note=note)


def _each_rater(judged: RatedCampaign, matrix: Array, units: Integers) -> Table:
    columns = [
        _outputs(judged, "that other raters also rated"),
        judged.points(
            "severity",
            "severity",
            "mean of the rater's score minus the others' mean, 95 % interval; below 0: severe, above 0: mild",
        ),
        Column("correlation", "correlation", 2, note="Pearson's r with the mean of the others"),
    ]
    rows = []
    output, rater = np.nonzero(~np.isnan(matrix))
    everybody = range(matrix.shape[1])
    groups = None if judged.documents is None else judged.documents[units]
    scores = matrix[output, rater]
    for own in rater_agreement(rater, output, scores, units, everybody, groups=groups):
        cells = {
            "outputs": count(own.outputs // judged.protocol.scores_each),
            "correlation": estimate(own.correlation),
        }
        if not judged.protocol.relative:  # preferences always add up to the same: nobody is severe
            cells["severity"] = estimate(own.severity)
        rows.append(Row(judged.ratings.raters[own.rater], cells))
    about = f"Each rater against the others, on the {judged.protocol.judged} that they share."
    return table("raters", "Raters", about, "rater", columns, rows)


# ---------------------------------------------------------------- where raters disagree


def shown_texts(
    session: Session, ratings: Ratings, cells: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Return source and output of (unit, system) cells, from the items that were rated.

    The output is followed by the kinds of its files ("[audio]").
    """
    wanted = set(cells)
    items: dict[int, int] = {}
    for unit, system in wanted:
        rows = (ratings.unit == unit) & (ratings.system == system)
        items[int(ratings.item[rows][0])] = unit
    texts = {}
    for item in session.scalars(select(Item).where(Item.id.in_(items))):
        for system, output in zip(item.systems, item.outputs, strict=True):
            kinds = "".join(f" [{kind_of(file['type'])}]" for file in files_of(item, system))
            shown = f"{output}{kinds}".strip() if kinds else str(output)
            texts[items[item.id], int(system)] = item.source, shown
    return texts


def output_entry(
    judged: RatedCampaign,
    unit: int,
    system: int,
    texts: Mapping[tuple[int, int], tuple[str, str]],
    values: Sequence[tuple[Column, Cell]],
) -> Entry:
    """Show a rated output below its source (`shown_texts`), with values, as "segment 12, beam"."""
    campaign = judged.ratings.campaign
    segment = campaign.settings.segment_name(int(judged.ratings.segment_index[unit]))
    source, output = texts[unit, system]
    above = Passage("source", source, campaign.source_language)
    below = Passage("output", output, campaign.target_language)
    return Entry(f"{segment}, {judged.systems[system]}", tuple(values), (above, below))


def disputes(session: Session, judged: RatedCampaign, outputs: ScoresByRater) -> Texts:
    """List the outputs whose ratings lie furthest apart, with their texts and third ratings."""
    settings, points = judged.ratings.campaign.settings, judged.protocol.points
    bound = settings.disputed_bound(judged.protocol)
    ranked = disputes_of(session, judged.ratings, outputs)
    disputed = sum(dispute.apart(bound) for dispute in ranked)
    listed = ranked[: max(MAX_TEXTS, min(disputed, MAX_DISPUTES))]
    texts = shown_texts(session, judged.ratings, [(dispute.unit, dispute.system) for dispute in listed])
    columns = [judged.points(key, key) for key in ("lowest", "highest", "deviation")]
    third = judged.points("third", "third rating")
    entries = tuple(
        output_entry(
            *(judged, dispute.unit, dispute.system, texts),
            [
                (RATINGS, count(dispute.spread.ratings)),
                *((column, Cell("ok", value=getattr(dispute.spread, column.key))) for column in columns),
                *(((third, number(dispute.third, "asked for")),) if dispute.asked else ()),
            ],
        )
        for dispute in listed
    )
    twice = counted(rated_twice(judged.ratings, outputs), judged.protocol.judged_one)
    about = (
        f"The {judged.protocol.judged} whose ratings lie furthest apart. Raters are "
        f"{points.difference(bound)} or more apart on {disputed:,} of {twice} with two raters or more."
    )
    if disputed > len(listed):
        about += f" The first {len(listed)} are shown; `creamtea campaign disputes` lists all."
    if any(dispute.asked for dispute in ranked):
        about += " Third ratings stand beside the others and count in no mean and no test."
    return Texts("disputes", "Where raters disagree most", about, entries, folded=True)


# ---------------------------------------------------------------- metrics against raters


_BY_ITEM = "over the systems of an item, then the mean over items"
_ALL = "over all outputs at once: also rewards telling hard segments from easy ones"
METRICS = (
    Column("outputs", "outputs", 0, note="with both scores"),
    Column("kendall_item", "τ by item", 3, "higher", note=f"Kendall's τ-b, {_BY_ITEM}"),
    Column("kendall", "τ of all", 3, "higher", note=f"Kendall's τ-b, {_ALL}"),
    Column("pearson_item", "r by item", 3, "higher", note=f"Pearson's r, {_BY_ITEM}"),
    Column("pearson", "r of all", 3, "higher", note=f"Pearson's r, {_ALL}"),
    Column("tie_accuracy", "acc*eq", 3, "higher", note="tie-calibrated, by item (Deutsch et al. 2023)"),
    Column(
        "accuracy",
        "pairwise accuracy",
        3,
        "higher",
        note="pairs of systems in the same order (Kocmi et al. 2021)",
    ),
    Column(
        "soft_accuracy",
        "soft accuracy",
        3,
        "higher",
        note="1 − the mean difference between a pair's p by raters and by metric (Thompson et al. 2024)",
    ),
)


@dataclass(frozen=True)
class MetricScores:
    """A metric's scores of the rated outputs: (units, systems), NaN for a missing score."""

    column: Column
    scores: Array

    @property
    def quality(self) -> Array:
        """The scores, negated for an error metric, so that higher is better."""
        return -self.scores if self.column.better == "lower" else self.scores


def metric_scores(session: Session, ratings: Ratings, results: StudyResults) -> list[MetricScores]:
    """Return the study's segment scores of the rated outputs, which are those of each variant's first seed.

    A metric without scores is omitted.
    """
    campaign, measured = ratings.campaign, []
    units, of_unit = np.unique(ratings.segment_index, return_inverse=True)
    for metric in results.spec.metrics:
        column = metric.column()
        scores = np.full((len(units), len(campaign.systems)), np.nan)
        for index, system in enumerate(campaign.systems):
            steps = results.of("score", system=system, test_set=campaign.test_set, metric=column.key)
            if steps:  # the first step scores the variant's first seed, whose outputs people rate
                _fill(session, steps[0].node.key, units, scores[:, index])
        if not np.isnan(scores).all():
            measured.append(MetricScores(column, scores[of_unit]))
    return measured


def _fill(session: Session, step: str, segments: Integers, column: Array) -> None:
    """Write a step's scores of ascending segment indices into the column (segments,)."""
    query = select(SegmentScore.index, SegmentScore.value).where(
        SegmentScore.step_key == step, SegmentScore.index.between(int(segments[0]), int(segments[-1]))
    )
    # few rows at once: with all of them in memory, garbage collection takes long
    partitions = session.connection().execute(query).partitions(500)
    stored = np.fromiter((number for rows in partitions for row in rows for number in row), dtype=np.float64)
    index, value = stored.reshape(-1, 2).T
    unit = np.searchsorted(segments, index)
    rated = segments[unit] == index
    column[unit[rated]] = value[rated]


def people_and_metrics(judged: RatedCampaign, metrics: Sequence[MetricScores]) -> Table:
    """Build the table of mean human scores and metrics over the same outputs."""
    columns = [
        judged.points("people", "human score", better="higher"),
        *(metric.column for metric in metrics),
    ]
    rows = []
    for index, system in enumerate(judged.systems):
        rated = ~np.isnan(judged.matrix[:, index])
        own = [judged.matrix[:, index], *(metric.scores[:, index] for metric in metrics)]
        cells = {
            column.key: number(_mean(values[rated], judged.weights[rated]), "no segment scores")
            for column, values in zip(columns, own, strict=True)
        }
        rows.append(Row(system, cells))
    about = (
        "Means over the rated items; a metric's value is the mean of segment scores, not the corpus score."
    )
    return table("people_and_metrics", "Human scores and metrics", about, "system", columns, rows)


def _mean(values: Array, weights: Array) -> float | None:
    known = ~np.isnan(values)
    total = float(weights[known].sum()) if known.any() else 0.0
    return float((values[known] * weights[known]).sum()) / total if total > 0 else None


def metric_agreement(judged: RatedCampaign, metrics: Sequence[MetricScores]) -> Table:
    rows = []
    for metric in metrics:
        matrices = judged.matrix, metric.quality
        cells = {
            "outputs": count(int((~np.isnan(judged.matrix + metric.scores)).sum())),
            **{
                f"{kind}{'_item' * by_item}": estimate(segment_correlation(*matrices, kind, by_item=by_item))
                for kind in get_args(Kind)
                for by_item in (True, False)
            },
            "tie_accuracy": estimate(tie_calibrated_accuracy(*matrices)),
            "accuracy": estimate(pairwise_accuracy(*matrices)),
            "soft_accuracy": estimate(soft_pairwise_accuracy(*matrices)),
        }
        rows.append(Row(metric.column.title, cells))
    about = (
        "How far each metric agrees with raters on the rated items. With few systems, the accuracies over "
        "pairs of systems can take only few values."
    )
    return table("metrics", "Metrics against human scores", about, "metric", METRICS, rows)


# ---------------------------------------------------------------- where they disagree


GAP = Column("gap", "gap", 1, note="the raters' standard score minus the metric's")


def disagreements(session: Session, judged: RatedCampaign, metrics: Sequence[MetricScores]) -> Texts:
    """List for each metric the outputs whose standard scores differ most, with their texts."""
    largest = []
    for metric in metrics:
        both = ~np.isnan(judged.matrix) & ~np.isnan(metric.scores)
        if both.sum() < 2:
            continue
        rated, scores = _standard(judged.matrix, both), _standard(metric.quality, both)
        if rated is None or scores is None:
            continue
        gap = rated - scores
        cells = np.argwhere(both)
        order = np.lexsort((cells[:, 1], cells[:, 0], -np.abs(gap[both])))[:MAX_TEXTS]
        largest += [
            (metric, int(unit), int(system), float(gap[unit, system])) for unit, system in cells[order]
        ]
    texts = shown_texts(session, judged.ratings, [(unit, system) for _, unit, system, _ in largest])
    people = judged.points("people", "human score")
    entries = tuple(
        output_entry(
            *(judged, unit, system, texts),
            [
                (people, Cell("ok", value=float(judged.matrix[unit, system]))),
                (metric.column, Cell("ok", value=float(metric.scores[unit, system]))),
                (GAP, Cell("ok", value=gap, words=with_minus(f"{gap:+.{GAP.digits}f}"))),
            ],
        )
        for metric, unit, system, gap in largest
    )
    about = (
        "Gap: the raters' standard score (over all rated outputs) minus the metric's. Above 0, raters like "
        "the output better than the metric does."
    )
    title = "Where human scores and metrics disagree most"
    return Texts("disagreements", title, about, entries, folded=True)


def _standard(matrix: Array, known: Booleans) -> Array | None:
    """Return the standard scores of the known cells; None if all are equal."""
    values = matrix[known]
    if float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max()):
        return None
    standard: Array = (matrix - values.mean()) / np.std(values, ddof=1)
    return standard


# ---------------------------------------------------------------- WMT mode


Z = Column(
    "z", "mean z", 3, "higher", note="z: a score minus the rater's mean, divided by the rater's deviation"
)
CLUSTERS = {  # by `WmtRule.line`
    "all beaten": "every system of a cluster beats every one of the next",
    "own wins": "a cluster ends with a system that has as many wins as there are systems below it",
    "fewest wins": "a cluster ends where every system so far has as many wins as there are systems below",
}


WEAKNESSES = {  # by `WmtRule.test`
    "Mann-Whitney": "the Mann-Whitney test ignores that ratings of one item are paired, and misses most true "
    "differences",
    "signed-rank": "segments of one document count as independent",
    "bootstrap": "two uncorrected tests of every pair, of which one must pass, raise false alarms; documents "
    "and raters are ignored",
}
BOOTSTRAP = (
    "systems that it beats: the lower end of a one-sided 95 % bootstrap interval (100 resamples), paired or "
    "unpaired, is above 0"
)


def _wmt_columns(judged: RatedCampaign, rule: WmtRule) -> list[Column]:
    side = "one-sided" if rule.test == "Mann-Whitney" else "two-sided"
    beaten = f"systems that it beats: {side} {rule.test} p < {SIGNIFICANT:g}"
    beaten += ", with a higher mean" if rule.higher_mean else ""
    beaten += ", on the segments that are rated for both" if rule.matched else ""
    kept = Column("kept", "confirmed", 0, note="wins that this report's verdicts on all pairs confirm")
    return [
        ITEMS,
        judged.points("raw", "raw mean", better="higher"),
        *([Z] if rule.standardised_by != "none" else []),
        Column("wins", "wins", 0, note=BOOTSTRAP if rule.test == "bootstrap" else beaten),
        *([kept] if rule.test == "bootstrap" else []),
        Column("losses", "losses", 0),
        Column("rank_low", "ranks from", 0, note="losses + 1"),
        Column("rank_high", "ranks to", 0, note="the number of systems minus the wins"),
        Column("cluster", "cluster", 0, note=CLUSTERS[rule.line]),
    ]


def wmt_mode(judged: RatedCampaign, rule: WmtRule, better: Collection[tuple[int, int]]) -> Table:
    """Build the table of z-scores, rank ranges and clusters by a rule of WMT's findings papers.

    `better`: pairs (better, worse) by this report's verdicts, for a rule without correction. An import's
    human translation (REF lines) does not compete; a reference that was rated as a system does.
    """
    ratings, controls = judged.ratings, judged.ratings.controls
    imported = [] if ratings.campaign.is_planned else ratings.campaign.settings.references
    left_out = [judged.systems.index(name) for name in imported if name == REFERENCE]
    if judged.protocol.relative:  # an output's score in another pair is not a second opinion on it
        rule = replace(rule, again="each")
    by_domain = rule.domains and bool(ratings.domains)
    used = judged.weights[ratings.unit] > 0
    segments = np.concatenate([ratings.segment[used], controls.segment])
    ranking = wmt_ranking(
        rater=np.concatenate([ratings.rater[used], controls.rater]),
        system=np.concatenate([ratings.system[used], controls.system]),
        segment=segments,
        score=np.concatenate([ratings.value[used], controls.value]),
        systems=len(judged.systems),
        kind=np.concatenate(
            [np.full(used.sum(), RATED), np.where(controls.kind == ItemKind.REPEAT, REPEAT, BAD)]
        ),
        rule=rule,
        left_out=left_out,
        domain=[ratings.domains.get(segment, "") for segment in segments.tolist()] if by_domain else None,
        moment=np.concatenate([ratings.moment[used], np.zeros(len(controls.value), dtype=np.int64)]),
    )
    standardised = rule.standardised_by != "none"
    rows = []
    for system in ranking:
        kept = sum((system.position, other) in better for other in system.beaten)
        cells = {
            "items": count(system.segments),
            "raw": number(system.raw),
            **({"z": number(system.z)} if standardised else {}),
            "wins": count(system.wins),
            **({"kept": count(kept)} if rule.test == "bootstrap" else {}),
            "losses": count(system.losses),
            "rank_low": number(system.rank_low),
            "rank_high": number(system.rank_high),
            "cluster": number(system.cluster),
        }
        rows.append(Row(judged.systems[system.position], cells))
    over = ", over segments: no domains are known" if rule.domains else ""
    if by_domain:
        over = f", means over {counted(len(set(ratings.domains.values())), 'domain')}"
        over += ", whose p-values are combined whichever system a domain favours"
    about = (
        f"By WMT's rules ({rule.title}{over}). Use it only to compare with WMT's published tables: "
        f"{WEAKNESSES[rule.test]}. Item weights are ignored here."
    )
    return table("wmt", "WMT mode", about, "system", _wmt_columns(judged, rule), rows)
