"""Sources that show files in Pearmut: taken apart exactly, or left as they are written."""

import hashlib
from pathlib import Path
from typing import Any

import media_files as samples
import pytest
from drawn import LINES, texts
from hypothesis import given
from hypothesis import strategies as st

from creamtea.human.formats.pearmut_media import Assets, TaggedFile, assets_of, parse, with_tags

FILES = {"tea.png": samples.png(), "talk one.wav": samples.wav(0.1), "scene.webm": samples.WEBM}
TYPES = {".png": "image/png", ".wav": "audio/wav", ".webm": "video/webm"}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign's folder: `shown` has the files, by their names and as an export calls them."""
    made = tmp_path_factory.mktemp("campaign")
    (made / "shown").mkdir()
    for name, content in FILES.items():
        (made / "shown" / name).write_bytes(content)
        (made / "shown" / f"{digest(content)}{Path(name).suffix}").write_bytes(content)
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
    {"digest": digest(content), "type": TYPES[Path(name).suffix], "description": ""}
    for name, content in FILES.items()
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
