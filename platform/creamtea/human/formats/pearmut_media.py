"""Separate Pearmut's sources and outputs that show files into text and files.

HTML of other people is never shown as HTML. A text is split only if it has exactly the known form: first tags
of files, each with or without a line break, then text with line breaks. If it has any other tag or attribute,
a file outside the campaign's folder, or a file that creamtea does not show, the text stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from creamtea.errors import InputError
from creamtea.human.media import (
    CAPTIONS,
    MAX_DESCRIPTION,
    MAX_PER_PLACE,
    CheckedFile,
    ItemMedia,
    check_captions,
    check_file,
    export_name,
    inside,
    kind_of,
)
from creamtea.human.record import MEDIA_FOLDER, Content, media_types
from creamtea.store.tables import MediaEntry

TAGS = ("<audio ", "<video ", "<img ", "<iframe ")  # Pearmut shows a text that begins so as HTML
TAG_KINDS = {"img": "image", "audio": "audio", "video": "video"}
EMPTY = ("img", "br", "source", "track")  # tags without an end
DESCRIPTIONS = ("alt", "aria-label", "title")
# attributes of captions, and attributes that only change how a file looks
OF_TRACKS = {"kind", "label", "src", "srclang", "default"}
LOOKS = {"controls", "width", "height", "style", "class", "type", "preload"}
Entries = tuple[dict[str, Any], ...]  # as `Item.media`


@dataclass(frozen=True)
class TaggedFile:
    kind: str  # "image", "audio" or "video"
    address: str
    description: str
    captions: str | None = None  # address


@dataclass
class Assets:
    """The files of a campaign, in `folder` on this machine (None: unknown); its server has `destination`."""

    folder: Path | None = None
    destination: str = ""
    files: dict[str, Path] = field(default_factory=dict)  # SHA-256 → file, if a text shows it
    _known: dict[str, tuple[str, Entries]] = field(default_factory=dict)

    def read(self, written: str) -> tuple[str, Entries]:
        """Split a text into text and files; leave it as written if it does not have the known form."""
        if not written.startswith(TAGS) or self.folder is None:
            return written, ()
        if written not in self._known:
            self._known[written] = self._read(written)
        return self._known[written]

    def _read(self, written: str) -> tuple[str, Entries]:
        taken = parse(written)
        if taken is None:
            return written, ()
        files, text = taken
        found = [self._file(file) for file in files]
        entries = [entry for entry in found if entry is not None]
        digests = {entry.digest for entry in entries}
        if len(entries) < len(files) or len(digests) < len(files) or len(files) > MAX_PER_PLACE:
            return written, ()
        return text, tuple(entry.stored() for entry in entries)

    def _file(self, tagged: TaggedFile) -> ItemMedia | None:
        found = self._found(tagged.address, check_file)
        if found is None or len(tagged.description) > MAX_DESCRIPTION:
            return None
        digest, media = found
        if kind_of(media) != tagged.kind:
            return None
        captions = None
        if tagged.captions is not None:
            captions = self._found(tagged.captions, check_captions)
            if captions is None:
                return None
        return ItemMedia(
            digest=digest, type=media, description=tagged.description, captions=captions and captions[0]
        )

    def _found(self, written: str, check: Callable[[Path, str], CheckedFile]) -> tuple[str, str] | None:
        """Record the file at this address; return its SHA-256 and type, or None if it is not allowed."""
        address = unquote(written.removeprefix("./").removeprefix("/"))
        name = address.removeprefix(f"{self.destination.strip('/')}/")
        if self.folder is None or name == address:
            return None
        try:
            file = check(inside(self.folder, name, name), name)
        except (InputError, ValueError):  # missing, outside the folder, or of another type
            return None
        digest = file.digest
        self.files[digest] = file.path
        return digest, file.type


def assets_of(campaign_file: Path, source: str, destination: str) -> Assets:
    """Find the `info.assets` of a campaign in the folder of the campaign's file or below it."""
    try:
        folder = inside(campaign_file.parent, source, "assets")
    except (InputError, ValueError):
        return Assets()
    return Assets(folder, destination) if folder.is_dir() else Assets()


def parse(written: str) -> tuple[list[TaggedFile], str] | None:
    """Split a text into its files and the text after them; None if it does not have the known form."""
    parser = _Parser()
    parser.feed(written)
    parser.close()
    if parser.other or parser.playing is not None or not parser.files:
        return None
    return parser.files, "".join(parser.text)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.files: list[TaggedFile] = []
        self.text: list[str] = []
        self.other = False  # whether there is anything unknown
        self.playing: tuple[str, dict[str, str]] | None = None  # the audio or video that is open
        self._after_file = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if self.playing is not None and tag == "track":
            known = set(found) <= OF_TRACKS and found.get("kind") == "captions"
            self.other |= not known or "track" in self.playing[1]
            self.playing[1]["track"] = found.get("src", "")
            return
        self.other |= bool(set(found) - LOOKS - {"src", *DESCRIPTIONS})
        if self.playing is not None:
            self.other |= tag != "source"
            self.playing[1].setdefault("src", found.get("src", ""))
        elif tag in TAG_KINDS:
            self.other |= bool(self.text)
            if tag in EMPTY:
                self._add(tag, found)
            else:
                self.playing = tag, found
        elif tag != "br":
            self.other = True
        elif self._after_file:
            self._after_file = False
        else:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self.playing is not None and tag == self.playing[0]:
            self._add(*self.playing)
            self.playing = None
        else:
            self.other |= tag not in EMPTY

    def _add(self, tag: str, found: dict[str, str]) -> None:
        description = next((found[name] for name in DESCRIPTIONS if found.get(name)), "")
        self.files.append(TaggedFile(TAG_KINDS[tag], found.get("src", ""), description, found.get("track")))
        self._after_file = True

    def handle_data(self, data: str) -> None:
        if self.playing is not None:
            return  # text for browsers that cannot play the file
        if self._after_file:
            data = data.lstrip()
        if data:
            self.text.append(data)
            self._after_file = False

    def handle_comment(self, data: str) -> None:
        self.other = True

    def handle_decl(self, decl: str) -> None:
        self.other = True

    handle_pi = unknown_decl = handle_comment


_TAGS = {
    "image": '<img src="{}" alt="{}" style="max-width: 100%">',
    "audio": '<audio controls src="{}" aria-label="{}"></audio>',
    "video": '<video controls src="{}" aria-label="{}" style="max-width: 100%"></video>',
}

_TRACK = '<track kind="captions" label="Captions" src="{}" default>'  # before the end of the tag


def assets(content: Content) -> dict[str, Any]:
    """Return the assets of `info`; empty if no item has a file.

    Two campaigns must not share a destination.
    """
    if not media_types(content):
        return {}
    name = hashlib.sha256(content.name.encode()).hexdigest()[:12]
    return {"assets": {"source": MEDIA_FOLDER, "destination": f"assets/creamtea-{name}"}}


def with_tags(text: str, files: Sequence[MediaEntry], given: dict[str, Any]) -> str:
    """Return a text as Pearmut shows it with its files; `given` has what `assets` returned."""
    if not files:
        return text
    folder = given["assets"]["destination"]
    tags = []
    for entry in files:
        kind = kind_of(entry["type"])
        address = f"{folder}/{export_name(entry['digest'], entry['type'])}"
        tag = _TAGS[kind].format(address, escape(entry["description"]))
        if captions := entry.get("captions"):
            end = f"</{kind}>"
            track = _TRACK.format(f"{folder}/{export_name(captions, CAPTIONS)}")
            tag = tag.removesuffix(end) + track + end
        tags.append(tag)
    return "<br>".join([*tags, escape(text).replace("\n", "<br>")])
