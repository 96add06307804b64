"""`creamtea programme`: what users get wrong, and the file of links."""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from sqlalchemy import func, select

from creamtea.human import rating
from creamtea.human.rating import raters
from creamtea.store.tables import AccessToken, Rater

PROGRAMME = """
name: spring
texts: {folder: .}
protocol: {kind: da}
controls: {bad_references: 0, repeats: 0}
directions: {en-de: {}, en-nl: {}}
"""


@pytest.fixture
def file(creamtea: Any, tmp_path: Path) -> Path:
    for pair in ("en-de", "en-nl"):
        (tmp_path / "system-outputs" / pair).mkdir(parents=True)
        (tmp_path / "sources").mkdir(exist_ok=True)
        (tmp_path / "sources" / f"{pair}.txt").write_text("one\ntwo\n")
        for system in ("A", "B"):
            (tmp_path / "system-outputs" / pair / f"{system}.txt").write_text(f"{system} 1\n{system} 2\n")
    (tmp_path / "spring.yaml").write_text(PROGRAMME)
    return tmp_path / "spring.yaml"


def people(creamtea: Any) -> tuple[int, int]:
    """How many raters and links there are."""
    with creamtea.database() as database, database.session() as session:
        counts = [session.scalar(select(func.count()).select_from(row)) for row in (Rater, AccessToken)]
    return counts[0] or 0, counts[1] or 0


def made(creamtea: Any, file: Path) -> None:
    for command in (("create", str(file)), ("launch", "spring")):
        assert creamtea("programme", *command).returncode == 0


def test_links_of_all_raters_are_in_one_private_file(creamtea: Any, file: Path) -> None:
    made(creamtea, file)
    links = file.parent / "links.csv"
    # en-nl has no places for 40 raters, so that nobody of en-de is invited, either
    command = ("programme", "links", "spring", "-o", str(links))
    said = creamtea.refused(*command, "--count", "2", "--count", "en-nl=40")
    assert "direction en-nl: campaign 'spring-en-nl' has pages for" in said
    assert not links.exists()
    assert people(creamtea) == (0, 0)
    done = creamtea("programme", "links", "spring", "--count", "en-nl=1", "--count", "2", "-o", str(links))
    assert done.returncode == 0, done.stderr
    assert "3 links" in done.stdout
    assert links.stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader(links.open(encoding="utf-8")))
    shown = [(row["direction"], row["rater"]) for row in rows]
    assert shown == [("en-de", "rater-01"), ("en-de", "rater-02"), ("en-nl", "rater-01")]
    assert len({row["link"] for row in rows}) == 3
    said = creamtea.refused("programme", "links", "spring", "--count", "1", "-o", str(links))
    assert "give a new file" in said
    assert len(list(csv.DictReader(links.open(encoding="utf-8")))) == 3
    (file.parent / "named.txt").write_text("en-de\tanna\n\nen-nl\tanna\n")
    named = ["--raters", str(file.parent / "named.txt"), "--surplus", "-o", str(file.parent / "named.csv")]
    assert creamtea("programme", "links", "spring", *named).returncode == 0
    assert people(creamtea) == (5, 5)


def test_wrong_input_is_one_message_and_exit_code_2(creamtea: Any, file: Path) -> None:
    assert creamtea("programme", "create", str(file)).returncode == 0
    (file.parent / "people.txt").write_text("anna\n")
    (file.parent / "empty.txt").write_text("\n")
    links = "links spring -o l.csv"
    for command, message in {
        links: "give --count N or --raters FILE",
        f"{links} --count en-dee=2": "did you mean en-de?",
        f"{links} --raters people.txt": "line 1: found",
        f"{links} --raters empty.txt": "names nobody",
        "validate spring.yaml --set baseline=zzz": "directions en-de, en-nl: ",
        "status sprung": "there is no programme 'sprung'; there are: spring",
        "create spring.yaml": "campaign 'spring-en-de' already exists",
        "create spring.yaml --set sample.itms=1": "did you mean items?",
        "create spring.yaml --set 'directions.en-de={name: x}'": "allowed no name: a direction",
    }.items():
        assert message in creamtea.refused("programme", *shlex.split(command))


def test_a_script_reads_the_mistakes_of_all_directions(creamtea: Any, file: Path) -> None:
    shared, own = "baseline=zzz", "directions.en-nl.baseline=yyy"
    command = ("programme", "validate", str(file), "--json", "--set", shared)
    for more, mistakes in (((), 1), (("--set", own), 2)):
        refused = creamtea(*command, *more)
        found = json.loads(refused.stdout)
        assert (refused.returncode, found["valid"], len(found["mistakes"])) == (2, False, mistakes)
    found = json.loads(creamtea("programme", "validate", str(file), "--json").stdout)
    directions = {"en-de": ["A", "B"], "en-nl": ["A", "B"]}
    assert found == {"valid": True, "name": "spring", "directions": directions}


def test_a_system_that_a_direction_lacks_is_named(creamtea: Any, file: Path) -> None:
    """Its file may have a wrong name there."""
    outputs = file.parent / "system-outputs/en-nl"
    (outputs / "B.txt").rename(outputs / "b.txt")
    for command in ("validate", "create"):
        done = creamtea("programme", command, str(file))
        assert "note: not in all directions: B (1 of 2), b (1 of 2)" in done.stdout


def test_a_direction_that_is_no_longer_in_the_file_is_named(creamtea: Any, file: Path) -> None:
    """It would be launched with the others."""
    assert creamtea("programme", "create", str(file)).returncode == 0
    file.write_text(PROGRAMME.replace(", en-nl: {}", ""))
    done = creamtea("programme", "create", str(file), "--replace")
    assert "programme spring: 1 new draft" in done.stdout
    assert "`creamtea campaign rm spring-en-nl` removes it" in done.stdout


def test_a_direction_joins_those_that_people_rate(creamtea: Any, file: Path) -> None:
    made(creamtea, file)
    file.write_text(PROGRAMME.replace("{en-de: {}", "{en-de: {}, new.en-de: {texts: {languages: en-de}}"))
    assert "leave the direction out of the file" in creamtea.refused("programme", "create", str(file))
    file.write_text(PROGRAMME.replace("{en-de: {}, en-nl: {}}", "{new.en-de: {texts: {languages: en-de}}}"))
    done = creamtea("programme", "create", str(file))
    assert "programme spring: 1 new draft" in done.stdout
    assert done.stdout.count(", launched") == 2
    assert "campaign rm" not in done.stdout  # people rate the others
    assert "campaign preview spring-new.en-de" in done.stdout


def test_closed_directions_get_no_links(creamtea: Any, file: Path) -> None:
    made(creamtea, file)
    assert creamtea("campaign", "close", "spring-en-nl").returncode == 0
    links = file.parent / "links.csv"
    command = ("programme", "links", "spring", "-o", str(links))
    assert "'spring-en-nl' is closed" in creamtea.refused(*command, "--count", "1", "--count", "en-nl=1")
    assert people(creamtea) == (0, 0)
    done = creamtea(*command, "--count", "1")
    assert "no links for en-nl: closed" in done.stderr
    assert [row["direction"] for row in csv.DictReader(links.open(encoding="utf-8"))] == ["en-de"]
    assert creamtea("programme", "close", "spring").returncode == 0
    again = (*command[:-1], str(file.parent / "again.csv"), "--count", "1")
    assert "'spring-en-de' is closed" in creamtea.refused(*again)


def test_links_to_drafts_say_that_they_are(creamtea: Any, file: Path) -> None:
    assert creamtea("programme", "create", str(file)).returncode == 0
    links = str(file.parent / "links.csv")
    done = creamtea("programme", "links", "spring", "-o", links, "--count", "1")
    assert "`creamtea programme launch spring`" in done.stderr


def test_a_programme_is_launched_closed_and_removed_as_a_whole(creamtea: Any, file: Path) -> None:
    assert creamtea("programme", "create", str(file)).returncode == 0
    assert "no direction is launched" in creamtea.refused("programme", "close", "spring")
    assert creamtea("campaign", "launch", "spring-en-nl").returncode == 0
    refused = creamtea("programme", "rm", "spring", "--yes")  # en-de is a draft, and stays
    assert (refused.returncode, "campaign spring-en-nl is launched" in refused.stderr) == (2, True)
    assert [each["name"] for each in creamtea.json("campaign", "list")] == ["spring-en-de", "spring-en-nl"]
    closed = creamtea("programme", "close", "spring", "--reason", "enough")
    assert closed.stdout == "en-de is still a draft\nen-nl is closed\n"
    assert creamtea.json("campaign", "log", "spring-en-nl")[-1]["reason"] == "enough"
    assert creamtea("programme", "rm", "spring", "--yes").returncode == 0
    assert creamtea.json("campaign", "list") == []
    # a launch goes on where it ended
    assert creamtea("programme", "create", str(file)).returncode == 0
    assert creamtea("campaign", "launch", "spring-en-de").returncode == 0
    done = creamtea("programme", "launch", "spring")
    assert done.returncode == 0
    assert "en-nl is launched" in done.stdout
    assert "en-de was launched before" in done.stdout
    status = creamtea.json("programme", "status", "spring")
    states = [(each["direction"], each["campaign"]["state"]) for each in status]
    assert states == [("en-de", "launched"), ("en-nl", "launched")]
    creamtea("programme", "close", "spring", "--reason", "enough")
    removed = creamtea("programme", "rm", "spring", "--yes")
    assert removed.stdout == "removed programme spring: 2 directions and 0 item ratings\n"


def test_a_direction_without_ratings_keeps_no_other_from_being_exported(
    creamtea: Any, file: Path, tmp_path: Path
) -> None:
    made(creamtea, file)
    command = ("programme", "export", "spring", "--format", "appraise", "-o")
    assert "nothing to export" in creamtea.refused(*command, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    with creamtea.database() as database:
        anna = raters.add(database, "spring-en-de", "test", pseudonym="anna")
        raters.consent(database, anna, ())
        work = rating.next_item(database, anna)
        assert work is not None
        rating.submit(database, anna, work.assignment_id, [70] * len(work.outputs))
    done = creamtea(*command, str(tmp_path / "some"))
    assert done.returncode == 0
    assert "en-nl: left out" in done.stdout
    assert [folder.name for folder in (tmp_path / "some").iterdir()] == ["en-de"]


def test_the_schema_takes_what_validate_takes(creamtea: Any, file: Path) -> None:
    schema = json.loads(creamtea("programme", "schema").stdout)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    whole = yaml.safe_load(PROGRAMME)
    assert validator.is_valid(whole)
    assert validator.is_valid(whole | {"directions": {"en-de": None, "en-nl": {"sample": {"items": 3}}}})
    for wrong in (
        {"directions": {}},
        {"directions": {"en de": {}}},
        {"directions": {"en-de": {"itms": 3}}},
        {"directions": {"en-de": {"name": "x"}}},
        {"sample": {"itms": 3}},
    ):
        assert not validator.is_valid(whole | wrong), wrong
    assert not validator.is_valid({key: value for key, value in whole.items() if key != "directions"})
