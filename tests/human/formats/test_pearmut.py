"""Pearmut's files (docs/exchange.md), made up after the examples of its repository or written by Pearmut.

`read.txt` and `refused.txt` have more of them.
"""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from drawn import LINES, texts
from hypothesis import given
from hypothesis import strategies as st
from pearmut_files import as_done, as_imported
from small_campaigns import make_campaign
from sqlalchemy import select
from whole_campaign import START, content

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.losses import GIVEN, RATED, WORKING
from creamtea.human.formats.pearmut import Units
from creamtea.human.formats.pearmut_media import Assets, TaggedFile, assets_of, parse, with_tags
from creamtea.human.formats.rating_rows import RatingRow, rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.making.known_answers import Attention, attention_of
from creamtea.human.protocols.spans import Span
from creamtea.human.record import AnswerContent, ItemContent, RaterContent, ScoreContent
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LOAD = 1_771_311_126.5
FOX = "Der 🦊\nrennt."


def item(number: int = 1, **fields: Any) -> dict[str, Any]:
    texts = {"src": f"The fox runs {number}.", "tgt": {"B": FOX, "A": "Fuchs"}}
    return {"item_id": f"fox-{number}", **texts, **fields}


def response(score: int | None = 70, *spans: tuple[int, int, str], **fields: Any) -> dict[str, Any]:
    errors = [
        {"start_i": start, "end_i": end, "severity": severity, "category": None}
        for start, end, severity in spans
    ]
    return {"score": score, "error_spans": errors, "textfield": None, **fields}


def action(seconds: float, name: str, index: int | None = None, model: str = "") -> dict[str, Any]:
    about = {} if index is None else {"index": index, "model": model, "value": 1}
    return {"time": LOAD + seconds, "action": name, **about}


def line(annotation: Any, items: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    usual = {"actions": [], "item": items or [item()], "user_id": "ann", "item_i": 0}
    return {"annotation": annotation, **usual, **fields}


def read(
    folder: Path, *lines: Any, campaign: dict[str, Any] | None = None, protocol: str | None = "esa"
) -> tuple[list[RatingRow], dict[str, int]]:
    """The rows, and what is not kept."""
    path = folder / "annotations.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    beside = None
    if campaign is not None:
        beside = folder / "campaign.json"
        beside.write_text(json.dumps(campaign), encoding="utf-8")
    facts = ImportFacts("fox", protocol, "test", "en", "de", campaign_file=beside)
    content, not_kept = find_format("pearmut").read(path, facts, NOW)
    return list(rows_of(content)), {part.what: part.count for part in not_kept}


def test_scores_places_and_times(tmp_path: Path) -> None:
    actions = [
        action(0, "load"),
        action(10, "create_span", 0, "A"),
        action(95, "score", 0, "A"),  # a minute of it counts
        action(100, "score", 0, "B"),
        action(102, "submit"),
    ]
    # D e r _ 🦊🦊 (LF) r e n n t . [missing]: the emoji is two
    spans = [(0, 2, "minor"), (4, 7, "major"), (13, 13, "major")]
    found, not_kept = read(tmp_path, line([{"A": response(95), "B": response(40, *spans)}], actions=actions))
    rows = {row.system: row for row in found}
    assert rows["B"].payload == {
        "score": 40,
        "spans": [
            {"start": 0, "end": 2, "severity": "minor"},
            {"start": 4, "end": 6, "severity": "major"},
            {"severity": "major"},
        ],
    }
    assert FOX[4:7] == "🦊\nr"
    assert (rows["A"].value, rows["A"].active_ms, rows["B"].active_ms) == ("95", 70_000, 7_000)
    assert rows["A"].assigned_at == datetime.fromtimestamp(LOAD, UTC)
    assert rows["A"].submitted_at == rows["A"].rated_at == datetime.fromtimestamp(LOAD + 102, UTC)
    assert not_kept == {
        "actions (their times are kept)": 3,
        "places behind line feeds, read as Pearmut counts them from version 1.1.5 on": 3,
    }


@pytest.mark.parametrize(
    ("systems", "pauses", "lost"),
    [("A", [8], {}), ("A", [95, 2], {WORKING: 1}), ("AB", [8, 9], {WORKING: 2})],  # the last rated at once
)
def test_times_that_come_back_are_not_lost(
    systems: str, pauses: list[int], lost: dict[str, int], tmp_path: Path
) -> None:
    """An import knows when the first action of a document was, and the last, and a minute between two."""
    times = [sum(pauses[:at]) for at in range(1, len(pauses) + 1)]
    actions = [
        action(0, "load"),
        *(action(at, "score", 0, systems[n % len(systems)]) for n, at in enumerate(times)),
    ]
    rated = line(
        [{system: response() for system in systems}], [item(tgt=dict.fromkeys(systems, FOX))], actions=actions
    )
    (tmp_path / "annotations.jsonl").write_text(json.dumps(rated), encoding="utf-8")
    facts = ImportFacts("fox", "esa", "test", "en", "de")
    content, _ = find_format("pearmut").read(tmp_path / "annotations.jsonl", facts, NOW)
    _, not_kept = find_format("pearmut").write(content, tmp_path / "out")
    assert {part.what: part.count for part in not_kept if part.what in (WORKING, GIVEN, RATED)} == lost


def test_an_answer_with_revisions_loses_its_times_once(tmp_path: Path) -> None:
    lines = [
        line(
            [{"A": response()}],
            [item(tgt={"A": FOX})],
            actions=[action(at, "load"), action(at + 8, "score", 0, "A")],
        )
        for at in (0, 100)
    ]
    (tmp_path / "annotations.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8"
    )
    facts = ImportFacts("fox", "esa", "test", "en", "de")
    content, _ = find_format("pearmut").read(tmp_path / "annotations.jsonl", facts, NOW)
    _, not_kept = find_format("pearmut").write(content, tmp_path / "out")
    lost = {part.what: part.count for part in not_kept}
    assert (lost[WORKING], lost[GIVEN], lost[RATED]) == (1, 1, 2)


@pytest.mark.parametrize("text", ["", "abc", FOX, "\n", "a\n\nb", "👩‍👩‍👧", "مرحبا 🦊"])
def test_every_place_comes_back(text: str) -> None:
    units = Units(text)
    assert len(units) == len(text.encode("utf-16-le")) // 2
    for start in range(len(text)):
        for end in range(start, len(text)):
            span = Span(start=start, end=end, severity="minor")
            assert units.characters(*units.of_span(span)) == (start, end)
    assert units.of_span(Span(severity="minor")) == (len(units), len(units))
    assert units.characters(len(units), len(units)) is None


BEHIND = {"error_spans": [{"start_i": 0, "end_i": 99}]}
BETWEEN = "accepted scores of checks, between which no whole number lies"


@pytest.mark.parametrize(
    ("rule", "accepted", "lost"),
    [
        ({"score": [80, 90], **BEHIND}, [{"0": [80, 90]}], {"expected errors of checks": 1}),
        ({"score": [3.2, 4.8]}, [{"0": [4, 4]}], {}),
        ({"score": [3.2, 3.8]}, [], {BETWEEN: 1, "answers to practice and checks that any answer passes": 5}),
    ],
)
def test_what_a_check_loses_is_counted_once(tmp_path: Path, rule: Any, accepted: Any, lost: Any) -> None:
    items = [item(), item(9, validation={"A": rule})]
    lines = [line([{"A": response()}] * 2, items, user_id=f"r{rater}") for rater in range(5)]
    path = tmp_path / "annotations.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    content, not_kept = find_format("pearmut").read(path, ImportFacts("x", protocol="esa"), NOW)
    assert [one.guidance["steps"] for one in content.items if one.guidance] == accepted
    assert {part.what: part.count for part in not_kept} == lost


def test_the_campaigns_file_says_the_protocol_and_has_the_items(tmp_path: Path) -> None:
    campaign = {"info": {"protocol": "DA", "assignment": "task-based"}, "campaign_id": "fox"}
    campaign["data"] = {"bob": [[item(5)]], "ann": [[item()], [item(2), item(3)]]}
    bare = line([{"A": response(1)}, {"A": response(2)}], item_i=1) | {"item": None}
    found, _ = read(tmp_path, bare, campaign=campaign, protocol=None)
    assert {(row.protocol, row.source, row.value) for row in found} == {
        ("da", "The fox runs 2.", "1"),
        ("da", "The fox runs 3.", "2"),
    }
    for number in (-1, 2, "welcome_0", "welcome_x", f"welcome_{'1' * 5000}"):
        with pytest.raises(InputError, match="--campaign-file none for document"):
            read(tmp_path, bare | {"item_i": number}, campaign=campaign, protocol=None)
    campaign["data"] = [[item()], [item(2), item(3)]]
    for_all, _ = read(tmp_path, bare, campaign=campaign, protocol=None)
    assert [(row.source, row.value) for row in for_all] == [(row.source, row.value) for row in found]


def test_a_campaign_to_be_rated_there(other: Database, tmp_path: Path) -> None:
    """Nobody has rated: as many users as raters were asked for, each with every document."""
    items = [
        {
            **{"segment_index": segment, "document": document, "source": f"s{segment}"},
            **{"systems": [at], "outputs": [f"{'pb'[at]}{segment}"]},
        }
        for segment, document in ((0, "a"), (1, "a"), (2, "b"))
        for at in range(2)
    ]
    make_campaign(other, items, k=2, protocol="da", systems=2)
    export_campaign(other, "c", "pearmut", tmp_path / "out", "test")
    campaign = json.loads((tmp_path / "out/campaign.json").read_text())
    assert campaign["info"] == {
        "assignment": "task-based",
        "protocol": "DA",
        "users": ["rater-1", "rater-2"],
        "special_tokens": [],
    }
    first, second = campaign["data"]
    assert first == second
    assert [[one["tgt"] for one in document] for document in first] == [
        [{"plain": "p0"}, {"plain": "p1"}],
        [{"beam": "b0"}, {"beam": "b1"}],
        [{"plain": "p2"}],
        [{"beam": "b2"}],
    ]
    assert (tmp_path / "out/annotations.jsonl").read_text() == ""

    # rated there, and back: segments and documents are counted as they come
    document = first[1]
    answers = {"annotation": [{"beam": response(50)}, {"beam": response(60)}], "user_id": "rater-1"}
    (tmp_path / "out/annotations.jsonl").write_text(json.dumps({**answers, "item": document, "item_i": 1}))
    import_campaign(other, tmp_path / "out", "pearmut", ImportFacts("back"), "test")
    found, _ = find_format("pearmut").read(tmp_path / "out", ImportFacts("back"), NOW)
    assert [(row.item, row.segment, row.document, row.value) for row in rows_of(found)] == [
        (2, 0, "1", "50"),
        (3, 1, "1", "60"),
    ]
    assert len(found.items) == 6


@pytest.mark.parametrize(
    ("protocol", "systems", "said"),
    [
        ("preference", ["a", "b"], "Pearmut has no preference"),
        ("da", ["1", "b"], "names of digits alone"),
        ("da", ["a&b", "b"], "reads .* as HTML"),
    ],
)
def test_what_pearmut_does_not_have(
    other: Database, tmp_path: Path, protocol: str, systems: list[str], said: str
) -> None:
    make_campaign(other, 1, protocol=protocol, systems=2, row={"systems": systems})
    with pytest.raises(InputError, match=said):
        export_campaign(other, "c", "pearmut", tmp_path / "out", "test")


def test_marks_of_excluded_raters_alone_are_not_offered(tmp_path: Path) -> None:
    def answer(rater: str, *spans: dict[str, str]) -> AnswerContent:
        payload = {"score": 50, "spans": list(spans)}
        score = ScoreContent(system="A", revision=1, step=50, at=START, payload=payload)
        when = {"assigned_at": START, "submitted_at": START}
        return AnswerContent(item=0, rater=rater, order=(("A",),), scores=(score,), **when)

    out = RaterContent(pseudonym="out", created_at=START, excluded_at=START)
    before = content(
        protocol="esa",
        systems=("A",),
        raters=(RaterContent(pseudonym="ann", created_at=START), out),
        items=(ItemContent(position=0, segment=0, systems=("A",), outputs=("text",)),),
        answers=(answer("ann"), answer("out", {"severity": "minor", "special_mark": "odd"})),
    )
    find_format("pearmut").write(before, tmp_path / "out")
    _, not_kept = find_format("pearmut").read(tmp_path / "out", ImportFacts("x"), START)
    assert "settings of Pearmut: special_tokens" not in [part.what for part in not_kept]


# ---------------------------------------------------------------- what a real Pearmut wrote


LATER = datetime(2026, 12, 1, tzinfo=UTC)
RECORDED = Path(__file__).parent / "pearmut"
FOLDERS = sorted(path.name for path in RECORDED.iterdir())


def facts(folder: str, name: str = "run") -> ImportFacts:
    return ImportFacts(name, campaign_file=RECORDED / folder / "campaign.json")


def done(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / folder / "done.json").read_text())
    return found


def test_there_are_files_of_every_protocol() -> None:
    assert {name.split("-", 1)[1] for name in FOLDERS} == {"da", "esa", "cesa", "mqm"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_score_and_every_place_is_what_was_done(folder: str) -> None:
    content, not_kept = find_format("pearmut").read(
        RECORDED / folder / "annotations.json", facts(folder), LATER
    )
    assert as_imported(content) == as_done(done(folder))
    assert [part.what for part in not_kept] == ["actions (their times are kept)"]
    kinds = sorted(item.kind for item in content.items)
    rated = 2 if "cesa" in folder else 4
    assert kinds == ["attention-check", *["rated"] * rated, "tutorial"]
    proposals = [item.proposals for item in content.items if item.proposals]
    category = {"category": ["Accuracy", "Mistranslation"]} if "mqm" in folder else {}
    fox = {"start": 4, "end": 4, "severity": "minor", **category}
    assert proposals == ([] if folder.endswith("-da") else [{"plain": [fox]}])


@pytest.mark.parametrize("folder", FOLDERS)
def test_checks_are_judged_and_the_campaign_goes_out_and_in_again(
    folder: str, other: Database, tmp_path: Path
) -> None:
    import_campaign(other, RECORDED / folder / "annotations.json", "pearmut", facts(folder), "test")
    with other.session() as session:
        number = session.scalars(select(Campaign.id).where(Campaign.name == "run")).one()
        found = list(attention_of(session, number).values())
    assert found == [Attention(answered=1, passed=1)] * 2
    for at, kind in enumerate(("pearmut", "csv")):
        export_campaign(other, "run", kind, tmp_path / kind, "test")
        import_campaign(other, tmp_path / kind, kind, ImportFacts(f"again-{at}"), "test")
        assert as_imported(collect(other, f"again-{at}")) == as_done(done(folder))


# ---------------------------------------------------------------- sources that show files


FILES = {"tea.png": samples.png(), "talk one.wav": samples.wav(0.1), "scene.webm": samples.WEBM}
TYPES = {".png": "image/png", ".wav": "audio/wav", ".webm": "video/webm"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign's folder: `shown` has the files, by their names and as an export calls them."""
    made = tmp_path_factory.mktemp("campaign")
    (made / "shown").mkdir()
    for name, data in FILES.items():
        (made / "shown" / name).write_bytes(data)
        (made / "shown" / f"{digest(data)}{Path(name).suffix}").write_bytes(data)
    (made / "shown" / "talk.vtt").write_bytes(samples.CAPTIONS)
    (made / "shown" / f"{digest(samples.CAPTIONS)}.vtt").write_bytes(samples.CAPTIONS)
    (made / "shown" / "srt.vtt").write_text("1\n00:00:00,000 --> 00:00:01,000\nTea\n")
    (made / "shown" / "run.svg").write_bytes(samples.SVG)
    (made / "secret.png").write_bytes(samples.png(2, 2))
    return made


@pytest.fixture(scope="module")
def assets(folder: Path) -> Assets:
    return assets_of(folder / "campaign.json", "shown", "assets/tea")


ENTRIES = [
    {"digest": digest(data), "type": TYPES[Path(name).suffix], "description": ""}
    for name, data in FILES.items()
]


@given(
    source=texts(LINES),
    described=st.lists(st.tuples(st.sampled_from(ENTRIES), texts(LINES), st.booleans()), min_size=1,
                       max_size=3, unique_by=lambda one: one[0]["digest"]),
)  # fmt: skip
def test_what_an_export_writes_comes_back(
    assets: Assets, source: str, described: list[tuple[dict[str, Any], str, bool]]
) -> None:
    media = tuple(
        {**entry, "description": text}
        | ({"captions": digest(samples.CAPTIONS)} if captioned and entry["type"] != "image/png" else {})
        for entry, text, captioned in described
    )
    written = with_tags(source, media, {"assets": {"destination": "assets/tea"}})
    assert assets.read(written) == (source, media)


@pytest.mark.parametrize(
    ("written", "files", "text"),
    [
        ('<img src="assets/tea/tea.png" width="600"/>', [("image", "")], ""),
        ('<audio controls="" src="/assets/tea/talk%20one.wav" type="audio/wav"></audio>',
         [("audio", "")], ""),
        ('<video controls><source src="./assets/tea/scene.webm">No video</video> a<br>b &lt;i&gt;',
         [("video", "")], "a\nb <i>"),
        ('<img src="assets/tea/tea.png" alt="A &quot;cup&quot;">\n'
         '<audio src="assets/tea/talk one.wav"></audio>x',
         [("image", 'A "cup"'), ("audio", "")], "x"),
    ],
)  # fmt: skip
def test_tags_as_others_write_them(
    assets: Assets, written: str, files: list[tuple[str, str]], text: str
) -> None:
    found, media = assets.read(written)
    assert found == text
    assert [(entry["type"].split("/")[0], entry["description"]) for entry in media] == files


@pytest.mark.parametrize(
    "written",
    [
        '<iframe src="https://www.example.org/embed/x"></iframe>',
        '<img src="https://example.org/tea.png">',
        '<img src="assets/tea/tea.png" onerror="alert(1)">',
        '<img src="assets/tea/tea.png"><script>alert(1)</script>',
        '<img src="assets/tea/tea.png"><b>tea</b>',
        '<img src="assets/tea/tea.png"><!-- x -->',
        '<img src="assets/tea/tea.png">tea<img src="assets/tea/scene.webm">',
        '<img src="assets/tea/tea.png"><br><img src="assets/tea/tea.png">',
        '<img src="assets/tea/none.png">',
        '<img src="assets/tea/run.svg">',
        '<img src="assets/tea/../secret.png">',
        '<img src="assets/tea/%2e%2e/secret.png">',
        '<img src="assets/tea/tea.png\0">',
        '<img src="assets/other/tea.png">',
        '<audio src="assets/tea/tea.png"></audio>',
        '<audio src="assets/tea/talk one.wav">',
        '<video src="assets/tea/scene.webm"><track src="assets/tea/talk.vtt"></video>',
        '<video src="assets/tea/scene.webm"><track kind="captions" src="assets/tea/none.vtt"></video>',
        '<video src="assets/tea/scene.webm"><track kind="captions" src="assets/tea/srt.vtt"></video>',
        '<video src="assets/tea/tea.png"></video>',
        f'<img src="assets/tea/tea.png" alt="{"x" * 1001}">',
        "<img tea",
    ],
)
def test_anything_else_stays_as_it_is_written(assets: Assets, written: str) -> None:
    assert assets.read(written) == (written, ())


def test_a_folder_elsewhere_is_not_read(folder: Path) -> None:
    for source in ("..", "/etc", "none", "shown/tea.png", "a\0b"):
        assert assets_of(folder / "campaign.json", source, "assets/tea").folder is None


def test_texts_without_files_are_no_html() -> None:
    assert parse("<b>tea</b>") is None
    assert parse("tea") is None
    assert parse('<img src="x">y') == ([TaggedFile("image", "x", "")], "y")
