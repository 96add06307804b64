"""Out into each format and in again: what does not come back, the table of losses names.
Then through the database: export, import, and export again."""

import dataclasses
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from drawn import HOSTILE, LINES, contents, rows, sorted_rows, with_payloads
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from rated import NAME, NAMES, SYSTEMS, everything
from small_campaigns import add_rater, make_campaign, work_for
from sqlalchemy import select
from table_rows import all_of, one_of
from whole_campaign import MEDIA, PICTURE, SIZES, START, content

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT, ImportFacts
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.losses import PARTS, category_of, not_held, sanitised, written_category
from creamtea.human.formats.pearmut_media import TAGS
from creamtea.human.formats.rating_rows import RatingRow, rows_of
from creamtea.human.formats.storing import collect, store_import
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.human.record import (
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
from creamtea.store.database import Database
from creamtea.store.tables import CONTROL_KINDS, WRITTEN_KINDS, AuditEvent, Campaign, ItemKind, Rater

_folders = itertools.count(1)
FILES = {APPRAISE: "scores.csv", MQM: "mqm.tsv"}
# what takes whole ratings or items away, with all that is theirs
RATINGS = (
    *("repeats and bad references", "second opinions", "single ratings", "earlier revisions"),
    *("equal outputs", "ratings of excluded", "skipped items", "items that nobody rated"),
    *("practice items"),
)
# field → the beginnings of the parts that say of its loss; whoever adds a field says here what tells of it
TOLD: dict[type, dict[str, tuple[str, ...]]] = {
    Content: {
        # an import is closed; settings one by one (SETTINGS), raters, items and answers by their own fields;
        # `whole` and `files` are what an export or an import adds
        **dict.fromkeys(("name", "state", "settings", "raters", "items", "answers", "whole", "files"), ()),
        **dict.fromkeys(("created_at", "launched_at", "closed_at"), ("times at which",)),
        **dict.fromkeys(("source_language", "target_language"), ("languages", "white space and slashes")),
        **dict.fromkeys(("ratings_per_item", "seed"), ("seed",)),
        "study": ("other settings",),
        "test_set": ("name of the test set", "white space and slashes"),
        "protocol": ("protocol",),
        "systems": ("items that nobody rated", "white space and slashes", "order of systems"),
        "instructions": ("instructions",),
        "registered": ("registered plan",),
    },
    RaterContent: {
        "pseudonym": ("raters without", "white space and slashes"),
        "created_at": ("times at which", "raters without"),
        **dict.fromkeys(("consented_at", "forgotten_at"), ("consents", "raters without")),
        "excluded_at": ("ratings of excluded", "raters without"),
    },
    ItemContent: {
        **dict.fromkeys(("position", "original"), ("numbers of items",)),
        **dict.fromkeys(("drawn", "output_drawn", "block"), ("systems that were drawn",)),
        "page": ("pages",),
        "kind": ("items marked as drawn",),
        "segment": ("numbers of segments",),
        "document": (
            *("white space and slashes", "segments without a document"),
            "numbers of segments and names of documents",
        ),
        "source": ("sources",),
        "context": ("contexts",),
        "references": ("references",),  # of Pearmut, those after the first
        "media": ("files",),
        "systems": ("white space and slashes",),
        "outputs": ("outputs",),
        "weight": ("weights",),
        "degraded": (),
        "guidance": ("expected answers",),
        "proposals": ("errors that were marked beforehand",),
    },
    AnswerContent: {
        **dict.fromkeys(("skipped_at", "skip_reason", "scores"), ()),
        "item": ("numbers of items",),
        "rater": ("white space and slashes",),
        "order": ("orders",),
        "assigned_at": ("timestamps of items",),
        "submitted_at": ("timestamps of ratings",),
        "comment": ("comments",),
        "active_ms": ("times on",),
        "warned": ("wrong answers",),
    },
    ScoreContent: {
        "system": ("white space and slashes",),
        "revision": (),
        "step": ("protocol (", "costs"),
        "at": ("timestamps of ratings",),
        "payload": ("protocol (", "positions", "categories", "costs", "proposals that", "names of special"),
        "document_step": ("scores of whole documents",),
    },
}
# by their own fields, closed, or not of the campaign
NOT_COMPARED = ("settings", "raters", "items", "answers", "scores", "state", "whole", "files")
SETTINGS = {
    "baseline": ("baseline",),
    "delta": ("baseline",),
    "wmt": ("rule of WMT",),
    "taxonomy": ("taxonomy",),
    "domains": ("domains", "name of the test set beside domains"),
    "first_segment": ("numbers of segments that begin",),
    "references": ("which systems",),
}
USUAL = {"wmt": "usual", "first_segment": 1, "references": [], "domains": {}}  # where nothing is set


@pytest.mark.parametrize("part", TOLD)
def test_every_field_is_there(part: type) -> None:
    assert {field.name for field in dataclasses.fields(part)} == set(TOLD[part])


def sorted_keys(value: Any) -> Any:
    """Without an order of keys; a member of an enumeration is its text."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return sorted((key, sorted_keys(inner)) for key, inner in value.items())
    return [sorted_keys(inner) for inner in value] if isinstance(value, list | tuple) else value


def values_of(content: Content) -> dict[tuple[str, str], Counter[str]]:
    """Each field's values over the ratings that count: of (class, field)."""
    found = {}
    rated = list(counted_scores(content, WITH_CONTROLS))
    for part, objects in {
        Content: [content],
        RaterContent: content.raters,
        ItemContent: [counted.item for counted in rated],
        AnswerContent: [counted.answer for counted in rated],
        ScoreContent: [counted.score for counted in rated],
    }.items():
        for field in TOLD[part]:
            values = [sorted_keys(getattr(each, field)) for each in objects]
            found[part.__name__, field] = Counter(map(repr, values))
    return found


def assert_named(before: Content, after: Content, kind: str) -> None:
    """Of each field that differs, the table of losses says so."""
    named = [part.what for part in not_held(before, kind)]
    lost = [name for name in named if name.startswith(RATINGS)]
    earlier, later = values_of(before), values_of(after)
    unnamed = []
    for part, fields in TOLD.items():
        for field, words in fields.items():
            key = part.__name__, field
            if field not in NOT_COMPARED and earlier[key] != later[key]:
                explained = any(name.startswith(words) for name in named) if words else False
                if not explained and not (lost and part is not Content):
                    unnamed.append(key)
    for name in {**before.settings, **SETTINGS}:
        words = SETTINGS.get(name, ("other settings",))
        value, found = (content.settings.get(name, USUAL.get(name)) for content in (before, after))
        if found != value and not any(what.startswith(words) for what in named):
            unnamed.append(("settings", name))
    assert unnamed == []


# an import makes its own
ALWAYS = (
    *("instructions", "rule of WMT", "protocol", "name of", "languages", "single ratings"),
    *("timestamps of ratings", "timestamps of items", "numbers of items", "seed", "times at which"),
    *("order of systems", "numbers of segments and names", "times on an item (it"),
    *("expected answers", "proposals that errors came from"),
)


def assert_lost(after: Content, kind: str) -> None:
    """What the table says that the format does not hold is not there."""
    for part in PARTS:
        if kind in part.without and not part.what.startswith(ALWAYS):
            assert part.count(after) == 0, part.what


# ---------------------------------------------------------------- what exactly comes back

Said = set[str]  # what the import says that it does not keep
OF_ERRORS = ("rater", "system", "segment", "document", "source", "output", "payload")


def holds_everything(before: Content, after: Content, said: Said) -> None:
    ordered = sorted(before.answers, key=lambda answer: (answer.item, answer.rater))
    assert after == dataclasses.replace(before, answers=tuple(ordered))
    assert said == set()


def appraise(before: Content, after: Content, said: Said) -> None:
    assume(not any("sent twice" in what for what in said))  # ratings that differ in their end alone
    assert said == set()
    columns = ("rater", "system", "segment", "document", "kind", "step", "payload")
    columns += ("active_ms", "submitted_at")
    kept = changed(before, in_appraises_units)
    assert rows(after, columns, kinds=WITH_CONTROLS) == rows(kept, columns, kinds=WITH_CONTROLS)


def mqm(before: Content, after: Content, said: Said) -> None:
    # of documents that are rated in part, and of texts that would be read without their quotes
    assert said <= {"numbers of segments within documents", "texts in CSV quotes, read without them"}
    assert rows(after, OF_ERRORS) == rows(only_first_opinions(changed(before, category_joined)), OF_ERRORS)


def mt_metrics_eval(before: Content, after: Content, said: Said) -> None:
    """Errors of MQM have their raters; other scores are the means over raters, of whom each has one vote."""
    whole = known_test_set(before)
    numbers = {line.index: at for at, line in enumerate(whole.lines)}
    assert [line.outputs for line in known_test_set(after).lines] == [
        tuple(line.outputs[before.systems.index(system)] for system in after.systems) for line in whole.lines
    ]
    if before.protocol == "mqm":
        first = only_first_opinions(changed(before, category_joined))
        expected = [row | {"segment": numbers[row["segment"]]} for row in rows(first, OF_ERRORS)]
        assert rows(after, OF_ERRORS) == sorted_rows(expected)
        return
    steps: dict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for each in counted_scores(before):
        steps[numbers[each.item.segment], each.score.system][each.answer.rater].append(each.score.step)
    assert {
        (each.item.segment, each.score.system): float((each.score.payload or {})["score"])
        for each in counted_scores(after)
    } == {cell: pytest.approx(fmean(map(fmean, raters.values()))) for cell, raters in steps.items()}
    assert {person.pseudonym for person in after.raters} == {before.protocol}


def pearmut(before: Content, after: Content, said: Said) -> None:
    again = "submitted documents in lines that say all that an earlier line says: kept once"  # a revision
    assert said <= {"actions (their times are kept)", again}
    columns = ("rater", "system", "kind", "source", "output", "step", "payload", "comment", "order")
    # a mark at the place of a proposal is taken to come from it
    kept, found = changed(before, in_pearmuts_words), changed(after, in_pearmuts_words)
    expected, imported = (rows(content, columns, kinds=tuple(ItemKind)) for content in (kept, found))
    for row in (*expected, *imported):
        if row["kind"] in WRITTEN_KINDS:  # whatever systems come first stand in
            del row["system"], row["order"]
    assert sorted_rows(imported) == sorted_rows(expected)
    texts = [
        sorted(
            (item.source, item.outputs, json.dumps(item.proposals, sort_keys=True))
            for item in content.items
            if item.segment >= 0
        )
        for content in (before, after)
    ]
    assert texts[0] == texts[1]


COMES_BACK: dict[str, Callable[[Content, Content, Said], None]] = {
    "csv": holds_everything,
    "jsonl": holds_everything,
    APPRAISE: appraise,
    MQM: mqm,
    MT_METRICS_EVAL: mt_metrics_eval,
    PEARMUT: pearmut,
}


def changed(
    content: Content, change: Callable[[dict[str, Any], ItemContent, str], dict[str, Any]]
) -> Content:
    """The campaign with each marked error as the format has it; which proposal it came from is not kept."""
    if not find_protocol(content.protocol).marks_errors:
        return content

    def of(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
        lost = ("proposed",) if change is in_pearmuts_words else ("proposed", "special_mark")
        return change({name: value for name, value in span.items() if name not in lost}, item, output)

    return with_payloads(content, of)


def category_joined(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
    return span | ({"category": "/".join(span["category"]).split("/")} if "category" in span else {})


def in_pearmuts_words(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
    if "category" in span:
        span["category"] = category_of(written_category(span["category"]))
    if span.pop("in_source", False):
        del span["start"], span["end"]
    return span


ZS = "".join(map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B), 0x2029, 0x202F, 0x205F, 0x3000)))


def in_appraises_units(span: dict[str, Any], item: ItemContent, output: str) -> dict[str, Any]:
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


def only_first_opinions(content: Content) -> Content:
    kept = {(each.answer.item, each.answer.rater) for each in first_opinions(content)}
    answers = tuple(answer for answer in content.answers if (answer.item, answer.rater) in kept)
    return dataclasses.replace(content, answers=answers)


def allowed(name: str) -> bool:
    """What every format can hold; `test_losses` and `test_pearmut` have names that some refuse."""
    return (
        "#" not in name
        and not name.isdigit()
        and not set(name) & set('"<&')
        and "tutorial" not in name.lower()
    )


def a_word(name: str) -> bool:
    return allowed(name) and sanitised(name) == name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        *((kind, protocol) for kind in ("csv", "jsonl") for protocol in ("da", "cesa", "mqm")),
        *((APPRAISE, protocol) for protocol in ("da", "da-sqm", "esa", "mqm")),
        (MQM, "mqm"),
        *((MT_METRICS_EVAL, protocol) for protocol in ("da", "da-sqm", "esa", "mqm")),
        *((PEARMUT, protocol) for protocol in ("da", "da-sqm", "esa", "cesa", "mqm")),
    ],
)
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=FIXTURES_ARE_SHARED)
@given(data=st.data())
def test_what_goes_out_comes_back_or_is_named(
    tmp_path: Path, kind: str, protocol: str, data: st.DataObject
) -> None:
    of_lines = kind in (MQM, MT_METRICS_EVAL)
    names = a_word if kind == MT_METRICS_EVAL else allowed
    before = data.draw(contents(protocol, () if of_lines else LINES, names))
    if kind == PEARMUT and data.draw(st.booleans()):
        before = of_one_opinion(before)
    rated = list(counted_scores(before))
    assume(rated)
    assume(protocol != "esa" or any(each.score.step for each in rated))  # else the file fits MQM
    # Hypothesis draws constants of the source, too, such as the tags that Pearmut's page would run
    assume(not any(text.startswith(TAGS) for item in before.items for text in (item.source, *item.outputs)))
    out = tmp_path / f"out-{next(_folders)}"
    find_format(kind).write(before, out)
    if find_format(kind).has_media:
        (out / "media").mkdir()
        (out / "media" / f"{MEDIA['digest']}.png").write_bytes(PICTURE)
    told = ImportFacts("drawn", protocol if kind == APPRAISE else None)
    after, not_kept = find_format(kind).read(out / FILES.get(kind, ""), told, START)
    beside = (
        "scores of documents, domains and systems",
        "segment scores that are not what their errors cost",
    )
    assert_named(before, after, kind)
    if kind == PEARMUT and before != of_one_opinion(before):
        return  # further opinions come back as revisions, or as items if other errors were marked beforehand
    COMES_BACK[kind](before, after, {part.what for part in not_kept} - {*beside})
    assert_lost(after, kind)


def test_a_rater_of_practice_alone_is_lost_where_practice_is(tmp_path: Path) -> None:
    guidance = {"steps": {"0": [1, 20]}, "spans": {}, "above": [], "warning": "read"}
    shown: dict[str, Any] = {"systems": ("=x",), "outputs": ("",)}
    score = ScoreContent(system="=x", revision=1, step=0, at=START, payload=None)
    everybody = ("=x", ":", ";")
    asked = {"order": (("=x",),), "assigned_at": START, "submitted_at": START, "scores": (score,)}
    before = content(
        protocol="da",
        systems=("=x",),
        raters=tuple(RaterContent(pseudonym=name, created_at=START) for name in everybody),
        items=(
            ItemContent(position=0, segment=0, **shown),
            ItemContent(position=1, kind="tutorial", segment=-1, guidance=guidance, weight=0.0, **shown),
            ItemContent(position=2, segment=1, **shown),
        ),
        answers=tuple(AnswerContent(item=at, rater=rater, **asked) for at, rater in enumerate(everybody)),
    )
    find_format("pearmut").write(before, tmp_path / "pearmut")
    after, _ = find_format("pearmut").read(tmp_path / "pearmut", ImportFacts("drawn"), START)
    assert {person.pseudonym for person in after.raters} == {"=x", ":", ";"}
    assert_lost(after, PEARMUT)
    for kind in (APPRAISE, MQM, MT_METRICS_EVAL):
        found = [part for part in not_held(before, kind) if part.what.startswith("raters without")]
        assert [part.count for part in found] == [1], kind


@given(number=st.integers(0, 20).flatmap(lambda places: st.decimals(-1000, 1000, places=places)))
def test_a_score_is_kept_as_it_was_written(number: Decimal) -> None:
    protocol = find_protocol("scores")
    scored = protocol.read_answer({"score": str(number)}, "")
    assert protocol.value(scored.step, scored.payload) == Fraction(str(number))
    assert abs(protocol.scale.value(scored.step) - Fraction(str(number))) <= Fraction(1, 2 * 10**6)


# ---------------------------------------------------------------- through the database

# the protocols whose answers are their scores; `test_post_edits_survive` has payloads
SCORED = [
    name
    for name in protocol_names(rated_here=True)
    if type(find_protocol(name)).read_answer is Protocol.read_answer
]


def stored(database: Database, name: str = NAME) -> list[RatingRow]:
    return list(rows_of(collect(database, name)))


def moved(source: Database, target: Database, name: str, kind: str, folder: Path) -> Path:
    """The folder of an export that was imported under the same name."""
    path = folder / f"export-{next(_folders)}"
    export_campaign(source, name, kind, path, "test")
    import_campaign(target, path, kind, ImportFacts(name), "test")
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("protocol", SCORED)
def test_everything_of_a_campaign_survives(
    database: Database, other: Database, tmp_path: Path, protocol: str, kind: str
) -> None:
    everything(database, protocol)
    first = moved(database, other, NAME, kind, tmp_path)
    second = tmp_path / "again"
    export_campaign(other, NAME, kind, second, "test")
    for file in ("items.jsonl", f"ratings.{kind}"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
    before = collect(database, NAME)
    assert before == collect(other, NAME)
    assert len(stored(database)) > len(before.items)
    assert not [file for file in first.iterdir() for name in NAMES if name in file.read_text()]
    # what the folder adds (contexts, guidance, settings) is no part of a re-analysis
    facts = ImportFacts("ratings", None, "test", "en", "de")
    import_campaign(other, first / f"ratings.{kind}", kind, facts, "test")
    rows = [dataclasses.replace(row, campaign=NAME) for row in stored(other, "ratings")]
    assert rows == stored(database)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_post_edits_survive(database: Database, other: Database, tmp_path: Path, kind: str) -> None:
    written = [text if text.strip() else f"={text}" for text in (*HOSTILE, *LINES)]
    items = [{"outputs": ["ein Haus"]}] * len(written)
    make_campaign(database, items, protocol="post-edit", baseline="plain", delta=2.0)
    anna = add_rater(database)
    for text in written:
        assignment.submit(database, anna, work_for(database, anna).assignment_id, [{"text": text}])
    moved(database, other, "c", kind, tmp_path)
    assert stored(other, "c") == stored(database, "c")
    assert sorted((row.payload or {})["text"] for row in stored(other, "c")) == sorted(written)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["da", "cesa", "mqm"])
@settings(max_examples=10, suppress_health_check=FIXTURES_ARE_SHARED)
@given(data=st.data())
def test_any_campaign_is_in_the_database_as_it_was_stored(
    database: Database, protocol: str, data: st.DataObject
) -> None:
    before = data.draw(contents(protocol, (*LINES, "x" * 1000, "line\r\nline\x85line")))
    before = dataclasses.replace(before, name=f"drawn {next(_folders)}")
    store_import(database, before, "test", "here", media_sizes=SIZES)
    holds_everything(before, collect(database, before.name), set())


def test_which_ratings_count(database: Database) -> None:
    everything(database, "da")
    found = stored(database)
    wanted = {(0, "anna", 2), (0, "خالد", 1), (1, "anna", 1), (2, "anna", 1), (3, "anna", 1), (4, "anna", 1)}
    assert {(row.item, row.rater, row.revision) for row in found if row.counts} == wanted
    assert {row.rater for row in found if row.excluded} == {"=1+1"}
    skipped = [row for row in found if row.skipped_at is not None]
    assert [(row.system, row.step, row.skip_reason, row.shown) for row in skipped] == [
        (system, None, "@no idea", 1)  # identical outputs share a place
        for system in (SYSTEMS[0], SYSTEMS[2])
    ]


def test_an_import_belongs_to_no_study_and_is_closed(
    database: Database, other: Database, tmp_path: Path
) -> None:
    everything(database, "da")
    path = tmp_path / "out"
    export_campaign(database, NAME, "csv", path, "anna's session")
    done = import_campaign(other, path, "csv", ImportFacts("another name"), "command line")
    assert (done.campaign, done.systems, done.items, done.raters) == ("another name", 3, 5, 3)
    campaign = one_of(other, select(Campaign))
    assert (campaign.study_id, campaign.state) == (None, "closed")
    assert campaign.registered == {"digest": "abc", "items": [1, 2]}
    assert {(rater.name, rater.subject) for rater in all_of(other, select(Rater))} == {(None, None)}
    events = [(event.actor, event.action) for event in all_of(other, select(AuditEvent))]
    assert events == [("command line", "ratings imported")]
    event = all_of(database, select(AuditEvent))[-1]
    assert (event.actor, event.action) == ("anna's session", "ratings exported")
    with pytest.raises(InputError, match="already exists: import under another name"):
        import_campaign(other, path, "csv", ImportFacts("another name"), "command line")
    chosen = ImportFacts("own", baseline=SYSTEMS[1], delta=7.0)
    import_campaign(other, path, "csv", chosen, "test")
    settings_there = collect(other, "own").settings
    assert (settings_there["baseline"], settings_there["delta"]) == (SYSTEMS[1], 7.0)
    with pytest.raises(InputError, match="--baseline nobody: no such system; there are "):
        import_campaign(other, path, "csv", ImportFacts("more", baseline="nobody"), "test")


def test_a_folder_with_something_in_it_is_left_alone(database: Database, tmp_path: Path) -> None:
    everything(database, "da")
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InputError, match="it is not empty"):
        export_campaign(database, NAME, "csv", tmp_path, "test")
    assert (tmp_path / "notes").read_text() == "mine"
    assert not list(tmp_path.glob("*.csv"))
