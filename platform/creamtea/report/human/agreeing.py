"""How far raters agree, where they disagree, how severe each is, and the ranking by WMT's rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results.ratings import Array, Ratings
from creamtea.human.results.score_rows import Integers
from creamtea.report.human.comparing import ITEMS
from creamtea.report.human.material import (
    MAX_TEXTS,
    Judged,
    count,
    estimate,
    number,
    output_name,
    passages,
    shown_texts,
    table,
)
from creamtea.report.model import Cell, Entry, Row, Table, Texts
from creamtea.stats.agreement import intraclass, krippendorff_alpha
from creamtea.stats.correction import SIGNIFICANT
from creamtea.stats.raters import largest_spread, rater_agreement
from creamtea.stats.wmt import BAD, RATED, REPEAT, RULES, USUAL, WmtRule, wmt_ranking
from creamtea.wording import counted

RATINGS = Column("ratings", "ratings", 0)
AGREEMENT = (
    Column("raters", "raters", 0),
    RATINGS,
    Column(
        "alpha",
        "Krippendorff's α",
        2,
        note="interval distances; 1 full agreement, 0 that of chance; 95 % jackknife interval over items",
    ),
    Column(
        "icc_absolute",
        "ICC(2,1)",
        2,
        note="of one rating, a rater's severity counts as error",
    ),
    Column("icc_consistency", "ICC(3,1)", 2, note="of one rating, severity does not count"),
    Column("icc_mean", "ICC(2,k)", 2, note="of the mean over an output's ratings"),
)


@dataclass(frozen=True)
class ScoresByRater:
    """Of each output. An output that is the same text as another on its unit is omitted: the text was judged
    once."""

    scores: Array  # (outputs, raters), NaN where missing
    unit: Integers  # (outputs,)
    system: Integers


def by_rater(ratings: Ratings, repeated: NDArray[np.bool_]) -> ScoresByRater:
    systems, given = len(ratings.campaign.systems), ratings.judgements
    own = ~repeated[given.unit, given.system]
    cells, output = np.unique(given.unit[own] * systems + given.system[own], return_inverse=True)
    matrix = np.full((len(cells), len(ratings.raters)), np.nan)
    matrix[output, given.rater[own]] = given.value[own]
    return ScoresByRater(matrix, cells // systems, cells % systems)


def agreement(judged: Judged, outputs: ScoresByRater) -> list[Table]:
    """Nothing where no output has two raters."""
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
    about = "Of single outputs; a text that several systems share was judged once and counts once."
    if judged.protocol.relative:
        about = "Of pairs; on which side an output was shown changes nothing."
    columns = [_outputs(judged, "with ratings of two raters or more"), *AGREEMENT]
    together = table("agreement", "Agreement", about, "raters", columns, [Row("all raters", cells)])
    return [together, _each_rater(judged, matrix, units)]


def _outputs(judged: Judged, note: str) -> Column:
    return Column("outputs", judged.protocol.judged, 0, note=note)


def _each_rater(judged: Judged, matrix: Array, units: Integers) -> Table:
    columns = [
        _outputs(judged, "that somebody else rated too"),
        judged.points(
            "severity",
            "severity",
            "mean of the rater's score less the others' mean, 95 % interval: below 0 severe, above 0 mild",
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


def disputes(session: Session, judged: Judged, outputs: ScoresByRater) -> Texts:
    """The outputs whose ratings lie furthest apart, with their texts. Of a pair only the first: what one
    output gains, the other loses."""
    rows = np.arange(len(outputs.unit))
    if judged.protocol.relative:
        rows = np.unique(outputs.unit, return_index=True)[1]
    spreads = largest_spread(outputs.scores[rows], MAX_TEXTS)
    chosen = rows[[spread.output for spread in spreads]]
    cells = list(zip(outputs.unit[chosen].tolist(), outputs.system[chosen].tolist(), strict=True))
    texts = shown_texts(session, judged.ratings, cells)
    columns = [judged.points(key, key) for key in ("lowest", "highest", "deviation")]
    entries = tuple(
        Entry(
            output_name(judged, unit, system),
            (
                (RATINGS, count(spread.ratings)),
                *((column, Cell("ok", value=getattr(spread, column.key))) for column in columns),
            ),
            passages(judged, *texts[unit, system]),
        )
        for spread, (unit, system) in zip(spreads, cells, strict=True)
    )
    about = "The outputs whose ratings lie furthest apart, by their standard deviation."
    return Texts("disputes", "Where raters disagree most", about, entries, folded=True)


# ---------------------------------------------------------------- WMT mode


Z = Column("z", "mean z", 3, "higher", note="z: a rater's score less their mean, over their deviation")
CLUSTERS = {  # by `WmtRule.line`
    "all beaten": "every system of a cluster beats every one of the next",
    "own wins": "a cluster ends with a system that has as many wins as there are systems below it",
    "fewest wins": "a cluster ends where every system so far has as many wins as there are systems below",
}


def _wmt_columns(judged: Judged, rule: WmtRule) -> list[Column]:
    side = "one-sided" if rule.test == "Mann-Whitney" else "two-sided"
    beaten = f"systems that it beats: {side} {rule.test} p < {SIGNIFICANT:g}"
    beaten += ", with a higher mean" if rule.higher_mean else ""
    beaten += ", on the segments that are rated for both" if rule.matched else ""
    return [
        ITEMS,
        judged.points("raw", "raw mean", better="higher"),
        *([Z] if rule.standardised_by != "none" else []),
        Column("wins", "wins", 0, note=beaten),
        Column("losses", "losses", 0),
        Column("rank_low", "ranks from", 0, note="losses + 1"),
        Column("rank_high", "ranks to", 0, note="the number of systems less the wins"),
        Column("cluster", "cluster", 0, note=CLUSTERS[rule.line]),
    ]


def wmt_mode(judged: Judged, rule: WmtRule | None = None) -> Table:
    """z-scores, rank ranges and clusters by the rules of WMT's findings papers.

    `rule`: None for the campaign's. References do not compete (settings of an import).
    """
    ratings, controls = judged.ratings, judged.ratings.controls
    chosen = rule or RULES[ratings.campaign.settings.wmt or USUAL.name]
    references = ratings.campaign.settings.references
    if judged.protocol.relative:  # an output's score in another pair is not a second opinion of it
        chosen = replace(chosen, again="each")
    segments = np.concatenate([ratings.segment_index[ratings.unit], controls.segment])
    by_domain = chosen.domains and bool(ratings.domains)
    ranking = wmt_ranking(
        rater=np.concatenate([ratings.rater, controls.rater]),
        system=np.concatenate([ratings.system, controls.system]),
        segment=segments,
        score=np.concatenate([ratings.value, controls.value]),
        systems=len(judged.systems),
        kind=np.concatenate([np.full(len(ratings.value), RATED), np.where(controls.repeat, REPEAT, BAD)]),
        rule=chosen,
        left_out=[judged.systems.index(name) for name in references],
        domain=[ratings.domains.get(int(one), "") for one in segments] if by_domain else None,
        moment=np.concatenate([ratings.moment, np.zeros(len(controls.value), dtype=np.int64)]),
    )
    standardised = chosen.standardised_by != "none"
    rows = []
    for system in ranking:
        cells = {
            "items": count(system.segments),
            "raw": number(system.raw),
            **({"z": number(system.z)} if standardised else {}),
            "wins": count(system.wins),
            "losses": count(system.losses),
            "rank_low": number(system.rank_low),
            "rank_high": number(system.rank_high),
            "cluster": number(system.cluster),
        }
        rows.append(Row(judged.systems[system.position], cells))
    over = ""
    weakness = (
        "the Mann-Whitney test ignores that ratings of one item are paired, and misses most true differences"
    )
    if chosen.test == "signed-rank":
        weakness = "segments of one document count as independent"
    if chosen.domains:
        known = len(set(ratings.domains.values()))
        over = (
            f", means over {counted(known, 'domain')}"
            if by_domain
            else ", over segments: no domains are known"
        )
    about = (
        f"By WMT's rules ({chosen.title}{over}), only to compare with its published tables: {weakness}. Item "
        "weights are ignored here."
    )
    return table("wmt", "WMT mode", about, "system", _wmt_columns(judged, chosen), rows)
