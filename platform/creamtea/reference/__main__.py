"""Write the pages of the reference into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from creamtea.reference.pages import PAGES

parser = argparse.ArgumentParser(prog="python -m creamtea.reference", description=__doc__)
parser.add_argument("folder", type=Path, help="where the pages are, docs/reference say")
folder = parser.parse_args().folder
if not folder.is_dir():
    parser.error(f"{folder}: no such folder; make it first")
for name, markdown in PAGES.items():
    (folder / name).write_text(markdown(), encoding="utf-8")
