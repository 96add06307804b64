"""A programme: shared keys and directions in one file, campaigns made together, one table over them."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import add_rater, rate_in_turns
from sqlalchemy import func, select

from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError, NotInDatabase
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import create_campaigns
from creamtea.human.making.programme import campaigns_of, load_programme, new_programme, progress_of
from creamtea.report.human.programme import build_programme, macro_mean
from creamtea.stats.estimate import Estimate, mean_estimate
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

SHARED = """name: p
texts: {folder: .}
protocol: {kind: da}
sample: {items: 6, kind: differing}
controls: {bad_references: 0, repeats: 0}
raters:
  ratings_per_item: 2
  instructions: read.md
directions:
"""
DIRECTIONS = """  en-de: {}
  en-cs:
    sample: {items: 4}
    raters: {ratings_per_item: 3}
    texts: {references: []}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for pair, systems in {"en-de": "ABC", "en-cs": "AB"}.items():
        (tmp_path / "sources").mkdir(exist_ok=True)
        (tmp_path / f"sources/{pair}.txt").write_text("".join(f"s {n}\n" for n in range(8)))
        (tmp_path / f"system-outputs/{pair}").mkdir(parents=True)
        for at, system in enumerate(systems):  # as `rate_in_turns` tells the systems apart
            text = "".join(f"o{n}-{at}\n" for n in range(8))
            (tmp_path / f"system-outputs/{pair}/{system}.txt").write_text(text)
    (tmp_path / "read.md").write_text("Read *both*.")
    return tmp_path


def write(folder: Path, text: str = SHARED + DIRECTIONS) -> Path:
    (folder / "p.yaml").write_text(text)
    return folder / "p.yaml"


def create(
    database: Database,
    folder: Path,
    *overrides: str,
    replace: bool = False,
    text: str = SHARED + DIRECTIONS,
) -> None:
    programme = load_programme(write(folder, text), overrides)
    create_campaigns(
        *(database, list(programme.directions.values()), ArtefactStore(str(folder / "store"))),
        replace=replace,
        programme=programme.name,
    )


def mistakes(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(StudyErrors) as refused:
        load_programme(write(folder, text), overrides)
    return [line.removeprefix(f"{folder}/p.yaml:") for line in refused.value.lines]


def test_directions_override_what_all_share(folder: Path) -> None:
    programme = load_programme(write(folder), ["directions.en-cs.sample.items=3", "seed=9"])
    german, czech = (programme.directions[name].campaign for name in ("en-de", "en-cs"))
    assert (german.name, czech.name) == ("p-en-de", "p-en-cs")
    assert (german.sample.items, czech.sample.items) == (6, 3)
    assert (german.raters.ratings_per_item, czech.raters.ratings_per_item) == (2, 3)
    assert german.raters.instructions == czech.raters.instructions == "Read *both*."
    assert (czech.sample.select, czech.seed) == ("differing", 9)
    assert (german.texts.languages, czech.texts.languages) == ("en-de", "en-cs")
    assert (german.texts.reference_files, czech.texts.reference_files) == (None, [])


def test_every_mistake_of_all_directions_is_named_once_with_its_line(folder: Path) -> None:
    text = (SHARED + DIRECTIONS).replace("items: 6", "itms: 6").replace("ratings_per_item: 3", "ratings: 3")
    shared, own = mistakes(folder, text)
    assert shared.startswith("4: sample.itms: found an unknown key, allowed one of kind, items, unit, ")
    assert own.startswith("13: raters.ratings: found an unknown key, allowed one of ratings_per_item, ")
    assert shared.endswith("(did you mean items?)")
    assert own.endswith("(did you mean ratings_per_item?)")
    for file, overrides, said in (
        (SHARED + DIRECTIONS, ['name=""'], ['--set name="": name: found "", allowed a name in text']),
        (SHARED.replace("directions:\n", ""), [], ["1: directions: required key is missing"]),
        (
            *(SHARED + "  en-de: 3\n  en de: {}\n", ["name=7"]),
            [
                "10: directions.en-de: found 3, allowed a block of keys, or nothing",
                '11: directions.en de: found "en de", allowed a name as en-de or news.en-de',
                "--set name=7: name: found 7, allowed a name in text",
            ],
        ),
        (SHARED, [], ["9: directions: found nothing, allowed a block of directions (en-de: {…})"]),
    ):
        assert mistakes(folder, file, *overrides) == said


def test_all_directions_are_made_or_none(database: Database, folder: Path) -> None:
    other = (folder / "system-outputs/en-cs/B.txt").read_text()
    same = (folder / "system-outputs/en-cs/A.txt").read_text()
    (folder / "system-outputs/en-cs/B.txt").write_text(same)
    with pytest.raises(InputError, match=r"direction en-cs: the systems give the same output"):
        create(database, folder)
    with database.session() as session:
        assert session.scalar(select(func.count()).select_from(Campaign)) == 0
    (folder / "system-outputs/en-cs/B.txt").write_text(other)
    create(database, folder)
    with pytest.raises(InputError, match=r"direction en-de: .*already exists"):
        create(database, folder)
    create(database, folder, "sample.items=2", replace=True)
    with database.session() as session:
        found = campaigns_of(session, "p")
        names = {direction: row.name for direction, row in found.items()}
        assert names == {"en-de": "p-en-de", "en-cs": "p-en-cs"}
        with pytest.raises(NotInDatabase, match="no programme 'q'; there are: p"):
            campaigns_of(session, "q")
    items = {each.direction: each.campaign.items for each in progress_of(database, "p")}
    assert items == {"en-de": 6, "en-cs": 8}  # systems × items: en-cs has its own number of these
    launching.launch(database, "p-en-de")
    with pytest.raises(InputError, match=r"direction en-de: .*campaign 'p-en-de' is launched"):
        create(database, folder, replace=True)


def test_one_table_over_directions(database: Database, folder: Path) -> None:
    create(database, folder)
    with database.session() as session:
        names = {direction: row.name for direction, row in campaigns_of(session, "p").items()}
    means = {"en-de": (20, 50, 80), "en-cs": (30, 90)}
    for direction, name in names.items():
        launching.launch(database, name)
        people = [add_rater(database, f"r{number}", name) for number in range(4)]
        rng, own = np.random.default_rng(2), np.array(means[direction])

        def answer(systems: list[int], rng: np.random.Generator = rng, own: np.ndarray = own) -> list[int]:
            return [int(step) for step in rng.normal(own[systems], 4).round().clip(0, 100)]

        rate_in_turns(database, people, answer)
    document = build_programme(database, "p")
    table = document.table("systems")
    rows = {row.name: row.cells for row in table.rows}
    assert [row.name for row in table.rows] == ["B", "A", "C"]  # C has no mean over directions
    assert rows["C"]["macro"].note == "rated in 1 of 2 directions"
    for system in "AB":
        macro, own = rows[system]["macro"], [rows[system][direction] for direction in names]
        assert macro.value == pytest.approx(np.mean([cell.value for cell in own]))
        halves = [cell.value - cell.low for cell in own]
        assert macro.value - macro.low == pytest.approx(np.hypot(*halves) / 2)
    assert {name: cells["directions"].value for name, cells in rows.items()} == {"A": 2, "B": 2, "C": 1}
    # raters agree: C is the best in en-de, and with five segments at most B in en-cs
    assert {name: cells["first"].value for name, cells in rows.items()} == {"A": 0, "B": 1, "C": 1}
    progress = progress_of(database, "p")
    assert [(each.share, len(each.raters)) for each in progress] == [(1.0, 4), (1.0, 4)]


@pytest.mark.parametrize("shown", [2, 3])
def test_an_interval_from_some_systems_is_of_the_distance_from_their_mean(
    shown: int, database: Database, folder: Path
) -> None:
    blocks = f"sample: {{items: 6, kind: all, systems_per_page: {shown}}}" if shown < 3 else ""
    create(database, folder, text=f"{SHARED}  en-de: {{{blocks}}}\n")
    launching.launch(database, "p-en-de")
    people = [add_rater(database, f"r{number}", "p-en-de") for number in range(2)]
    rate_in_turns(database, people, lambda systems: [50 + 10 * system for system in systems])
    (macro, *_) = build_programme(database, "p").table("systems").columns
    assert ("distance from the mean" in macro.note) is (shown < 3)


def test_an_unrated_programme_says_so(database: Database, folder: Path) -> None:
    create(database, folder)
    document = build_programme(database, "p")
    facts = {fact.label: fact.value for fact in document.facts}
    assert facts == {"en-de": "a draft", "en-cs": "a draft"}
    assert [path for path, _ in document.walk()] == ["directions", "directions/none"]


def test_a_mean_over_directions_is_covered_by_its_interval() -> None:
    """MOVER by simulation: 95 % of intervals hold the mean of directions with unequal spreads and sizes."""
    rng = np.random.default_rng(3)
    truth, spreads, sizes = (70.0, 60.0, 85.0), (25.0, 5.0, 12.0), (12, 40, 25)
    held = 0
    for _ in range(2000):
        means = [
            mean_estimate(rng.normal(mean, spread, size))
            for mean, spread, size in zip(truth, spreads, sizes, strict=True)
        ]
        found = macro_mean(means)
        held += found.low <= np.mean(truth) <= found.high
    assert 0.94 <= held / 2000 <= 0.975
    assert macro_mean([Estimate(3.0), Estimate(5.0, 4.0, 6.0)]) == Estimate(
        4.0, reason="a direction's mean has no interval yet"
    )


def test_a_new_programme_is_a_valid_one(folder: Path) -> None:
    path = write(folder, new_programme(folder, folder / "p.yaml"))
    assert list(load_programme(path).directions) == ["en-cs", "en-de"]
