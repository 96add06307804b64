"""Files of outputs: where they come from, which outputs they make equal, and what raters and exports get."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from ready_campaigns import draft_campaign
from small_campaigns import add_rater, items_of, rate_all, results_of, work_for
from test_media import listed

from creamtea.errors import InputError
from creamtea.human import media
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import create_campaigns, load_campaign
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.settings import settings_of
from creamtea.human.making.texts import Documents, Texts
from creamtea.human.record import files_of
from creamtea.report.human.tables import shown_texts
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Item

SYSTEMS = ("A", "B", "C")
WAV, OTHER, PICTURE = samples.wav(0.1), samples.wav(0.2), samples.png()
PLAIN = {"bad_references": 0, "repeats": 0}


@pytest.fixture
def make(database: Database, store: ArtefactStore, tmp_path: Path) -> Any:
    """Makes a draft of three systems' texts of two segments, with the files of these lines."""

    def made(
        *lines: dict[str, Any],
        texts: Sequence[Sequence[str]] = (("", ""), ("", ""), ("", "")),
        protocol: str = "contrastive-da",
        documents: Documents | None = None,
        contents: dict[str, bytes] | None = None,
        **settings: Any,
    ) -> list[Item]:
        found = {"a_wav": WAV, "a2_wav": WAV, "b_wav": OTHER, "c_wav": samples.wav(0.3), **(contents or {})}
        path = listed(tmp_path, *lines, **found)
        request = CampaignRequest(
            study="",
            test_set="speech",
            systems=SYSTEMS,
            protocol=protocol,
            settings=settings_of(PLAIN | settings),
            documents=documents,
            media=media.read_media(path, store),
            texts=Texts(
                ("en", "de"),
                ["tea", "jam"],
                {system: list(some) for system, some in zip(SYSTEMS, texts, strict=True)},
                {"refA": ["Tee", "Marmelade und Brot"]},
            ),
        )
        draft_campaign(database, "c", request, replace=True)
        return items_of(database)

    return made


def line(segment: int, system: str, name: str, **more: str) -> dict[str, Any]:
    return {"segment": segment, "system": system, "file": name, **more}


# each system's file of both segments; of the first segment A's and B's are equal
ALL = [
    *(line(1, "A", "a.wav"), line(1, "B", "a2.wav"), line(1, "C", "b.wav")),
    *(line(2, "A", "a.wav"), line(2, "B", "b.wav"), line(2, "C", "c.wav")),
]


def shown(work: assignment.Work) -> list[list[str]]:
    """The digest of each output's files."""
    return [[file["digest"] for file in files] for segment in work.segments for files in segment.files]


def test_equal_files_are_one_output(make: Any, database: Database, store: ArtefactStore) -> None:
    items = make(*ALL, {"segment": 1, "file": "a.png"})
    digests = {name: store.put_file(Path(store.root).parent / f"{name}.wav") for name in "abc"}
    assert {len(item.media) for item in items} == {3, 4}
    assert {file["system"] for item in items for file in item.media if "system" in file} == {0, 1, 2}
    launching.launch(database, "c")
    anna = add_rater(database)
    found = {}
    while (work := assignment.next_item(database, anna)) is not None:
        (segment,) = work.segments
        assert segment.outputs == [""] * len(segment.files)
        found[work.source] = sorted(shown(work))
        assert [file["type"] for file in segment.media] == ["image/png"] * (work.source == "tea")
        given = assignment.submit(database, anna, work.assignment_id, [*range(len(work.outputs))])
        if work.source == "tea":
            assert given.steps[0] == given.steps[1] != given.steps[2]
    assert found["tea"] == sorted([[digests["a"]], [digests["b"]]])
    assert found["jam"] == sorted([[digest] for digest in digests.values()])
    with database.session() as session:
        assert launching.changes(session, find_campaign(session, "c")) == []


@pytest.mark.parametrize(
    ("texts", "lines", "groups"),
    [
        ((("x", "y"),) * 3, [line(1, "A", "a.wav"), line(1, "B", "b.wav")], [[0], [1], [2]]),
        ((("x", "y"),) * 3, [line(1, "A", "a.wav"), line(1, "B", "a2.wav")], [[0, 1], [2]]),
        (
            (("x", "y"), ("z", "y"), ("z", "y")),
            [line(1, "A", "a.wav"), line(1, "B", "a.wav")],
            [[0], [1], [2]],
        ),
    ],
)  # fmt: skip
def test_text_and_file_make_an_output(
    make: Any, texts: Any, lines: list[dict[str, Any]], groups: list[list[int]]
) -> None:
    items = [item for item in make(*lines, texts=texts, protocol="da") if item.source == "tea"]
    assert sorted(item.systems for item in items) == groups
    for item in items:
        assert {file["system"] for file in item.media} == {*item.systems} & {0, 1}


def test_captions_tell_outputs_apart(make: Any) -> None:
    other = samples.CAPTIONS.replace(b"Tee", b"Kaffee")
    lines = [line(1, "A", "a.wav"), line(1, "B", "a2.wav"), line(1, "C", "a2.wav")]
    items = make(
        *lines, texts=(("", "y"),) * 3, protocol="da", contents={"a_vtt": samples.CAPTIONS, "a2_vtt": other}
    )
    assert sorted(item.systems for item in items if item.source == "tea") == [[0], [1, 2]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line(1, "D", "a.wav")], 'line 1: "D": no such system; there are: A, B, C'),
        ([{"document": "x", "system": "A", "file": "a.wav"}], "line 1: .*system goes with segment"),
        ([{"segment": 1, "output": 1, "file": "a.wav"}], "line 1: .*output with tutorial or attention"),
        ([{"tutorial": 1, "system": "A", "file": "a.wav"}], "line 1: .*system goes with segment"),
        ([*ALL, {"tutorial": 1, "output": 4, "file": "a.wav"}], "line 7: there is no output 4 of it"),
        ([*ALL, line(1, "A", "a2.wav")], "line 7: the same file as in media.jsonl, line 1, of the same out"),
        (ALL[:-1], "system 'C' has no texts, and no file for segment 2"),
        (
            [*ALL, *({"tutorial": 1, "output": n, "file": "a.wav"} for n in (1, 2, 3))],
            "practice item 1: two of its outputs are the same text or file",
        ),
        (
            [*ALL, *({"tutorial": 1, "output": n, "file": f"{'ab'[n - 1]}.wav"} for n in (1, 2))],
            "practice item 1: output 3, text: required key is missing, as `media` names no file",
        ),
        (
            [line(1, "A", "a.png"), *(line(1, "A", f"p{n}.png") for n in range(8))],
            "line 9: more than 8 files of one output",
        ),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(make: Any, lines: list[dict[str, Any]], message: str) -> None:
    practice = {"source": "Tee", "outputs": [{"accepted": [1.0, 6.0]}] * 3, "explanation": "Yes."}
    pictures = {f"p{number}_png": samples.png(number + 9) for number in range(8)}
    with pytest.raises(InputError, match=message):
        make(*lines, texts=(("x", "y"), ("", ""), ("", "")) if "8 files" in message else (("", ""),) * 3,
             tutorial=[practice] if "tutorial" in str(lines) else [], contents=pictures)  # fmt: skip


def test_a_report_says_that_an_output_is_a_file(make: Any, database: Database) -> None:
    make(*ALL[:3], texts=(("", "x"), ("Tee", "y"), ("", "z")))
    launching.launch(database, "c")
    rate_all(database, add_rater(database))
    ratings = results_of(database)
    tea = [*ratings.segment_index].index(0)
    with database.session() as session:
        texts = shown_texts(session, ratings, [(tea, system) for system in range(2)])
    assert {*texts.values()} == {("tea", "Tee [audio]"), ("tea", "[audio]")}


@pytest.mark.parametrize("protocol", ["esa", "cesa", "mqm", "post-edit"])
def test_what_raters_mark_or_correct_needs_a_text(make: Any, protocol: str) -> None:
    act = "correct" if protocol == "post-edit" else "mark errors in"
    with pytest.raises(InputError, match=rf"line \d: the output has no text, .* {protocol} {act}"):
        make(*ALL, protocol=protocol)
    texts = (("Tee", "x"), ("Thé", "y"), ("Chai", "z"))
    assert all(item.media for item in make(*ALL, texts=texts, protocol=protocol))


def test_practice_and_checks_have_files_as_outputs(make: Any, database: Database) -> None:
    outputs = [
        {"accepted": [4.0, 6.0]},
        {"text": "Tee", "accepted": [1.0, 3.0]},
        {"text": "Saft", "accepted": [1.0, 2.0]},
    ]
    practice = {"source": "Tee", "outputs": outputs, "explanation": "The first."}
    check = {"source": "Tee", "outputs": outputs}
    own = [{"tutorial": 1, "output": 1, "file": "a.wav"}, {"attention": 1, "output": 1, "file": "b.wav"}]
    items = make(*ALL, *own, tutorial=[practice], attention=[check])
    written = {item.kind: item.media for item in items if item.segment_index < 0}
    assert {kind: [file["system"] for file in files] for kind, files in written.items()} == {
        "tutorial": [0], "attention-check": [0],
    }  # fmt: skip
    launching.launch(database, "c")
    work = work_for(database, add_rater(database))
    assert work.tutorial
    assert sorted(map(len, shown(work))) == [0, 0, 1]


def test_bad_references_are_made_of_texts_alone(make: Any) -> None:
    with pytest.raises(InputError, match="an output that is empty or has a file cannot be spoilt") as refused:
        make(*ALL, texts=(("Tee", "x"), ("Thé", "y"), ("Chai", "z")), bad_references=1)
    assert refused.value.about == "controls.bad_references"
    # A says what B says; A alone has a file, so that only B and C can be spoilt
    items = make(
        line(1, "A", "a.wav"), line(2, "A", "a.wav"),
        texts=(("Tee mit Milch", "Brot"),) * 3, bad_references=1,
    )  # fmt: skip
    (bad,) = [item for item in items if item.kind == "bad-reference"]
    (original,) = [item for item in items if item.id == bad.original_id]
    assert (bad.degraded, bad.outputs[0]) == (1, original.outputs[0])
    assert bad.outputs[1] == bad.outputs[2] != original.outputs[1]
    assert bad.media == original.media


def test_an_adaptive_design_spoils_and_shows_files(make: Any, database: Database) -> None:
    texts = (("", ""), ("Tee mit Milch", "Brot"), ("Tee mit Zucker", "Saft"))
    lines = [line(1, "A", "a.wav"), line(2, "A", "b.wav")]
    make(*lines, texts=texts, bad_references=1, systems_per_page=2, design="adaptive")
    launching.launch(database, "c")
    anna = add_rater(database)
    work = work_for(database, anna)
    assert [bool(files) for files in work.segments[0].files] == [text == "" for text in work.outputs]
    rate_all(database, anna)


def test_a_documents_score_tells_files_apart(make: Any, database: Database) -> None:
    lines = [*ALL[:2], line(1, "C", "a.wav"), *(line(2, system, "c.wav") for system in SYSTEMS)]
    lines[1] = line(1, "B", "b.wav")
    make(*lines, documents=Documents(("d", "d")), unit="document", segments_per_page=1, document_score=True,
         select="all")  # fmt: skip
    launching.launch(database, "c")
    anna = add_rater(database)
    first = work_for(database, anna)
    assert len(first.outputs) == 2
    assignment.submit(database, anna, first.assignment_id, [1, 2])
    second = work_for(database, anna)
    assert len(second.outputs) == 1
    assert second.document_letters == ["A1", "A2"] or second.document_letters == ["1", "2"]
    assert sorted(len(files) for files in second.document_before[0].files) == [1, 1]
    assert second.document_before[0].files[0] != second.document_before[0].files[1]


# ---------------------------------------------------------------- files in and out


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pearmut", "appraise", "mqm", "mt-metrics-eval"])
def test_files_of_outputs_survive_or_are_counted(
    make: Any, database: Database, other: Database, store: ArtefactStore, tmp_path: Path, kind: str
) -> None:
    protocol = {"mqm": "mqm"}.get(kind, "da")
    texts = (("Tee & <b>", "x\ny" if kind == "pearmut" else "x"), ("Thé", "y"), ("Chai", "z"))
    make(*ALL[:3], {"segment": 1, "file": "a.png"}, texts=texts, protocol=protocol)
    launching.launch(database, "c")
    anna = add_rater(database)
    while (work := assignment.next_item(database, anna)) is not None:
        answers = [{"spans": []} if protocol == "mqm" else 7 for _ in work.outputs]
        assignment.submit(database, anna, work.assignment_id, answers)
    done = export_campaign(database, "c", kind, tmp_path / "out", "test", store)
    lost = {part.what: part.count for part in done.not_kept}
    assert lost.get("files of outputs") == (None if kind in ("csv", "jsonl", "pearmut") else 3)
    if kind not in ("csv", "jsonl", "pearmut"):
        return
    path = tmp_path / "out"
    if kind == "pearmut":
        campaign = json.loads((path / "campaign.json").read_text())
        items = [item for task in campaign["data"] for document in task for item in document]
        tags = {name: text for item in items if "tea" in item["src"] for name, text in item["tgt"].items()}
        assert all(text.startswith("<audio controls src=") for text in tags.values())
        assert tags["A"].endswith("<br>Tee &amp; &lt;b&gt;")
    elsewhere = ArtefactStore(tmp_path / "elsewhere")
    import_campaign(other, path, kind, ImportFacts("c"), "test", store=elsewhere)

    def of(database: Database) -> set[tuple[str, str, str, str]]:
        content = collect(database, "c")
        return {
            (item.source, system, text, json.dumps(files_of(item, system)))
            for item in content.items
            for system, text in zip(item.systems, item.outputs, strict=True)
        }

    assert of(other) == of(database)
    fewer = ImportFacts("fewer", leave_out=("B",))
    import_campaign(other, path, kind, fewer, "test", store=elsewhere)
    assert {file.get("system") for item in collect(other, "fewer").items for file in item.media} == {
        None,
        "A",
        "C",
    }


def test_pearmuts_own_elements_in_outputs(other: Database, store: ArtefactStore, tmp_path: Path) -> None:
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "a.wav").write_bytes(WAV)
    sound = '<audio controls="" src="assets/x/a.wav" type="audio/wav"></audio>'
    checked = {"src": "Tee", "tgt": {"right": sound, "wrong": "Saft"}, "skippable": True,
               "validation": {"right": {"score": [50, 100], "warning": "No."}}}  # fmt: skip
    rated = {"src": "tea", "tgt": {"one": sound, "two": '<img src="https://example.org/x.png">'}}
    answers = [
        {"annotation": [{name: {"score": 70, "error_spans": []} for name in item["tgt"]}], "actions": [],
         "item": [item], "user_id": "anna", "item_i": number}
        for number, item in enumerate((checked, rated))
    ]  # fmt: skip
    campaign = {"info": {"protocol": "cESA", "assets": {"source": "sounds", "destination": "assets/x"}},
                "campaign_id": "x", "data": [[[checked], [rated]]]}  # fmt: skip
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    facts = ImportFacts("c", campaign_file=tmp_path / "campaign.json")
    done = import_campaign(other, tmp_path / "answers.jsonl", "pearmut", facts, "test", store=store)
    items = {item.kind: item for item in collect(other, "c").items}
    assert items["rated"].outputs == ("", rated["tgt"]["two"])
    assert [file["system"] for file in items["rated"].media] == ["one"]
    assert [file["system"] for file in items["tutorial"].media] == ["one"], "which stands in for `right`"
    lost = {part.what: part.count for part in done.not_kept}
    assert lost["texts that show files (their tags stay in the text)"] == 1
    (tmp_path / "sounds" / "b.wav").write_bytes(OTHER)
    again = {**rated, "item_id": "1", "tgt": {**rated["tgt"], "one": sound.replace("a.wav", "b.wav")}}
    for answer, item in zip(answers, ({**rated, "item_id": "1"}, again), strict=True):
        answer |= {"item": [item], "annotation": [{name: {"score": 70} for name in item["tgt"]}], "item_i": 0}
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    (tmp_path / "campaign.json").write_text(json.dumps({**campaign, "data": []}))
    facts = ImportFacts("d", campaign_file=tmp_path / "campaign.json")
    import_campaign(other, tmp_path / "answers.jsonl", "pearmut", facts, "test", store=store)
    digests = [item.media[0]["digest"] for item in collect(other, "d").items]
    assert digests == [store.put_file(tmp_path / "sounds" / name) for name in ("a.wav", "b.wav")]


# ---------------------------------------------------------------- a campaign's file


CAMPAIGN = """
name: dubbed
systems: [A, B]
media: media.jsonl
texts: {languages: en-de, sources: sources.txt}
protocol: {kind: contrastive-da}
controls: {bad_references: 0, repeats: 0}
"""


def test_systems_whose_outputs_are_files_need_no_texts(
    database: Database, store: ArtefactStore, tmp_path: Path
) -> None:
    path = listed(tmp_path, line(1, "A", "a.wav"), line(1, "B", "b.wav"), a_wav=WAV, b_wav=OTHER)
    (tmp_path / "sources.txt").write_text("tea\n")
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    assert load_campaign(tmp_path / "c.yaml").check() == ["A", "B"]
    create_campaigns(database, [load_campaign(tmp_path / "c.yaml")], store)
    (item,) = items_of(database, "dubbed")
    assert (item.outputs, [file["system"] for file in item.media]) == (["", ""], [0, 1])
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "B.txt").write_text("Tee\n")
    (tmp_path / "c.yaml").write_text(CAMPAIGN.replace("sources.txt", "sources.txt, outputs: outputs"))
    create_campaigns(database, [load_campaign(tmp_path / "c.yaml")], store, replace=True)
    (item,) = items_of(database, "dubbed")
    assert item.outputs == ["", "Tee"]
    path.write_text(json.dumps(line(1, "B", "b.wav")))
    with pytest.raises(InputError, match=r"systems: .*no outputs of it in en-de"):
        load_campaign(tmp_path / "c.yaml").check()
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    with pytest.raises(InputError, match=r"texts\.outputs: name it"):
        load_campaign(tmp_path / "c.yaml").check()
