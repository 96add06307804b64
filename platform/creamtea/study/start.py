"""`creamtea init`: from two text files to a first study.

It surveys the text, sets lines aside for development and test, chooses settings, times a few updates and
writes the file.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from creamtea.errors import InputError
from creamtea.languages import ending, known_code
from creamtea.methods.texts import LANGUAGE_CODE, MIN_VOCABULARY
from creamtea.study.data_files import UnreadableFile, scan
from creamtea.study.first_study import (
    FirstStudy,
    Pair,
    Timing,
    architecture,
    filled_vocabulary,
    own_cpus,
    recipe_for,
    study_text,
    time_updates,
)
from creamtea.study.loader import load_study
from creamtea.study.plan import plan
from creamtea.study.survey import Survey, bare, lines_of, survey, usable_pairs
from creamtea.wording import counted
from creamtea.words import any_unspaced, normalise

MIN_PAIRS = 300
# texts that may not fill the vocabulary: distinct words per subword; characters, of which a second's work
FEW_WORDS, FEW_CHARACTERS = 2, 2_000_000
SETS = ("dev", "test")
TEMPORARY = ".creamtea-init-"  # how the folder's name begins in which all is made
TEXT = "text"  # the folder of text set aside, until it is moved to its place
_NOT_IN_PATHS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # line ends, what is not UTF-8
ANY_TEXT = ("train", "training", "corpus", "text", "source", "src", "data", "bitext", "parallel", "tmp")


@dataclass(frozen=True)
class InitOptions:
    """The options of `creamtea init`. `given`: the pairs of dev and test that exist."""

    train: Pair
    given: dict[str, Pair]
    languages: tuple[str | None, str | None]
    output: Path
    seed: int
    force: bool
    timed: bool = True


def begin(options: InitOptions, progress: Callable[[str], None]) -> FirstStudy:
    """Write the study, and a folder beside it with the text set aside.

    InputError, before anything is written, if a file is bad or something would be overwritten. If it ends
    early, by an interruption too, it leaves nothing behind.
    """
    pairs = {"train": options.train, **options.given}
    for name, pair in pairs.items():
        progress(f"reading {name}: {pair.source}, {pair.target}")
        _check_texts(pair)
    languages = _languages(options)
    missing = [name for name in SETS if name not in options.given]
    sets_aside = ("train", *missing) if missing else ()
    _check_written(options, pairs, [f"{name}.{suffix}" for name in sets_aside for suffix in languages])
    unspaced = any_unspaced(*languages)
    test = options.given.get("test")  # the study holds it out; text set aside shares no sentence
    held_out = frozenset(map(normalise, lines_of(test.source)) if test else ())
    text = survey(options.train.source, options.train.target, bare, unspaced=unspaced, held_out=held_out)
    if text.usable < MIN_PAIRS:
        raise InputError(
            f"{text.usable:,} of {counted(text.pairs, 'pair')} can be trained on ({text.empty:,} with an "
            f"empty side, {text.long:,} too long, {text.uneven:,} of uneven lengths, {text.held_out:,} "
            f"with a sentence of the test set, {text.repeated:,} repeated): a study needs at least "
            f"{MIN_PAIRS}"
        )
    with ExitStack() as stack:
        with _writing(options.output):
            parent = options.output.absolute().parent
            place = Path(stack.enter_context(TemporaryDirectory(dir=parent, prefix=TEMPORARY)))
        why = ""
        if missing:
            sets = draw_lines(text, missing, options.seed)
            progress(
                f"setting aside {counted(sum(map(len, sets.values())), 'pair')} for {' and '.join(missing)}"
            )
            with _writing(options.output):
                write_sets(options.train, sets, place / TEXT, languages)
            train, folder = _pair("train", place / TEXT, languages), _data_folder(options)
            text = survey(train.source, train.target, bare, unspaced=unspaced, held_out=held_out)
            pairs |= {name: _pair(name, folder, languages) for name in ("train", *missing)}
            why = (
                f"\n    # `creamtea init` set {' and '.join(missing)} aside at random "
                f"(seed {options.seed}):\n    # none of their sentences is in the training text."
            )
        else:
            train = options.train
        recipe = recipe_for(text)
        few = text.source.vocabulary + text.target.vocabulary < FEW_WORDS * recipe.vocabulary
        if few or text.source.characters + text.target.characters < FEW_CHARACTERS:
            pairs_left = usable_pairs(train.source, train.target, unspaced, held_out)
            recipe = recipe_for(text, filled_vocabulary(recipe, pairs_left))
        if recipe.vocabulary < MIN_VOCABULARY:
            raise InputError(
                f"{options.train.source}, {options.train.target}: their few words make only "
                f"{recipe.vocabulary} subwords, and a study needs at least {MIN_VOCABULARY}: give more text"
            )
        study = FirstStudy(
            name=study_name(options),
            file=options.output,
            root=_common_root(pairs, options.output),
            languages=languages,
            train=pairs["train"],
            dev=pairs["dev"],
            test=pairs["test"],
            aside=why,
            text=text,
            recipe=recipe,
            timing=Timing(own_cpus(), {}),
        )
        if options.timed:
            progress("timing a few updates of this shape")
            study = replace(study, timing=time_updates(study.recipe, architecture(study.recipe), text))
        with _writing(options.output):
            _write_study(study, place, _data_folder(options))
    return study


def _pair(name: str, folder: Path, suffixes: tuple[str, str]) -> Pair:
    return Pair(*(folder / f"{name}.{suffix}" for suffix in suffixes))


def _data_folder(options: InitOptions) -> Path:
    return options.output.with_name(f"{options.output.stem}-data")


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Turn an OSError while writing into an InputError."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or output
        if Path(place).name.startswith(TEMPORARY):
            place = Path(place).parent
        raise InputError(
            f"{place}: cannot be written ({error.strerror or error}); name another study with --output"
        ) from None


def _write_study(study: FirstStudy, place: Path, folder: Path) -> None:
    """Move the text that was set aside from `place` to its folder, and write the study.

    The study is loaded and planned first; StudyErrors if it is not valid.
    """
    text, draft, before = place / TEXT, place / "study", place / "before"
    draft.write_text(study_text(study), encoding="utf-8")
    before.mkdir()
    made = text.exists() and not folder.exists()
    put: list[Path] = []
    try:
        if text.exists():
            folder.mkdir(exist_ok=True)
            for file in list(text.iterdir()):
                target = folder / file.name
                if target.exists():
                    shutil.move(target, before / file.name)
                put.append(target)  # from here on what lies there is ours
                shutil.move(file, target)
        loaded = load_study(draft, name=str(study.file))
        plan(loaded.study, study.root, loaded.errors)
        draft.replace(study.file)
    except BaseException:  # an interruption, too: the same command would find a folder that it may not touch
        for file in put:
            file.unlink(missing_ok=True)
        for file in list(before.iterdir()):
            shutil.move(file, folder / file.name)
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _check_texts(pair: Pair) -> None:
    counts = []
    for path in (pair.source, pair.target):
        try:
            facts = scan(path)
        except UnreadableFile as error:
            raise InputError(f"{path}: {error}") from None
        if facts.invalid_line is not None:
            raise InputError(f"{path}: line {facts.invalid_line:,} is not UTF-8; convert it (iconv -t UTF-8)")
        if facts.blank:
            raise InputError(f"{path}: a file without text")
        counts.append(facts.lines)
    if counts[0] != counts[1]:
        raise InputError(
            f"{pair.source} has {counted(counts[0], 'line')} and {pair.target} {counts[1]:,}: line n of one "
            "must be the translation of line n of the other; align them again"
        )


def _languages(options: InitOptions) -> tuple[str, str]:
    """Return the languages asked for, else those at the ends of the files' names: train.en, train.en.gz."""
    files = (options.train.source, options.train.target)
    names = ("source", "target")
    codes = []
    for name, asked, path in zip(names, options.languages, files, strict=True):
        code = known_code(asked) or asked if asked else ending(path)
        if not re.fullmatch(LANGUAGE_CODE, code):
            what = f"--{name}-language {asked}: " if asked else f"{path} does not end in a language's code: "
            raise InputError(f"{what}give --{name}-language with a code (en, deu, zh-CN)")
        codes.append(code)
    if codes[0] == codes[1]:
        raise InputError(f"both sides are {codes[0]}: give --source-language or --target-language")
    return codes[0], codes[1]


def _check_written(options: InitOptions, pairs: dict[str, Pair], set_aside: list[str]) -> None:
    """Check that the study and the text set aside can be written.

    InputError if they cannot, if they would overwrite a text that is read or, without --force, anything.
    """
    read = [path for pair in pairs.values() for path in (pair.source, pair.target)]
    output = options.output
    for path in (output, *read):
        if _NOT_IN_PATHS.search(os.path.abspath(path)):  # noqa: PTH100 - links stay as they are
            raise InputError(
                f"{str(path)!r}: a study cannot name this path; leave out line ends and the like"
            )
    with _writing(output):
        if output.is_dir():
            raise InputError(
                f"{output}: is a folder; name a file in it with --output ({output / 'study.yaml'})"
            )
        if not output.absolute().parent.is_dir():
            raise InputError(f"{output}: there is no folder {output.parent}")
        folder = _data_folder(options)
        if set_aside and folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder}: is not a folder, which text set aside needs; move it, or name "
                "another study with --output"
            )
        written = [output, *(folder / name for name in set_aside)]
        for path in (path for path in written if path.exists()):
            if not path.is_file():
                raise InputError(f"{path}: is not a file; move it, or name another study with --output")
            if any(path.samefile(text) for text in read):
                raise InputError(
                    f"{path} would be overwritten, and is read: move it, or name another study with --output"
                )
        taken = [str(path) for path in (output, *([folder] if set_aside else [])) if path.exists()]
    if taken and not options.force:
        exist = "exist" if len(taken) > 1 else "exists"
        raise InputError(f"{' and '.join(taken)} {exist} already: --force overwrites, --output names another")


def study_name(options: InitOptions) -> str:
    """Name the study after its file, or if that is "study", after the text or its folder."""
    name = _plain_name(options.output.stem)
    if name != "study":
        return name or "study"
    source = options.train.source
    text = _plain_name(source.name.removesuffix(".gz").rpartition(".")[0])
    folder = _plain_name(Path(os.path.abspath(source)).parent.name)  # noqa: PTH100 - links stay as they are
    return next((name for name in (text, folder) if name and name.lower() not in ANY_TEXT), name)


def _plain_name(text: str) -> str:
    """Make a valid name of a study from a text."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100]
    other = re.match(r"[^A-Za-z]", name) or name.lower() in ("true", "false", "null")  # as YAML reads them
    return f"study-{name}" if other else name


def _common_root(pairs: dict[str, Pair], study: Path) -> Path:
    """Return the study's folder if all files are below it, else the innermost folder that holds them."""
    paths = [path for pair in pairs.values() for path in (pair.source, pair.target)]
    files = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links stay as they are
    here = Path(os.path.abspath(study.parent))  # noqa: PTH100
    if all(file.is_relative_to(here) for file in files):
        return here
    return Path(os.path.commonpath([file.parent for file in files]))


# ---------------------------------------------------------------- text set aside

MIN_LINES, MAX_LINES, SHARE = 50, 1000, 15  # of each set: a 15th of the pairs, within these


def draw_lines(text: Survey, sets: list[str], seed: int) -> dict[str, NDArray[np.int64]]:
    """Draw the lines (from 0) of each set.

    Only pairs whose two sides are not empty and occur once in the text, ignoring case and punctuation, are
    drawn: no sentence that is set aside stays in the training text. `text` is a survey by `bare` sentences.
    InputError if there are too few such pairs.
    """
    once = np.ones(text.pairs, dtype=np.bool_)
    for side in (text.source, text.target):
        _, places, counts = np.unique(side.sentences, return_inverse=True, return_counts=True)
        once &= (counts[places] == 1) & (side.sentences != hash(bare("")))
    candidates = np.flatnonzero(once)
    each = min(MAX_LINES, max(MIN_LINES, text.pairs // SHARE))
    if each * len(sets) > len(candidates) // 2:
        raise InputError(
            f"only {len(candidates):,} of {counted(text.pairs, 'pair')} have sentences that occur once, "
            f"which is too few to set aside {each * len(sets):,} of them: give --dev and --test, or more text"
        )
    drawn = np.random.default_rng(seed).choice(candidates, each * len(sets), replace=False)
    return {name: np.sort(part) for name, part in zip(sets, np.split(drawn, len(sets)), strict=True)}


def write_sets(
    text: Pair, sets: dict[str, NDArray[np.int64]], folder: Path, suffixes: tuple[str, str]
) -> None:
    """Write `train` and each set into the folder, as NAME.SUFFIX; the text's own files are not changed."""
    folder.mkdir(parents=True, exist_ok=True)
    of_line = {int(line): name for name, lines in sets.items() for line in lines}
    for path, suffix in zip((text.source, text.target), suffixes, strict=True):
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    (folder / f"{name}.{suffix}").open("w", encoding="utf-8", newline="")
                )
                for name in ("train", *sets)
            }
            for number, line in enumerate(lines_of(path)):
                files[of_line.get(number, "train")].write(line + "\n")
