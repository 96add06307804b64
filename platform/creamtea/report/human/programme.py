"""A programme in one table: systems by directions, with means over directions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from creamtea.contract.step import Column
from creamtea.human.making.programme import campaigns_of
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human import verdicts
from creamtea.report.human.campaign import progress
from creamtea.report.human.tables import RatedCampaign, count, estimate, judged, table
from creamtea.report.model import Block, Cell, Document, Fact, Notes, Row, Section, Table
from creamtea.stats.estimate import Estimate
from creamtea.store.database import Database

ABOUT = (
    "The mean of a system over directions weighs all directions equally; its 95 % interval joins those of "
    "the directions (MOVER: Zou and Donner 2008) and is about these directions. A system without ratings in "
    "some direction has none: it would be a mean over other texts. The first cluster of a direction ends "
    "where every system above is better than every one below, by verdicts that are corrected for all pairs."
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
                rated[direction] = judged(ratings, None)
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
        direction: {whole.systems[mean.system]: mean.mean for mean in verdicts.system_means(whole)}
        for direction, whole in rated.items()
    }
    first = {direction: first_cluster(whole) for direction, whole in rated.items()}
    scales = {whole.protocol.name for whole in rated.values()}
    wholes = list(rated.values())
    rows = []
    for system in dict.fromkeys(name for whole in wholes for name in whole.systems):
        own = {d: found[system] for d, found in means.items() if system in found}
        known = [mean for mean in own.values() if mean.value is not None]
        macro = Cell("absent", f"rated in {len(known)} of {len(rated)} directions")
        if len(scales) > 1:
            macro = Cell("absent", "the directions have different protocols")
        elif len(known) == len(rated):
            macro = estimate(macro_mean(known))
        cells = {
            "macro": macro,
            "directions": count(len(known)),
            "first": count(sum(system in found for found in first.values())),
            **{direction: estimate(mean) for direction, mean in own.items()},
        }
        rows.append(Row(system, cells))
    rows.sort(key=lambda row: (row.cells["macro"].value is None, -(row.cells["macro"].value or 0.0)))
    points = wholes[0].points
    columns = [
        points("macro", "mean over directions", "95 % interval", "higher"),
        Column("directions", "directions", 0, note="with ratings of the system"),
        Column("first", "in the first cluster", 0, note="number of directions"),
        *(whole.points(direction, direction, "", "higher") for direction, whole in rated.items()),
    ]
    return table("systems", "Systems", ABOUT, "system", columns, rows)


def macro_mean(means: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent means with the interval that theirs give (MOVER).

    l = m − √Σ(mᵢ − lᵢ)²/n, and u alike: exact for normal means with known errors, close to nominal for t
    intervals (Zou and Donner 2008, Statistics in Medicine 27, equation 3). Without an interval of each there
    is none.
    """
    size = len(means)
    value = sum(mean.value for mean in means if mean.value is not None) / size
    below = [mean.value - mean.low for mean in means if mean.value is not None and mean.low is not None]
    above = [mean.high - mean.value for mean in means if mean.value is not None and mean.high is not None]
    if len(below) < size or len(above) < size:
        return Estimate(value, reason="a direction's mean has no interval yet")
    return Estimate(value, value - math.hypot(*below) / size, value + math.hypot(*above) / size)


def first_cluster(whole: RatedCampaign) -> set[str]:
    """Return the systems from the best one to the first line that parts better systems from all worse ones.

    By the verdicts of the campaign: simultaneous over all pairs where pages show some of the systems, else
    after Holm's correction over all pairs. Empty while nothing connects the systems.
    """
    if whole.in_blocks:
        found = whole.estimates
        return (
            set()
            if found is None
            else {name for name, cluster in zip(whole.systems, found.cluster, strict=True) if cluster == 1}
        )
    better = verdicts.better_pairs(whole, ())
    order = [mean.system for mean in verdicts.system_means(whole) if mean.mean.value is not None]
    for end in range(1, len(order)):
        if all((one, other) in better for one in order[:end] for other in order[end:]):
            return {whole.systems[system] for system in order[:end]}
    return {whole.systems[system] for system in order}
