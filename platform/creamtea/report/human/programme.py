"""A programme in one table: systems by directions, with means over directions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from creamtea.contract.step import Column
from creamtea.human.making.programme import campaigns_of
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human import verdicts
from creamtea.report.human.campaign import progress
from creamtea.report.human.tables import RatedCampaign, count, estimate, table, with_baseline
from creamtea.report.model import Block, Cell, Document, Fact, Notes, Row, Section, Table
from creamtea.stats.estimate import Estimate
from creamtea.store.database import Database

ABOUT = (
    "A system's mean over directions weighs all directions equally. Its 95 % interval combines the "
    "directions' intervals (MOVER: Zou and Donner 2008) and covers these directions only. It takes them as "
    "independent, and is too narrow if they share source texts that are hard in all of them. A system "
    "without ratings in some direction has no mean, which would be over other texts. A direction's first "
    "cluster ends where every system above is better than every one below, by verdicts corrected for all "
    "pairs."
)


def build_programme(database: Database, programme: str) -> Document:
    """Build the report over the directions of a programme that have been launched."""
    rated: dict[str, RatedCampaign] = {}
    facts: list[Fact] = []
    with database.session() as session:
        for direction, row in campaigns_of(session, programme).items():
            if row.state == "draft":
                facts.append(Fact(direction, "a draft"))
                continue
            ratings = load_ratings(session, row)
            facts.append(Fact(direction, f"{row.state}: {progress(ratings)}"))
            if len(ratings.value):
                rated[direction] = with_baseline(ratings, None)
    block: Block = _systems(rated) if rated else Notes("none", ("No direction has ratings yet.",))
    return Document(
        kind="programme",
        name=programme,
        number=0,
        state="",
        about="",
        facts=tuple(facts),
        test_sets=(),
        sections=(Section("directions", "Systems over directions", (block,)),),
    )


def _systems(rated: dict[str, RatedCampaign]) -> Table:
    means = {
        direction: {judged.systems[mean.system]: mean.mean for mean in verdicts.system_means(judged)}
        for direction, judged in rated.items()
    }
    first = {direction: first_cluster(judged) for direction, judged in rated.items()}
    scales = {judged.protocol.name for judged in rated.values()}
    rows = []
    for system in dict.fromkeys(name for judged in rated.values() for name in judged.systems):
        own = {direction: by_system[system] for direction, by_system in means.items() if system in by_system}
        known = [mean for mean in own.values() if mean.value is not None]
        macro = Cell("absent", f"rated in {len(known)} of {len(rated)} directions")
        if len(scales) > 1:
            macro = Cell("absent", "the directions have different protocols")
        elif len(known) == len(rated):
            macro = estimate(macro_mean(known))
        cells = {
            "macro": macro,
            "directions": count(len(known)),
            "first": count(sum(system in cluster for cluster in first.values())),
            **{direction: estimate(mean) for direction, mean in own.items()},
        }
        rows.append(Row(system, cells))
    rows.sort(key=lambda row: (row.cells["macro"].value is None, -(row.cells["macro"].value or 0.0)))
    interval = "95 % interval"
    if any(judged.in_blocks for judged in rated.values()):
        interval += "; where pages show some of the systems, of the distance from the mean of all systems"
    columns = [
        next(iter(rated.values())).points("macro", "mean over directions", interval, "higher"),
        Column("directions", "directions", 0, note="with ratings of the system"),
        Column("first", "in the first cluster", 0, note="number of directions"),
        *(judged.points(direction, direction, "", "higher") for direction, judged in rated.items()),
    ]
    return table("systems", "Systems", ABOUT, "system", columns, rows)


def macro_mean(means: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent means; its interval follows from theirs (MOVER).

    l = m − √Σ(mᵢ − lᵢ)²/n, and likewise u: exact for normal means with known errors, close to nominal for t
    intervals (Zou and Donner 2008, Statistics in Medicine 27, equation 3). There is no interval if one of
    theirs is missing.
    """
    size = len(means)
    value = sum(mean.value for mean in means if mean.value is not None) / size
    below = [mean.value - mean.low for mean in means if mean.value is not None and mean.low is not None]
    above = [mean.high - mean.value for mean in means if mean.value is not None and mean.high is not None]
    if len(below) < size or len(above) < size:
        return Estimate(value, reason="a direction's mean has no interval yet")
    return Estimate(value, value - math.hypot(*below) / size, value + math.hypot(*above) / size)


def first_cluster(judged: RatedCampaign) -> set[str]:
    """Return the best systems, up to the first place where every system above is better than every one below.

    The campaign's verdicts decide: simultaneous over all pairs if pages show some of the systems, else after
    Holm's correction over all pairs. Empty until pages connect the systems.
    """
    if judged.in_blocks:
        estimates = judged.estimates
        if estimates is None:
            return set()
        clusters = zip(judged.systems, estimates.cluster, strict=True)
        return {name for name, cluster in clusters if cluster == 1}
    better = verdicts.better_pairs(judged, ())
    order = [mean.system for mean in verdicts.system_means(judged) if mean.mean.value is not None]
    for end in range(1, len(order)):
        if all((above, below) in better for above in order[:end] for below in order[end:]):
            return {judged.systems[system] for system in order[:end]}
    return {judged.systems[system] for system in order}
