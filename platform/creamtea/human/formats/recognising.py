"""Which format a file or a folder of ratings has, told by its first record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from creamtea.error_spans import name_key
from creamtea.errors import InputError
from creamtea.human.formats import pearmut
from creamtea.human.formats.appraise import HEADERS, KINDS, LAYOUTS, MTURK_HEADER
from creamtea.human.formats.files import read_text
from creamtea.human.formats.folder import FORMATS
from creamtea.human.formats.losses import APPRAISE, MQM, MT_METRICS_EVAL, PEARMUT
from creamtea.human.formats.mqm_tsv import FIELDS
from creamtea.human.formats.plain import REQUIRED
from creamtea.wording import file_name, option

EXPECTED = {
    "csv": f"a header with {', '.join(REQUIRED)} and value, step or payload; or an export's folder",
    "jsonl": f"an object a line with {', '.join(REQUIRED)} and value, step or payload; or an export's folder",
    APPRAISE: "no header; 9, 11 or 12 fields with commas between, or MTurk's file that begins with HITId",
    MQM: f"{' '.join(FIELDS)}, with tabs between",
    MT_METRICS_EVAL: "a folder with sources, system-outputs and human-scores",
    PEARMUT: "an object for each submitted document, with annotation; or an export's folder",
}


def recognise(path: Path) -> str:
    """Return the format of what is at `path`, a key of EXPECTED.

    InputError, with what each format expects, for what has none of them.
    """
    found = _of_folder(path) if path.is_dir() else _of_file(path)
    if found is not None:
        return found
    formats = "".join(f"\n  {kind}: {expected}" for kind, expected in EXPECTED.items())
    raise InputError(
        f"{file_name(path)}: not one of the formats that can be read; say which is meant with "
        f"{option('format')}:{formats}",
        about="format",
    )


def _of_folder(path: Path) -> str | None:
    if (path / pearmut.ANSWERS).is_file():
        return PEARMUT
    if (path / "human-scores").is_dir() or (path / "system-outputs").is_dir():
        return MT_METRICS_EVAL
    return next((kind for kind in FORMATS if (path / f"ratings.{kind}").is_file()), None)


def _of_file(path: Path) -> str | None:
    text = read_text(path)
    first = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0].rstrip("\r")
    if not first:
        raise InputError(f"{path.name}: an empty file")
    if first.startswith(("{", "[")):
        return _of_json(text, first)
    if first.split()[:1] == [MTURK_HEADER]:
        return APPRAISE
    by_tabs = first.split("\t")
    if list(map(name_key, by_tabs[:2])) == list(map(name_key, FIELDS[:2])):
        return MQM
    cells = [cell.strip(' "') for cell in re.split("[,;\t]", first)]  # the reader says so if it is no comma
    if len(set(REQUIRED) & set(cells)) > 1:
        return "csv"
    if len(by_tabs) >= len(FIELDS) and by_tabs[3].strip().isdecimal():  # without a header
        return MQM
    is_layout = len(cells) >= len(LAYOUTS[0]) and cells[3] in KINDS
    return APPRAISE if is_layout or cells[0] in HEADERS else None


def _of_json(text: str, first: str) -> str | None:
    """Pearmut's answers have a line each, or are one object that may have many lines."""
    for written in (first, text):
        try:
            record: Any = json.loads(written)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, dict):
            return None
        if "annotation" in record or {"info", "data"} <= record.keys():
            return PEARMUT
        if set(REQUIRED) & record.keys():
            return "jsonl"
        return PEARMUT if record and all(isinstance(part, list) for part in record.values()) else None
    return None
