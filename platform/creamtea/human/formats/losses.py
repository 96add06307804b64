"""The losses of other tools' formats, in one table: exports print the losses of a campaign, and
docs/exchange.md shows the whole table.

`csv` and `jsonl` hold everything.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from creamtea import words
from creamtea.error_spans import CodeUnits
from creamtea.human.formats.base import (
    APPRAISE,
    FOREIGN,
    MQM,
    MT_METRICS_EVAL,
    PEARMUT,
    NotKept,
    counts,
)
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.scores import Da, SegmentScores
from creamtea.human.protocols.spans import ContrastiveEsa, MarksErrors, Mqm, Span, spans_of
from creamtea.human.record import (
    WITH_CONTROLS,
    AnswerContent,
    Content,
    CountedScore,
    ItemContent,
    counted_scores,
    files_of,
    rating_items,
)
from creamtea.store.tables import CONTROL_KINDS, SYSTEM_KINDS, WRITTEN_KINDS, ItemKind
from creamtea.wording import option


def repeats_kept(content: Content) -> tuple[NotKept, ...]:
    """Count repeated ratings and errors, which are kept because they may be intended."""
    relative = find_protocol(content.protocol, content.settings).relative
    equal = (Counter(map(repr, spans)).values() for _, spans in _marked(content))
    return counts(
        {
            "outputs that a rater has rated again: the mean of both counts, in WMT mode what its rule says": (
                0 if relative else _second_opinions(content)
            ),
            "errors that are marked again at the same place, in the same words: each counts": sum(
                times - 1 for of_answer in equal for times in of_answer
            ),
        }
    )


def look_alikes(content: Content) -> tuple[NotKept, ...]:
    """Count names of systems, raters and documents that look alike."""
    why = "that look alike or differ in case, and count as different: write them alike if they are one"
    of_segment = {item.segment: item.document for item in rating_items(content)}
    misspelt = words.misspelt([of_segment[segment] for segment in sorted(of_segment)])
    kinds = {
        "systems": content.systems,
        "raters": [person.pseudonym for person in content.raters],
        "documents": dict.fromkeys(item.document for item in content.items),
    }
    found = {
        f"documents of one segment {words.MISSPELT} ({', '.join(map(ascii, misspelt[:3]))})": len(misspelt)
    }
    for what, names in kinds.items():
        groups = words.look_alikes(names)
        shown = "; ".join(" and ".join(map(ascii, group)) for group in groups[:3])
        found[f"names of {what} {why} ({shown})"] = sum(map(len, groups))
    return counts(found)


MIN_SCORES, SQM = 20, 6  # SQM's labelled points are 0 to 6


def short_scales(content: Content) -> tuple[NotKept, ...]:
    """Count the scores if their scale seems too short for the protocol's δ, or for its 100 points."""
    protocol = find_protocol(content.protocol, content.settings)
    steps = [counted.score.step for counted in counted_scores(content)]
    if len(steps) < MIN_SCORES:
        return ()
    what, usual = "", protocol.usual_delta
    if protocol.name == SegmentScores.name and not content.settings.get("delta"):
        if (width := float((max(steps) - min(steps)) * protocol.scale.size)) < 10 * usual:
            what = f"scores span only {width:g} points, and δ is {usual:g}: {option('delta')} sets another"
    elif not protocol.marks_errors and protocol.scale == Da.scale and max(steps) <= SQM:
        what = f"scores, all at most {max(steps)} of 100 points: if their scale ends there, they and δ are "
        what += f"read wrongly (in a file of ratings, {option('protocol')} scores fits)"
    return counts({what: len(steps) if what else 0})


def rule_of_2024(content: Content) -> tuple[NotKept, ...]:
    """Say which rule of WMT mode an imported contrastive ESA takes."""
    if (content.protocol, content.settings.get("wmt")) != (ContrastiveEsa.name, "esa"):
        return ()
    what = "WMT mode of contrastive ESA by the rule of 2024 (of 2026: `creamtea campaign report --wmt 2026`)"
    return (NotKept(1, what, once=True, note=True),)


def sources_apart(content: Content) -> tuple[NotKept, ...]:
    """Count segments whose items have different sources: a number may be wrong."""
    sources: dict[int, set[str]] = defaultdict(set)
    for item in rating_items(content):
        sources[item.segment] |= {item.source.strip()} - {""}
    apart = [segment for segment, texts in sorted(sources.items()) if len(texts) > 1]
    shown = ", ".join(map(content.segment_name, apart[:3])) + (", …" if len(apart) > 3 else "")
    return counts({f"segments with different sources, which count as one ({shown})": len(apart)}, note=True)


NOTICES = (look_alikes, repeats_kept, sources_apart, short_scales, rule_of_2024)
Counting = Callable[[Content], int]


@dataclass(frozen=True)
class Part:
    """A part of a campaign that a format may not hold."""

    what: str
    count: Counting  # returns how much of the part a campaign has
    without: tuple[str, ...]  # formats that do not hold the part
    once: bool = False  # the count is 1 or 0


def not_held(content: Content, kind: str) -> tuple[NotKept, ...]:
    """Count the parts of this campaign that an export of the format does not hold."""
    found = ((part.count(content), part) for part in PARTS if kind in part.without)
    return tuple(NotKept(count, part.what, part.once) for count, part in found if count)


# ---------------------------------------------------------------- counts of parts
def _rule_lost(kind: str) -> Counting:
    """Count 1 if an import of a file of the format `kind` would use another rule of WMT mode."""

    def count(content: Content) -> int:
        marks = find_protocol(content.protocol).marks_errors
        if kind == MT_METRICS_EVAL:
            marks = content.protocol == "mqm"  # other protocols come back as scores of segments
        read = "esa" if marks else "da-sqm" if kind == APPRAISE and content.protocol == "da-sqm" else "usual"
        return int((content.settings.get("wmt") or "usual") != read)

    return count


def _setting(*names: str) -> Counting:
    """Count 1 if the campaign has one of these settings."""
    return lambda content: int(any(content.settings.get(name) not in (None, [], {}) for name in names))


# settings that have parts of their own
_OF_PARTS = ("wmt", "baseline", "delta", "taxonomy", "decimals", "first_segment", "references", "domains")


def _domains(content: Content) -> int:
    return len(set(content.settings.get("domains", {}).values()))


def _items(count: Callable[[ItemContent], int]) -> Counting:
    return lambda content: sum(map(count, content.items))


def _of_kinds(*kinds: str) -> Counting:
    return _items(lambda item: item.kind in kinds)


def _answers(count: Callable[[AnswerContent], int]) -> Counting:
    return lambda content: sum(map(count, content.answers))


def _unrated(content: Content, kinds: Collection[str]) -> int:
    """Count items of these kinds without a rating that counts, on the item or on its control."""
    rated = {counted.item.position for counted in counted_scores(content, kinds)}
    kept = rated | {item.original for item in content.items if item.position in rated}
    return sum(item.position not in kept for item in content.items if item.kind in kinds)


def _second_opinions(content: Content) -> int:
    judged = Counter(counted.judged for counted in counted_scores(content))
    return sum(times - 1 for times in judged.values())


def _ratings(content: Content) -> int:
    return sum(1 for _ in counted_scores(content))


def _ratings_in_means(content: Content) -> int:
    """Count ratings that an import of mt-metrics-eval does not return: it knows raters of MQM alone."""
    if content.protocol == Mqm.name:
        return 0
    ratings = list(counted_scores(content))
    of_output = Counter((rating.item.segment, rating.score.system) for rating in ratings)
    return sum(
        rating.answer.rater != content.protocol or of_output[rating.item.segment, rating.score.system] > 1
        for rating in ratings
    )


def _without_ratings(content: Content, kinds: Collection[str]) -> int:
    """Count raters without a rating that counts on items of these kinds."""
    rated = {counted.answer.rater for counted in counted_scores(content, kinds)}
    return sum(person.pseudonym not in rated for person in content.raters)


def _scales(content: Content) -> int:
    return sum(len((each.score.payload or {}).get("scales", ())) for each in counted_scores(content))


_timed = _answers(lambda answer: answer.active_ms is not None)


def _marked(content: Content) -> Iterator[tuple[CountedScore, Sequence[Span]]]:
    """Yield each rated output, also of controls, with the errors that its rater marked."""
    if find_protocol(content.protocol).marks_errors:
        for counted in counted_scores(content, WITH_CONTROLS):
            yield counted, spans_of(counted.score.payload)


def _errors(count: Callable[[Span, str], int]) -> Counting:
    """Sum `count` over marked errors, given each error and its text."""
    return lambda content: sum(
        count(span, counted.item.source if span.in_source else counted.output)
        for counted, spans in _marked(content)
        for span in spans
    )


def _proposed(content: Content) -> int:
    """Count errors in outputs with proposals: whether they came from one is lost."""
    return sum(
        len(spans)
        for counted, spans in _marked(content)
        if (counted.item.proposals or {}).get(counted.score.system)
    )


def _in_margins(span: Span, text: str) -> bool:
    if not text or span.in_source or span.start is None or span.end is None:
        return False
    return CodeUnits(text, trimmed=True).units(span.start, span.end) is None


def _own_costs(content: Content) -> int:
    """Count errors whose cost differs from the weights that an import uses."""
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, MarksErrors):
        return 0
    return _errors(lambda span, text: protocol.written_cost(span) is not None)(content)


def _renumbered(content: Content) -> int:
    """Count segments whose number changes if only the known segments become the test set."""
    segments = sorted({item.segment for item in rating_items(content)})
    return 0 if content.study else sum(number != segment for number, segment in enumerate(segments))


def _renamed(content: Content) -> int:
    documents = {item.document for item in content.items}
    known: dict[str, str] = content.settings.get("domains", {})
    domains = {known.get(document, content.test_set) for document in documents}
    names = *content.systems, *documents, *domains, *(person.pseudonym for person in content.raters)
    languages = content.source_language, content.target_language
    changed = [sanitised(name) != name for name in names]
    return sum(changed) + sum(language_word(code) != code for code in languages)


EVERY = FOREIGN
# Pearmut's actions keep some of these times; an export counts the others (`pearmut._moments_lost`)
WORKING, GIVEN, RATED = (
    "times on an item (it has those between actions, a minute at most)",
    "timestamps of items that were given",
    "timestamps of ratings before the last of their document",
)
PARTS = (
    Part("instructions", lambda content: int(bool(content.instructions)), EVERY, once=True),
    Part("registered plan", lambda content: int(bool(content.registered)), EVERY, once=True),
    Part("baseline and smallest difference that matters", _setting("baseline", "delta"), EVERY, once=True),
    Part("taxonomy of errors", _setting("taxonomy"), EVERY, once=True),
    Part("rule of WMT mode (an import of this file takes another WMT rule)", _rule_lost(APPRAISE),
         (APPRAISE,), once=True),
    Part("rule of WMT mode (an import of scores takes the usual one)", _rule_lost(MT_METRICS_EVAL),
         (MT_METRICS_EVAL,), once=True),
    Part("rule of WMT mode (an import takes another WMT rule)", _rule_lost(PEARMUT),
         (MQM, PEARMUT), once=True),
    Part("protocol da-sqm (it comes back as da)", lambda content: int(content.protocol == "da-sqm"),
         (PEARMUT,), once=True),
    Part("protocol (scores come back as scores of segments)",
         lambda content: int(content.protocol not in ("mqm", "scores")), (MT_METRICS_EVAL,), once=True),
    Part("numbers of segments that begin with 0",
         lambda content: int(content.settings.get("first_segment") == 0), EVERY, once=True),
    # an import of Appraise knows the system "reference" as such
    Part("which systems are human translations",
         lambda content: sum(name != "reference" for name in content.settings.get("references", ())), EVERY),
    Part("other settings of the campaign", lambda content: int(any(
             value not in (None, [], {}, "")
             for name, value in content.settings.items() if name not in _OF_PARTS)), EVERY, once=True),
    Part("name of the test set", lambda content: 1, (APPRAISE, MQM, PEARMUT), once=True),
    Part("name of the test set beside domains", lambda content: int(_domains(content) > 0), EVERY, once=True),
    Part("domains of documents", _domains, (APPRAISE, MQM, PEARMUT)),
    Part("languages", lambda content: 1, (MQM, PEARMUT), once=True),
    Part("practice items and attention checks", _of_kinds(*WRITTEN_KINDS),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("errors that were marked beforehand",
         _items(lambda item: sum(map(len, (item.proposals or {}).values()))),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("repeats and bad references", _of_kinds(*CONTROL_KINDS), (MQM, MT_METRICS_EVAL, PEARMUT)),
    Part("expected answers of practice and checks, except scores, positions and severities",
         _of_kinds(*WRITTEN_KINDS), (PEARMUT,)),
    Part("items given for a third rating", _of_kinds(ItemKind.THIRD), EVERY),
    Part("items marked as drawn at random", _of_kinds(ItemKind.RANDOM), EVERY),
    Part("items that nobody rated", lambda content: _unrated(content, WITH_CONTROLS), (APPRAISE,)),
    Part("items that nobody rated, or only as a repeat or bad reference",
         lambda content: _unrated(content, SYSTEM_KINDS), (MQM,)),
    Part("weights of items", lambda content: sum(item.weight != 1 for item in rating_items(content)), EVERY),
    Part("systems that were drawn for a page, with their probabilities",
         _items(lambda item: item.block is not None), EVERY),
    Part("pages of items", _items(lambda item: item.page is not None), EVERY),
    Part("references that raters saw", _items(lambda item: bool(item.references)),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("references after the first",
         _items(lambda item: max(len(item.references) - 1, 0)), (PEARMUT,)),
    Part("files beside sources", _items(lambda item: len(files_of(item))), (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("files of outputs", _items(lambda item: len(item.media) - len(files_of(item))),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("numbers of items", lambda content: 1, EVERY, once=True),
    Part("order of systems (the first is the usual baseline)",
         lambda content: int(len(content.systems) > 1), (APPRAISE, PEARMUT), once=True),
    Part("seed and planned number of ratings per item", lambda content: 1, EVERY, once=True),
    Part("times at which the campaign began and ended and raters joined", lambda content: 1, EVERY,
         once=True),
    Part("consents of raters and deletions of their names",
         lambda content: sum(bool(person.consented_at or person.forgotten_at) for person in content.raters),
         EVERY),
    Part("raters without a rating that counts",
         lambda content: _without_ratings(content, WITH_CONTROLS), (APPRAISE,)),
    Part("raters without a rating of a system's output that counts",
         lambda content: _without_ratings(content, SYSTEM_KINDS), (MQM, MT_METRICS_EVAL)),
    Part("raters without a rating of a system's output that counts, or an answer to practice and checks",
         lambda content: _without_ratings(content, (*SYSTEM_KINDS, *WRITTEN_KINDS)), (PEARMUT,)),
    Part("wrong answers to attention checks that raters then changed",
         _answers(lambda answer: bool(answer.warned)), EVERY),
    Part("values on further scales", _scales, EVERY),
    Part("corrected texts", lambda content: sum(
             "text" in (each.score.payload or {}) for each in counted_scores(content)), (MT_METRICS_EVAL,)),
    Part("scores of whole documents", _answers(
             lambda answer: sum(score.document_step is not None for score in answer.scores)), EVERY),
    Part("contexts", _items(lambda item: bool(item.context)), EVERY),
    Part("numbers of segments, if some of 0, 1, … are missing", _renumbered, (MT_METRICS_EVAL,)),
    Part("numbers of segments and names of documents (it numbers them anew)", lambda content: 1,
         (PEARMUT,), once=True),
    Part("white space and slashes in names, hyphens in languages", _renamed, (MT_METRICS_EVAL,)),
    Part("segments without a document, which get one", lambda content: len(
             {item.segment for item in rating_items(content) if not item.document}), (MT_METRICS_EVAL,)),
    Part("sources", _items(lambda item: bool(item.source)), (APPRAISE,)),
    Part("outputs", _items(lambda item: any(item.outputs)), (APPRAISE,)),
    Part("costs of errors that are unusual, and scores by them", _own_costs, (APPRAISE, MQM, PEARMUT)),
    Part("ratings of excluded raters", lambda content: sum(
             len(answer.scores) for answer in content.answers if answer.rater in content.excluded), EVERY),
    Part("earlier revisions", _answers(
             lambda answer: sum(score.revision != answer.last_revision for score in answer.scores)),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("second opinions of a rater on an output", _second_opinions, (MQM, MT_METRICS_EVAL)),
    Part("single ratings with their raters (scores are means, of one rater)", _ratings_in_means,
         (MT_METRICS_EVAL,)),
    Part("skipped items", _answers(lambda answer: bool(answer.skipped_at)), EVERY),
    Part("comments", _answers(lambda answer: bool(answer.comment)), (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("orders of outputs on the page", _answers(lambda answer: len(answer.order) > 1),
         (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("equal outputs rated as one",
         _answers(lambda answer: sum(len(group) - 1 for group in answer.order)), EVERY),
    Part("times on an item", _timed, (MQM, MT_METRICS_EVAL)),
    Part(WORKING, _timed, (PEARMUT,)),
    Part(GIVEN, lambda content: len(content.answers), EVERY),
    Part("timestamps of ratings", _ratings, (MQM, MT_METRICS_EVAL)),
    Part(RATED, _ratings, (PEARMUT,)),
    Part("proposals that errors came from", _proposed, EVERY),
    Part("names of special marks (they come back as omissions)",
         _errors(lambda span, text: span.special_mark is not None), (APPRAISE, MQM, MT_METRICS_EVAL)),
    Part("positions of errors in the source", _errors(lambda span, text: span.in_source),
         (APPRAISE, PEARMUT)),
    Part("positions of errors in texts that are not known",  # which were never imported, say
         _errors(lambda span, text: span.end is not None and span.end >= len(text)), (MQM, PEARMUT)),
    Part("positions of errors in white space at the ends of a text", _errors(_in_margins), (APPRAISE,)),
    Part("categories of errors with a slash in their names",
         _errors(lambda span, text: any("/" in name for name in span.category)),
         (MQM, MT_METRICS_EVAL)),
    Part("categories of errors with a slash in the first name, or not of one or two different names",
         _errors(lambda span, text: category_of(written_category(span.category)) != span.category),
         (PEARMUT,)),
)  # fmt: skip

_NO_NAME = re.compile(r"[\s/\\\x00-\x1f\x7f]+|^\.+")


def sanitised(name: str) -> str:
    """Return a name without white space, slashes and leading dots."""
    return _NO_NAME.sub("_", name)


def language_word(code: str) -> str:
    """Return a word for SRC or TGT: the toolkit splits names at . and -, and uses the word in patterns."""
    return re.sub(r"\W", "_", code) or "und"


def category_of(written: str | None) -> list[str]:
    """Split "Accuracy/Omission" into names from wide to narrow.

    A kind's name may have a slash; a category without kinds is written twice.
    """
    names = written.split("/", 1) if written else []
    return names[:1] if len(set(names)) == 1 else names


def written_category(names: Sequence[str]) -> str | None:
    """Join the names of a category for `category_of`.

    It returns other names if there are more than two, if the first has a slash, or if both are the same.
    """
    return "/".join([*names] * 2 if len(names) == 1 else names) or None
