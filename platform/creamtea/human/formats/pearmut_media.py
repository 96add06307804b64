"""Files beside sources in Pearmut: `info.assets` names their folder and where its server shows it, and
sources have tags of HTML.

Its page takes a text that begins with such a tag for HTML as a whole, so that what follows it is escaped. The
folder is looked for where `pearmut add` is run: in the export. Under the key `creamtea` an item says its
source and its files, so that an import brings both back as they were.
"""

from __future__ import annotations

import hashlib
from html import escape
from typing import Any

from creamtea.human.formats.content import Content, ItemContent
from creamtea.human.formats.media import FOLDER, named
from creamtea.human.media.types import CAPTIONS, file_name, kind_of

_TAGS = {
    "image": '<img src="{}" alt="{}" style="max-width: 100%">',
    "audio": '<audio controls src="{}" aria-label="{}"></audio>',
    "video": '<video controls src="{}" aria-label="{}" style="max-width: 100%"></video>',
}
_TRACK = '<track kind="captions" label="Captions" src="{}" default>'  # before the end of the tag


def assets(content: Content) -> dict[str, Any]:
    """The part of `info`; nothing where no source has a file. Two campaigns may not have one destination."""
    if not named(content):
        return {}
    name = hashlib.sha256(content.name.encode()).hexdigest()[:12]
    return {"assets": {"source": FOLDER, "destination": f"assets/creamtea-{name}"}}


def shown_source(item: ItemContent, given: dict[str, Any]) -> str:
    """The source as Pearmut shows it; `given` is what `assets` returned."""
    if not item.media:
        return item.source
    folder = given["assets"]["destination"]
    tags = []
    for entry in item.media:
        kind = kind_of(entry["type"])
        address = f"{folder}/{file_name(entry['digest'], entry['type'])}"
        tag = _TAGS[kind].format(address, escape(entry["description"]))
        if captions := entry.get("captions"):
            end = f"</{kind}>"
            track = _TRACK.format(f"{folder}/{file_name(captions, CAPTIONS)}")
            tag = tag.removesuffix(end) + track + end
        tags.append(tag)
    return "<br>".join([*tags, escape(item.source).replace("\n", "<br>")])


def own_media(item: ItemContent) -> dict[str, Any]:
    """What the key `creamtea` says of them."""
    return {"source": item.source, "media": list(item.media)} if item.media else {}
