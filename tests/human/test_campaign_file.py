"""A campaign as a file: read with places, refused with all its mistakes, written and read again."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from ready_campaigns import draft_campaign

from creamtea.document.document import YamlDocument
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.human.making.campaign_file import (
    Folder,
    as_yaml,
    check_campaign,
    commented,
    document_of,
    load_campaign,
)
from creamtea.human.making.settings import CampaignDocument, CampaignSettings, declarations, settings_of
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign

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


@pytest.mark.parametrize(
    ("setting", "needed"),
    [
        ("sample.metrics=[bleu]", "sample.kind disagreement"),
        ("sample.strata=[document]", "sample.kind stratified"),
        ("sample.random_share=0.5", "sample.kind disagreement"),
        ("sample.segments_per_page=3", "sample.unit document"),
        ("attention.failing_code=FAIL", "attention.items"),
        ("attention.share=0.5", "attention.failing_code"),
    ],
)
def test_each_setting_says_what_it_needs(folder: Path, setting: str, needed: str) -> None:
    few = "name: a\nstudy: jam\ntest_set: test\nsystems: [a, b]\n"
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
