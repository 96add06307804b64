"""What people get wrong, through the command line: the whole message on standard error and the exit code.

Mistakes in studies and texts are in tests/study: here is one of each kind.
"""

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Done, call

from creamtea.store.schema import upgrade

STUDY = """\
name: small
languages: {source: en, target: de}
corpora:
  text:
    kind: files
    train: [{source: train.en, target: train.de}]
    dev: {source: dev.en, target: dev.de}
subwords:
  joint: {kind: bpe, vocabulary: 60}
variants:
  softmax:
    corpus: text
    subwords: joint
    objective: {kind: softmax}
    training: {max_updates: 1}
systems:
  greedy: {variant: softmax}
  lexicon: {variant: softmax, selection: {kind: lexicon, k: 5}}
baseline: greedy
test_sets:
  test: {kind: files, source: test.en, target: test.de}
"""
RUN = ["run", "study.yaml", "--executor", "inline", "--quiet"]
Change = Callable[[], None]
Run = Callable[..., Done]


def edit(old: str, new: str) -> Change:
    def change() -> None:
        text = Path("study.yaml").read_text()
        assert text.count(old) == 1
        Path("study.yaml").write_text(text.replace(old, new))

    return change


def write(name: str, content: bytes) -> Change:
    return lambda: Path(name).write_bytes(content) and None


def empty_database() -> None:
    Path("home").mkdir()
    upgrade("sqlite:///home/creamtea.db")


def root_in_a_file() -> None:
    Path("home").mkdir()
    Path("home/artefacts").touch()


ONE = "\n1 mistake in study.yaml"
# the command → the beginning of its message after "creamtea: "
WRONG_COMMANDS = {
    "status --watch --json": "--watch draws tables, and --json prints one state: give one of them",
    "campaign create first --study demo --systems a,b": "the options: test_set: required key is missing"
    "\n1 mistake in the options",
    "run nosuch.yaml": "nosuch.yaml: no such file; give the path of a study (.yaml)",
    "run study.yaml --quiet --set variants.softmax.seed=3": "--set variants.softmax.seed=3: "
    "variants.softmax.seed: found an unknown key, allowed one of corpus, subwords, objective, architecture, "
    "nvs, training, start_from, alignment_corpus, seeds, resources (did you mean seeds?)" + ONE,
    "run study.yaml --executor slurm": "--executor slurm: unknown executor; use ray or inline",
    "report nosuch": "there is no database at {place}/home/creamtea.db; ",
    f"run study.yaml --data {'x' * 300}": f"{'x' * 300}: File name too long; name another path",
    "compare --source test.en --reference test.de caf\udce9.de": r"caf\udce9.de: the path is not UTF-8; "
    "give the file another name",
    "compare --source nosuch/test.en --reference test.de dev.de": "--source nosuch/test.en: there is no "
    "folder nosuch",
    "export small greedy --to safetensors caf\udce9": r"FOLDER caf\udce9: the name is not UTF-8; give",
    "blame small rated --below inf": "--below inf: give a number; ",
}
# what is wrong: (arguments, how it comes about, the message, with {place} for the folder)
CASES: dict[str, tuple[list[str], Change, str]] = {
    "unknown key": (
        RUN,
        edit("vocabulary: 60", "vocabulary: 60, seed: 1"),
        "study.yaml:9: subwords.joint.seed: found an unknown key, allowed one of kind, vocabulary, "
        "character_coverage" + ONE,
    ),
    "idioms that are no annotation": (
        RUN,
        edit("target: test.de}", "target: test.de, limit: 1, idioms: test.en}"),
        'study.yaml:21: test_sets.test.idioms: found "test.en", line 1: Invalid JSON: expected value at line '
        '1 column 1, allowed a JSON list of {"name": …, "source": [from, to], "target": [from, to] or a '
        "text} in each line" + ONE,
    ),
    "broken YAML": (
        RUN,
        write("study.yaml", b"name: [\n"),
        "study.yaml:2: found a bracket, a comma or a mark where there must be a value, allowed valid YAML"
        + ONE,
    ),
    "an artefact root that cannot be written": (
        RUN,
        root_in_a_file,
        "cannot write artefacts to {place}/home/artefacts: Not a directory; set CREAMTEA_ARTEFACTS to a "
        "folder or address that can be written",
    ),
    "a name that is not UTF-8": (
        ["report", "caf\udce9"],
        empty_database,
        r"no study 'caf\udce9'; the database has no study yet",
    ),
    "a number that no row can have": (
        ["report", "9" * 30],
        empty_database,
        f"no study '{'9' * 30}'; the database has no study yet; `creamtea run STUDY.yaml` makes one",
    ),
    **{words: (words.split(), lambda: None, message) for words, message in WRONG_COMMANDS.items()},
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command beside the study and its texts."""
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(STUDY)
    for part, count in (("train", 30), ("dev", 5), ("test", 5)):
        for side in ("en", "de"):
            Path(f"{part}.{side}").write_text("".join(f"line {i} of {part}\n" for i in range(count)))
    own = {name: text for name, text in os.environ.items() if not name.startswith(("CREAMTEA_", "RAY_"))}
    return lambda *arguments, **more: call({**own, "CREAMTEA_HOME": "home", **more}, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_one_message_and_exit_code_2(case: str, run: Run, tmp_path: Path) -> None:
    arguments, change, message = CASES[case]
    change()
    done = run(*arguments)
    assert done.returncode == 2
    told, wanted = done.stderr.splitlines(), message.replace("{place}", str(tmp_path)).splitlines()
    assert told[0].startswith(f"creamtea: {wanted[0]}")  # a remedy may follow
    assert told[1:] == wanted[1:]


def test_a_number_that_no_column_or_clock_holds(run: Run) -> None:
    submit = "submit study.yaml --executor inline --priority 99999999999"
    for command in ("gc --older-than 1e300", submit, "links revoke 99999999999"):
        done = run(*command.split(), CREAMTEA_CONTROLLER="service")
        assert (done.returncode, "Invalid value for" in done.stderr) == (2, True), command


def test_a_port_in_use(run: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("serve", "--port", str(port))
    (told,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert told.startswith("creamtea: ")
    assert str(port) in told
    assert f"--port {port + 1}" in told


def test_a_vocabulary_larger_than_the_data_allows_fails_its_step(run: Run) -> None:
    edit("vocabulary: 60", "vocabulary: 6000")()
    done = run(*RUN)
    assert done.returncode == 1
    *warnings, failed, left_out = done.stderr.splitlines()
    assert {line.partition(":")[0] for line in warnings} == {"warning"}
    assert failed.startswith("subwords/text/joint: ")
    assert left_out.startswith("12 steps ")
    assert {"6000", "94"} <= set(re.findall(r"vocabulary (?:to )?(\d+)", " ".join(done.stdout.split())))


def test_files_are_relative_to_the_study_or_to_data(run: Run) -> None:
    study = str(Path(__file__).parents[2] / "studies" / "demo.yaml")
    assert run("validate", study).returncode == 0
    done = run("validate", study, "--data", ".")
    assert (done.returncode, "no such file" in done.stderr) == (2, True)
