"""Build the reports of a study's campaigns, of one campaign by its name, or of a programme.

rows of the store -> `Ratings` (arrays) -> statistics -> tables of cells
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.human.making.programme import campaigns_of as directions_of
from creamtea.human.making.texts import campaigns_of
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.spans import Mqm
from creamtea.human.results.ratings import (
    by_rater,
    load_ratings,
    on_scale,
    payloads,
    repeated_scores,
    standings,
)
from creamtea.orders.submission import spec_of
from creamtea.report import vega
from creamtea.report.answer import campaign_answer
from creamtea.report.cells import StudyResults
from creamtea.report.human import agreement, errors, verdicts
from creamtea.report.human.campaign import CampaignReport, progress
from creamtea.report.human.verdicts import RatedCampaign, only_random, with_baseline
from creamtea.report.model import (
    Block,
    Cell,
    Document,
    Fact,
    Notes,
    Row,
    Section,
    Table,
    Texts,
    column_meanings,
)
from creamtea.stats.estimate import Estimate
from creamtea.stats.verdict import deciding_test
from creamtea.stats.wmt import RULES, USUAL
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign, StudyRow


def build_human(database: Database, campaign: str, wmt: str | None = None) -> Document:
    """Build the report of one campaign, with the metrics of its study if it has one.

    `wmt`: a rule of `stats.wmt.RULES` in place of the campaign's.

    Raises InputError for an unknown campaign or a draft.
    """
    with database.session() as session:
        row = find_campaign(session, campaign)
        if row.state == "draft":
            raise InputError(
                f"campaign {campaign!r} is a draft: launch it with `creamtea campaign launch {campaign}`"
            )
        study = session.get(StudyRow, row.study_id) if row.study_id is not None else None
        report = campaign_report(session, row, _results_of(session, study), complete=True, wmt=wmt)
        return Document(
            kind="campaign",
            name=row.name,
            number=row.id,
            state=row.state,
            about="",
            facts=(Fact("study", study.name if study else "none: files, or ratings made elsewhere"),),
            test_sets=(row.test_set,),
            sections=(campaign_answer(report), Section("human", "Human evaluation", (report.section(),))),
        )


def campaign_reports(
    session: Session, row: StudyRow, results: StudyResults, complete: bool, *, alone: bool = False
) -> tuple[list[CampaignReport], list[str]]:
    """Return reports of the campaigns on a submission's outputs, oldest first, and a sentence on each other.

    A campaign counts whichever submission it was made for. It is left out if it rates other outputs of the
    study (`alone`: without a sentence), or if its protocol is unavailable here. Without `complete`, reports
    have only what is fast at any size.
    """
    campaigns, others = campaigns_of(session, row)
    left_out = [
        f"Campaign {campaign.name} is left out: its raters saw other outputs, those of submission "
        f"{campaign.study_id}."
        for campaign in ([] if alone else others)
    ]
    reports = []
    for campaign in campaigns:
        try:
            find_protocol(campaign.protocol)
        except InputError as error:
            left_out.append(f"Campaign {campaign.name} is left out: {error}.")
        else:
            reports.append(campaign_report(session, campaign, results, complete))
    return reports, left_out


def campaign_report(
    session: Session, campaign: Campaign, results: StudyResults | None, complete: bool, wmt: str | None = None
) -> CampaignReport:
    """Build one campaign's report; without its study's `results`, it has no metrics."""
    ratings = load_ratings(session, campaign)
    judged = with_baseline(ratings, results.spec.baseline if results is not None else None)
    own = {} if results is None else vega.styles_of(results.spec)
    styles = vega.styles(judged.systems) | own
    if not len(ratings.value):
        return CampaignReport(judged, (), (), (), (), styles)
    means = verdicts.system_means(judged)
    pairs = verdicts.against_baseline(judged, complete)
    order = [mean.system for mean in means]
    pairs.sort(key=lambda pair: order.index(pair.system))
    tables = _comparisons(judged, means, pairs, complete)
    tables += _further_scales(session, judged, complete)
    texts: list[Texts] = []
    if complete:
        # a balanced design is registered without an early end; an adaptive one has looks of its own
        if ratings.submitted < ratings.wanted and not judged.in_blocks:
            tables.append(verdicts.looks(judged, standings(session, ratings, judged.baseline, judged.delta)))
        tables += verdicts.clusters(judged, pairs)
        if judged.protocol.marks_errors:
            answers = payloads(session, ratings)
            tables.append(errors.marked_errors(judged, answers))
            tables += errors.proposed_errors(session, judged, answers)
        if judged.protocol.edits_text:
            tables.append(errors.post_edits(judged))
        tables += errors.whole_documents(judged)
        blamed, examples = errors.origins(session, judged)
        tables += blamed
        texts += [examples] if examples is not None else []
        outputs = by_rater(ratings, repeated_scores(session, ratings))
        tables += agreement.agreement(judged, outputs)
        if not judged.protocol.relative:
            rule = RULES[wmt or ratings.campaign.settings.wmt or USUAL.name]
            better = verdicts.better_pairs(judged, pairs) if rule.test == "bootstrap" else ()
            tables.append(agreement.wmt_mode(judged, rule, better))
        if results is not None:
            scores = agreement.metric_scores(session, ratings, results)
            if scores:
                tables += [
                    agreement.people_and_metrics(judged, scores),
                    agreement.metric_agreement(judged, scores),
                ]
            texts.append(agreement.disagreements(session, judged, scores))
        texts.append(agreement.disputes(session, judged, outputs))
    rank = {judged.systems[mean.system]: index for index, mean in enumerate(means)}
    for index, table in enumerate(tables):
        if table.heading == "system" and table.key not in ("wmt", "pairs"):  # which have orders of their own
            tables[index] = replace(table, rows=tuple(sorted(table.rows, key=lambda row: rank[row.name])))
    shown = tuple(listed for listed in texts if listed.entries)
    return CampaignReport(judged, tuple(means), tuple(pairs), tuple(tables), shown, styles)


def _results_of(session: Session, row: StudyRow | None) -> StudyResults | None:
    """Return the results of a campaign's study.

    None for ratings made elsewhere, and for a study whose spec this version cannot read: ratings do not
    depend on it.
    """
    if row is None:
        return None
    try:
        return StudyResults(session, row.id, spec_of(row))
    except InputError:
        return None


def _verdicts(judged: RatedCampaign) -> str:
    """Say which test decides, in the words of the registration."""
    campaign = judged.ratings.campaign
    decides = deciding_test(judged.in_blocks)
    if judged.in_blocks:
        words = f"The verdict is by the {decides}."
        if campaign.registered_test not in (None, decides):  # an earlier version launched the campaign
            words += f" The registration made at the launch names another test: “{campaign.registered_test}”."
            words += " Its p-value, and those beside it, cover the items that both systems share."
        return words
    return (
        "p-values are after Holm's correction over the comparisons with "
        f"{judged.systems[judged.baseline]}. The verdict is by the {decides} (at 5 %), and by two one-sided "
        f"t-tests against ±{judged.shown_delta()} (at 5 % in each comparison, uncorrected). A test that "
        "allows for raters as well as items must agree; with one rater it never does."
    )


def _further_scales(session: Session, judged: RatedCampaign, complete: bool) -> Iterator[Table]:
    """Yield the means and the comparisons with the baseline on each further scale, as for the scores."""
    names, baseline = judged.ratings.campaign.settings.scales, judged.systems[judged.baseline]
    answers = payloads(session, judged.ratings) if names else []
    for number, name in enumerate(names, 1):
        ratings = on_scale(judged.ratings, answers, name)
        part = replace(judged, ratings=ratings, matrix=ratings.matrix())
        yield verdicts.means_table(part, verdicts.system_means(part), f"scale_{number}_means", name, "")
        pairs = verdicts.against_baseline(part, complete)
        about = "Not planned: the campaign's verdicts come from its scores."
        yield verdicts.pair_table(part, pairs, f"scale_{number}", f"{name}, against {baseline}", about)


def _comparisons(
    judged: RatedCampaign, means: list[verdicts.SystemMean], pairs: list[verdicts.Pair], complete: bool
) -> list[Table]:
    name = judged.systems[judged.baseline]
    about = judged.protocol.ratio_note if any(mean.ratio is not None for mean in means) else ""
    tables = [verdicts.means_table(judged, means, "means", "Systems", about)]
    if judged.in_blocks:
        tables.append(verdicts.ranks(judged))
    if pairs:
        about = "" if judged.in_blocks else "Paired over items. "
        about += _verdicts(judged)
        tables.append(verdicts.pair_table(judged, pairs, "comparisons", f"Against {name}", about))
    if complete and len(judged.systems) > 2:
        about = "" if judged.in_blocks else "p-values are after Holm's correction over all pairs."
        about = f"Not planned against a baseline. {about}".strip()
        others = verdicts.other_pairs(judged, pairs)
        tables.append(verdicts.pair_table(judged, others, "pairs", "The other pairs", about))
    if judged.ratings.random.any() and not judged.ratings.random.all():
        part, title = only_random(judged), "Randomly drawn items"
        about = "The other items were chosen because metrics disagree on them; these represent the test set."
        drawn = verdicts.system_means(part)
        tables.append(verdicts.means_table(part, drawn, "random_means", title, about))
        about = "Over these items alone; the campaign's verdicts come from all items."
        pairs, title = verdicts.against_baseline(part, complete), f"{title}, against {name}"
        tables.append(verdicts.pair_table(part, pairs, "random_comparisons", title, about))
    return tables


# ---------------------------------------------------------------- a programme: systems by directions

ABOUT_PROGRAMME = (
    "A system's mean over directions weighs all directions with ratings equally. Its 95 % interval combines "
    "the directions' intervals (MOVER: Zou and Donner 2008) and covers these directions only. It takes them "
    "as independent, and is too narrow if they share source texts that are hard in all of them. A system "
    "without ratings in one of them has no mean, which would be over other texts. A direction's first "
    "cluster ends where every system above is better than every one below, by verdicts corrected for all "
    "pairs."
)


def build_programme(database: Database, programme: str) -> Document:
    """Build the report over the directions of a programme that have been launched."""
    rated: dict[str, RatedCampaign] = {}
    facts: list[Fact] = []
    with database.session() as session:
        for direction, row in directions_of(session, programme).items():
            if row.state == "draft":
                facts.append(Fact(direction, "a draft"))
                continue
            ratings = load_ratings(session, row)
            facts.append(Fact(direction, f"{row.state}: {progress(ratings)}"))
            if len(ratings.value):
                rated[direction] = with_baseline(ratings, None)
    blocks: tuple[Block, ...] = (Notes("none", ("No direction has ratings yet.",)),)
    if rated:
        systems = _over_directions(rated)
        blocks = (systems, *column_meanings(systems.columns))
    return Document(
        kind="programme",
        name=programme,
        number=0,
        state="",
        about="",
        facts=tuple(facts),
        test_sets=(),
        sections=(Section("directions", "Systems over directions", blocks),),
    )


def _over_directions(rated: dict[str, RatedCampaign]) -> Table:
    means = {
        direction: {judged.systems[mean.system]: mean for mean in verdicts.system_means(judged)}
        for direction, judged in rated.items()
    }
    first = {direction: first_cluster(judged) for direction, judged in rated.items()}
    protocols = [judged.protocol for judged in rated.values()]
    taxonomies = [each.taxonomy for each in protocols if isinstance(each, Mqm)]  # they say what errors cost
    differs = "protocols" if len({each.name for each in protocols}) > 1 else ""
    differs = differs or "taxonomies" * any(taxonomy != taxonomies[0] for taxonomy in taxonomies)
    rows = []
    for system in dict.fromkeys(name for judged in rated.values() for name in judged.systems):
        own = {direction: by_system[system] for direction, by_system in means.items() if system in by_system}
        rated_in = sum(mean.items > 0 for mean in own.values())
        known = [mean.mean for mean in own.values() if mean.mean.value is not None]
        macro = Cell("absent", f"rated in {rated_in} of {len(rated)} directions")
        if rated_in == len(rated):
            macro = Cell("absent", f"a mean in {len(known)} of {len(rated)} directions so far")
        if differs:
            macro = Cell("absent", f"the directions have different {differs}")
        elif len(known) == len(rated):
            macro = verdicts.estimate(macro_mean(known))
        cells = {
            "macro": macro,
            "directions": verdicts.count(rated_in),
            "first": verdicts.count(sum(system in cluster for cluster in first.values())),
            **dict.fromkeys(rated, Cell("absent", "not one of this direction's systems")),
            **{direction: verdicts.estimate(mean.mean) for direction, mean in own.items()},
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
    return verdicts.table("systems", "Systems", ABOUT_PROGRAMME, "system", columns, rows)


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
