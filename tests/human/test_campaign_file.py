"""Campaigns as a file, alone or for several directions: read with places, refused with all mistakes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ready_campaigns import draft_campaign
from small_campaigns import add_rater, rate_in_turns
from sqlalchemy import func, select

from creamtea.document.document import YamlDocument
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError, NotInDatabase
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import (
    Folder,
    as_yaml,
    check_campaign,
    commented,
    create_campaigns,
    document_of,
    load_campaign,
)
from creamtea.human.making.programme import campaigns_of, load_programme, new_programme, progress_of
from creamtea.human.making.settings import CampaignDocument, CampaignSettings, declarations, settings_of
from creamtea.report.human.build import build_programme, macro_mean
from creamtea.report.markdown import to_markdown
from creamtea.stats.estimate import Estimate, mean_estimate
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign

FULL = """
name: first
study: jam
test_set: test
systems: [plain, beam]
baseline: beam
delta: 0.5
minutes_per_item: 2
seed: 7
documents: test.docs
practice: practice.yaml
protocol: {kind: da, context: 1}
sample: {kind: stratified, strata: [document], items: 4}
controls: {bad_references: 0, repeats: 0.2, batch: 4}
attention:
  items: attention.yaml
  every: 5
  share: 0.5
  failing_code: F
raters:
  ratings_per_item: 2
  instructions: read.md
  consent: |
    I agree.
  questions: |
    Language? | German | English
    Years | number | optional
  contact: Jo
  completion_code: C
  completion_url: https://example.org/{code}
"""
PRACTICE = """
items:
  - source: Guten Tag
    outputs: [{text: Hello, accepted: [50, 100]}]
    explanation: A greeting.
"""
ATTENTION = """
checks:
  - source: Guten Tag
    outputs: [{text: Cheese, accepted: [0, 10]}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("campaign.yaml", FULL),
        ("practice.yaml", PRACTICE),
        ("attention.yaml", ATTENTION),
        ("read.md", "Read *both*."),
        ("test.docs", "x\nx\nx\ny\ny\n"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def mistakes(text: str, folder: Path, *overrides: str) -> list[str]:
    (folder / "campaign.yaml").write_text(text)
    with pytest.raises(StudyErrors) as refused:
        load_campaign(folder / "campaign.yaml", overrides)
    return [line.removeprefix(f"{folder}/campaign.yaml:") for line in refused.value.lines]


def test_a_file_is_made_into_a_campaign_and_written_again(
    study_database: Database, folder: Path, tmp_path: Path
) -> None:
    loaded = load_campaign(folder / "campaign.yaml", ["raters.ratings_per_item=3"])
    request = loaded.request(study_database, ArtefactStore(str(tmp_path / "artefacts")))
    assert (request.ratings_per_item, request.seed, request.protocol) == (3, 7, "da")
    assert request.instructions == "Read *both*."
    assert request.documents.names == ("x", "x", "x", "y", "y")
    assert request.settings.questions[1].number
    assert request.settings.attention[0].outputs[0].accepted == [0, 10]
    draft_campaign(study_database, "first", request)
    with study_database.session() as session:
        stored = settings_of(find_campaign(session, "first").settings)
    assert (stored.select, stored.strata, stored.attention_every) == ("stratified", ["document"], 5)

    # written, it has the contents of the files in their place, but for those that are too large for it
    text = as_yaml(document_of("first", request))
    (folder / "again.yaml").write_text(text)
    again = load_campaign(folder / "again.yaml", ["documents=test.docs"])
    assert again.campaign == loaded.campaign
    for name in ("practice.yaml", "attention.yaml", "read.md"):
        assert name not in text


def test_every_mistake_is_named_with_its_line(folder: Path) -> None:
    text = FULL.replace("stratified", "stratify").replace("every: 5", "evry: 5").replace("seed: 7", "seed: x")
    text = text.replace("test_set: test\n", "").replace("practice.yaml", "none.yaml")
    *said, kind, every = mistakes(text, folder)
    assert said == [
        "2: test_set: required key is missing",
        '8: seed: found "x", allowed a whole number',
        f"10: practice: {folder}/none.yaml: no such file; give the path of a tutorial (YAML or JSON)",
    ]
    assert kind.startswith('12: sample.kind: found "stratify", allowed one of all, differing, stratified')
    assert every.startswith("16: attention.evry: found an unknown key, allowed one of items, every, share")
    assert kind.endswith("(did you mean stratified?)")
    assert every.endswith("(did you mean every?)")


ALONE = {  # what does nothing by itself: what it needs
    "sample.metrics=[bleu]": "sample.kind disagreement",
    "sample.strata=[document]": "sample.kind stratified",
    "sample.random_share=0.5": "sample.kind disagreement",
    "sample.segments_per_page=3": "sample.unit document",
    "attention.failing_code=FAIL": "attention.items",
    "attention.share=0.5": "attention.failing_code",
}


def test_each_setting_says_what_it_needs(folder: Path) -> None:
    few = "name: a\nstudy: jam\ntest_set: test\nsystems: [a, b]\n"
    for setting, needed in ALONE.items():
        key = setting.partition("=")[0]
        said = f"--set {setting}: {key}: does nothing without {needed}: add that, or leave this out"
        assert mistakes(few, folder, setting) == [said]
    (nothing,) = mistakes("name: first\n", folder)
    assert nothing.startswith("1: study: required key is missing: a study, or files under `texts`")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("systems=[plain]", "systems: a campaign of da compares 2 to 60 systems, not 1"),
        ("protocol.taxonomy={severities: [{name: minor, weight: 1}]}", "da has no marked errors"),
        ("sample.unit=document", "sample.unit document takes"),
        ("directions={en-de: {}}", "directions: found an unknown key, allowed no directions: `creamtea"),
        ('name="a\\tb"', "name: Enter a campaign name of printable characters"),
        (f"name={'x' * 301}", "name: Enter a campaign name of at most 300 characters"),
        ("protocol={kind: scores}", "protocol.kind: ratings of scores are imported"),
        ("systems='plain, beam'", 'systems: found "plain, beam", allowed a list ([plain, beam])'),
        ("items=5", "items: found an unknown key, allowed sample.items or attention.items"),
        ("protocol.systems_per_page=2", "found an unknown key, allowed sample.systems_per_page"),
        ("baseline=beams", "baseline: 'beams' does not take part: use one of plain, beam"),
        ("raters.completion_code=F", "attention.failing_code: 'F' is raters.completion_code, too"),
        ('raters.completion_code=""', "raters.completion_url: {code} stands for raters.completion_code"),
        ("raters.completion_url=https://example.org/{CODE}", "{code} is the only text in braces"),
        ("raters.questions=[{ask: 'Yes | no | both?'}]", "raters.questions: a bar, a line end"),
        ("raters.questions=[{ask: Age}, {ask: Age}]", "question 2: 'Age' is asked twice"),
    ],
)
def test_what_no_draft_can_be_is_a_mistake_of_the_file(folder: Path, override: str, said: str) -> None:
    assert said in mistakes(FULL, folder, override)[-1]


def test_an_unknown_protocol_is_named_with_a_guess(folder: Path) -> None:
    unknown = FULL.replace("kind: da", "kind: esaa")
    (said,) = mistakes(unknown, folder)
    assert mistakes(unknown, folder, "raters.ratings_per_item=0")[0] == said  # beside another mistake, too
    assert said.startswith('12: protocol.kind: found "esaa", allowed one of contrastive-da, da, da-sqm')
    assert said.endswith("(did you mean esa?)")


@pytest.mark.parametrize("key", ["documents", "media", "protocol.proposals"])
def test_a_file_that_is_read_when_the_campaign_is_made_is_checked_before(folder: Path, key: str) -> None:
    (folder / "campaign.yaml").write_text(
        "name: a\nstudy: jam\ntest_set: t\nsystems: [a, b]\nprotocol: {kind: esa}"
    )
    (folder / "none.png.jsonl").write_text('{"segment": 1, "file": "none.png"}')
    loaded = load_campaign(
        folder / "campaign.yaml", [f"{key}=none.png.jsonl" if key == "media" else f"{key}=none"]
    )
    with pytest.raises(InputError, match=f"^--set {key}=.*none"):
        loaded.check()


@pytest.mark.parametrize(
    ("key", "line", "said"),
    [
        ("media", '{"segment": 9, "system": "c", "file": "a.png"}', '"c": no such system'),
        ("media", '{"document": "news", "file": "a.png"}', "no document 'news'"),
        ("media", '{"tutorial": 1, "file": "a.png"}', "no tutorial item 1"),
        ("protocol.proposals", '{"system": "c", "segment": 1, "spans": []}', "has no system 'c'"),
    ],
)
def test_a_file_names_what_the_campaign_of_a_study_has(folder: Path, key: str, line: str, said: str) -> None:
    (folder / "campaign.yaml").write_text(
        "name: a\nstudy: jam\ntest_set: t\nsystems: [a, b]\nprotocol: {kind: esa}"
    )
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "list.jsonl").write_text(line)
    loaded = load_campaign(folder / "campaign.yaml", [f"{key}=list.jsonl"])
    with pytest.raises(InputError, match=rf"list\.jsonl, line 1: .*{said}"):
        loaded.check()
    (folder / "list.jsonl").write_text(f"{line}\r{line}\r")
    with pytest.raises(InputError, match=r"list\.jsonl: lines that end with CR alone"):
        loaded.check()


def test_a_taxonomy_and_proposals_are_read(study_database: Database, folder: Path) -> None:
    (folder / "own.yaml").write_text("severities: [{name: critical, weight: 10}]")
    span = '{"severity": "critical"}'
    (folder / "found.jsonl").write_text(f'{{"system": "plain", "segment": 1, "spans": [{span}]}}')
    (folder / "campaign.yaml").write_text(
        "name: a\nstudy: jam\ntest_set: test\nsystems: [plain, beam]\n"
        "protocol: {kind: mqm, taxonomy: own.yaml, proposals: found.jsonl}\n"
    )
    loaded = load_campaign(folder / "campaign.yaml")
    request = loaded.request(study_database, ArtefactStore(str(folder / "artefacts")))
    assert request.settings.taxonomy.severities[0].weight == 10
    assert [proposal.system for proposal in request.proposals or ()] == ["plain"]


def test_mistakes_of_a_named_file_have_its_lines(folder: Path) -> None:
    (folder / "practice.yaml").write_text(PRACTICE.replace("explanation", "because"))
    said = mistakes(FULL, folder)
    assert [line.removeprefix(f"{folder}/").partition(":")[0] for line in said] == ["practice.yaml"] * 2


@pytest.mark.parametrize("name", ["../read.md", "/etc/hosts.txt", "other.md"])
def test_uploads_are_the_only_files_of_a_page(folder: Path, name: str) -> None:
    data: dict[str, Any] = {"name": "a", "study": "jam", "test_set": "test", "systems": ["a", "b"]}
    inside = Folder(folder, {"read.md"})
    document = YamlDocument("the form", {**data, "raters": {"instructions": "read.md"}})
    assert check_campaign(document, inside).campaign.raters.instructions == "Read *both*."
    for key in ("raters.instructions", "practice", "documents"):
        value = name if key != "practice" else name.replace(".md", ".yaml")
        with pytest.raises(InputError, match=r"is not here: upload it") as refused:
            check_campaign(YamlDocument("the form", dict(data)), inside, [f"{key}={value}"])
        assert refused.value.about == key
    by_domain = f"raters={{domain_instructions: {{news: {name}}}}}"
    with pytest.raises(InputError, match="pages take no file for it"):
        check_campaign(YamlDocument("the form", dict(data)), inside, [by_domain])


def test_a_commented_file_reads_as_its_values(tmp_path: Path) -> None:
    values: dict[str, Any] = {"name": "a", "study": "jam", "test_set": "test", "systems": ["plain", "beam"]}
    values["sample.items"] = 9
    text = commented(values)
    (tmp_path / "a.yaml").write_text(text)
    read = load_campaign(tmp_path / "a.yaml").campaign
    assert (read.sample.items, read.controls) == (9, CampaignDocument.model_fields["controls"].default)
    for key, declared in declarations().items():
        if key not in values and declared.default not in (None, "", []):
            text = text.replace(f"# {declared.key}:", f"{declared.key}:")
    (tmp_path / "a.yaml").write_text(text)
    assert load_campaign(tmp_path / "a.yaml").campaign == read  # comments are the defaults


def test_settings_are_stored_without_blocks_and_have_one_declaration_each() -> None:
    names = [declared.name for declared in declarations().values()]
    assert len(names) == len(set(names))
    document = CampaignDocument(name="a", study="b", test_set="c", systems=["d"])
    assert document.settings() == CampaignSettings()
    assert "attention_every" in CampaignSettings().model_dump()
    assert yaml.safe_load(as_yaml({"a": [1]})) == {"a": [1]}


# ---------------------------------------------------------------- a programme of several directions


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
def directions(tmp_path: Path) -> Path:
    for pair, systems in {"en-de": "ABC", "en-cs": "AB"}.items():
        (tmp_path / "sources").mkdir(exist_ok=True)
        (tmp_path / f"sources/{pair}.txt").write_text("".join(f"s {n}\n" for n in range(8)))
        (tmp_path / f"system-outputs/{pair}").mkdir(parents=True)
        for at, system in enumerate(systems):  # as `rate_in_turns` tells the systems apart
            text = "".join(f"o{n}-{at}\n" for n in range(8))
            (tmp_path / f"system-outputs/{pair}/{system}.txt").write_text(text)
    (tmp_path / "read.md").write_text("Read *both*.")
    return tmp_path


def write_programme(directions: Path, text: str = SHARED + DIRECTIONS) -> Path:
    (directions / "p.yaml").write_text(text)
    return directions / "p.yaml"


def create(
    database: Database,
    directions: Path,
    *overrides: str,
    replace: bool = False,
    text: str = SHARED + DIRECTIONS,
) -> None:
    programme = load_programme(write_programme(directions, text), overrides)
    create_campaigns(
        *(database, list(programme.directions.values()), ArtefactStore(str(directions / "store"))),
        replace=replace,
        programme=programme.name,
    )


def mistakes_of(directions: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(StudyErrors) as refused:
        load_programme(write_programme(directions, text), overrides)
    return [line.removeprefix(f"{directions}/p.yaml:") for line in refused.value.lines]


def test_directions_override_what_all_share(directions: Path) -> None:
    programme = load_programme(write_programme(directions), ["directions.en-cs.sample.items=3", "seed=9"])
    german, czech = (programme.directions[name].campaign for name in ("en-de", "en-cs"))
    assert (german.name, czech.name) == ("p-en-de", "p-en-cs")
    assert (german.sample.items, czech.sample.items) == (6, 3)
    assert (german.raters.ratings_per_item, czech.raters.ratings_per_item) == (2, 3)
    assert german.raters.instructions == czech.raters.instructions == "Read *both*."
    assert (czech.sample.select, czech.seed) == ("differing", 9)
    assert (german.texts.languages, czech.texts.languages) == ("en-de", "en-cs")
    assert (german.texts.reference_files, czech.texts.reference_files) == (None, [])


def test_every_mistake_of_all_directions_is_named_once_with_its_line(directions: Path) -> None:
    text = (SHARED + DIRECTIONS).replace("items: 6", "itms: 6").replace("ratings_per_item: 3", "ratings: 3")
    shared, own = mistakes_of(directions, text)
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
        assert mistakes_of(directions, file, *overrides) == said


def test_all_directions_are_made_or_none(database: Database, directions: Path) -> None:
    other = (directions / "system-outputs/en-cs/B.txt").read_text()
    same = (directions / "system-outputs/en-cs/A.txt").read_text()
    (directions / "system-outputs/en-cs/B.txt").write_text(same)
    with pytest.raises(InputError, match=r"direction en-cs: the systems give the same output"):
        create(database, directions)
    with database.session() as session:
        assert session.scalar(select(func.count()).select_from(Campaign)) == 0
    (directions / "system-outputs/en-cs/B.txt").write_text(other)
    create(database, directions)
    with pytest.raises(InputError, match=r"direction en-de: .*already exists"):
        create(database, directions)
    create(database, directions, "sample.items=2", replace=True)
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
        create(database, directions, replace=True)


def test_one_table_over_directions(database: Database, directions: Path) -> None:
    create(database, directions)
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
    assert rows["C"]["en-cs"].note == "not one of this direction's systems"
    for system in "AB":
        macro, own = rows[system]["macro"], [rows[system][direction] for direction in names]
        assert macro.value == pytest.approx(np.mean([cell.value for cell in own]))
        halves = [cell.value - cell.low for cell in own]
        assert macro.value - macro.low == pytest.approx(np.hypot(*halves) / 2)
    assert {name: cells["directions"].value for name, cells in rows.items()} == {"A": 2, "B": 2, "C": 1}
    # raters agree: C is the best in en-de, and with five segments at most B in en-cs
    assert {name: cells["first"].value for name, cells in rows.items()} == {"A": 0, "B": 1, "C": 1}
    written = to_markdown(document)
    assert written.startswith("# p\n\nen-de: launched: ")
    assert "with ratings of the system" in written  # the columns are explained
    progress = progress_of(database, "p")
    assert [(each.share, len(each.raters)) for each in progress] == [(1.0, 4), (1.0, 4)]


@pytest.mark.parametrize(
    ("of_one", "pages", "note"),
    [
        ("sample: {items: 6, kind: all, systems_per_page: 2}", 4, "a mean in 1 of 2 directions so far"),
        ("protocol: {kind: mqm, taxonomy: {severities: [{name: major, weight: 25}]}}", 12, "taxonomies"),
        ("protocol: {kind: mqm}", 12, None),
    ],
)
def test_what_cannot_be_averaged_over_directions(
    of_one: str, pages: int, note: str | None, database: Database, directions: Path
) -> None:
    rest = "protocol: {kind: mqm}" if "mqm" in of_one else ""
    create(database, directions, text=f"{SHARED}  en-de: {{{of_one}}}\n  en-cs: {{{rest}}}\n")
    for direction, stop in (("en-de", pages), ("en-cs", None)):
        launching.launch(database, f"p-{direction}")
        rater = add_rater(database, "r", f"p-{direction}")
        answer = {"spans": []} if "mqm" in of_one else 50
        rate_in_turns(database, [rater], lambda systems, own=answer: [own for _ in systems], stop)
    rows = {row.name: row.cells for row in build_programme(database, "p").table("systems").rows}
    assert rows["A"]["directions"].value == 2
    if note is None:
        assert rows["A"]["macro"].value == 0
    else:
        assert note in rows["A"]["macro"].note


@pytest.mark.parametrize("shown", [2, 3])
def test_an_interval_from_some_systems_is_of_the_distance_from_their_mean(
    shown: int, database: Database, directions: Path
) -> None:
    blocks = f"sample: {{items: 6, kind: all, systems_per_page: {shown}}}" if shown < 3 else ""
    create(database, directions, text=f"{SHARED}  en-de: {{{blocks}}}\n")
    launching.launch(database, "p-en-de")
    people = [add_rater(database, f"r{number}", "p-en-de") for number in range(2)]
    rate_in_turns(database, people, lambda systems: [50 + 10 * system for system in systems])
    (macro, *_) = build_programme(database, "p").table("systems").columns
    assert ("distance from the mean" in macro.note) is (shown < 3)


def test_an_unrated_programme_says_so(database: Database, directions: Path) -> None:
    create(database, directions)
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


def test_a_new_programme_is_a_valid_one(directions: Path) -> None:
    path = write_programme(directions, new_programme(directions, directions / "p.yaml"))
    assert list(load_programme(path).directions) == ["en-cs", "en-de"]
