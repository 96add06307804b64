"""Out into the formats of other tools and in again: whatever the table of losses does not name comes back."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from drawn import LINES, START, contents, rows, sorted_rows, with_payloads
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED

from creamtea.human.formats.base import APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT, ImportFacts
from creamtea.human.formats.csv_jsonl import read_folder
from creamtea.human.formats.exchange import find_format
from creamtea.human.formats.losses import PARTS, category_of, not_held, sanitised, written_category
from creamtea.human.formats.pearmut_media import TAGS
from creamtea.human.formats.record import (
    WITH_CONTROLS,
    AnswerContent,
    Content,
    ItemContent,
    RaterContent,
    ScoreContent,
    counted_scores,
    first_opinions,
    known_test_set,
)
from creamtea.human.protocols import find_protocol
from creamtea.store.tables import CONTROL_KINDS, WRITTEN_KINDS, ItemKind

FACTS = ImportFacts("drawn", None, "test", "en", "de")
# an import makes its own
ALWAYS = (
    "instructions",
    "rule of WMT",
    "protocol",
    "name of",
    "languages",
    "single ratings",
    "timestamps of ratings",
    "timestamps of items",
    "numbers of items",
    "seed",
    "moments",
    "order of systems",
    "numbers of segments and names",
    "times on an item beyond",
    "what practice and checks expect",
    "proposals that errors came from",
)
ZS = "".join(map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B), 0x2029, 0x202F, 0x205F, 0x3000)))
pytestmark = pytest.mark.slow
_folders = itertools.count(1)
some = settings(
    max_examples=20,
    phases=[Phase.generate],
    suppress_health_check=FIXTURES_ARE_SHARED,
)


def folder(tmp_path: Path) -> Path:
    return tmp_path / f"out-{next(_folders)}"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("protocol", ["da", "cesa", "mqm"])
@some
@given(data=st.data())
def test_our_own_files_hold_everything(tmp_path: Path, protocol: str, kind: str, data: st.DataObject) -> None:
    before = data.draw(contents(protocol, LINES))
    out = folder(tmp_path)
    find_format(kind).write(before, out)
    ordered = sorted(before.answers, key=lambda answer: (answer.item, answer.rater))
    assert read_folder(out, kind) == dataclasses.replace(before, answers=tuple(ordered))


def assert_lost(after: Content, kind: str) -> None:
    """What the table says that the format does not hold is not there."""
    for part in PARTS:
        if kind in part.without and not part.what.startswith(ALWAYS):
            assert part.count(after) == 0, part.what


def category_joined(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
    return span | ({"category": "/".join(span["category"]).split("/")} if "category" in span else {})


def for_appraise(name: str) -> bool:
    return "#" not in name


@pytest.mark.parametrize("protocol", ["da", "da-sqm", "esa", "mqm"])
@some
@given(data=st.data())
def test_appraise(tmp_path: Path, protocol: str, data: st.DataObject) -> None:
    before = data.draw(contents(protocol, LINES, for_appraise))
    assume(any(True for _ in counted_scores(before, WITH_CONTROLS)))
    assume(protocol != "esa" or any(given.score.step for given in counted_scores(before, WITH_CONTROLS)))
    out = folder(tmp_path)
    [file], _ = find_format("appraise").write(before, out)
    facts = ImportFacts("drawn", protocol, "test", "en", "de")
    after, not_kept = find_format("appraise").read(file, facts, START)
    assume(not any("sent twice" in part.what for part in not_kept))  # ratings that differ in their end alone
    assert not_kept == ()
    columns = (
        "rater",
        "system",
        "segment",
        "document",
        "kind",
        "step",
        "payload",
        "active_ms",
        "submitted_at",
    )

    def omission(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
        """No outputs come back: places stay as Appraise counts, in UTF-16, without outer white space."""
        in_source, start, end = (span.pop(name, None) for name in ("in_source", "start", "end"))
        trimmed = output.strip(" \t\n\r\f\v\u2028\ufeff" + ZS)
        margin = output.index(trimmed) if trimmed else len(output)
        units = [at for at, character in enumerate(output) for _ in character.encode("utf-16-le")[::2]]
        if start is not None and not in_source:
            inside = range(max(start, margin), min(end, margin + len(trimmed) - 1) + 1)
            if inside:
                before = units.index(margin)
                last = len(units) - 1 - units[::-1].index(inside[-1])
                return span | {"start": units.index(inside[0]) - before, "end": last - before}
        return span

    kept = with_payloads(before, omission) if protocol in ("esa", "mqm") else before
    assert rows(after, columns, kinds=WITH_CONTROLS) == rows(kept, columns, kinds=WITH_CONTROLS)
    assert_lost(after, APPRAISE)


@some
@given(before=contents("mqm"))
def test_google_mqm(tmp_path: Path, before: Content) -> None:
    assume(any(True for _ in counted_scores(before)))
    [file], _ = find_format("mqm").write(before, folder(tmp_path))
    after, not_kept = find_format("mqm").read(file, FACTS, START)
    # of documents that are rated in part, the numbers are those of the whole
    assert {part.what for part in not_kept} <= {"numbers of segments within documents"}
    columns = ("rater", "system", "segment", "document", "source", "output", "payload")
    first = only_first_opinions(with_payloads(before, category_joined))
    assert rows(after, columns) == rows(first, columns)
    assert_lost(after, MQM)


@some
@given(before=contents("mqm", allowed=lambda name: sanitised(name) == name))
def test_mt_metrics_eval_with_marked_errors(tmp_path: Path, before: Content) -> None:
    assume(any(True for _ in counted_scores(before)))
    whole = known_test_set(before)
    documents = list(dict.fromkeys(line.document for line in whole.lines))
    domains = {document: ("news", "chat")[at % 2] for at, document in enumerate(documents)}
    before = dataclasses.replace(before, settings={"domains": domains})
    out = folder(tmp_path)
    find_format("mt-metrics-eval").write(before, out)
    after, not_kept = find_format("mt-metrics-eval").read(out, FACTS, START)
    assert after.settings["domains"] == domains
    said = {part.what for part in not_kept} - {"scores of documents, domains and systems"}
    if all(item.kind != "rated" or at == 0 for at, item in enumerate(before.items)):
        assert said <= {"segment scores that are not what their errors cost"}
    columns = ("rater", "system", "segment", "document", "source", "output", "payload")
    numbers = {line.index: at for at, line in enumerate(whole.lines)}
    first = only_first_opinions(with_payloads(before, category_joined))
    expected = [row | {"segment": numbers[row["segment"]]} for row in rows(first, columns)]
    assert rows(after, columns) == sorted_rows(expected)
    assert known_test_set(after).lines == tuple(
        dataclasses.replace(line, index=numbers[line.index], outputs=in_order(before, after, line.outputs))
        for line in whole.lines
    )
    assert_lost(after, MT_METRICS_EVAL)


@some
@given(before=contents("da", allowed=lambda name: sanitised(name) == name))
def test_mt_metrics_eval_with_means(tmp_path: Path, before: Content) -> None:
    """The mean over raters, of whom each has one vote, as the scores of one nameless rater."""
    given: dict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for counted in counted_scores(before):
        given[counted.item.segment, counted.score.system][counted.answer.rater].append(counted.score.step)
    assume(given)
    whole = known_test_set(before)
    out = folder(tmp_path)
    find_format("mt-metrics-eval").write(before, out)
    after, _ = find_format("mt-metrics-eval").read(out, FACTS, START)
    numbers = {line.index: at for at, line in enumerate(whole.lines)}
    assert {
        (counted.item.segment, counted.score.system): float(counted.score.payload["score"])
        for counted in counted_scores(after)
        if counted.score.payload
    } == {
        (numbers[segment], system): pytest.approx(fmean(fmean(steps) for steps in raters.values()))
        for (segment, system), raters in given.items()
    }
    assert {person.pseudonym for person in after.raters} == {"da"}
    again = folder(tmp_path)
    find_format("mt-metrics-eval").write(after, again)
    name = "human-scores/en-de.{}.seg.score"
    assert (again / name.format("scores")).read_text() == (out / name.format("da")).read_text()


@given(number=st.integers(0, 20).flatmap(lambda places: st.decimals(-1000, 1000, places=places)))
def test_a_score_is_kept_as_it_was_written(number: Decimal) -> None:
    protocol = find_protocol("scores")
    scored = protocol.read_answer({"score": str(number)}, "")
    assert protocol.value(scored.step, scored.payload) == Fraction(str(number))
    assert abs(protocol.scale.value(scored.step) - Fraction(str(number))) <= Fraction(1, 2 * 10**6)


def for_pearmut(name: str) -> bool:
    return not name.isdigit() and not set(name) & set('"<&')


def texts_of(content: Content) -> Iterator[str]:
    for item in content.items:
        yield from (item.source, *item.outputs, *item.references)


@pytest.mark.parametrize("protocol", ["da", "esa", "cesa", "mqm"])
@some
@given(data=st.data())
def test_pearmut(tmp_path: Path, protocol: str, data: st.DataObject) -> None:
    before = of_one_opinion(data.draw(contents(protocol, LINES, for_pearmut, proposals=True)))
    assume(any(True for _ in counted_scores(before)))
    # Hypothesis draws constants of the source, too, such as the tags that Pearmut's page would run
    assume(not any(text.startswith(TAGS) for text in texts_of(before)))
    out = folder(tmp_path)
    find_format("pearmut").write(before, out)
    after, not_kept = find_format("pearmut").read(out, ImportFacts("drawn"), START)
    assert {part.what for part in not_kept} <= {"actions (their times are kept)"}

    def in_units(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
        if "category" in span:
            span["category"] = category_of(written_category(span["category"]))
        if span.pop("in_source", False):
            del span["start"], span["end"]
        return span

    def without_proposal(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
        """A mark at the place of a proposal is taken to come from it."""
        return {name: value for name, value in span.items() if name != "proposed"}

    kept, found = before, after
    if protocol != "da":
        kept, found = with_payloads(before, in_units), with_payloads(after, without_proposal)
    columns = ("rater", "system", "kind", "source", "output", "step", "payload", "comment", "order")
    expected, given = (rows(content, columns, kinds=tuple(ItemKind)) for content in (kept, found))
    for row in (*expected, *given):
        if row["kind"] in WRITTEN_KINDS:  # whatever systems come first stand in
            del row["system"], row["order"]
    assert sorted_rows(given) == sorted_rows(expected)
    texts = [
        sorted(
            (item.source, item.outputs, json.dumps(item.proposals, sort_keys=True))
            for item in content.items
            if item.segment >= 0
        )
        for content in (before, after)
    ]
    assert texts[0] == texts[1]
    assert_lost(after, PEARMUT)


def of_one_opinion(content: Content) -> Content:
    """Without controls and further items of a segment, which are revisions in Pearmut."""
    firsts: dict[Any, ItemContent] = {}
    for item in content.items:
        key = item.position if item.segment < 0 else (item.segment, item.systems)
        if item.kind not in CONTROL_KINDS:
            firsts.setdefault(key, item)
    kept = {item.position for item in firsts.values()}
    answers = tuple(answer for answer in content.answers if answer.item in kept)
    return dataclasses.replace(content, items=tuple(firsts.values()), answers=answers)


def test_a_rater_of_practice_alone_is_lost_where_practice_is(tmp_path: Path) -> None:
    practice = {"systems": ("=x",), "outputs": ("",), "document": ""}
    guidance = {"steps": {"0": [1, 20]}, "spans": {}, "above": [], "warning": "read"}
    rated: dict[str, Any] = {"document": "=x", "systems": ("=x",), "outputs": ("",)}
    score = ScoreContent(system="=x", revision=1, step=0, at=START, payload=None)
    before = Content(
        name="drawn",
        test_set="test",
        protocol="da",
        systems=("=x",),
        source_language="en",
        target_language="de",
        ratings_per_item=1,
        created_at=START,
        launched_at=START,
        closed_at=START,
        raters=tuple(RaterContent(pseudonym=name, created_at=START) for name in ("=x", ":", ";")),
        items=(
            ItemContent(position=0, segment=0, **rated),
            ItemContent(position=1, kind="tutorial", segment=-1, guidance=guidance, weight=0.0, **practice),
            ItemContent(position=2, segment=1, **rated),
        ),
        answers=tuple(
            AnswerContent(
                item=item,
                rater=rater,
                order=(("=x",),),
                assigned_at=START,
                submitted_at=START,
                scores=(score,),
            )
            for item, rater in ((0, "=x"), (0, ":"), (1, ";"))
        ),
    )
    find_format("pearmut").write(before, tmp_path / "pearmut")
    after, _ = find_format("pearmut").read(tmp_path / "pearmut", ImportFacts("drawn"), START)
    assert {person.pseudonym for person in after.raters} == {"=x", ":", ";"}
    assert_lost(after, PEARMUT)
    for kind in (APPRAISE, MQM, MT_METRICS_EVAL):
        found = [part for part in not_held(before, kind) if part.what.startswith("raters without")]
        assert [part.count for part in found] == [1], kind


def in_order(before: Content, after: Content, outputs: tuple[str | None, ...]) -> tuple[str | None, ...]:
    return tuple(outputs[before.systems.index(system)] for system in after.systems)


def only_first_opinions(content: Content) -> Content:
    kept = {(counted.answer.item, counted.answer.rater) for counted in first_opinions(content)}
    answers = tuple(answer for answer in content.answers if (answer.item, answer.rater) in kept)
    return dataclasses.replace(content, answers=answers)
