"""The page of a programme by AppTest: directions and raters, for organisers only."""

from pathlib import Path

import pytest
from organiser_app import READER, Visit, shown
from small_campaigns import add_rater, rate_all

from creamtea.access.sessions import Identity
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import create_campaigns
from creamtea.human.making.programme import load_programme
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database

PROGRAMME = """
name: <i>spring</i>
texts: {folder: .}
protocol: {kind: da}
controls: {bad_references: 0, repeats: 0}
directions: {en-de: {}, en-nl: {sample: {items: 1}}}
"""


@pytest.fixture
def programme(ready: Database, tmp_path: Path) -> Database:
    for pair in ("en-de", "en-nl"):
        outputs = tmp_path / "system-outputs" / pair
        outputs.mkdir(parents=True)
        (tmp_path / "sources").mkdir(exist_ok=True)
        (tmp_path / "sources" / f"{pair}.txt").write_text("one\ntwo\n")
        for system in ("A", "B"):
            (outputs / f"{system}.txt").write_text(f"{system} 1\n{system} 2\n")
    (tmp_path / "p.yaml").write_text(PROGRAMME)
    found = load_programme(tmp_path / "p.yaml")
    store = ArtefactStore(str(tmp_path / "store"))
    create_campaigns(ready, list(found.directions.values()), store, programme=found.name)
    launching.launch(ready, "<i>spring</i>-en-nl")
    rate_all(ready, add_rater(ready, "<b>anna</b>", "<i>spring</i>-en-nl"))
    return ready


def test_progress_by_direction_and_rater(programme: Database, visit: Visit) -> None:
    assert "?programme=%3Ci%3Espring%3C/i%3E" in shown(visit(campaigns="all"))
    app = visit(programme="<i>spring</i>")
    page = shown(app)
    for words in ("Programme of 2 directions", "&lt;i&gt;spring&lt;/i&gt;", "2 of 6 item ratings"):
        assert words in page, words
    for words in ("0 of 4", "2 of 2", ">en-de</a>", "&lt;b&gt;anna&lt;/b&gt;", "1 finished"):
        assert words in page, words
    assert "<b>" not in page
    assert "No such programme" in shown(visit(programme="autumn"))


@pytest.mark.parametrize("who", [READER, Identity(9, "organiser", campaign_id=1)])
def test_others_do_not_see_it(programme: Database, visit: Visit, who: Identity) -> None:
    page = shown(visit(who, programme="<i>spring</i>"))
    assert "Programme of" not in page
