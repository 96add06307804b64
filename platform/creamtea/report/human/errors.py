"""Tables of raters' answers other than scores of outputs: marked errors, post-edits, scores of documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.blame.labels import (
    FULL,
    OUTPUT,
    POST_EDIT,
    REFERENCE,
    Candidate,
    Comparison,
    Evidence,
    Finding,
    Mark,
    Origin,
    Output,
    better_of,
    has_marks,
    label,
    low_scores,
    marks_of,
    of_system,
    scores_of,
)
from creamtea.contract.step import Column
from creamtea.error_spans import OF_ERRORS
from creamtea.human.making.proposals import outcomes
from creamtea.human.protocols.spans import spans_of
from creamtea.report.human.verdicts import RatedCampaign, count, estimate, number, table
from creamtea.report.model import Cell, Entry, Passage, Row, Table, Texts
from creamtea.stats.estimate import clustered_interval
from creamtea.stats.paired import compare_paired
from creamtea.store.tables import Blame, Item, Payload, StoredSpan
from creamtea.wording import with_minus

GOOD = 85  # an output without marks is free of errors from so many points on (WMT 2026)
MARKED = (
    Column("ratings", "ratings", 0),
    Column("minor", "minor errors", 2, "lower", note="per rating, without neutral and undecided ones"),
    Column("major", "major errors", 2, "lower", note="per rating, critical ones included"),
    Column("omissions", "omissions", 2, "lower", note="minor and major errors without a place in the output"),
    Column(
        "free", "free of errors, %", 1, "higher", note=f"nothing marked; with ESA also {GOOD} points or more"
    ),
)
PROPOSED = (
    Column("answers", "ratings", 0),
    Column("proposed", "proposed", 0, note="errors that were marked beforehand"),
    Column("left", "left", 0, note="still marked; the file does not say whether the severity changed"),
    Column("kept", "kept", 0),
    Column("changed", "changed", 0),
    Column("deleted", "deleted", 0),
    Column("added", "added", 0, note="errors that raters marked in addition"),
)


SPECIAL = "special mark "  # the beginning of a column's key


def marked_errors(judged: RatedCampaign, given: Sequence[Payload | None]) -> Table:
    """Build the table of marked errors: means over ratings, each of the same weight."""
    totals = [Counter[str]() for _ in judged.systems]
    for system, payload in zip(judged.ratings.system.tolist(), given, strict=True):
        spans = spans_of(payload)
        errors = [span for span in spans if span.severity in OF_ERRORS]
        minor = sum(span.severity == "minor" for span in errors)
        score = payload.get("score") if payload else None
        free = not spans and (score is None or score >= GOOD)
        omissions = sum((span.start is None and not span.special_mark) or span.in_source for span in errors)
        major = len(errors) - minor
        totals[system].update(ratings=1, minor=minor, major=major, omissions=omissions, free=free)
        totals[system].update(f"{SPECIAL}{span.special_mark}" for span in errors if span.special_mark)
    marks = sorted({key for total in totals for key in total if key.startswith(SPECIAL)})
    note = "errors with this mark, per rating"
    special = [Column(key, f"[{key.removeprefix(SPECIAL)}]", 2, "lower", note=note) for key in marks]
    rows = []
    for name, total in zip(judged.systems, totals, strict=True):
        ratings = total["ratings"]
        cells = {
            kind: number(total[kind] / ratings if ratings else None)
            for kind in ("minor", "major", "omissions", *(column.key for column in special))
        }
        free = number(100 * total["free"] / ratings if ratings else None)
        rows.append(Row(name, {"ratings": count(ratings), **cells, "free": free}))
    about = "Errors as raters marked them. Means over ratings; item weights are ignored here."
    return table("marked", "Marked errors", about, "system", (*MARKED, *special), rows)


def proposed_errors(session: Session, judged: RatedCampaign, given: Sequence[Payload | None]) -> list[Table]:
    """Build the table of what raters did with proposed errors; the list is empty if none were proposed."""
    ratings, settings = judged.ratings, judged.ratings.campaign.settings
    rows_of_items = select(Item.id, Item.proposals).where(
        Item.campaign_id == ratings.campaign.id, Item.proposals.is_not(None)
    )
    proposals: dict[int, dict[str, list[StoredSpan]] | None] = dict(session.execute(rows_of_items).all())
    totals = [Counter[str]() for _ in judged.systems]
    for item, system, payload in zip(ratings.item.tolist(), ratings.system.tolist(), given, strict=True):
        if (of_item := proposals.get(item)) is not None:
            proposed = of_item.get(str(system), [])
            totals[system].update(
                {**outcomes(proposed, spans_of(payload)), "answers": 1, "proposed": len(proposed)}
            )
    if not any(totals):
        return []
    left_only = settings.proposals_left
    hidden = ("proposed", "kept", "changed", "deleted") if left_only else ("left",)
    rows = []
    for name, total in zip(judged.systems, totals, strict=True):
        counts = total + Counter(left=total["kept"] + total["changed"])
        shown = (column.key for column in PROPOSED if column.key not in hidden)
        rows.append(Row(name, {key: count(counts[key]) for key in shown}))
    source = settings.proposed_by
    by = "" if source is None else f" by {source.metric} (version {source.version})"
    about = (
        f"Errors that were marked{by} before raters began, and what raters did with them. Only items with "
        "such errors count. "
    )
    about += (
        "The file has only the errors that raters left, so nobody knows how many they deleted."
        if left_only
        else "Changed: the error has another severity or category."
    )
    return [table("proposed", "Errors marked beforehand", about, "system", PROPOSED, rows)]


# ---------------------------------------------------------------- corrected outputs


EDITED = (
    Column("ratings", "post-edits", 0),
    Column("rate", "edit rate, %", 1, "lower", note="word edits per word of the corrected text, at most 100"),
    Column("unchanged", "unchanged, %", 1, "higher", note="outputs that the rater did not change"),
    Column("seconds", "seconds", 1, "lower", note="median time per output, if measured"),
)


def post_edits(judged: RatedCampaign) -> Table:
    """Build the table of post-edits: means over the ratings that count, all with the same weight."""
    ratings, rows = judged.ratings, []
    stored = np.argsort(ratings.id)
    kept_shares = ratings.step / (judged.protocol.scale.steps - 1)
    for system, name in enumerate(judged.systems):
        rows_of_system = stored[ratings.system[stored] == system]
        kept, times = kept_shares[rows_of_system].tolist(), ratings.seconds[rows_of_system]
        times = times[~np.isnan(times)].tolist()
        cells = {
            "ratings": count(len(kept)),
            "rate": number(100 * (1 - sum(kept) / len(kept)) if kept else None),
            "unchanged": number(100 * sum(share == 1 for share in kept) / len(kept) if kept else None),
            "seconds": number(median(times) if times else None),
        }
        rows.append(Row(name, cells))
    about = "How much raters corrected. Item weights are ignored here."
    return table("edited", "Post-edits", about, "system", EDITED, rows)


# ---------------------------------------------------------------- whole documents


def whole_documents(judged: RatedCampaign) -> list[Table]:
    """Build the table of whole documents' scores; return none without such scores.

    A document's score is the mean over its raters. Differences are paired by document.
    """
    ratings = judged.ratings
    rated = ~np.isnan(ratings.document_value)
    if not rated.any():
        return []
    # (document, system) -> rater -> scores: until 0.2, each page of a longer document had a score
    given: dict[tuple[int, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    names, document = np.unique(ratings.document_name[rated], return_inverse=True)
    keys = (document, ratings.system[rated], ratings.rater[rated])
    for document_number, system, rater, value in zip(*keys, ratings.document_value[rated], strict=True):
        given[document_number, system][rater].append(value)
    scores = np.full((len(names), len(judged.systems)), np.nan)
    for cell, by_rater in given.items():
        scores[cell] = np.mean([np.mean(values) for values in by_rater.values()])
    name = judged.systems[judged.baseline]
    columns = (
        Column("documents", "documents", 0),
        judged.points("mean", "mean", better="higher"),
        judged.points(
            "difference", f"against {name}", "system − baseline, with a 95 % interval over documents"
        ),
    )
    rows = []
    for system, title in enumerate(judged.systems):
        system_scores = scores[:, system]
        known = system_scores[~np.isnan(system_scores)]
        cells = {"documents": count(len(known)), "mean": number(float(known.mean()) if len(known) else None)}
        if system == judged.baseline:
            cells["difference"] = Cell("ok", words="baseline")
        else:
            cells["difference"] = estimate(compare_paired(scores[:, judged.baseline], system_scores).estimate)
        rows.append(Row(title, cells))
    about = (
        "Scores of whole documents, given after their last segments and counted nowhere else. Each document "
        "counts once."
    )
    return [table("documents", "Whole documents", about, "system", columns, rows)]


# ---------------------------------------------------------------- where marked errors come from

EXAMPLES = 3  # of each origin, for each system
NOTES = {
    Origin.SELECTION: "a needed word was not allowed; with all words the same search writes something else",
    Origin.SEARCH: "the model scores a better translation higher, but the search missed it",
    Origin.MODEL: "the model itself prefers an output with the error",
    Origin.UNDECIDED: "no better translation of the marked part is known",
}
ORIGINS = (
    Column("marks", "marks", 0),
    Column(
        "segments",
        "segments",
        0,
        note="with a mark; intervals treat the marks of a segment (or of its document) as one group",
    ),
    *(Column(origin.value, origin.value, 1, scale=100.0, unit="%", note=NOTES[origin]) for origin in Origin),
    Column(
        "proved",
        "exact search proved",
        1,
        scale=100.0,
        unit="%",
        note="share of marks in outputs whose exact search (by scores without length normalization) ended "
        "with a proof; for the others there may be a better translation than the best found",
    ),
)
ABOUT_ORIGINS = (
    "The origin of each marked error: the system's vocabulary selection, its search or its model. A better "
    "translation is another rated output of the segment with a higher score, or else the closest reference, "
    "if it differs from the output at the mark. The model's scores are those of its full vocabulary. The "
    "definitions are in docs/methods.md."
)
ABOUT_REPAIRS = (
    "The share of marked errors that are gone or mended in the same model's output with all words, a wider "
    "beam or exact search, and in other models' outputs by the same search. Gone: other words stand in "
    "their place. Mended: these are the words of the better translation."
)


@dataclass(frozen=True)
class _Case:
    """A marked error and the evidence about it."""

    output: Output
    mark: Mark
    evidence: Evidence
    better: list[str]  # names of the better candidates
    finding: Finding
    cluster: int  # the group that intervals treat as a unit: the segment, or its document


def origins(session: Session, judged: RatedCampaign) -> tuple[list[Table], Texts | None]:
    """Build the tables of errors' origins, and examples; empty until `creamtea blame` has run."""
    cases = list(_cases(session, judged))
    if not cases:
        return [], None
    systems = sorted({case.output[1] for case in cases})
    by_system = {system: [case for case in cases if case.output[1] == system] for system in systems}
    rows = [Row(judged.systems[system], _shares(its_cases)) for system, its_cases in by_system.items()]
    tables = [
        table("origins", "Where marked errors come from", ABOUT_ORIGINS, "system", ORIGINS, rows),
        _repairs(judged, by_system),
    ]
    return tables, _examples(session, judged, cases)


def _cases(session: Session, judged: RatedCampaign) -> Iterator[_Case]:
    """Yield the marks that count now, in outputs that `creamtea blame` has examined."""
    campaign = judged.ratings.campaign
    rows = session.scalars(
        select(Blame).where(Blame.campaign_id == campaign.id).order_by(Blame.system, Blame.segment_index)
    ).all()
    if not rows:
        return
    marked, scores = marks_of(session, judged.ratings), scores_of(judged.ratings)
    if not has_marks(judged.protocol):
        marked = low_scores(marked, judged.ratings, max(row.evidence["settings"]["below"] for row in rows))
    clusters: dict[int, int] = {}  # by segment, if the campaign has several documents
    if judged.documents is not None:
        clusters = dict(zip(judged.ratings.segment_index.tolist(), judged.documents.tolist(), strict=True))
    for row in rows:
        output = (row.segment_index, row.system)
        evidence = Evidence.of(row.evidence)
        examined = evidence.named(OUTPUT)
        if examined is None or examined.text != marked.texts.get(output):
            continue
        better = [of_system(campaign.systems[position]) for position in better_of(marked, scores, output)]
        references = evidence.references()
        for mark in marked.marks.get(output, []):
            names = [mark.better] if mark.better else [*better, *references]
            cluster = clusters.get(row.segment_index, row.segment_index)
            yield _Case(output, mark, evidence, names, label(evidence, mark, names), cluster)


def _shares(cases: Sequence[_Case]) -> dict[str, Cell]:
    of_cluster: dict[int, Counter[Origin]] = defaultdict(Counter)
    for case in cases:
        of_cluster[case.cluster][case.finding.origin] += 1
    segments = {case.output[0] for case in cases}
    cells = {"marks": count(len(cases)), "segments": count(len(segments))}
    for origin in Origin:
        cells[origin.value] = _share((counts[origin], counts.total()) for counts in of_cluster.values())
    # by cluster: for each mark, whether exact search ended with a proof
    tried: dict[int, list[bool]] = defaultdict(list)
    for case in cases:
        if case.evidence.proved is not None:
            tried[case.cluster].append(case.evidence.proved)
    cells["proved"] = Cell("absent", "exact search cannot use the system's precision")
    if tried:
        cells["proved"] = _share((sum(proofs), len(proofs)) for proofs in tried.values())
    if all(case.evidence.named(FULL) is None for case in cases):
        cells[Origin.SELECTION.value] = Cell("absent", "the system allows every subword")
    return cells


def _share(of_clusters: Iterable[tuple[int, int]]) -> Cell:
    """Return the share of marks, from the marks that count and all marks of each cluster."""
    counts, sizes = zip(*of_clusters, strict=True)
    low, high = clustered_interval(counts, sizes)
    return Cell("ok", value=sum(counts) / sum(sizes), low=low, high=high)


# ---------------------------------------------------------------- what would have mended them


def _repairs(judged: RatedCampaign, by_system: dict[int, list[_Case]]) -> Table:
    # other decodings in the order of trial: neither systems' outputs nor post-edits nor references
    names = dict.fromkeys(
        name
        for cases in by_system.values()
        for case in cases
        for candidate in case.evidence.candidates
        for name in candidate.names
        if name != OUTPUT and not name.startswith((of_system(""), POST_EDIT, REFERENCE))
    )
    columns: list[Column] = []
    for place, name in enumerate(names):
        columns += [
            Column(f"gone-{place}", f"{name}: gone", 1, scale=100.0, unit="%", group=name),
            Column(f"mended-{place}", f"{name}: mended", 1, scale=100.0, unit="%", group=name),
        ]
    rows = []
    for system, cases in by_system.items():
        cells: dict[str, Cell] = {}
        for place, name in enumerate(names):
            cells |= _repaired(cases, name, place)
        rows.append(Row(judged.systems[system], cells))
    return table("repairs", "What would have mended them", ABOUT_REPAIRS, "system", columns, rows)


def _repaired(cases: Sequence[_Case], name: str, place: int) -> dict[str, Cell]:
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])  # by cluster: gone, mended, all
    for case in cases:
        other, output = case.evidence.named(name), case.evidence.named(OUTPUT)
        if other is None or output is None:
            continue
        comparison = Comparison(output, case.mark)
        better = comparison.first_better(case.evidence, case.better)
        if better is None:
            continue
        counted = counts[case.cluster]
        counted[0] += not comparison.keeps(other, better)
        counted[1] += comparison.mends(other, better)
        counted[2] += 1
    if not counts:
        return {}
    kinds = ("gone", "mended")
    return {
        f"{kind}-{place}": _share((of[n], of[2]) for of in counts.values()) for n, kind in enumerate(kinds)
    }


# ---------------------------------------------------------------- examples


def _examples(session: Session, judged: RatedCampaign, cases: Sequence[_Case]) -> Texts:
    """Show the first marked errors of each system and origin, but no undecided ones: they show nothing."""
    shown: list[_Case] = []
    taken: Counter[tuple[int, Origin]] = Counter()
    seen: set[tuple[Output, Mark]] = set()
    for case in cases:
        kind = (case.output[1], case.finding.origin)
        if case.finding.origin is Origin.UNDECIDED or taken[kind] >= EXAMPLES:
            continue
        if (case.output, case.mark) not in seen:  # several raters may mark the same error
            seen.add((case.output, case.mark))
            taken[kind] += 1
            shown.append(case)
    campaign = judged.ratings.campaign
    wanted = {case.output[0] for case in shown}
    shown_items = Item.campaign_id == campaign.id, Item.segment_index.in_(wanted)
    sources = dict(session.execute(select(Item.segment_index, Item.source).where(*shown_items)).all())
    order = {origin: number for number, origin in enumerate(Origin)}
    shown.sort(key=lambda case: (case.output[1], order[case.finding.origin]))
    entries = tuple(_entry(judged, case, sources[case.output[0]]) for case in shown)
    about = f"The first {EXAMPLES} marked errors of each system and origin, with the evidence."
    return Texts("origin_examples", "Marked errors and their origins", about, entries, folded=True)


def _entry(judged: RatedCampaign, case: _Case, source: str) -> Entry:
    campaign, finding = judged.ratings.campaign, case.finding
    output, better, instead = case.evidence.named(OUTPUT), finding.better, finding.instead
    assert output is not None
    assert better is not None
    assert instead is not None
    target = campaign.target_language
    passages = [
        Passage("source", source, campaign.source_language),
        Passage(f"output, {_scored_words(output)}", output.text, target),
        Passage("marked", finding.marked or "an omission", target if finding.marked else ""),
        Passage("needed", " ".join(finding.needed) or "nothing", target if finding.needed else ""),
        Passage(f"better: {', '.join(better.names)}, {_scored_words(better)}", better.text, target),
    ]
    if instead not in (output, better):
        words = "prefers" if finding.origin is Origin.MODEL else "would write"
        who = "the model" if finding.origin is not Origin.SELECTION else "the same search"
        label = f"{who} {words} ({', '.join(instead.names)}), {_scored_words(instead)}"
        passages.append(Passage(label, instead.text, target))
    segment = campaign.settings.segment_name(case.output[0])
    name = f"{judged.systems[case.output[1]]}, {segment}: {finding.origin.value}"
    return Entry(name, (), tuple(passages))


def _scored_words(candidate: Candidate) -> str:
    proved = ", proved the best" if candidate.proved else ""
    return f"scored {with_minus(f'{candidate.rank:.2f}')}{proved}"
