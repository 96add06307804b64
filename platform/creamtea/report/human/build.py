"""Build what raters say of the systems: of a study's campaigns, or of one campaign by its name.

rows of the store -> `Ratings` (arrays) -> statistics -> tables of cells
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.human.making.texts import campaigns_of
from creamtea.human.protocols import find_protocol
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
from creamtea.report.human.campaign import CampaignReport
from creamtea.report.human.tables import RatedCampaign, judged, only_random
from creamtea.report.model import Document, Fact, Section, Table, Texts
from creamtea.stats.verdict import deciding_test
from creamtea.stats.wmt import RULES, USUAL
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign, StudyRow


def build_human(database: Database, campaign: str, wmt: str | None = None) -> Document:
    """Build the report of one campaign, with the metrics of its study if it has one.

    `wmt`: a rule of `stats.wmt.RULES` in place of the campaign's.

    InputError for a campaign that is not there or has not been launched.
    """
    with database.session() as session:
        row = find_campaign(session, campaign)
        if row.state == "draft":
            raise InputError(
                f"campaign {campaign!r} is a draft: launch it with `creamtea campaign launch {campaign}`"
            )
        study = session.get(StudyRow, row.study_id) if row.study_id is not None else None
        report = campaign_report(session, row, _material(session, study), complete=True, wmt=wmt)
        return Document(
            kind="campaign",
            name=row.name,
            number=row.id,
            state=row.state,
            about="",
            facts=(Fact("study", study.name if study else "none: files, or ratings made elsewhere"),),
            test_sets=(row.test_set,),
            sections=(
                campaign_answer(report),
                Section("human", "Human evaluation", (report.section(),)),
            ),
        )


def campaign_reports(
    session: Session, row: StudyRow, material: StudyResults, complete: bool, *, alone: bool = False
) -> tuple[list[CampaignReport], list[str]]:
    """Return the reports of the campaigns on a submission's outputs, and why others are left out.

    The oldest report comes first, whichever submission its campaign was made for; each campaign that is left
    out has a sentence.

    Left out are campaigns on other outputs of the study (`alone`: without a sentence) and those whose
    protocol is unavailable here. Without `complete`, reports have only what is fast at any size.
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
            reports.append(campaign_report(session, campaign, material, complete))
    return reports, left_out


def campaign_report(
    session: Session,
    campaign: Campaign,
    material: StudyResults | None,
    complete: bool,
    wmt: str | None = None,
) -> CampaignReport:
    """Build one campaign's report; it has no metrics without its study's `material`."""
    ratings = load_ratings(session, campaign)
    whole = judged(ratings, material.spec.baseline if material is not None else None)
    own = {} if material is None else vega.styles_of(material.spec)
    styles = vega.styles(whole.systems) | own
    if not len(ratings.value):
        return CampaignReport(whole, (), (), (), (), styles)
    means = verdicts.system_means(whole)
    pairs = verdicts.against_baseline(whole, complete)
    order = [mean.system for mean in means]
    pairs.sort(key=lambda pair: order.index(pair.system))
    tables = _comparisons(whole, means, pairs, complete)
    tables += _further_scales(session, whole, complete)
    texts: list[Texts] = []
    if complete:
        if ratings.submitted < ratings.wanted and not whole.is_adaptive:
            found = standings(session, ratings, whole.baseline, whole.delta)
            tables.append(verdicts.looks(whole, found))
        tables += verdicts.clusters(whole, pairs)
        if whole.protocol.marks_errors:
            given = payloads(session, ratings)
            tables.append(errors.marked_errors(whole, given))
            proposed = errors.proposed_errors(session, whole, given)
            tables += [] if proposed is None else [proposed]
        if whole.protocol.edits_text:
            tables.append(errors.post_edits(whole))
        if (documents := errors.whole_documents(whole)) is not None:
            tables.append(documents)
        blamed, examples = errors.origins(session, whole)
        tables += blamed
        texts += [examples] if examples is not None else []
        outputs = by_rater(ratings, repeated_scores(session, ratings))
        tables += agreement.agreement(whole, outputs)
        if not whole.protocol.relative:
            rule = RULES[wmt or ratings.campaign.settings.wmt or USUAL.name]
            better = verdicts.better_pairs(whole, pairs) if rule.test == "bootstrap" else ()
            tables.append(agreement.wmt_mode(whole, rule, better))
        if material is not None:
            scores = agreement.metric_scores(session, ratings, material)
            if scores:
                tables += [
                    agreement.people_and_metrics(whole, scores),
                    agreement.metric_agreement(whole, scores),
                ]
            texts.append(agreement.disagreements(session, whole, scores))
        texts.append(agreement.disputes(session, whole, outputs))
    place = {whole.systems[mean.system]: at for at, mean in enumerate(means)}
    for at, table in enumerate(tables):
        if table.heading == "system" and table.key not in ("wmt", "pairs"):  # which have orders of their own
            tables[at] = replace(table, rows=tuple(sorted(table.rows, key=lambda row: place[row.name])))
    shown = tuple(listed for listed in texts if listed.entries)
    return CampaignReport(whole, tuple(means), tuple(pairs), tuple(tables), shown, styles)


def _material(session: Session, row: StudyRow | None) -> StudyResults | None:
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


def _verdicts(whole: RatedCampaign) -> str:
    """Say what decides, in the words of the registration."""
    campaign = whole.ratings.campaign
    decides = deciding_test(whole.in_blocks)
    if whole.in_blocks:
        words = f"The verdict is by the {decides}."
        if campaign.registered_test not in (None, decides):  # of campaigns that earlier versions launched
            words += f" The registration made at the launch names another test: “{campaign.registered_test}”."
            words += " Its p-value, and those beside it, are of the items that both systems share."
        return words
    return (
        "p-values are after Holm's correction over the comparisons with "
        f"{whole.systems[whole.baseline]}. The verdict is by the {decides} (at 5 %), and by two one-sided "
        f"t-tests against ±{whole.shown_delta()}. A test that allows for raters as well as items must agree; "
        "with one rater it never does."
    )


def _further_scales(session: Session, whole: RatedCampaign, complete: bool) -> Iterator[Table]:
    """Yield the means and the comparisons with the baseline on each further scale, as of the scores."""
    names, baseline = whole.ratings.campaign.settings.scales, whole.systems[whole.baseline]
    given = payloads(session, whole.ratings) if names else []
    for number, name in enumerate(names, 1):
        ratings = on_scale(whole.ratings, given, name)
        part = replace(whole, ratings=ratings, matrix=ratings.matrix())
        yield verdicts.means_table(part, verdicts.system_means(part), f"scale_{number}_means", name, "")
        pairs = verdicts.against_baseline(part, complete)
        about = "Beside the plan: the campaign's verdicts are those of its scores."
        yield verdicts.pair_table(part, pairs, f"scale_{number}", f"{name}, against {baseline}", about)


def _comparisons(
    whole: RatedCampaign, means: list[verdicts.SystemMean], pairs: list[verdicts.Pair], complete: bool
) -> list[Table]:
    name = whole.systems[whole.baseline]
    about = whole.protocol.ratio_note if any(mean.ratio is not None for mean in means) else ""
    tables = [verdicts.means_table(whole, means, "means", "Systems", about)]
    if whole.in_blocks:
        tables.append(verdicts.ranks(whole))
    if pairs:
        about = "" if whole.in_blocks else "Paired over items. "
        about += _verdicts(whole)
        tables.append(verdicts.pair_table(whole, pairs, "comparisons", f"Against {name}", about))
    if complete and len(whole.systems) > 2:
        about = "" if whole.in_blocks else "p-values are after Holm's correction over all pairs."
        about = f"Not planned against a baseline. {about}".strip()
        others = verdicts.other_pairs(whole, pairs)
        tables.append(verdicts.pair_table(whole, others, "pairs", "The other pairs", about))
    if whole.ratings.random.any() and not whole.ratings.random.all():
        part, title = only_random(whole), "Randomly drawn items"
        about = "The other items were chosen because metrics disagree on them; these represent the test set."
        drawn = verdicts.system_means(part)
        tables.append(verdicts.means_table(part, drawn, "random_means", title, about))
        about = "Over these items alone; the campaign's verdicts are those of all items."
        pairs, title = verdicts.against_baseline(part, complete), f"{title}, against {name}"
        tables.append(verdicts.pair_table(part, pairs, "random_comparisons", title, about))
    return tables
