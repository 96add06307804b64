"""Where the errors that raters marked come from: shares by system, what would have mended them, examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    label,
    of_system,
)
from creamtea.blame.marks import Marked, Output, better_of, has_marks, low_scores, marks_of, scores_of
from creamtea.contract.columns import Column
from creamtea.report.human.material import Judged, count, table
from creamtea.report.model import Cell, Entry, Passage, Row, Table, Texts
from creamtea.stats.proportion import clustered_interval
from creamtea.store.tables import Blame, Campaign, Item

EXAMPLES = 3  # of each origin, for each system
NOTES = {
    Origin.SELECTION: "a needed word was not allowed; with all words the same search writes something else",
    Origin.SEARCH: "the model scores a better translation higher, and the search missed it",
    Origin.MODEL: "the model itself prefers an output with the error",
    Origin.UNDECIDED: "no translation is known that is better there",
}
COLUMNS = (
    Column("marks", "marks", 0),
    Column(
        "segments",
        "segments",
        0,
        note="with a mark; intervals group the marks of a segment, or of a document",
    ),
    *(Column(origin.value, origin.value, 1, scale=100.0, unit="%", note=NOTES[origin]) for origin in Origin),
    Column(
        "proved",
        "exact search proved",
        1,
        scale=100.0,
        unit="%",
        note="of the marks, those of an output for which exact search ended with a proof; elsewhere a better "
        "translation than the best that it found may exist",
    ),
)
ABOUT = (
    "Of each marked error: the system's vocabulary selection, its search or its model. A better translation "
    "is another rated output of the segment with a higher score, or else the closest reference, where it "
    "differs there; the model's scores are those of its full vocabulary. The definitions are in "
    "docs/methods.md."
)
REPAIRS = (
    "Of the marked errors, how many are gone or mended in the same model's output with all words, a wider "
    "beam or exact search, and in other models' outputs by the same search. Gone: something else stands "
    "there. Mended: what the better translation has there."
)


@dataclass(frozen=True)
class _Case:
    """A marked error with what is known of it."""

    output: Output
    mark: Mark
    evidence: Evidence
    better: list[str]  # names of candidates
    finding: Finding
    cluster: int  # what intervals take as one: the segment, or its document


def origins(session: Session, judged: Judged) -> tuple[list[Table], Texts | None]:
    """Nothing before `creamtea blame` has run on the campaign."""
    cases = list(_cases(session, judged))
    if not cases:
        return [], None
    systems = sorted({case.output[1] for case in cases})
    by_system = {system: [case for case in cases if case.output[1] == system] for system in systems}
    rows = [Row(judged.systems[system], _shares(found)) for system, found in by_system.items()]
    tables = [
        table("origins", "Where marked errors come from", ABOUT, "system", COLUMNS, rows),
        _repairs(judged, by_system),
    ]
    return tables, _examples(session, judged, cases)


def _cases(session: Session, judged: Judged) -> Iterator[_Case]:
    """Marks as they count now, of the outputs that were looked into."""
    campaign = judged.ratings.campaign
    rows = session.scalars(
        select(Blame).where(Blame.campaign_id == campaign.id).order_by(Blame.system, Blame.segment_index)
    ).all()
    if not rows:
        return
    marked, scores = _marked(session, judged, rows), scores_of(judged.ratings)
    clusters = _clusters(judged)
    for row in rows:
        output = (row.segment_index, row.system)
        evidence = Evidence.of(row.evidence)
        own = evidence.named(OUTPUT)
        if own is None or own.text != marked.texts.get(output):
            continue
        better = [of_system(campaign.systems[at]) for at in better_of(marked, scores, output)]
        references = evidence.references()
        for mark in marked.marks.get(output, []):
            names = [mark.better] if mark.better else [*better, *references]
            cluster = clusters.get(row.segment_index, row.segment_index)
            yield _Case(output, mark, evidence, names, label(evidence, mark, names), cluster)


def _clusters(judged: Judged) -> dict[int, int]:
    """The documents of segments, where a campaign has several."""
    documents = judged.ratings.documents
    if documents is None:
        return {}
    return dict(zip(judged.ratings.segment_index.tolist(), documents.tolist(), strict=True))


def _marked(session: Session, judged: Judged, rows: Sequence[Blame]) -> Marked:
    marked = marks_of(session, session.get_one(Campaign, judged.ratings.campaign.id))
    if has_marks(judged.protocol):
        return marked
    bounds = [row.evidence["settings"]["below"] for row in rows]
    return low_scores(marked, judged.ratings, max(bounds))


def _shares(cases: Sequence[_Case]) -> dict[str, Cell]:
    of_cluster: dict[int, Counter[Origin]] = defaultdict(Counter)
    for case in cases:
        of_cluster[case.cluster][case.finding.origin] += 1
    segments = {case.output[0] for case in cases}
    cells = {"marks": count(len(cases)), "segments": count(len(segments))}
    for origin in Origin:
        cells[origin.value] = _share(
            [found[origin] for found in of_cluster.values()],
            [found.total() for found in of_cluster.values()],
        )
    cells["proved"] = _proved(cases)
    if all(case.evidence.named(FULL) is None for case in cases):
        cells[Origin.SELECTION.value] = Cell("absent", "the system allows every subword")
    return cells


def _proved(cases: Sequence[_Case]) -> Cell:
    """Of the marks, how many are of an output whose exact search was proved."""
    tried: dict[int, list[bool]] = defaultdict(list)
    for case in cases:
        if case.evidence.proved is not None:
            tried[case.cluster].append(case.evidence.proved)
    if not tried:
        return Cell("absent", "exact search cannot use the system's precision")
    return _share([sum(found) for found in tried.values()], [len(found) for found in tried.values()])


def _share(counts: Sequence[int], sizes: Sequence[int]) -> Cell:
    low, high = clustered_interval(counts, sizes)
    return Cell("ok", value=sum(counts) / sum(sizes), low=low, high=high)


# ---------------------------------------------------------------- what would have mended them


def _repairs(judged: Judged, by_system: dict[int, list[_Case]]) -> Table:
    names: dict[str, None] = {}
    for cases in by_system.values():
        for case in cases:
            names |= dict.fromkeys(_alternatives(case.evidence))
    columns: list[Column] = []
    for number, name in enumerate(names):
        columns += [
            Column(f"gone-{number}", f"{name}: gone", 1, scale=100.0, unit="%", group=name),
            Column(f"mended-{number}", f"{name}: mended", 1, scale=100.0, unit="%", group=name),
        ]
    rows = []
    for system, cases in by_system.items():
        cells: dict[str, Cell] = {}
        for number, name in enumerate(names):
            cells |= _repaired(cases, name, number)
        rows.append(Row(judged.systems[system], cells))
    return table("repairs", "What would have mended them", REPAIRS, "system", columns, rows)


def _alternatives(evidence: Evidence) -> list[str]:
    """Other decodings, in the order in which they were tried: neither the output nor what others gave."""
    return [
        name
        for candidate in evidence.candidates
        for name in candidate.names
        if name != OUTPUT and not name.startswith((of_system(""), POST_EDIT, REFERENCE))
    ]


def _repaired(cases: Sequence[_Case], name: str, number: int) -> dict[str, Cell]:
    gone: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])  # by cluster: gone, mended, all
    for case in cases:
        other, output = case.evidence.named(name), case.evidence.named(OUTPUT)
        if other is None or output is None:
            continue
        comparison = Comparison(output, case.mark)
        right = comparison.right(case.evidence, case.better)
        if right is None:
            continue
        counted = gone[case.cluster]
        counted[0] += not comparison.keeps(other, right)
        counted[1] += comparison.mends(other, right)
        counted[2] += 1
    if not gone:
        return {}
    there, mended, sizes = zip(*gone.values(), strict=True)
    return {f"gone-{number}": _share(there, sizes), f"mended-{number}": _share(mended, sizes)}


# ---------------------------------------------------------------- examples


def _examples(session: Session, judged: Judged, cases: Sequence[_Case]) -> Texts:
    """The first of each system and origin; undecided ones have nothing to show."""
    shown: list[_Case] = []
    taken: Counter[tuple[int, Origin]] = Counter()
    seen: set[tuple[Output, Mark]] = set()
    for case in cases:
        kind = (case.output[1], case.finding.origin)
        if case.finding.origin is Origin.UNDECIDED or taken[kind] >= EXAMPLES:
            continue
        if (case.output, case.mark) not in seen:  # marked by several raters
            seen.add((case.output, case.mark))
            taken[kind] += 1
            shown.append(case)
    campaign = judged.ratings.campaign
    wanted = {case.output[0] for case in shown}
    sources = dict(
        session.execute(
            select(Item.segment_index, Item.source).where(
                Item.campaign_id == campaign.id, Item.segment_index.in_(wanted)
            )
        ).all()
    )
    order = {origin: number for number, origin in enumerate(Origin)}
    shown.sort(key=lambda case: (case.output[1], order[case.finding.origin]))
    entries = tuple(_entry(judged, case, sources[case.output[0]]) for case in shown)
    about = f"For each system the first {EXAMPLES} marked errors of each origin, with what shows it."
    return Texts("origin_examples", "Marked errors and their origins", about, entries, folded=True)


def _entry(judged: Judged, case: _Case, source: str) -> Entry:
    campaign, finding = judged.ratings.campaign, case.finding
    output, right, instead = case.evidence.named(OUTPUT), finding.better, finding.instead
    assert output is not None
    assert right is not None
    assert instead is not None
    target = campaign.target_language
    passages = [
        Passage("source", source, campaign.source_language),
        Passage(f"output, {_rank(output)}", output.text, target),
        Passage("marked", finding.marked or "an omission", target if finding.marked else ""),
        Passage("needed", " ".join(finding.needed) or "nothing", target if finding.needed else ""),
        Passage(f"better: {_names(right)}, {_rank(right)}", right.text, target),
    ]
    if instead not in (output, right):
        words = "prefers" if finding.origin is Origin.MODEL else "would write"
        who = "the model" if finding.origin is not Origin.SELECTION else "the same search"
        passages.append(Passage(f"{who} {words} ({_names(instead)}), {_rank(instead)}", instead.text, target))
    segment = campaign.settings.segment_name(case.output[0])
    name = f"{judged.systems[case.output[1]]}, {segment}: {finding.origin.value}"
    return Entry(name, (), tuple(passages))


def _names(candidate: Candidate) -> str:
    return ", ".join(candidate.names)


def _rank(candidate: Candidate) -> str:
    proved = ", proved the best" if candidate.proved else ""
    return f"scored {candidate.rank:.2f}{proved}".replace("-", "−", 1)
