"""Campaigns and answers of Pearmut; `layout` says what its files are made of."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from creamtea.human.formats.base import PEARMUT, Format, ImportFacts, Read, Written, first_line
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.pearmut.layout import ANSWERS
from creamtea.human.formats.pearmut.reading import read_campaign
from creamtea.human.formats.pearmut.writing import write_campaign
from creamtea.human.formats.record import Content


class Pearmut(Format):
    name = PEARMUT
    title = "answers given in Pearmut (annotations.json), or an export's zip"
    expected = "an object for each submitted document, with annotation; or an export's folder"
    options = ("campaign_file",)
    has_media = True

    def recognises(self, path: Path, text: str) -> bool:
        """Answers have a line each, or are one object that may have many lines."""
        if path.is_dir():
            return (path / ANSWERS).is_file()
        for written in (first_line(text), text):
            try:
                record: Any = json.loads(written)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict):
                return False
            if "annotation" in record or {"info", "data"} <= record.keys():
                return True
            return bool(record) and all(isinstance(part, list) for part in record.values())
        return False

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        return read_campaign(path, facts, now)

    def write(self, content: Content, path: Path) -> Written:
        return write_campaign(content, path), not_held(content, PEARMUT)
