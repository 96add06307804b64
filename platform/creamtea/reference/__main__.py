"""Write the pages of the reference into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from creamtea.reference.pages import PAGES

(folder,) = map(Path, sys.argv[1:])
for name, markdown in PAGES.items():
    (folder / name).write_text(markdown(), encoding="utf-8")
