"""Studies of words: what belongs together, and what the plan reads."""

from pathlib import Path

import pytest
from study_plans import planned

from creamtea.document.mistakes import StudyWarning
from creamtea.errors import InputError
from creamtea.study.data_files import MAX_LINES
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
from creamtea.study.warnings import warnings_of

WORDS = Path(__file__).with_name("texts").joinpath("words.yaml").read_text(encoding="utf-8")
GREEDY, LETTERS = "{variant: softmax}", "{kind: characters, target: tokens}"
SYSTEMS = ("  greedy: {variant: softmax}", "  greedy: {variant: softmax}\n  beam: {variant: softmax}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the file of every part of both languages."""
    of_all_languages(tmp_path)
    return tmp_path


def of_all_languages(folder: Path, text: str = "a\tb\n") -> None:
    for name in (f"{language}.{part}" for language in ("ady", "hin") for part in ("train", "dev", "test")):
        (folder / name).write_text(text, encoding="utf-8")


def written(folder: Path, *replacements: tuple[str, str]) -> Path:
    text = WORDS
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_the_plan_reads_the_file_of_every_language_and_looks_for_test_words_in_them(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    result = planned(written(folder))
    assert {name for step in result.plan.steps for name in step.locations} == names
    (overlap,) = [labels for node, labels in result.labels.items() if "overlap" in node]
    assert overlap == {"corpus": "words", "test_sets": ["test"]}


def test_words_of_a_language_without_training_words(tmp_path: Path) -> None:
    """One warning for the test set, not one for each system."""
    path = written(tmp_path, SYSTEMS, ("languages: [ady, hin], file", "languages: [ady, hin, hun], file"))
    study = load_study(path).study
    warnings = warnings_of(study, plan(study, None), None)
    (found,) = [warning for warning in warnings if warning.kind == "untrained-languages"]
    assert (found.place, found.found.partition(":")[0]) == ("test_sets.test", "hun")


def mistakes(path: Path) -> list[str]:
    """Of the study and its files, which are in its folder."""
    loaded = load_study(path)
    with pytest.raises(InputError) as caught:
        plan(loaded.study, path.parent, loaded.errors)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).split("\n")[:-1]]


def test_every_wrong_line_of_a_file_of_words_is_named(folder: Path) -> None:
    (folder / "hin.train").write_text("a\tb\n\nab\na\tb\tc\n\tb\n", encoding="utf-8")
    (folder / "ady.test").write_text("a\t \na<b\tb\na\tb\r\n", encoding="utf-8")
    train, test = '4: corpora.words.train: found "hin.train"', '13: test_sets.test.file: found "ady.test"'
    allowed = ", allowed word TAB phones in each line"
    assert [line.removesuffix(allowed) for line in mistakes(written(folder))] == [
        f"{train}, line 2: an empty line",
        f"{train}, line 3: 1 column where 2 belong",
        f"{train}, line 4: 3 columns where 2 belong",
        f"{train}, line 5: nothing where word belongs",
        f"{test}, line 1: nothing where phones belong",
        f"{test}, line 2: < or > in word, which mark languages and tags",
    ]


def test_a_file_in_which_all_is_wrong_has_a_few_lines_and_their_number(folder: Path) -> None:
    (folder / "ady.dev").write_text("a b\n" * 2000, encoding="utf-8")
    found = mistakes(written(folder))
    assert len(found) == MAX_LINES + 1
    assert found[-1].startswith('4: corpora.words.dev: found "ady.dev": 1,995 more such lines, allowed')


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (";", 'an empty tag in ";"'),
        ("V;;PST", 'an empty tag in "V;;PST"'),
        ("v pst", 'a blank in the tag "v pst"'),
    ],
)
def test_tags_that_are_none_are_named(tags: str, found: str, folder: Path) -> None:
    (folder / "turkish--azeri").write_text(f"a\tb\tN; PL\na\tb\t{tags}\n")
    test_set = 'kind: inflection, pairs: [turkish--azeri], file: "{pair}"'
    path = written(folder, ('kind: g2p, languages: [ady, hin], file: "{language}.test"', test_set))
    (mistake,) = mistakes(path)
    assert mistake.startswith(f'13: test_sets.test.file: found "turkish--azeri", line 2: {found}, allowed ')


def warned(path: Path) -> list[StudyWarning]:
    """Of a study and its files, which are in its folder."""
    loaded = load_study(path)
    planned = plan(loaded.study, path.parent, loaded.errors)
    return warnings_of(loaded.study, planned, path.parent, loaded.place_of)


@pytest.mark.parametrize(
    ("training", "kind", "updates"),
    [
        ("batch_sentences: 3, max_epochs: 9, warmup: 9", "few-updates", 9 * 14),
        ("batch_sentences: 3, max_epochs: 9, warmup: 127", "warm-up", 9 * 14),
        # 40 words with a symbol and an end each, in batches of ten, and some padding
        ("batch_tokens: 10, max_epochs: 9, warmup: 100", "warm-up", 9 * 11),
    ],
)
def test_a_training_of_few_updates(training: str, kind: str, updates: int, tmp_path: Path) -> None:
    of_all_languages(tmp_path, "a\tb\n" * 20)
    how = f"objective: {{kind: softmax}}, training: {{{training}}}"
    (warning,) = warned(written(tmp_path, ("objective: {kind: softmax}", how)))
    assert warning.kind == kind
    assert f"at most about {updates} updates" in warning.found


@pytest.mark.parametrize(("more", "updates"), [("", 2), ("repeat: 4, ", 5), ("hallucinated: 50, ", 12)])
def test_updates_are_of_repeated_and_made_up_words_too(more: str, updates: int, tmp_path: Path) -> None:
    (warning,) = warned(inflected(tmp_path, more))
    assert f"at most about {updates} updates" in warning.found


def test_tags_that_no_training_word_has_are_named(tmp_path: Path) -> None:
    path = inflected(tmp_path)
    (tmp_path / "dev").write_text("abc\tabcd\tV;DU\nabc\tabcd\tV\n")
    assert warned(path)[0].found.startswith("1 of 2 words has tags (DU) that no training word of words has")


def test_forms_do_not_share_tokens_as_pronunciations_share_phones(tmp_path: Path) -> None:
    path = inflected(tmp_path)
    path.write_text(path.read_text().replace("{kind: characters}", LETTERS))
    with pytest.raises(InputError) as error:
        load_study(path)
    assert "target symbols are tokens, with a corpus of inflected forms" in str(error.value)
    assert "allowed `target: characters` in subwords.letters" in str(error.value)


def inflected(folder: Path, more: str = "") -> Path:
    """A study of inflected forms, with five words of each language."""
    for name in ("latin", "czech", "dev"):
        (folder / name).write_text("abc\tabcd\tV\n" * 5)
    corpus = f'{{kind: inflection, pairs: [latin--czech], high: "{{high}}", low: "{{low}}", {more}dev: dev}}'
    test_set = "kind: inflection, pairs: [latin--czech], file: dev"
    training = "training: {batch_sentences: 5, max_epochs: 1, warmup: 400}"
    return written(
        folder,
        (WORDS.split("words: ")[1].split("\n")[0], corpus),
        (LETTERS, "{kind: characters}"),
        ('kind: g2p, languages: [ady, hin], file: "{language}.test"', test_set),
        ("softmax}}", f"softmax}}, {training}}}"),
    )


def test_letters_that_no_training_word_has_are_named_once_and_their_words_counted(folder: Path) -> None:
    (folder / "ady.test").write_text("aba\tb\nха\tb\nq\u0303\tb\n", encoding="utf-8")
    path = written(folder, SYSTEMS)
    (warning,) = (warning for warning in warned(path) if warning.kind == "unseen-symbols")
    assert warning.place == f"{path}:14: test_sets.test"
    letters = "3 of 4 words have letters (b, q, ◌\u0303, а, х) that no training word of "
    assert warning.found.startswith(letters)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert mistakes(written(tmp_path))[0].startswith('4: corpora.words.train: found "ady.train"')
