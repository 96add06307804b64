"""From two text files to a first study: survey, text set aside, settings, timing, the file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from creamtea.errors import InputError
from creamtea.languages import ending
from creamtea.study.files import UnreadableFile, scan
from creamtea.study.start import aside
from creamtea.study.start.aside import Pair
from creamtea.study.start.recipe import recipe_for
from creamtea.study.start.text import FirstStudy, architecture, study_text
from creamtea.study.start.timing import Timing, own_cpus, time_updates
from creamtea.study.survey import bare, survey

MIN_PAIRS = 300
SETS = ("dev", "test")
ANY_TEXT = ("train", "training", "corpus", "text", "source", "src", "data", "bitext", "parallel", "tmp")


@dataclass(frozen=True)
class InitOptions:
    """What `creamtea init` was asked for. `given`: the pairs of dev and test that exist."""

    train: Pair
    given: dict[str, Pair]
    languages: tuple[str | None, str | None]
    output: Path
    seed: int
    force: bool
    timed: bool = True


def begin(options: InitOptions, progress: Callable[[str], None]) -> FirstStudy:
    """Write the study, and its text set aside into a folder beside it. InputError before anything is written
    if a file is bad, or if something would be overwritten."""
    pairs = {"train": options.train, **options.given}
    for name, pair in pairs.items():
        progress(f"reading {name}: {pair.source}, {pair.target}")
        _check(pair)
    languages = _languages(options)
    missing = [name for name in SETS if name not in options.given]
    folder = options.output.with_name(f"{options.output.stem}-data")
    _check_free([options.output, *([folder] if missing else [])], options.force)
    if missing:
        _check_kept(
            pairs, [folder / f"{name}.{suffix}" for name in ("train", *missing) for suffix in languages]
        )
    text = survey(options.train.source, options.train.target, bare)
    if text.usable < MIN_PAIRS:
        raise InputError(
            f"{text.usable:,} of {text.pairs:,} pairs can be trained on ({text.empty:,} have an empty side, "
            f"{text.repeated:,} are repeated): a study needs at least {MIN_PAIRS}"
        )
    why = ""
    if missing:
        sets = aside.draw(text, missing, options.seed)
        progress(f"setting aside {sum(map(len, sets.values())):,} pairs for {' and '.join(missing)}")
        aside.write(options.train, sets, folder, languages)
        pairs |= {
            name: Pair(*(folder / f"{name}.{suffix}" for suffix in languages)) for name in ("train", *missing)
        }
        text = survey(pairs["train"].source, pairs["train"].target, bare)
        why = (
            f"\n    # `creamtea init` set {' and '.join(missing)} aside at random (seed {options.seed}):\n"
            "    # none of their sentences is in the training text."
        )
    recipe = recipe_for(text)
    study = FirstStudy(
        name=study_name(options),
        file=options.output,
        root=_root(pairs, options.output),
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
        timing = time_updates(recipe, architecture(recipe), text)
        study = replace(study, timing=timing)
    written = options.output.with_name(f".{options.output.name}.part")
    written.write_text(study_text(study), encoding="utf-8")
    written.replace(options.output)
    return study


def _check(pair: Pair) -> None:
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
            f"{pair.source} has {counts[0]:,} lines and {pair.target} {counts[1]:,}: line n of one must be "
            "the translation of line n of the other; align them again"
        )


def _languages(options: InitOptions) -> tuple[str, str]:
    """As asked for, or by the ends of the files' names: train.en, train.en.gz."""
    files = (options.train.source, options.train.target)
    names = ("source", "target")
    codes = []
    for name, asked, path in zip(names, options.languages, files, strict=True):
        code = asked or ending(path)
        if not re.fullmatch("[a-z]{2,3}", code):
            what = f"--{name}-language {asked}: " if asked else f"{path} does not end in a language's code: "
            raise InputError(f"{what}give --{name}-language with a code of two or three letters (en, de)")
        codes.append(code)
    if codes[0] == codes[1]:
        raise InputError(f"both sides are {codes[0]}: give --source-language or --target-language")
    return codes[0], codes[1]


def _check_free(paths: list[Path], force: bool) -> None:
    taken = [str(path) for path in paths if path.exists()]
    if taken and not force:
        raise InputError(f"{' and '.join(taken)} exists already: --force overwrites, --output names another")
    if not paths[0].absolute().parent.is_dir():
        raise InputError(f"{paths[0]}: there is no folder {paths[0].parent}")


def _check_kept(pairs: dict[str, Pair], outputs: list[Path]) -> None:
    """InputError if text that is read would be overwritten by what is set aside from it."""
    overwritten = {path.resolve() for path in outputs}
    for path in (path for pair in pairs.values() for path in (pair.source, pair.target)):
        if path.resolve() in overwritten:
            raise InputError(
                f"{path} would be overwritten by the text that is set aside: move it out of "
                f"{path.parent}, or name another study with --output"
            )


def study_name(options: InitOptions) -> str:
    """As the file is called that was asked for; else as the text is, or its folder: not every study is
    "study"."""
    name = _plain(options.output.stem)
    if name != "study":
        return name or "study"
    source = options.train.source
    text = _plain(source.name.removesuffix(".gz").rpartition(".")[0])
    folder = _plain(Path(os.path.abspath(source)).parent.name)  # noqa: PTH100 - links stay as they are
    return next((name for name in (text, folder) if name and name.lower() not in ANY_TEXT), name)


def _plain(text: str) -> str:
    """As a study's name may be."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100]
    other = re.match(r"[^A-Za-z]", name) or name.lower() in ("true", "false", "null")  # as YAML reads them
    return f"study-{name}" if other else name


def _root(pairs: dict[str, Pair], study: Path) -> Path:
    """The study's own folder, if all files are below it, or the innermost one that holds them."""
    paths = [path for pair in pairs.values() for path in (pair.source, pair.target)]
    files = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - links stay as they are
    here = Path(os.path.abspath(study.parent))  # noqa: PTH100
    if all(file.is_relative_to(here) for file in files):
        return here
    return Path(os.path.commonpath([file.parent for file in files]))
