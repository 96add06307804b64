"""Every study that is shipped is valid, and so is every command that its header gives."""

import gzip
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from marian_folders import make_folder
from typer.main import get_command

from creamtea.cli.main import app
from creamtea.contract.step import StepKind
from creamtea.methods.corpora import filled, pair_parts
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.study.checks import is_of_a_variant
from creamtea.study.loader import LoadedStudy, load_study
from creamtea.study.plan import plan

STUDIES = Path(__file__).parents[2] / "studies"
FILES = sorted(STUDIES.rglob("*.yaml"))
# by the folders that the headers name, DATA_SET/SOURCE-TARGET, or one of all languages for word-level tasks:
# what each paper was tried on
PAPERS = {
    "scones-wmt19": {f"wmt19/{pair}" for pair in ("de-en", "en-de", "fi-en", "en-fi", "lt-en", "en-lt")},
    "scones-ibm3": {"wmt19/de-en"},
    "nvs-wmt20": {"wmt20/en-de", "wmt20/de-en"},
    "nvs-wmt20-ru": {"wmt20/en-ru", "wmt20/ru-en"},
    "nvs-proverbs": {"wmt20/en-de", "wmt20/en-ru"},
    "entmax-g2p": {"DIR"},
    "entmax-inflection": {"DIR"},
    "entmax-mt": {
        *("iwslt17/de-en", "iwslt17/en-de", "kftt/ja-en", "kftt/en-ja"),
        *("wmt16/ro-en", "wmt16/en-ro", "wmt14/en-de"),
    },
}
SENTENCES = "Eins.\nZwei.\n"
WORDS = {"g2p": "a\tb\n", "inflection": "a\tab\tV;PST\n"}


@dataclass(frozen=True)
class Command:
    """A `creamtea` command of a study's header, as the command line reads it."""

    file: Path
    name: str  # run, submit
    options: dict[str, Any]

    @property
    def overrides(self) -> tuple[str, ...]:
        return tuple(self.options["override"] or ())

    def load(self) -> LoadedStudy:
        return loaded(STUDIES.parent / self.options["study"], self.overrides)


@cache
def loaded(path: Path, overrides: tuple[str, ...] = ()) -> LoadedStudy:
    return load_study(path, overrides)


def commands_of(file: Path) -> Iterator[Command]:
    """The commands in the comment at the top of a study; a backslash continues a line."""
    lines = file.read_text(encoding="utf-8").split("\n")
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    comment = "\n".join(line.removeprefix("#") for line in lines[:end]).replace("\\\n", " ")
    for line in comment.split("\n"):
        start = line.find("creamtea ")
        if line.startswith("   ") and start >= 0:
            name, *words = shlex.split(line[start:])[1:]
            command = get_command(app).commands[name]
            yield Command(file, name, command.make_context(name, words).params)


COMMANDS = {
    f"{file.stem}-{number}": command for file in FILES for number, command in enumerate(commands_of(file))
}


def stand_ins(spec: Any) -> dict[str, str]:
    """The files that a study's plain values name, wherever they stand, each with a text of its kind."""
    blocks = spec if isinstance(spec, list) else list(spec.values()) if isinstance(spec, dict) else []
    found = {name: text for block in blocks for name, text in stand_ins(block).items()}
    if not isinstance(spec, dict) or spec.get("kind") == "characters":
        return found
    if spec.get("kind") in WORDS:
        paths = [spec[key] for key in ("train", "dev", "high", "low", "file") if key in spec]
        names = [filled(path, parts) for path in paths for parts in languages_of(spec)]
        return dict.fromkeys(names, WORDS[spec["kind"]])
    if "marian" in spec:
        found[spec["marian"]] = ""  # a folder
    for key in ("source", "target", "idioms", "info", "table", "file"):
        name = spec.get(key)
        if isinstance(name, str):
            lines = SENTENCES.splitlines()
            kinds = {".jsonl": "[]\n" * len(lines), ".tsv": "".join(f"{line}\t{line}\n" for line in lines)}
            found[name] = kinds.get(Path(name).suffix, SENTENCES)
    return found


def languages_of(spec: dict[str, Any]) -> list[dict[str, str]]:
    """What stands for the names in braces in the paths of a corpus or test set of words."""
    of_pairs = [pair_parts(pair) for pair in spec.get("pairs", [])]
    return of_pairs or [{"language": language} for language in spec["languages"]]


def assert_plans_with_files(whole: LoadedStudy, root: Path) -> None:
    """The study is valid where all of its files are there, and reads each of them."""
    texts = stand_ins({key: value for key, value in whole.spec.items() if key != "languages"})
    for name, text in texts.items():
        path = root / name
        if not text:
            make_folder(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    steps = plan(whole.study, root, whole.errors).steps
    assert {name for step in steps for name in step.locations} == texts.keys()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_shipped_study_is_valid_and_says_how_to_run_it(path: Path, tmp_path: Path) -> None:
    whole = loaded(path)
    assert_plans_with_files(whole, tmp_path)
    assert path.parent.name == "papers" or whole.study.name == path.stem
    first = next(commands_of(path))
    assert first.name == ("submit" if path.parent.name == "papers" else "run")
    assert not first.overrides


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_of_a_header_is_of_its_study_and_valid(command: Command, tmp_path: Path) -> None:
    assert (STUDIES.parent / command.options["study"]).samefile(command.file)
    whole = command.load()
    assert_plans_with_files(whole, tmp_path)
    blocks = [*whole.spec["corpora"].values(), *whole.spec["test_sets"].values()]
    assert len({tuple(block["pairs"]) for block in blocks if "pairs" in block}) <= 1


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_header_sets_nothing_outside_of_its_commands(path: Path) -> None:
    overrides = [text for command in commands_of(path) for text in command.overrides]
    assert path.read_text(encoding="utf-8").count("--set ") == len(overrides)


def test_every_study_of_a_paper_is_listed_here() -> None:
    assert {file.stem for file in FILES if file.parent.name == "papers"} == set(PAPERS)


@pytest.mark.parametrize("stem", PAPERS)
def test_the_commands_of_a_header_cover_the_papers_pairs_under_names_of_their_own(stem: str) -> None:
    commands = [command for command in COMMANDS.values() if command.file.stem == stem]
    assert {command.options["data"].as_posix() for command in commands} == PAPERS[stem]
    studies = [command.load().study for command in commands]
    for command, study in zip(commands, studies, strict=True):
        languages = f"{study.languages.source}-{study.languages.target}"
        assert command.options["data"].name == ("DIR" if languages == "mul-mul" else languages)
    assert len({study.name for study in studies}) == len(studies)


def test_entmax_trains_for_the_papers_epochs() -> None:
    for command in COMMANDS.values():
        if command.file.stem == "entmax-mt":
            epochs = {variant.training.max_epochs for variant in command.load().study.variants.values()}
            assert epochs == ({15} if command.options["data"].parent.name == "wmt14" else {100})


def test_the_russian_nvs_study_is_the_german_one_without_idioms() -> None:
    german, russian = (
        loaded(STUDIES / "papers" / name).study for name in ("nvs-wmt20.yaml", "nvs-wmt20-ru.yaml")
    )
    for part in ("variants", "systems", "test_sets", "analyses"):
        ours, theirs = getattr(russian, part), getattr(german, part)
        left_out = ("adapted", "adapted-lexicon", "adapted-nvs", "itds", "recall-idioms", "context")
        assert ours == {name: entry for name, entry in theirs.items() if name not in left_out}
    for part in ("subwords", "baseline", "metrics", "alignment", "recall", "latency", "resources"):
        assert getattr(russian, part) == getattr(german, part)
    corpus, filters = german.corpora["wmt20"], {"held_out": ["newstest2020"]}
    filters = corpus.filters.model_copy(update=filters)
    assert russian.corpora == {"wmt20": corpus.model_copy(update={"filters": filters})}


@pytest.mark.parametrize(("pair", "stem"), [("en-de", "nvs-wmt20"), ("en-ru", "nvs-wmt20-ru")])
def test_the_proverbs_need_no_training_of_their_own(pair: str, stem: str) -> None:
    shared = ("corpus", "subwords", "align", "train")
    own, trained = (
        {
            node.node: node.key
            for command in COMMANDS.values()
            if command.file.stem == name and command.options["data"].name == pair
            for node in plan(command.load().study, None).nodes
            if node.node.split("/")[0] in shared
        }
        for name in ("nvs-proverbs", stem)
    )
    assert set(own) == {"corpus/wmt20", "subwords/wmt20/joint", "align/wmt20/joint", "train/nvs/1"}
    assert own.items() <= trained.items()


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_plan_is_in_order_and_names_each_step_and_node_once(path: Path) -> None:
    study = loaded(path).study
    planned = plan(study, None)
    names = [node.node for node in planned.nodes]
    assert len(names) == len(set(names))
    kinds: dict[str, StepKind[Any]] = {}  # of the steps so far
    for step in planned.steps:
        assert {key for keys in step.inputs.values() for key in keys} <= kinds.keys()
        assert step.key not in kinds
        assert json.loads(json.dumps(step.params)) == step.params
        kinds[step.key] = STEP_KINDS[step.kind]
    imported = {name for name, system in study.systems.items() if system.model is not None}
    for node in planned.nodes:
        if node.labels.get("system") not in imported:  # such a system has no variant
            assert is_of_a_variant(kinds[node.key]) == ("variant" in node.labels), node.node


# ---------------------------------------------------------------- the demo's text


def test_tatoeba_has_two_texts_on_each_line() -> None:
    *lines, rest = (STUDIES / "tatoeba" / "en-de.tsv").read_text("utf-8").split("\n")
    assert (len(lines), rest) == (12104, "")
    assert all(len([text for text in line.split("\t") if text]) == 2 for line in lines)


def test_after_the_demo_the_study_of_known_faults_trains_nothing() -> None:
    def trainings(name: str) -> set[str]:
        planned = plan(load_study(STUDIES / name).study, STUDIES)
        return {step.key for step in planned.steps if step.kind == "train"}

    assert trainings("blame.yaml") < trainings("demo.yaml")
