"""Captions of sound and video: which are taken, and that they go wherever the files beside sources go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import media_files as samples
import pytest

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making import campaigns
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.media import MAX_CAPTIONS, ItemMedia, check_captions, find_media, read_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

SOUND = samples.wav(0.1)


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


def listed(folder: Path, **contents: bytes) -> Path:
    """A list with a sound and a picture beside segment 1, and these files beside it: `a_vtt` is `a.vtt`."""
    for name, content in {"a_wav": SOUND, "b_png": samples.png(), **contents}.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    lines = [{"segment": 1, "file": "a.wav", "description": "A voice"}, {"segment": 1, "file": "b.png"}]
    path = folder / "media.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "WEBVTT\n\n00:00.000 --> 00:01.500\nTea\n",
        "\ufeffWEBVTT - of a talk\r\n\r\nNOTE x\r\n\r\n100:00:00.000 --> 100:00:01.000 align:start\r\nTee",
        "WEBVTT\r\r00:00.000\t-->\t00:00.001\rT",
    ],
)
def test_captions_as_the_format_has_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.vtt").write_bytes(text.encode())
    assert check_captions(tmp_path / "a.vtt", "x").size == len(text.encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"1\n00:00:00,000 --> 00:00:01,500\nTea\n",
            "list, line 1: a.vtt, line 1: found '1'; allowed: WEBVTT",
        ),
        (b"", "line 1: found ''; allowed: WEBVTT"),
        (b"WEBVTTX\n\n00:00.000 --> 00:01.500\n", "allowed: WEBVTT"),
        (
            b"WEBVTT\n\n00:00:00,000 --> 00:00:01,500\nTea\n",
            "line 3: found .* a point before the milliseconds",
        ),
        (b"WEBVTT\n\n00:00.000-->00:01.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\n00:00.000 --> 00:61.500\nTea\n", "line 3: found"),
        (b"WEBVTT\n\nTea\n", "no captions "),
        (b"WEBVTT\n\n00:00.000 --> 00:01.500\nT\xe9e\n", "line 4: not UTF-8"),
        (b"WEBVTT\n" + b"x" * MAX_CAPTIONS, "more than 2,000,000 bytes"),
    ],
)
def test_others_are_refused_at_creation(
    tmp_path: Path, store: ArtefactStore, content: bytes, message: str
) -> None:
    (tmp_path / "a.vtt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        check_captions(tmp_path / "a.vtt", "list, line 1")
    with pytest.raises(InputError, match=r"media.jsonl, line 1: a.vtt"):
        read_media(listed(tmp_path, a_vtt=content), store)
    assert not Path(store.root).exists()


def test_a_link_to_captions_elsewhere_is_refused(tmp_path: Path, store: ArtefactStore) -> None:
    (tmp_path / "list").mkdir()
    (tmp_path / "secret").write_bytes(samples.CAPTIONS)
    path = listed(tmp_path / "list")
    (tmp_path / "list" / "a.vtt").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="in the folder or below it"):
        read_media(path, store)


def test_images_have_no_captions(tmp_path: Path, store: ArtefactStore) -> None:
    given = read_media(listed(tmp_path, b_vtt=samples.CAPTIONS), store)
    assert [one.media.captions for one in given] == [None, None]
    with pytest.raises(ValueError, match="captions of an image"):
        ItemMedia(digest="0" * 64, type="image/png", captions="0" * 64)


def campaign(database: Database, store: ArtefactStore, folder: Path) -> list[dict[str, Any]]:
    """A campaign with captions; what its items show."""
    request = campaigns.CampaignRequest(
        study="jam",
        test_set="test",
        systems=["plain", "beam"],
        protocol="da",
        settings=CampaignSettings(bad_references=0, repeats=0, items=1, select="all"),
        media=read_media(listed(folder, a_vtt=samples.CAPTIONS), store),
    )
    campaigns.create_campaign(database, "c", request)
    with database.transaction() as session:
        session.query(Campaign).update({"state": "closed"})
    return [entry for item in collect(database, "c").items for entry in item.media]


@pytest.mark.parametrize("kind", ["jsonl", "pearmut"])
def test_captions_go_with_their_files(
    study_database: Database, other: Database, tmp_path: Path, store: ArtefactStore, kind: str
) -> None:
    shown = campaign(study_database, store, tmp_path)
    entry = next(one for one in shown if one["type"] == "audio/wav")
    assert store.read(entry["captions"]) == samples.CAPTIONS
    with study_database.session() as session:
        file = find_media(session, entry["captions"])
    assert file is not None
    assert (file.type, file.size) == ("text/vtt", len(samples.CAPTIONS))
    out = tmp_path / "out"
    export_campaign(study_database, "c", kind, out, "test", store)
    assert (out / "media" / f"{entry['captions']}.vtt").read_bytes() == samples.CAPTIONS
    if kind == "pearmut":
        assert '<track kind="captions" label="Captions" src=' in (out / "campaign.json").read_text().replace(
            '\\"', '"'
        )
        return
    elsewhere = ArtefactStore(tmp_path / "elsewhere")
    import_campaign(other, out, kind, ImportFacts("c"), "test", store=elsewhere)
    assert [one for item in collect(other, "c").items for one in item.media] == shown
    assert elsewhere.read(entry["captions"]) == samples.CAPTIONS
    (out / "media" / f"{entry['captions']}.vtt").write_bytes(b"WEBVTT\n\n00:00.000 --> 00:01.500\nx")
    with pytest.raises(InputError, match="not the file that was exported"):
        import_campaign(other, out, kind, ImportFacts("d"), "test", store=elsewhere)
