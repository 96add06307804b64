"""Every warning of a study and its files is provoked, and a good study gives none."""

import codecs
import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from creamtea.cli.main import app
from creamtea.document.mistakes import StudyWarning
from creamtea.study.comparison import comparison
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
from creamtea.study.start import Pair, recipe_for
from creamtea.study.survey import survey
from creamtea.study.warnings import byte_order_marks, csv_quotes, least_vocabulary, warnings_of

Write = Callable[..., Path]
PAIRS = 1000
VARIANT = "softmax: {corpus: text, subwords: joint, objective: {kind: softmax}}"
# 1,000 pairs of ten words: about 40 batches of 512 subwords in an epoch
GOOD = "training: {max_epochs: 40, batch_tokens: 512, warmup: 100}"


def trained(how: str) -> tuple[str, str]:
    return VARIANT, VARIANT.replace("}}", f"}}, {how}}}")


@pytest.fixture
def write_texts(write_files: Write) -> Write:
    """A study over files with text enough that a good one gives no warning."""
    words = [f"word{number % 50}" for number in range(PAIRS * 10)]
    lines = [f"{number} {' '.join(words[10 * number : 10 * number + 9])}" for number in range(PAIRS)]
    for side, mark, dev in (("en", "word", "four\nfive\nsix\n"), ("de", "Wort", "vier\nfünf\nsechs\n")):
        rows = (f"{line.replace('word', mark)}\n" for line in lines)
        Path(f"train.{side}").write_text("".join(rows), encoding="utf-8")
        Path(f"dev.{side}").write_text(dev, encoding="utf-8")
    return write_files


def warned(path: Path, root: Path | None = Path()) -> list[StudyWarning]:
    loaded = load_study(path)
    return warnings_of(loaded.study, plan(loaded.study, root, loaded.errors), root, loaded.place_of)


def test_a_good_study_gives_none(write_texts: Write) -> None:
    assert warned(write_texts(trained(GOOD))) == []


def the_one(warnings: list[StudyWarning]) -> StudyWarning:
    (warning,) = warnings
    return warning


def copy_sides(old: str, new: str) -> None:
    for side in ("en", "de"):
        shutil.copy(f"{old}.{side}", f"{new}.{side}")


def write_lines(name: str, *lines: str) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def lines_of(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").splitlines()


def test_a_warm_up_that_does_not_end(write_texts: Write) -> None:
    path = write_texts(trained("training: {max_epochs: 2, batch_tokens: 1024}"))
    warning = the_one(warned(path))
    assert (warning.kind, warning.place) == ("warm-up", "study.yaml:12: variants.softmax.training.warmup")
    assert "400 updates" in warning.found
    done = CliRunner().invoke(app, ["validate", str(path)])
    assert done.exit_code == 0
    assert "warning: study.yaml:12" in done.stderr
    facts = json.loads(CliRunner().invoke(app, ["validate", str(path), "--json"]).stdout)
    assert [shown["kind"] for shown in facts["warnings"]] == ["warm-up"]
    path = write_texts(trained("training: {max_updates: 300}"))
    assert the_one(warned(path, None)).kind == "warm-up", "of max_updates it needs no files"


@pytest.mark.parametrize("batch", ["batch_tokens: 1024", "batch_sentences: 25"])
def test_few_updates(batch: str, write_texts: Write) -> None:
    path = write_texts(trained(f"training: {{max_epochs: 4, {batch}, warmup: 10}}"))
    assert the_one(warned(path)).kind == "few-updates"
    assert warned(path, None) == []  # how many they are is not known without the text


@pytest.mark.parametrize(
    ("training", "remedy"),
    [
        ("max_epochs: 4, warmup: 10", "batches (batch_tokens) or more epochs (max_epochs)"),
        ("max_epochs: 1000, max_updates: 99, warmup: 9", "Use more updates (max_updates)"),
        ("max_epochs: 4, warmup: 10, batch_sentences: 25", "batches (batch_sentences) or more"),
        ("max_updates: 99, warmup: 9", "(max_updates)"),
    ],
)
def test_the_remedy_names_the_limit_that_the_study_has(
    training: str, remedy: str, write_texts: Write
) -> None:
    assert remedy in the_one(warned(write_texts(trained(f"training: {{{training}}}")))).remedy


@pytest.mark.parametrize(("samples", "kinds"), [(100, ["few-samples"]), (160, [])])
def test_samples_too_few_for_any_mark(samples: int, kinds: list[str], write_texts: Write) -> None:
    """Eight comparisons: of 100 samples p is at least 8/101."""
    beams = "more: {variant: softmax, search: {kind: beam, width: [2, 3, 4, 5, 6, 7, 8, 9]}}"
    widths = ("systems:\n", f"systems:\n  {beams}\n")
    significance = ("baseline: greedy", f"baseline: greedy\nsignificance: {{samples: {samples}}}")
    found = warned(write_texts(trained(GOOD), widths, significance))
    assert [warning.kind for warning in found] == kinds
    if found:
        assert found[0].place == "study.yaml:17: significance.samples"
        assert "Raise samples to 160 or more" in found[0].remedy


@pytest.mark.parametrize(
    ("latency", "outcome"),
    [
        ("sentences: 100, batch_size: 4", "test has 11 sentences: 8 will be timed, not 100"),
        ("sentences: 64, batch_size: 64", "test has 11 sentences, fewer than a batch of 64: the latency run"),
        ("sentences: 12", "test has 11 sentences: 11 will be timed, not 12"),
        ("sentences: 11", None),
    ],
)
def test_a_test_set_smaller_than_what_is_to_be_timed(
    latency: str, outcome: str | None, write_texts: Write
) -> None:
    timed = ("baseline: greedy", f"baseline: greedy\nlatency: {{test_set: test, {latency}}}")
    path = write_texts(trained(GOOD), timed)
    for side in ("en", "de"):
        write_lines(f"test.{side}", *(f"{side} line {n}" for n in range(11)))
    warnings = warned(path)
    assert [warning.kind for warning in warnings] == ["few-to-time"] * (outcome is not None)
    assert all(warning.found.startswith(str(outcome)) for warning in warnings)
    assert warned(path, None) == []  # how many there are is not known without the text


def test_a_vocabulary_too_large_for_the_text(write_texts: Write) -> None:
    path = write_texts(trained(GOOD), ("vocabulary: 100", "vocabulary: 4000"))
    warning = the_one(warned(path))
    assert warning.kind == "vocabulary"
    assert "study.yaml:10" in warning.place
    assert "4,000" in warning.found
    assert "Try 200" in warning.remedy
    for side, words in (("en", "a cat sees"), ("de", "die Katze sieht")):
        write_lines(f"train.{side}", *[words] * PAIRS)
    warning = the_one([warning for warning in warned(path) if warning.kind == "vocabulary"])
    assert "Try 24 or so" in warning.remedy  # 14 letters with those of both sides twice, 10 for subwords


@pytest.mark.parametrize(("words", "told"), [(1000, False), (1001, True)])
@pytest.mark.parametrize("name", ["test.en", "dev.en", "dev.de"])
def test_a_line_that_is_a_whole_text(name: str, words: int, told: bool, write_texts: Write) -> None:
    path = write_texts(trained(GOOD))
    Path(name).write_text(f"first\n{'two ' * words}\nlast\n", encoding="utf-8")
    found = [(warning.kind, warning.found.partition(":")[0]) for warning in warned(path)]
    assert found == [("long-line", f"line 2 of {name} has 1,001 words")] * told


@pytest.mark.parametrize(("characters", "told"), [(20_000, False), (20_001, True)])
@pytest.mark.parametrize("name", ["test.en", "test.de", "given.de", "dev.de"])
def test_a_line_of_very_many_characters(name: str, characters: int, told: bool, write_texts: Write) -> None:
    """It may be a single word."""
    path = write_texts(
        trained(GOOD), (GREEDY, f"{GREEDY}\n{GIVEN.format('given').replace('test.de', 'given.de')}")
    )
    write_lines("given.de", "Eins", "zwei", "drei")
    Path(name).write_text(f"first\n{'x' * characters}\nlast\n", encoding="utf-8")
    found = [(warning.kind, warning.found.partition(":")[0]) for warning in warned(path)]
    assert found == [("long-line", f"line 2 of {name} has 20,001 characters")] * told


def test_a_test_set_that_chooses_the_checkpoint(write_texts: Write) -> None:
    path = write_texts(trained(GOOD))
    copy_sides("test", "dev")
    warning = the_one(warned(path))
    assert warning.kind == "seen-in-development"
    assert warning.found.startswith("3 of 3 source sentences are in the development text of text")
    assert "test_sets.test" in warning.place


@pytest.mark.parametrize(("copied", "told"), [(1, False), (2, True)])
def test_development_text_that_training_text_has(copied: int, told: bool, write_texts: Write) -> None:
    path = write_texts(trained(GOOD))
    for side in ("en", "de"):
        lines = lines_of(f"train.{side}")[:copied]
        spaced = [f"  {line.replace(' ', '  ')} " for line in lines]  # the same sentences for the study
        write_lines(f"dev.{side}", *spaced, *(f"{side} of my own {n}" for n in range(10 - copied)), "")
    found = [(warning.kind, warning.place, warning.found.partition(":")[0]) for warning in warned(path)]
    text = "2 of 10 source sentences of the development text are in the training text"
    assert found == [("development-in-training", "study.yaml:8: corpora.text.dev", text)] * told


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("train", "corpora.text.train[0]"),  # that is no translation
        ("test", "test_sets.test"),  # that measures copying
        ("dev", "corpora.text.dev"),
    ],
)
@pytest.mark.parametrize("columns", [False, True])
def test_the_same_text_on_both_sides(name: str, place: str, columns: bool, write_texts: Write) -> None:
    pair = f"{{source: {name}.en, target: {name}.de"
    change = (pair, f"{{source: {name}.tsv, target: {name}.tsv, columns: [2, 3]")
    path = write_texts(trained(GOOD), *([change] if columns and name != "test" else []))
    source = lines_of(f"{name}.en")
    write_lines(f"{name}.de", *(f" {line}" for line in source))
    write_lines(f"{name}.tsv", *(f"{number}\t{line}\t {line}" for number, line in enumerate(source)))
    warning = the_one(warned(path))
    assert (warning.kind, warning.place.partition(": ")[2]) == ("same-sides", place)
    assert name == "train" or warning.found.startswith(f"{len(source)} of {len(source)} pairs")


@pytest.mark.parametrize(("copies", "told"), [(0, False), (1, True)])
def test_segments_that_repeat(copies: int, told: bool, write_texts: Write) -> None:
    path = write_texts(trained(GOOD))
    for side in ("en", "de"):
        first, *rest = lines_of(f"test.{side}")
        write_lines(f"test.{side}", first, *rest, *[f" {first}"] * copies)
    found = [(warning.kind, warning.found.partition(":")[0]) for warning in warned(path)]
    assert found == [("repeated-segments", "1 of 4 segments repeat an earlier one")] * told


@pytest.mark.parametrize(("changed", "told"), [(False, True), (True, False)])
def test_given_outputs_that_are_the_reference(changed: bool, told: bool, write_texts: Write) -> None:
    system = "greedy: {variant: softmax}"
    path = write_texts(trained(GOOD), (system, f"{system}\n  given: {{outputs: {{test: given.de}}}}"))
    lines = lines_of("test.de")
    write_lines("given.de", *(f" {line}" for line in lines[:-1]), lines[-1] + " !" * changed)
    found = [(warning.kind, warning.place.partition(": ")[2]) for warning in warned(path)]
    assert found == [("reference-as-output", "systems.given.outputs.test")] * told


@pytest.mark.parametrize("corpus", ["text", "little"])
def test_an_adaptation_may_be_short_and_to_little_text(corpus: str, write_texts: Write) -> None:
    """Its subwords are those of the variant that it starts from."""
    for side, words in (("en", "seven eight"), ("de", "sieben acht")):
        write_lines(f"little.{side}", *words.split())
    dev = "{source: dev.en, target: dev.de}"
    little = f"  little: {{kind: files, train: [{{source: little.en, target: little.de}}], dev: {dev}}}"
    own = VARIANT.replace("softmax:", "adapted:").replace("corpus: text", f"corpus: {corpus}")
    own = own.replace("}}", "}, start_from: softmax, training: {max_updates: 50, warmup: 10}}")
    adapted = (VARIANT, f"{trained(GOOD)[1]}\n  {own}")
    assert warned(write_texts(adapted, ("corpora:", f"corpora:\n{little}"))) == []


@pytest.mark.parametrize(("vocabulary", "advised"), [(8000, "Try 3,100 "), (3000, "More text")])
def test_no_vocabulary_is_advised_that_has_no_room_for_the_characters(
    vocabulary: int, advised: str, write_texts: Write
) -> None:
    kanji = [chr(0x4E00 + number % 2000) for number in range(10 * PAIRS)]
    write_lines("train.de", *(" ".join(kanji[10 * number : 10 * number + 10]) for number in range(PAIRS)))
    text = survey(Pair(Path("train.en"), Path("train.de")).lines())
    path = write_texts(trained(GOOD), ("vocabulary: 100", f"vocabulary: {vocabulary}"))
    found = {warning.kind: warning for warning in warned(path)}
    assert advised in found["vocabulary"].remedy
    assert recipe_for(text).vocabulary == least_vocabulary(text.alphabet) == 3100


@pytest.mark.parametrize("filters", ["max_words: 3", "max_characters: 10", "held_out: [test]"])
def test_filters_that_leave_nothing(filters: str, write_texts: Write) -> None:
    copy_sides("train", "test")
    kept = ("    dev: {", f"    filters: {{{filters}}}\n    dev: {{")
    found = {warning.kind: warning for warning in warned(write_texts(trained(GOOD), kept))}
    assert found["nothing-left"].place.endswith("corpora.text.filters")
    for side in ("en", "de"):
        write_lines(f"train.{side}", "a b", *lines_of(f"train.{side}"))
    path = write_texts(trained(GOOD), kept)
    assert "nothing-left" not in {warning.kind for warning in warned(path)}


def test_a_column_that_is_empty_in_every_line(write_texts: Write) -> None:
    pair = ("{source: train.en, target: train.de", "{source: all.tsv, target: all.tsv, columns: [1, 3]")
    path = write_texts(trained(GOOD), pair)
    write_lines("all.tsv", *(f"{line}\tnews\t " for line in lines_of("train.en")))
    found = {warning.kind: warning for warning in warned(path)}
    assert found["nothing-left"].place.endswith("corpora.text.train")
    assert "columns" in found["nothing-left"].remedy


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_cells_in_csv_quotes(name: str, write_texts: Write) -> None:
    path = write_texts(trained(GOOD))
    first, second, *rest = lines_of(f"{name}.en")
    write_lines(f"{name}.en", f'"{first} ""so"" {first}"', f'"{second}"', *rest)
    warning = the_one(warned(path))
    assert (warning.kind, warning.found[:4]) == ("csv-quotes", "1 of")


def test_lines_beyond_a_test_sets_limit_are_not_read_for_quotes(write_texts: Write) -> None:
    path = write_texts(
        trained(GOOD), ("{kind: files, source: test.en", "{kind: files, limit: 2, source: test.en")
    )
    for side in ("en", "de"):
        first, second, third, *rest = lines_of(f"test.{side}")
        write_lines(f"test.{side}", first, second, f'"{third} ""so""."', *rest)
    assert "csv-quotes" not in {warning.kind for warning in warned(path)}


def test_outputs_in_csv_quotes(write_files: Write) -> None:
    write_lines("hyp.de", '"Er sagte ""so""."', "zwei", "drei")
    made = comparison(Path("test.en"), [Path("test.de")], [Path("hyp.de")])
    warning = the_one(list(csv_quotes(made.study, made.plan(), made.place_of)))
    assert (warning.kind, warning.place) == ("csv-quotes", "hyp.de")


def test_a_test_sentence_in_the_training_text(write_texts: Write) -> None:
    text = lines_of("train.en")
    write_lines("test.en", "one", f"{text[7]}  ", text[8])
    warning = the_one(warned(write_texts(trained(GOOD))))
    assert warning.kind == "seen-in-training"
    assert "test_sets.test" in warning.place
    assert warning.found.startswith("2 of 3 ")
    held_out = ("    dev: {", "    filters: {held_out: [test]}\n    dev: {")
    assert warned(write_texts(trained(GOOD), held_out)) == []


GREEDY, GIVEN = "  greedy: {variant: softmax}", "  {}: {{outputs: {{test: test.de}}}}"


@pytest.mark.parametrize(
    ("systems", "pair"),
    [
        ([GREEDY, "  same: {variant: softmax}"], "greedy and same"),
        ([GREEDY, *(GIVEN.format(name).replace(".de", ".en") for name in ("a", "same"))], "a and same"),
    ],
)
def test_two_systems_that_translate_alike(systems: list[str], pair: str, write_texts: Write) -> None:
    warning = the_one(warned(write_texts(trained(GOOD), (GREEDY, "\n".join(systems)))))
    assert warning.kind == "same-systems"
    assert warning.place.endswith("systems.same")
    assert warning.found.startswith(pair)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_that_is_not_read_as_text(
    pack: Callable[[bytes], bytes], write_texts: Write
) -> None:
    path = write_texts(trained(GOOD))
    Path("test.de").write_bytes(pack(codecs.BOM_UTF8 + Path("test.de").read_bytes()))
    Path("train.de").write_bytes(codecs.BOM_UTF8 + Path("train.de").read_bytes())  # which nothing scores
    warning = the_one(warned(path))
    assert (warning.kind, warning.place) == ("byte-order-mark", "study.yaml:17: test_sets.test.target")
    assert warning.found.startswith("test.de begins with a byte-order mark")


def test_a_mark_in_a_compared_file_of_another_folder_names_it_once(tmp_path: Path) -> None:
    for place, mark in (("texts/s.en", b""), ("texts/r.de", b""), ("outputs/a.de", codecs.BOM_UTF8)):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(mark + f"{place}\n".encode())
    source, reference, output = (tmp_path / place for place in ("texts/s.en", "texts/r.de", "outputs/a.de"))
    made = comparison(source, [reference], [output])
    warning = the_one(list(byte_order_marks(made.study, made.plan(), made.place_of)))
    assert (warning.place, warning.found.partition(" begins")[0]) == (str(output), "it")


def test_a_file_outside_the_folder(write_texts: Write, tmp_path: Path) -> None:
    path = write_texts(trained(GOOD))
    outside = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    outside.mkdir()
    Path("test.de").rename(outside / "test.de")
    for way in (str(outside / "test.de"), os.path.relpath(outside / "test.de")):
        path.write_text(path.read_text().replace("target: test.de", f"target: {way}"))
        warning = the_one(warned(path))
        assert warning.kind == "outside-data"
        assert warning.place == "study.yaml:17: test_sets.test.target"
        path.write_text(path.read_text().replace(way, "test.de"))
