"""Files beside sources: what is allowed, where they come from, beside what they are shown."""

import json
import os
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ready_campaigns import draft_campaign
from small_campaigns import add_rater, items_of, work_for
from sqlalchemy import select
from table_rows import all_of

from creamtea.errors import InputError
from creamtea.human import media
from creamtea.human import rating as assignment
from creamtea.human.making import launching
from creamtea.human.making.preview import preview
from creamtea.human.making.settings import CampaignSettings, settings_of
from creamtea.human.making.texts import Documents
from creamtea.human.media import ENDINGS, export_name, kind_of, media_type
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
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
    with study_database.transaction() as session:
        campaign = find_campaign(session, "c")
        assert launching.changes(session, campaign) == []
        session.scalars(select(Item)).first().media = []
        session.flush()
        assert launching.changes(session, campaign) == ["items"]


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
