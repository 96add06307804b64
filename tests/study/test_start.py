"""`creamtea init`: a study that is valid and fits its text."""

import gzip
import json
import os
import random
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from creamtea.cli.main import app
from creamtea.errors import InputError
from creamtea.study import start
from creamtea.study.loader import LoadedStudy, load_study
from creamtea.study.plan import plan
from creamtea.study.start import (
    InitOptions,
    Pair,
    Recipe,
    Timing,
    draw_lines,
    in_words,
    recipe_for,
    study_name,
)
from creamtea.study.survey import Side, Survey, bare, survey, usable_pairs
from creamtea.study.warnings import warnings_of
from creamtea_workers.corpora.subwords import train_subwords

WORDS = ["tea", "jam", "cream", "scone", "milk", "sugar", "cup", "plate", "spoon", "table"]


Write = Callable[..., None]


def sentences(count: int, seed: int = 1) -> list[str]:
    """All different."""
    draw = random.Random(seed)
    return [f"{' '.join(draw.choices(WORDS, k=draw.randint(12, 30)))} {number}." for number in range(count)]


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes NAME.en and NAME.de into the (new) current folder."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, lines: list[str], targets: list[str] | None = None) -> None:
        Path(f"{name}.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        others = [line.upper() for line in lines] if targets is None else targets
        Path(f"{name}.de").write_text("".join(f"{line}\n" for line in others), encoding="utf-8")

    return write


def init(*options: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["init", *options, "--json", "--no-timing"], catch_exceptions=False)
    assert done.exit_code == 0
    result: dict[str, Any] = json.loads(done.stdout)
    return result


TRAIN = ("--source", "train.en", "--target", "train.de")


def loaded(path: str = "study.yaml", root: Path = Path()) -> LoadedStudy:
    """Valid, with its files, and without a warning."""
    study = load_study(Path(path))
    assert warnings_of(study.study, plan(study.study, root, study.errors), root, study.place_of) == []
    return study


def refused(words: str, *options: str) -> None:
    with pytest.raises(InputError, match=words):
        init(*options)


def all_files() -> dict[Path, bytes | None]:
    """Every path below the current folder, with its content."""
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


@pytest.mark.parametrize("pairs", [700, 3000])
def test_its_study_is_valid_and_gives_no_warning(pairs: int, text: Write) -> None:
    text("train", sentences(pairs))
    init(*TRAIN)
    study = loaded().study
    assert (study.languages.source, study.languages.target) == ("en", "de")
    training = study.variants["softmax"].training
    assert (training.schedule, training.keep) == ("linear", "last"), "the model at the end of the schedule"


def test_columns_give_the_study_that_their_texts_give(text: Write) -> None:
    text("train", sentences(700))
    sides = [Path(f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")]
    rows = ("\t".join((str(at), *pair)) for at, pair in enumerate(zip(*sides, strict=True)))
    Path("pairs.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    table = ("--source", "pairs.tsv", "--target", "pairs.tsv", "--columns", "2", "3")
    languages = ("--source-language", "en", "--target-language", "de")
    apart, joined = init(*TRAIN), init(*table, *languages, "-o", "joined.yaml")
    assert apart["pairs"] == joined["pairs"]
    for file in Path("study-data").iterdir():
        assert file.read_bytes() == (Path("joined-data") / file.name).read_bytes()
    text("other", sentences(60)[-50:])
    files = ("--dev", "other.en", "other.de", "--test", "other.en", "other.de")
    init(*table, *languages, *files, "-o", "given.yaml")
    study = load_study(Path("given.yaml"))
    assert plan(study.study, Path(), study.errors).steps
    (train,) = study.spec["corpora"]["text"]["train"]
    assert (train["source"], train["target"], train["columns"]) == ("pairs.tsv", "pairs.tsv", [2, 3])
    one_file = ("--dev", "pairs.tsv", "pairs.tsv")
    init(*table, *languages, *one_file, *files[3:], "-o", "dev.yaml")
    assert load_study(Path("dev.yaml")).spec["corpora"]["text"]["dev"]["columns"] == [2, 3]
    refused("--dev pairs.tsv pairs.tsv: give a file for each side", *TRAIN, *one_file, "-o", "wrong.yaml")
    one_file = ("--test", "pairs.tsv", "pairs.tsv")
    refused("--test pairs.tsv pairs.tsv: .*cut -f 1", *table, *languages, *one_file, "-o", "wrong.yaml")
    wrong = r"pairs\.tsv, line 1: 3 columns, so there is no column 4; --columns names others"
    refused(wrong, *table[:-1], "4", *languages, "-o", "wrong.yaml")
    refused("columns are counted from 1", *table[:-1], "0", *languages, "-o", "wrong.yaml")
    assert not Path("wrong.yaml").exists()


def test_a_text_of_few_words_gets_a_vocabulary_that_it_can_fill(text: Write, tmp_path: Path) -> None:
    draw = random.Random(1)
    rows = [[draw.randrange(6) for _ in range(draw.randint(3, 9))] for _ in range(400)]
    sides = [["cat", "dog", "sees", "hears", "the", "a"], ["Katze", "Hund", "sieht", "hört", "die", "eine"]]
    of_few = [[" ".join(side[word] for word in row) for row in rows] for side in sides]
    of_one_letter = [[letter * number for number in range(1, 401)] for letter in "ab"]  # 800 words
    for lines in (of_few, of_one_letter):
        text("train", *lines)
        init(*TRAIN, "--force")
        train = [Path(f"study-data/train.{side}") for side in ("en", "de")]
        subwords = load_study(Path("study.yaml")).study.subwords["joint"]
        train_subwords(train, subwords, tmp_path / "model")
        assert subwords.vocabulary > 50


def test_few_long_sentences_are_doubted(text: Write) -> None:
    text("train", sentences(700))
    assert [warning["kind"] for warning in init(*TRAIN)["warnings"]] == ["little-text"]
    text("train", [f"{' '.join(sentence.split()[:6])} {at}." for at, sentence in enumerate(sentences(700))])
    assert init(*TRAIN, "--force")["warnings"] == []


def test_a_survey_sees_text_as_steps_will(text: Write) -> None:
    text("train", ["one\u2581two\0three", "\u2581"])
    found = survey(Pair(Path("train.en"), Path("train.de")).lines())
    assert (found.source.words, found.empty) == (3, 1)


def test_text_without_blanks_can_be_trained_on(text: Write) -> None:
    text("train", sentences(700))
    japanese = [f"私たちは{number}番の駅の前で会いますか。" for number in range(700)]
    Path("train.ja").write_text("\n".join(japanese) + "\n")
    init("--source", "train.en", "--target", "train.ja")
    found = survey(Pair(Path("train.en"), Path("train.ja")).lines(), unspaced=True)
    assert (found.uneven, found.long) == (0, 0)


def test_what_is_set_aside_is_in_no_other_set(text: Write) -> None:
    lines = sentences(1000)
    repeated = [line.upper().replace(".", "!") for line in lines[:100]]  # the same but for case and marks
    text("train", lines + repeated)
    init(*TRAIN, "--seed", "7")
    sets = {
        name: [bare(line) for line in Path(f"study-data/{name}.en").read_text().splitlines()]
        for name in ("train", "dev", "test")
    }
    assert sorted([*sets["train"], *sets["dev"], *sets["test"]]) == sorted(map(bare, lines + repeated))
    assert len(sets["dev"]) == len(sets["test"]) > 0
    assert not set(sets["train"]) & set(sets["dev"] + sets["test"])
    assert not set(sets["dev"]) & set(sets["test"])
    assert Path("study-data/dev.en").read_text().upper() == Path("study-data/dev.de").read_text()


@pytest.mark.parametrize(("shared", "told"), [(100, True), (10, False)])
def test_development_text_that_is_training_text_is_told(shared: int, told: bool, text: Write) -> None:
    lines = sentences(500)
    text("train", lines)
    text(
        "dev",
        [*(f"{line.upper()}!" for line in lines[:shared]), *(f"dev {line}" for line in lines[shared:200])],
    )
    text("test", [f"test {line}" for line in lines])
    found = {warning["kind"]: warning["found"] for warning in init(*TRAIN, *GIVEN)["warnings"]}
    assert ("development-in-training" in found) == told
    assert found.get("development-in-training", "100 of 200").startswith("100 of 200")


def test_a_seed_sets_the_same_lines_aside(text: Write) -> None:
    text("train", sentences(500))
    drawn = []
    for seed in ("1", "1", "2"):
        init(*TRAIN, "--seed", seed, "--force")
        drawn.append(Path("study-data/test.en").read_text())
    assert drawn[0] == drawn[1] != drawn[2]


def test_text_that_is_given_is_used_where_it_is(text: Write) -> None:
    for name, seed in (("train", 1), ("dev", 2), ("test", 3)):
        text(name, [f"{name} {line}" for line in sentences(500, seed)])
    init(*TRAIN, *GIVEN)
    assert not Path("study-data").exists()
    study = loaded().study
    assert study.corpora["text"].dev.source == "dev.en"
    assert study.corpora["text"].filters.held_out == ["test"]


@pytest.mark.parametrize(
    "folder, file, name",
    [
        ("news-v18", "train.en", "news-v18"),
        ("data", "europarl.v7.en", "europarl.v7"),
        ("data", "train.en", "study"),
        ("2024", "corpus.en", "study-2024"),
        ("data", "null.en", "study-null"),
    ],
)
def test_a_study_is_called_as_its_text_or_folder(folder: str, file: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / folder / file
    pair = Pair(source, source.with_suffix(".de"))
    options = InitOptions(pair, {}, (None, None), Path("study.yaml"), 1, force=False)
    assert study_name(options) == name
    assert study_name(replace(options, output=Path("my own.yaml"))) == "my-own"
    assert study_name(replace(options, output=Path("modèle.yaml"))) == "modele"


def test_a_study_elsewhere_says_which_folder_its_paths_are_in(text: Write, tmp_path: Path) -> None:
    text("train", sentences(400))
    (tmp_path / "work").mkdir()
    os.chdir(tmp_path / "work")
    facts = init("--source", "../train.en", "--target", "../train.de", "--output", "my study.yaml")
    assert facts["data"] == str(tmp_path / "work")  # all that it names was set aside there
    assert facts["study"] == "my-study"
    loaded("my study.yaml")


def test_packed_files_and_languages_by_option(text: Write) -> None:
    text("train", sentences(400))
    for side, name in (("en", "a.txt.gz"), ("de", "b.txt.gz")):
        Path(name).write_bytes(gzip.compress(Path(f"train.{side}").read_bytes()))
    files = ("--source", "a.txt.gz", "--target", "b.txt.gz")
    refused("--source-language", *files)
    init(*files, "--source-language", "gsw", "--target-language", "ZH-hant")
    languages = load_study(Path("study.yaml")).study.languages
    assert (languages.source, languages.target) == ("gsw", "zh-Hant"), "a code in other letters is known"


def test_nothing_is_overwritten_without_force(text: Write) -> None:
    text("train", sentences(400))
    Path("study.yaml").write_text("mine")
    refused("--force", *TRAIN)
    assert Path("study.yaml").read_text() == "mine"
    assert not Path("study-data").exists()
    init(*TRAIN, "--force")
    loaded()
    refused(r"study\.yaml and study-data exist already", *TRAIN)


def test_text_is_never_overwritten_by_what_is_set_aside_from_it(text: Write) -> None:
    Path("study-data").mkdir()
    text("study-data/train", sentences(400))
    before = all_files()
    files = ("--source", "study-data/train.en", "--target", "study-data/train.de")
    refused(r"study-data/train\.en would be overwritten", *files, "--force")
    assert all_files() == before


GIVEN = ("--dev", "dev.en", "dev.de", "--test", "test.en", "test.de")


@pytest.mark.parametrize(
    ("output", "given"),
    [("train.en", ()), *((name, GIVEN) for name in ("train.en", "./dev.de", "test.en", "link"))],
)
def test_text_is_never_overwritten_by_the_study(output: str, given: tuple[str, ...], text: Write) -> None:
    for seed, name in enumerate(("train", "dev", "test") if given else ("train",)):
        text(name, sentences(400, seed))
    Path("link").symlink_to("train.en")
    before = all_files()
    for force in ((), ("--force",)):
        refused("would be overwritten", *TRAIN, *given, "-o", output, *force)
    assert all_files() == before


@pytest.mark.parametrize(
    ("output", "make", "words"),
    [
        (".", lambda: None, "is a folder; name a file in it"),
        ("new/study.yaml", lambda: None, "no folder new"),
        ("taken", lambda: Path("taken").mkdir(), "taken: is a folder"),
        ("s.yaml", lambda: Path("s-data").write_text("mine"), "s-data: is not a folder"),
        ("s.yaml", lambda: Path("s-data/dev.de").mkdir(parents=True), "s-data/dev.de: is not a file"),
        ("x" * 300, lambda: None, "cannot be written"),
        ("x" * 252, lambda: None, "cannot be written"),  # its folder has a longer name
        ("a\nname: b", lambda: None, "leave out line ends"),
        ("train.en/study.yaml", lambda: None, "no folder train.en"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    output: str, make: Callable[[], Any], words: str, text: Write
) -> None:
    text("train", sentences(400))
    make()
    before = all_files()
    for force in ((), ("--force",)):
        refused(words, *TRAIN, "-o", output, *force)
    assert all_files() == before


def test_a_disk_that_cannot_be_written_is_named_by_the_folder(
    text: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the name of the temporary folder in it."""
    text("train", sentences(400))

    def refuse(path: str, mode: int = 0o777) -> None:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr("os.mkdir", refuse)
    refused(f"^{Path.cwd()}: cannot be written ", *TRAIN)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        *((step, KeyboardInterrupt) for step in ("write_sets", "time_updates", "study_text", "plan")),
        ("load_study", InputError),
        ("write_sets", OSError(28, "No space left on device")),
    ],
)
def test_what_ends_it_early_leaves_nothing(
    step: str, error: Any, text: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    text("train", sentences(400))
    before = all_files()
    with monkeypatch.context() as patch:
        patch.setattr("creamtea.study.start.time_updates", lambda *_: Timing(2, {}))
        patch.setattr(f"creamtea.study.start.{step}", fail)
        assert CliRunner().invoke(app, ["init", *TRAIN]).exit_code != 0
    assert all_files() == before
    init(*TRAIN)
    assert {path.name for path in Path().iterdir()} == {"train.en", "train.de", "study.yaml", "study-data"}


@pytest.mark.parametrize(("step", "options"), [("time_updates", ()), ("load_study", ("--no-timing",))])
def test_what_ends_it_early_keeps_an_earlier_study(
    step: str, options: tuple[str, ...], text: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    text("train", sentences(400))
    init(*TRAIN)
    before = all_files()
    monkeypatch.setattr(f"creamtea.study.start.{step}", interrupted)
    assert CliRunner().invoke(app, ["init", *TRAIN, "--force", "--seed", "2", *options]).exit_code != 0
    assert all_files() == before


def test_commands_to_copy_are_quoted(text: Write) -> None:
    Path("my text").mkdir()
    Path("my studies").mkdir()
    text("my text/train", sentences(400))
    for name in ("dev", "test"):
        text(f"my text/{name}", sentences(100, 2))
    of = {name: (f"my text/{name}.en", f"my text/{name}.de") for name in ("train", "dev", "test")}
    output = "my studies/it's.yaml"
    options = ("--source", of["train"][0], "--target", of["train"][1], "-o", output, "--no-timing")
    done = CliRunner().invoke(app, ["init", *options, "--dev", *of["dev"], "--test", *of["test"]])
    last = next(line for line in done.stdout.splitlines() if "Next: " in line)
    words = ["creamtea", "run", output, "--data", str(Path("my text").resolve())]
    assert shlex.split(last.partition("Next: ")[2]) == words
    (run,) = [line for line in Path(output).read_text().splitlines() if line.startswith("#   creamtea run")]
    assert shlex.split(run.removeprefix("#"), comments=True) == words


def test_a_pair_with_an_empty_side_is_not_set_aside(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("".join("\n" if number == 7 else f"one {number}\n" for number in range(200)))
    target.write_text("".join(f"eins {number}\n" for number in range(200)))
    found = survey(Pair(source, target).lines(), bare)
    drawn = [draw_lines(found, ["dev"], seed)["dev"] for seed in range(20)]  # a quarter of the lines each
    assert not np.isin(7, np.concatenate(drawn))


def of_both_sides(lines: list[str]) -> None:
    for side in ("en", "de"):
        Path(f"train.{side}").write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda: Path("train.de").write_text("one\n"), "400 lines"),
        (lambda: Path("train.de").unlink(), "no such file"),
        (lambda: Path("train.de").write_bytes(b"\xff\n" * 400), "UTF-8"),
        (lambda: Path("train.de").write_text("\n" * 400), "without text"),
        (lambda: of_both_sides(["one two"] * 400), "repeated"),
        (lambda: of_both_sides([f"{n % 310} {n % 2}" for n in range(620)]), "set aside"),
    ],
)
def test_bad_files_are_refused_before_anything_is_written(
    spoil: Callable[[], Any], words: str, text: Write
) -> None:
    text("train", sentences(400))
    spoil()
    before = all_files()
    refused(words, *TRAIN)
    assert all_files() == before


def test_sentences_that_differ_in_marks_or_case_are_no_repetitions(text: Write) -> None:
    """The study's own filter keeps them. Only text set aside shares no such sentence with the rest."""
    text("train", ["Come in!", "come in", "come  in"], ["Herein!", "herein", "herein"])
    found = survey(Pair(Path("train.en"), Path("train.de")).lines(), bare)
    assert (found.repeated, found.usable) == (1, 2)
    pairs = usable_pairs(Pair(Path("train.en"), Path("train.de")).lines())
    assert list(pairs) == [("Come in!", "Herein!"), ("come in", "herein")]


def test_two_words_are_too_few_for_subwords(text: Write) -> None:
    text("train", ["a " * (n % 20 + 1) for n in range(400)], ["b " * (n // 20 + 1) for n in range(400)])
    text("other", ["c"], ["d"])
    files = ("other.en", "other.de")
    few = r"train\.de: their few words make only 9 subwords, and a study"
    refused(few, *TRAIN, "--dev", *files, "--test", *files)
    assert not Path("study.yaml").exists()


def test_a_survey_counts_pairs_by_what_is_wrong_with_them(text: Write) -> None:
    source = ["a b", "", "x " * 201, "one two three four five six seven", "a b", "c"]
    target = ["A B", "leer", "x", "eins", "A  B", "Ç"]
    text("train", source, target)
    found = survey(Pair(Path("train.en"), Path("train.de")).lines())
    assert (found.pairs, found.empty, found.long, found.uneven, found.repeated) == (6, 1, 1, 1, 1)
    assert (found.usable, found.target.words, found.target.characters) == (2, 8, 14)


# ---------------------------------------------------------------- settings


def a_text(pairs: int, words: int = 12, alphabet: int = 60) -> Survey:
    side = Side(pairs * words, pairs * words * 5, alphabet, pairs, np.arange(pairs))
    return Survey(pairs, 0, 0, 0, 0, side, side)


@pytest.mark.parametrize("words", [4, 12, 25])
def test_settings_grow_with_the_text(words: int) -> None:
    recipes = [recipe_for(a_text(pairs, words)) for pairs in (500, 2000, 5000, 20_000, 100_000, 2_000_000)]
    vocabularies = [recipe.vocabulary for recipe in recipes]
    sizes = [(recipe.size.width, recipe.size.batch_tokens) for recipe in recipes]
    assert vocabularies == sorted(vocabularies)
    assert sizes == sorted(sizes)
    for recipe in recipes:
        assert recipe.updates > 3 * recipe.warmup
        assert recipe.updates >= 1000


def test_many_characters_get_a_vocabulary_that_holds_them() -> None:
    recipe = recipe_for(a_text(5000, 10, alphabet=2500))
    assert recipe.vocabulary > 5000
    assert recipe.character_coverage < 1


# ---------------------------------------------------------------- time


def test_the_estimate_is_a_range_from_the_measured_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe: Recipe = recipe_for(a_text(5000))
    whole = recipe.epoch_tokens * recipe.epochs / 1000 / 60
    low, high = Timing(2, {"bf16": 1000.0, "none": 900.0}).minutes(recipe) or (0.0, 0.0)
    assert low == whole < high
    assert Timing(2, {"bf16": 1000.0, "none": 2000.0}).autocast == "none"
    assert Timing(2, {}).minutes(recipe) is None

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(start.importlib, "import_module", missing)
    assert start.time_updates(recipe, a_text(5000)).speeds == {}


@pytest.mark.parametrize(
    ("rounds", "load", "autocast"),
    [
        ({"bf16": [1.0, 1.1, 1.0], "none": [2.0, 2.1, 1.9]}, 0.0, "none"),
        ({"bf16": [1.0, 3.0, 1.0], "none": [2.0, 2.1, 1.9]}, 0.0, "bf16"),  # they disagree
        ({"bf16": [1.0, 1.1, 1.0], "none": [2.0, 2.1, 1.9]}, 999.0, "bf16"),  # a busy machine
        ({"bf16": [1.0, 1.1, 1.0], "none": [9.0, 4.1, 9.9]}, 999.0, "none"),  # it cannot explain so much
        ({"bf16": [2.0, 2.1, 1.9], "none": [1.0, 1.1, 1.0]}, 0.0, "bf16"),
    ],
)
def test_a_precision_is_chosen_only_by_timings_that_agree(
    rounds: dict[str, list[float]], load: float, autocast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start.os, "getloadavg", lambda: (load, load, load))
    timed = SimpleNamespace(tokens_per_second=lambda *_: rounds)
    monkeypatch.setattr(start.importlib, "import_module", lambda name: timed)
    found = start.time_updates(recipe_for(a_text(5000)), a_text(5000))
    assert found.autocast == autocast
    assert found.speeds == {name: sorted(values)[1] for name, values in rounds.items()}


@pytest.mark.parametrize("shared, left", [(0, 400), (50, 350), (399, None)])
def test_pairs_with_a_sentence_of_the_test_set_are_not_counted(
    shared: int, left: int | None, text: Write
) -> None:
    lines = sentences(400)
    text("train", lines)
    text("dev", sentences(20, seed=2))
    text("test", [*lines[:shared], *sentences(20, seed=3)])
    if left is None:
        refused(r"1 of 400 pairs can be trained on .* 399 with a sentence", *TRAIN, *GIVEN)
        return
    pairs = init(*TRAIN, *GIVEN)["pairs"]
    assert (pairs["usable"], pairs["held_out"]) == (left, shared)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        ((0.2, 0.9), "1 to 2 minutes"),
        ((3.4, 11.2), "3 to 12 minutes"),
        ((100.0, 400.0), "1 to 7 hours"),
        ((2000.0, 9000.0), "1 to 7 days"),
    ],
)
def test_a_range_in_words(minutes: tuple[float, float], words: str) -> None:
    assert in_words(minutes) == words
