"""Files beside sources and of outputs: what is allowed, where they come from, beside what they are shown."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ready_campaigns import PLAIN, draft_campaign
from small_campaigns import add_rater, changes_of, items_of, rate_all, results_of, work_for
from sqlalchemy import select
from table_rows import all_of

from creamtea.errors import InputError
from creamtea.human import media
from creamtea.human import rating as assignment
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import create_campaigns, load_campaign
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.making.texts import Documents, Texts
from creamtea.human.media import ENDINGS, export_name, kind_of, media_type
from creamtea.report.human.agreement import shown_texts
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import CampaignMedia, Item

PICTURE = samples.png()
SOUND = samples.wav(0.1)
PRACTICE = {"source": "Tee", "outputs": [{"text": "tea", "accepted": [5.0, 6.0]}], "explanation": "Yes."}
DOCUMENTS = Documents(("tea", "tea", "tea", "jam", "jam"))


def listed(folder: Path, *lines: dict[str, Any], **contents: bytes) -> Path:
    """A list of files, and files of these contents beside it; `a_png` is `a.png`."""
    for name, content in {"a_png": PICTURE, "b_wav": SOUND, **contents}.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    path = folder / "media.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def make(
    database: Database,
    store: ArtefactStore,
    path: Path,
    changes: dict[str, Any] | None = None,
    name: str = "c",
) -> list[Item]:
    request: dict[str, Any] = {
        **{"systems": ["plain", "beam"], "protocol": "da"},
        "settings": CampaignSettings(bad_references=0, repeats=1),
        **(changes or {}),
    }
    request["media"] = media.read_media(path, store)
    draft_campaign(database, name, **request, replace=True)
    return items_of(database, name)


def rows(database: Database) -> dict[str, tuple[str, int]]:
    return {row.digest: (row.type, row.size) for row in all_of(database, select(CampaignMedia))}


KNOWN = {
    "image/png": PICTURE,
    "image/jpeg": samples.JPEG,
    "image/gif": samples.GIF,
    "image/webp": samples.WEBP,
    "audio/mpeg": samples.MP3,
    "audio/ogg": samples.OPUS,
    "audio/wav": SOUND,
    "audio/mp4": samples.M4A,
    "video/mp4": samples.MP4,
    "video/webm": samples.WEBM,
}


def test_types_are_told_by_content() -> None:
    assert {media_type(content): content for content in KNOWN.values()} == KNOWN
    assert set(KNOWN) == set(ENDINGS)
    assert media_type(samples.VORBIS) == "audio/ogg"
    assert media_type(samples.MP3_TAGGED) == "audio/mpeg"
    assert export_name("0" * 64, "audio/mpeg") == f"{'0' * 64}.mp3"
    assert {kind_of(ending) for ending in ENDINGS} == {"image", "audio", "video"}


@pytest.mark.parametrize(
    "content",
    [
        *(samples.SVG, samples.THEORA, samples.MOV, samples.HEIC, samples.MATROSKA),
        *(b"<html><script>alert(1)</script>", b"%PDF-1.7", b"PK\x03\x04", b"RIFF\x00\x00\x00\x00AVI LIST"),
        b"\xff\xf1\x50\x80",  # AAC in ADTS: the same sync word, layer 0
        b"\xff\xfb\xf4\x00",  # no such bit rate
        b"\xff\xfb\x9c\x00",  # no such sampling rate
        *(b"\xff\xfb", b""),
    ],
)
def test_other_types_are_refused(content: bytes, tmp_path: Path) -> None:
    assert media_type(content) is None
    path = tmp_path / "tea.png"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"line 1: tea.png is none of png, jpg, webp, gif, mp3, ogg, wav, m4a"
    ):
        media.check_file(path, "line 1")


@given(st.binary(max_size=64), st.sampled_from([b"", *(content[:16] for content in KNOWN.values())]))
def test_any_bytes_have_a_known_type_or_none(content: bytes, head: bytes) -> None:
    assert media_type(head + content) in {None, *ENDINGS}


def test_a_file_is_one_of_its_ending_and_not_too_large(tmp_path: Path) -> None:
    (tmp_path / "TEA.WAV").write_bytes(SOUND)
    assert media.check_file(tmp_path / "TEA.WAV", "").type == "audio/wav"
    (tmp_path / "wav.png").write_bytes(SOUND)
    (tmp_path / "large.png").write_bytes(PICTURE)
    os.truncate(tmp_path / "large.png", 20_000_001)
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    for name, said in (
        ("wav.png", "wav.png is audio/wav by its content: rename it to end in .wav"),
        ("large.png", "has 20.0 MB; at most 20 MB are allowed for image files"),
        *((f"{name}.png", f"{name}.png: ") for name in ("pipe", "folder", "none")),
    ):
        with pytest.raises(InputError, match=f"line 1: .*{said}"):
            media.check_file(tmp_path / name, "line 1")
    media.check_total([media.MAX_CAMPAIGN], "list")
    with pytest.raises(InputError, match="list: 2,000 MB in all"):
        media.check_total([media.MAX_CAMPAIGN, 1], "list")


@pytest.mark.parametrize(
    "name", ["/etc/a.png", "../a.png", "x/../../a.png", "C:a.png", "x\\a.png", ".", "link.png"]
)
def test_only_files_of_the_folder_are_taken(tmp_path: Path, name: str, store: ArtefactStore) -> None:
    (tmp_path / "a.png").write_bytes(PICTURE)
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link.png").symlink_to(tmp_path / "a.png")
    path = listed(folder, {"segment": 1, "file": name})
    with pytest.raises(InputError, match=r"line 1: file: found .*allowed: a file in the folder or below it"):
        media.read_media(path, store)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"file": "a.png"}], "line 1: .*one of segment, document, tutorial, attention says beside what"),
        ([{"segment": 1, "document": "tea", "file": "a.png"}], "line 1: .*one of segment, document"),
        ([{"segment": 1, "file": "a.png"}, {"segment": 0, "file": "a.png"}], "line 2: segment: found 0"),
        ([{"segment": 1}], "line 1: file: required key is missing"),
        ([{"segment": 1, "file": "a.png", "alt": "x"}], "line 1: alt: found an unknown key"),
        ([{"segment": 1, "file": "a.png", "description": "x" * 1001}], "line 1: description: "),
        ([{"segment": 1, "file": "a.png", "description": "\0"}], "line 1: description: "),
        (
            [{"segment": 1, "file": name} for name in ("none.png", "drawing.png")],  # all are named
            r"line 1: .*none.png: No such.*\n.*line 2: drawing.png is none of",
        ),
        (PICTURE, r"media.jsonl, line 1: not UTF-8 text: give a list in JSON Lines"),
        (b"\n[", r"media.jsonl, line 2: not JSON"),
        (None, r"media: .*: No such file"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_kept(
    tmp_path: Path, store: ArtefactStore, lines: Any, message: str
) -> None:
    (tmp_path / "drawing.png").write_text("<svg/>")
    path = listed(tmp_path, *(lines if isinstance(lines, list) else ()))
    if isinstance(lines, bytes):
        path.write_bytes(lines)
    elif lines is None:
        path.unlink()
    with pytest.raises(InputError, match=message):
        media.read_media(path, store)
    assert not Path(store.root).exists()


def test_segments_and_documents_have_their_files(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    path = listed(
        tmp_path,
        {"segment": 1, "file": "a.png", "description": "a cup"},
        {"segment": 4, "file": "a.png"},
        {"document": "jam", "file": "b.wav"},
    )
    items = make(study_database, store, path, {"documents": DOCUMENTS})
    (picture, sound) = (store.put_file(tmp_path / name) for name in ("a.png", "b.wav"))
    entry = {"digest": picture, "type": "image/png", "description": ""}
    of_jam = {"digest": sound, "type": "audio/wav", "description": ""}
    wanted = {0: [entry | {"description": "a cup"}], 3: [of_jam, entry], 4: [of_jam]}
    assert {item.kind for item in items} == {"rated", "repeat"}
    for item in items:
        assert item.media == wanted.get(item.segment_index, [])
    assert rows(study_database) == {picture: ("image/png", len(PICTURE)), sound: ("audio/wav", len(SOUND))}
    assert store.read(picture) == PICTURE
    assert preview(study_database, "c").media == media.Amount(2, len(PICTURE) + len(SOUND))
    with study_database.session() as session:
        assert len(media.first_media(session, 1, 2)) == 2
        file = media.find_media(session, sound)
        assert (file.type, file.size, file.campaigns) == ("audio/wav", len(SOUND), {1})
    make(study_database, store, listed(tmp_path))  # made anew, the draft forgets them
    assert rows(study_database) == {}


def test_files_are_registered_and_raters_get_them(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    lines = [{"segment": number, "file": "a.png", "description": "a cup"} for number in range(1, 6)]
    make(study_database, store, listed(tmp_path, *lines))
    launching.launch(study_database, "c")
    anna = add_rater(study_database)
    work = work_for(study_database, anna)
    (file,) = work.segments[0].media
    assert file["description"] == "a cup"
    assignment.submit(study_database, anna, work.assignment_id, [50])
    again = assignment.reopen(study_database, anna, work.assignment_id)
    assert again.segments[0].media == [file]
    assert changes_of(study_database) == []
    with study_database.transaction() as session:
        session.scalars(select(Item)).first().media = []
    assert changes_of(study_database) == ["items"]


def test_a_documents_file_is_shown_once_on_each_of_its_pages(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    path = listed(tmp_path, {"document": "tea", "file": "b.wav"}, {"segment": 2, "file": "a.png"})
    settings_ = CampaignSettings(bad_references=0, repeats=0, unit="document", segments_per_page=2)
    items = make(study_database, store, path, {"documents": DOCUMENTS, "settings": settings_})
    of_tea = [item for item in items if item.document == "tea"]
    assert len(of_tea) == 6
    assert len({item.page for item in of_tea}) == 4  # two parts of two systems
    for item in of_tea:
        wanted = ["audio"] * (item.page == item.position) + ["image"] * (item.segment_index == 1)
        assert [kind_of(file["type"]) for file in item.media] == wanted


def test_practice_and_checks_have_files(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    practice = {**PRACTICE, "outputs": [{"text": "tea", "accepted": [50.0, 100.0]}]}
    check = {"source": "Tee", "outputs": [{"text": "x", "accepted": [0.0, 10.0]}]}
    stored = {"bad_references": 0, "repeats": 0, "tutorial": [practice], "attention": [check]}
    changes = {"settings": settings_of(stored)}
    path = listed(tmp_path, {"tutorial": 1, "file": "a.png"}, {"attention": 1, "file": "b.wav"})
    items = make(study_database, store, path, changes)
    assert {item.kind: len(item.media) for item in items} == {"tutorial": 1, "rated": 0, "attention-check": 1}
    launching.launch(study_database, "c")
    anna = add_rater(study_database)
    work = work_for(study_database, anna)
    assert work.tutorial
    assert [kind_of(file["type"]) for file in work.segments[0].media] == ["image"]
    for target in ("tutorial", "attention"):
        path = listed(tmp_path, {target: 2, "file": "a.png"})
        with pytest.raises(InputError, match=f"there is no {target} item 2: there are 1"):
            make(study_database, store, path, changes, name="d")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"segment": 6, "file": "a.png"}], "line 1: there is no segment 6: the test set has 5"),
        ([{"document": "tea", "file": "a.png"}], "line 1: documents has no document 'tea'; there are: none"),
        ([{"segment": 1, "file": "a.png"}] * 2, "line 2: the same file as in media.jsonl, line 1"),
        (
            [{"segment": 1, "file": f"p{number}.png"} for number in range(9)],
            "line 9: more than 8 files beside one source",
        ),
    ],
)
def test_what_is_not_there_or_too_much_is_named(
    study_database: Database, tmp_path: Path, store: ArtefactStore, lines: list[Any], message: str
) -> None:
    pictures = {f"p{number}_png": samples.png(number + 1) for number in range(len(lines))}
    with pytest.raises(InputError, match=message) as refused:
        make(study_database, store, listed(tmp_path, *lines, **pictures))
    assert refused.value.about == "media"  # the form's field
    assert rows(study_database) == {}
    if len(lines) == 9:
        items = make(study_database, store, listed(tmp_path, *lines[:8]))
        assert {len(item.media) for item in items} == {0, 8}


# ---------------------------------------------------------------- captions


LINES = [{"segment": 1, "file": "b.wav", "description": "A voice"}, {"segment": 1, "file": "a.png"}]
CUE = b"WEBVTT\n\n00:00.000 --> 00:01.500\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CUE + b"Tea\n", None),
        (
            b"\xef\xbb\xbfWEBVTT - a\r\n\r\nNOTE x\r\n\r\n100:00:00.000 --> 100:00:01.000 align:start\r\nT",
            None,
        ),
        (b"WEBVTT\r\r00:00.000\t-->\t00:00.001\rT", None),
        (b"1\n00:00:00,000 --> 00:00:01,500\nTea\n", "list: a.vtt, line 1: found '1'; allowed: WEBVTT"),
        (b"", "line 1: found ''; allowed: WEBVTT"),
        (b"WEBVTTX\n\n00:00.000 --> 00:01.500\n", "allowed: WEBVTT"),
        (b"WEBVTT\n\n00:00:00,000 --> 00:00:01,500\nT", "line 3: found .* a point before the milliseconds"),
        (b"WEBVTT\n\n00:00.000-->00:01.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\n00:00.000 --> 00:61.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\nTea\n", "no captions "),
        (CUE + b"T\xe9e\n", "line 4: not UTF-8"),
        (b"WEBVTT\n" + b"x" * media.MAX_CAPTIONS, "more than 2,000,000 bytes"),
    ],
)
def test_captions_as_the_format_has_them(tmp_path: Path, content: bytes, message: str | None) -> None:
    (tmp_path / "a.vtt").write_bytes(content)
    if message is None:
        assert media.check_captions(tmp_path / "a.vtt", "list").size == len(content)
        return
    with pytest.raises(InputError, match=message):
        media.check_captions(tmp_path / "a.vtt", "list")


def test_captions_are_checked_at_creation(tmp_path: Path, store: ArtefactStore) -> None:
    with pytest.raises(InputError, match=r"media.jsonl, line 1: b.vtt"):
        media.read_media(listed(tmp_path, *LINES, b_vtt=b""), store)
    (tmp_path / "list").mkdir()
    path = listed(tmp_path / "list", *LINES)
    (tmp_path / "list" / "b.vtt").symlink_to(tmp_path / "b.vtt")
    with pytest.raises(InputError, match="in the folder or below it"):
        media.read_media(path, store)
    assert not Path(store.root).exists()
    (tmp_path / "images").mkdir()
    given = media.read_media(listed(tmp_path / "images", *LINES, a_vtt=samples.CAPTIONS), store)
    assert [each.media.captions for each in given] == [None, None], "images have no captions"
    with pytest.raises(ValueError, match="captions of an image"):
        media.ItemMedia(digest="0" * 64, type="image/png", captions="0" * 64)


def test_captions_reach_the_items_of_a_campaign(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    given = media.read_media(listed(tmp_path, *LINES, b_vtt=samples.CAPTIONS), store)
    settings = PLAIN.model_copy(update={"items": 1, "select": "all"})
    draft_campaign(study_database, "c", protocol="da", settings=settings, media=given)
    captions = hashlib.sha256(samples.CAPTIONS).hexdigest()
    entries = [entry for item in all_of(study_database, select(Item)) for entry in item.media]
    assert {entry.get("captions") for entry in entries} == {captions, None}
    assert store.read(captions) == samples.CAPTIONS
    assert rows(study_database)[captions] == ("text/vtt", len(samples.CAPTIONS))


# ---------------------------------------------------------------- files of outputs


SYSTEMS = ("A", "B", "C")
OTHER = samples.wav(0.2)
NO_CONTROLS = {"bad_references": 0, "repeats": 0}


@pytest.fixture
def draft(database: Database, store: ArtefactStore, tmp_path: Path) -> Any:
    """Makes a draft of three systems' texts of two segments, with the files of these lines."""

    def made(
        *lines: dict[str, Any],
        texts: Sequence[Sequence[str]] = (("", ""), ("", ""), ("", "")),
        protocol: str = "contrastive-da",
        documents: Documents | None = None,
        contents: dict[str, bytes] | None = None,
        **settings: Any,
    ) -> list[Item]:
        given = {"a_wav": SOUND, "a2_wav": SOUND, "b_wav": OTHER, "c_wav": samples.wav(0.3)}
        path = listed(tmp_path, *lines, **given | (contents or {}))
        request = CampaignRequest(
            study="",
            test_set="speech",
            systems=SYSTEMS,
            protocol=protocol,
            settings=settings_of(NO_CONTROLS | settings),
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


def digests_of(work: assignment.Work) -> list[list[str]]:
    """The digest of each output's files."""
    return [[file["digest"] for file in files] for segment in work.segments for files in segment.files]


def test_equal_files_are_one_output(draft: Any, database: Database, store: ArtefactStore) -> None:
    items = draft(*ALL, {"segment": 1, "file": "a.png"})
    digests = {name: store.put_file(Path(store.root).parent / f"{name}.wav") for name in "abc"}
    assert {len(item.media) for item in items} == {3, 4}
    assert {file["system"] for item in items for file in item.media if "system" in file} == {0, 1, 2}
    launching.launch(database, "c")
    anna = add_rater(database)
    found = {}
    while (work := assignment.next_item(database, anna)) is not None:
        (segment,) = work.segments
        assert segment.outputs == [""] * len(segment.files)
        found[work.source] = sorted(digests_of(work))
        assert [file["type"] for file in segment.media] == ["image/png"] * (work.source == "tea")
        given = assignment.submit(database, anna, work.assignment_id, [*range(len(work.outputs))])
        if work.source == "tea":
            assert given.steps[0] == given.steps[1] != given.steps[2]
    assert found["tea"] == sorted([[digests["a"]], [digests["b"]]])
    assert found["jam"] == sorted([[digest] for digest in digests.values()])
    assert changes_of(database) == []


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
    draft: Any, texts: Any, lines: list[dict[str, Any]], groups: list[list[int]]
) -> None:
    items = [item for item in draft(*lines, texts=texts, protocol="da") if item.source == "tea"]
    assert sorted(item.systems for item in items) == groups
    for item in items:
        assert {file["system"] for file in item.media} == {*item.systems} & {0, 1}


def test_captions_tell_outputs_apart(draft: Any) -> None:
    other = samples.CAPTIONS.replace(b"Tee", b"Kaffee")
    lines = [line(1, "A", "a.wav"), line(1, "B", "a2.wav"), line(1, "C", "a2.wav")]
    items = draft(
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
def test_a_wrong_line_is_named(draft: Any, lines: list[dict[str, Any]], message: str) -> None:
    practice = {"source": "Tee", "outputs": [{"accepted": [1.0, 6.0]}] * 3, "explanation": "Yes."}
    pictures = {f"p{number}_png": samples.png(number + 9) for number in range(8)}
    with pytest.raises(InputError, match=message):
        draft(*lines, texts=(("x", "y"), ("", ""), ("", "")) if "8 files" in message else (("", ""),) * 3,
             tutorial=[practice] if "tutorial" in str(lines) else [], contents=pictures)  # fmt: skip


def test_a_report_says_that_an_output_is_a_file(draft: Any, database: Database) -> None:
    draft(*ALL[:3], texts=(("", "x"), ("Tee", "y"), ("", "z")))
    launching.launch(database, "c")
    rate_all(database, add_rater(database))
    ratings = results_of(database)
    tea = [*ratings.segment_index].index(0)
    with database.session() as session:
        texts = shown_texts(session, ratings, [(tea, system) for system in range(2)])
    assert {*texts.values()} == {("tea", "Tee [audio]"), ("tea", "[audio]")}


@pytest.mark.parametrize("protocol", ["esa", "cesa", "mqm", "post-edit"])
def test_what_raters_mark_or_correct_needs_a_text(draft: Any, protocol: str) -> None:
    act = "correct" if protocol == "post-edit" else "mark errors in"
    with pytest.raises(InputError, match=rf"line \d: the output has no text, .* {protocol} {act}"):
        draft(*ALL, protocol=protocol)
    texts = (("Tee", "x"), ("Thé", "y"), ("Chai", "z"))
    assert all(item.media for item in draft(*ALL, texts=texts, protocol=protocol))


def test_practice_and_checks_have_files_as_outputs(draft: Any, database: Database) -> None:
    outputs = [
        {"accepted": [4.0, 6.0]},
        {"text": "Tee", "accepted": [1.0, 3.0]},
        {"text": "Saft", "accepted": [1.0, 2.0]},
    ]
    practice = {"source": "Tee", "outputs": outputs, "explanation": "The first."}
    check = {"source": "Tee", "outputs": outputs}
    own = [{"tutorial": 1, "output": 1, "file": "a.wav"}, {"attention": 1, "output": 1, "file": "b.wav"}]
    items = draft(*ALL, *own, tutorial=[practice], attention=[check])
    written = {item.kind: item.media for item in items if item.segment_index < 0}
    assert {kind: [file["system"] for file in files] for kind, files in written.items()} == {
        "tutorial": [0], "attention-check": [0],
    }  # fmt: skip
    launching.launch(database, "c")
    work = work_for(database, add_rater(database))
    assert work.tutorial
    assert sorted(map(len, digests_of(work))) == [0, 0, 1]


def test_bad_references_are_made_of_texts_alone(draft: Any) -> None:
    with pytest.raises(InputError, match="an output that is empty or has a file cannot be spoilt") as refused:
        draft(*ALL, texts=(("Tee", "x"), ("Thé", "y"), ("Chai", "z")), bad_references=1)
    assert refused.value.about == "controls.bad_references"
    # A says what B says; A alone has a file, so that only B and C can be spoilt
    items = draft(
        line(1, "A", "a.wav"), line(2, "A", "a.wav"),
        texts=(("Tee mit Milch", "Brot"),) * 3, bad_references=1,
    )  # fmt: skip
    (bad,) = [item for item in items if item.kind == "bad-reference"]
    (original,) = [item for item in items if item.id == bad.original_id]
    assert (bad.degraded, bad.outputs[0]) == (1, original.outputs[0])
    assert bad.outputs[1] == bad.outputs[2] != original.outputs[1]
    assert bad.media == original.media


def test_an_adaptive_design_spoils_and_shows_files(draft: Any, database: Database) -> None:
    texts = (("", ""), ("Tee mit Milch", "Brot"), ("Tee mit Zucker", "Saft"))
    lines = [line(1, "A", "a.wav"), line(2, "A", "b.wav")]
    draft(*lines, texts=texts, bad_references=1, systems_per_page=2, design="adaptive")
    launching.launch(database, "c")
    anna = add_rater(database)
    work = work_for(database, anna)
    assert [bool(files) for files in work.segments[0].files] == [text == "" for text in work.outputs]
    rate_all(database, anna)


def test_a_documents_score_tells_files_apart(draft: Any, database: Database) -> None:
    lines = [*ALL[:2], line(1, "C", "a.wav"), *(line(2, system, "c.wav") for system in SYSTEMS)]
    lines[1] = line(1, "B", "b.wav")
    draft(*lines, documents=Documents(("d", "d")), unit="document", segments_per_page=1, document_score=True,
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
    path = listed(tmp_path, line(1, "A", "a.wav"), line(1, "B", "b.wav"), a_wav=SOUND, b_wav=OTHER)
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
