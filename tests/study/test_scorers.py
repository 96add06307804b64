"""Scorers in a plan: what enters the keys, what does not, and a scorer that the machine lacks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from study_plans import planned

from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.scorers import content_digest, find_scorer, read_scorers

Write = Callable[..., Path]
Machine = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Sets up a scorer `tea` of this machine: a script, and what else its entry says."""

    def write(script: str = "print()", folder: str = "opt", **entry: Any) -> Path:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / "score.py").write_text(script)
        scorer = {"command": [sys.executable, str(place / "score.py")], "version": "1", **entry}
        path = place / "scorers.yaml"
        path.write_text(yaml.safe_dump({"scorers": {"tea": scorer}}))
        monkeypatch.setenv("CREAMTEA_SCORERS", str(path))
        return path

    return write


def test_a_scorer_that_reranks_is_pinned_by_the_decode_step(write: Write, machine: Machine) -> None:
    search = "search: {kind: rerank, metric: {kind: command, scorer: tea}}"
    path = write(("greedy: {variant: softmax}", f"greedy: {{variant: softmax, {search}}}"))
    machine()
    first = planned(path).steps["decode/greedy/1/test"]
    machine(version="2")
    second = planned(path).steps["decode/greedy/1/test"]
    assert first.params["scorer"]["version"] == "1"
    assert first.key != second.key


@pytest.fixture
def key(write: Write, tmp_path: Path) -> Callable[..., str]:
    """The key of the score step of a study with this metric."""

    def of(metric: str = "scorer: tea") -> str:
        path = write(("baseline: greedy", f"baseline: greedy\nmetrics: [{{kind: command, {metric}}}]"))
        result = planned(path, root=tmp_path)
        (node,) = result.named("score/greedy/1/test/tea")
        return result.keys[node]

    return of


Key = Callable[..., str]


def test_a_missing_list_of_scorers_is_named_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scorers.yaml"
    monkeypatch.setenv("CREAMTEA_SCORERS", str(path))
    with pytest.raises(InputError) as error:
        find_scorer("tea", with_model=False)
    assert str(error.value).startswith(f"CREAMTEA_SCORERS: no such file {path}")
    assert "study" not in str(error.value).replace(str(path), "")


def test_what_the_scores_depend_on_enters_the_key(machine: Machine, key: Key, tmp_path: Path) -> None:
    extra = tmp_path / "lexicon"
    extra.mkdir()
    (extra / "words").write_text("tea")
    machine()
    keys = [key()]
    for change in (
        {"version": "2"},
        {"script": "print(1)"},
        {"files": [str(extra)]},
        {"command": [sys.executable, str(tmp_path / "opt" / "score.py"), "--lower"]},
    ):
        machine(**change)
        keys.append(key())
    machine(files=[str(extra)])
    (extra / "words").write_text("coffee")
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_where_things_are_and_how_they_are_shown_does_not(machine: Machine, key: Key) -> None:
    machine()
    first = key()
    machine(folder="elsewhere", timeout_minutes=5.0, environment={"HF_TOKEN": "hf_secret"})
    assert key() == first
    assert key("scorer: tea, display: {title: Tea, digits: 1, better: lower}") == first


def test_a_model_is_pinned_by_its_content_or_its_name(machine: Machine, key: Key, tmp_path: Path) -> None:
    path = machine()
    file = yaml.safe_load(path.read_text())
    file["scorers"]["tea"]["command"].append("{model}")
    path.write_text(yaml.safe_dump(file))
    keys = [key("scorer: tea, model: models/T5")]
    model = tmp_path / "models" / "T5" / "variables"
    model.mkdir(parents=True)
    for content in ("one", "two"):
        (model / "weights").write_text(content)
        keys.append(key("scorer: tea, model: models/T5"))
    (model / "weights").rename(model / "other")
    keys.append(key("scorer: tea, model: models/T5"))
    assert len(set(keys)) == 4


def executable(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def test_a_script_that_is_the_program_is_pinned_and_an_interpreter_is_not(
    machine: Machine, tmp_path: Path
) -> None:
    digests = []
    for content in (b"#!/bin/sh\n", b"#!/bin/sh\n:\n", b"\x7fELF one", b"\x7fELF two"):
        machine(command=[executable(tmp_path / "program", content)])
        digests.append(find_scorer("tea", False).pins().digest)
    assert len(set(digests[:3])) == 3
    assert digests[2] == digests[3]


def test_the_label_of_an_error_metric_says_that_lower_is_better(machine: Machine, write: Write) -> None:
    machine()
    metric = "{kind: command, scorer: tea, display: {better: lower}}"
    path = write(("baseline: greedy", f"baseline: greedy\nmetrics: [{{kind: bleu}}, {metric}]"))
    labels = planned(path).labels
    assert labels["score/nvs/1/test/tea"]["better"] == "lower"
    assert "better" not in labels["score/nvs/1/test/bleu"]


# ---------------------------------------------------------------- mistakes


def refusal(key: Key, metric: str = "scorer: tea") -> str:
    with pytest.raises(InputError) as caught:
        key(metric)
    return str(caught.value)


def test_a_machine_without_scorers(key: Key, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREAMTEA_SCORERS", raising=False)
    said = refusal(key)
    assert 'metrics[0].scorer: found "tea", allowed a scorer of this machine, and it has none' in said
    assert "CREAMTEA_SCORERS" in said
    assert said.startswith("study.yaml:")


def test_without_its_files_a_study_needs_no_scorers(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREAMTEA_SCORERS", raising=False)
    path = write(("baseline: greedy", "baseline: greedy\nmetrics: [{kind: command, scorer: tea}]"))
    assert "score/nvs/1/test/tea" in planned(path, files=False).keys


def test_an_unknown_scorer(machine: Machine, key: Key) -> None:
    path = machine()
    assert f'found "teas", allowed a scorer of {path}: tea (did you mean tea?)' in refusal(
        key, "scorer: teas"
    )


@pytest.mark.parametrize(
    ("entry", "found", "allowed"),
    [
        ({"command": ["python", "x"]}, '"python" as its program', "the absolute path of a program"),
        ({"command": ["/nowhere/python"]}, '"/nowhere/python" as its program', "absolute path"),
        ({"command": ["/tmp"]}, '"/tmp" as its program', "absolute path"),
        (
            {"command": [sys.executable, "-I", "/nowhere/score.py"]},
            '"/nowhere/score.py" as the script of its command',
            "the absolute path of a script",
        ),
        (
            {"command": [sys.executable, "-W", "a::b.C", "lab/score.py"]},
            '"lab/score.py" as the script of its command',
            "its absolute path; it runs in an empty folder",
        ),
        ({"files": ["/nowhere"]}, '"/nowhere" in its files', "absolute paths of files and folders"),
        ({"files": ["score.py"]}, '"score.py" in its files', "absolute paths"),
    ],
)
def test_a_scorer_that_is_not_all_there(
    entry: dict[str, Any], found: str, allowed: str, machine: Machine, key: Key
) -> None:
    path = machine(**entry)
    said = refusal(key)
    assert f'found "tea", which has {found} in {path}, allowed' in said
    assert allowed in said


def test_a_script_in_the_current_folder_is_named_by_its_absolute_path(
    machine: Machine, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(command=[sys.executable, "score.py"])
    monkeypatch.chdir(tmp_path / "opt")
    _, allowed = read_scorers(tmp_path / "opt" / "scorers.yaml")["tea"].mistake()
    assert allowed == f"its absolute path, {tmp_path}/opt/score.py; it runs in an empty folder"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "lab.score", "/to/be/made.json"],
        ["-Im", "lab.score"],
        ["-c", "print(1/2)"],
        ["{model}/score.py"],
        ["words", "/to/be/made.json"],
    ],
)
def test_other_arguments_need_not_be_files(arguments: list[str], machine: Machine) -> None:
    assert read_scorers(machine(command=[sys.executable, *arguments]))["tea"].mistake() == ("", "")


def test_arguments_may_be_paths_within_a_container(machine: Machine, tmp_path: Path) -> None:
    launcher = executable(tmp_path / "docker", b"#!/bin/sh\n")
    path = machine(command=[launcher, "run", "-i", "lab", "/app/score.py"])
    assert read_scorers(path)["tea"].mistake() == ("", "")


def test_a_model_and_its_place_in_the_command_go_together(machine: Machine, key: Key) -> None:
    machine()
    said = refusal(key, "scorer: tea, model: some/model")
    assert '"tea" with a model, allowed this scorer without a `model`' in said
    machine(command=[sys.executable, "{model}"])
    assert '"tea" without a model, allowed this scorer with a `model`' in refusal(key)


@pytest.mark.parametrize("model", ['"--config=/etc/passwd"', '"a\\nb"', '"/"', '""'])
def test_a_model_cannot_be_an_option(model: str, machine: Machine, key: Key) -> None:
    machine(command=[sys.executable, "{model}"])
    allowed = "allowed a name or path that does not begin with -"
    assert allowed in refusal(key, f"scorer: tea, model: {model}")
    assert allowed in refusal(key, f"kind: comet, model: {model}")


@pytest.mark.parametrize(
    "metric",
    [
        "scorer: tea, command: [rm, x]",
        "scorer: ../tea",
        "scorer: [tea]",
        "scorer: tea, display: {digits: 99}",
    ],
)
def test_a_study_says_no_more_than_it_may(metric: str, machine: Machine, key: Key) -> None:
    machine()
    assert "metrics[0]" in refusal(key, metric)


# ---------------------------------------------------------------- the scorers' file


def test_every_mistake_of_the_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "scorers.yaml"
    path.write_text("scorers:\n  tea:\n    command: []\n    timeout_minutes: 0\n    shell: true\n")
    with pytest.raises(StudyErrors) as caught:
        read_scorers(path)
    lines = str(caught.value).splitlines()
    assert f"{path}:3: scorers.tea.command: found a list of 0, allowed at least 1 entry" in lines
    assert any(line.startswith(f"{path}:4: scorers.tea.timeout_minutes:") for line in lines)
    assert any("shell: found an unknown key" in line for line in lines)
    assert any("version: required key is missing" in line for line in lines)
    assert lines[-1] == f"4 mistakes in {path}"


def test_files_that_cannot_be_trusted_or_read(
    machine: Machine, key: Key, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = machine()
    path.chmod(0o666)
    assert "every user of this machine may change it" in refusal(key)
    monkeypatch.setenv("CREAMTEA_SCORERS", "scorers.yaml")
    assert refusal(key) == "CREAMTEA_SCORERS must be an absolute path, not 'scorers.yaml'"
    monkeypatch.setenv("CREAMTEA_SCORERS", str(tmp_path / "none.yaml"))
    assert str(tmp_path / "none.yaml") in refusal(key)


def test_an_empty_file_shows_what_belongs_into_it(tmp_path: Path) -> None:
    path = tmp_path / "scorers.yaml"
    path.write_text("")
    with pytest.raises(StudyErrors, match=r"a block of keys \(scorers\)"):
        read_scorers(path)


def test_what_links_lead_to_is_part_of_the_content(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    for place in (folder / "a", folder / "b", elsewhere):
        place.mkdir(parents=True)
        (place / "weights").write_text(place.name)
    digests = [content_digest(folder)]
    (folder / "a" / "up").symlink_to(folder)  # a loop
    for target in ("a", "b", elsewhere):  # twice to one folder, then to another
        (folder / "z").unlink(missing_ok=True)
        (folder / "z").symlink_to(target)
        digests.append(content_digest(folder))
    (elsewhere / "weights").write_text("2")
    digests.append(content_digest(folder))
    assert len(set(digests)) == len(digests)
    (folder / "z").unlink()
    (folder / "z").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"z cannot be read \(No such file"):
        content_digest(folder)
