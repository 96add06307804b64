"""Scorers in a plan: what enters the keys, what does not, and a scorer that the machine lacks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.scorers import content_digest, find_scorer, read_scorers
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

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


def test_a_scorer_that_reranks_is_pinned_by_the_decode_step(
    write: Write, machine: Machine, tmp_path: Path
) -> None:
    def decode() -> Any:
        search = "search: {kind: rerank, metric: {kind: command, scorer: tea}}"
        loaded = load_study(write(("greedy: {variant: softmax}", f"greedy: {{variant: softmax, {search}}}")))
        planned = plan(loaded.study, tmp_path, loaded.errors)
        (key,) = [node.key for node in planned.nodes if node.node == "decode/greedy/1/test"]
        (step,) = [step for step in planned.steps if step.key == key]
        return step

    machine()
    first = decode()
    machine(version="2")
    second = decode()
    assert first.params["scorer"]["version"] == "1"
    assert first.key != second.key


@pytest.fixture
def key(write: Write, tmp_path: Path) -> Callable[..., str]:
    """The key of the score step of a study with this metric."""

    def of(metric: str = "scorer: tea") -> str:
        path = write(("baseline: greedy", f"baseline: greedy\nmetrics: [{{kind: command, {metric}}}]"))
        loaded = load_study(path)
        planned = plan(loaded.study, tmp_path, loaded.errors)
        (found,) = [node.key for node in planned.nodes if node.node.startswith("score/greedy/1/test/tea")]
        return found

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


def test_a_script_that_is_the_program_is_pinned_and_an_interpreter_is_not(
    machine: Machine, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    digests = []
    for content in (b"#!/bin/sh\n", b"#!/bin/sh\n:\n", b"\x7fELF one", b"\x7fELF two"):
        program.write_bytes(content)
        program.chmod(0o755)
        machine(command=[str(program)])
        digests.append(find_scorer("tea", False).pins().digest)
    assert len(set(digests[:3])) == 3
    assert digests[2] == digests[3]


def test_the_label_of_an_error_metric_says_that_lower_is_better(
    machine: Machine, write: Write, tmp_path: Path
) -> None:
    machine()
    metric = "{kind: command, scorer: tea, display: {better: lower}}"
    study = load_study(
        write(("baseline: greedy", f"baseline: greedy\nmetrics: [{{kind: bleu}}, {metric}]"))
    ).study
    labels = {node.node: node.labels for node in plan(study, tmp_path).nodes}
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
    assert "score/nvs/1/test/tea" in {node.node for node in plan(load_study(path).study, None).nodes}


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
def test_other_arguments_need_not_be_files(arguments: list[str], machine: Machine, tmp_path: Path) -> None:
    path = machine(command=[sys.executable, *arguments])
    assert read_scorers(path)["tea"].mistake() == ("", "")


def test_arguments_may_be_paths_within_a_container(machine: Machine, tmp_path: Path) -> None:
    launcher = tmp_path / "docker"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    path = machine(command=[str(launcher), "run", "-i", "lab", "/app/score.py"])
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


def test_a_folder_with_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"link cannot be read \(No such file"):
        content_digest(tmp_path)


def test_what_links_to_folders_lead_to_is_part_of_the_content(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    for place in (folder / "own", elsewhere):
        place.mkdir(parents=True)
        (place / "weights").write_text("1")
    plain = content_digest(folder)
    (folder / "linked").symlink_to(elsewhere)
    linked = content_digest(folder)
    (elsewhere / "weights").write_text("2")
    assert len({plain, linked, content_digest(folder)}) == 3


def test_links_in_a_loop_and_twice_to_one_folder_end_and_count(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "weights").write_text(name)
    (folder / "a" / "up").symlink_to(folder)
    (folder / "z").symlink_to("a")
    one = content_digest(folder)
    (folder / "z").unlink()
    (folder / "z").symlink_to("b")
    assert content_digest(folder) != one
