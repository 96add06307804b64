"""A study made by `creamtea compare` from outputs of any origin: a source, references, text files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from creamtea.document.mistakes import KeyPath, Mistake, StudyErrors, dotted, mistakes_of_pydantic, one_of
from creamtea.document.values import NAME_CHARACTERS
from creamtea.errors import InputError
from creamtea.languages import UNKNOWN, guessed, parted
from creamtea.methods.metrics import METRICS as METRIC_KINDS
from creamtea.methods.metrics import OfWords, Tokenizer
from creamtea.printable import is_utf8
from creamtea.scorers import read_scorers
from creamtea.settings import Settings
from creamtea.study.data_files import digest_if_readable
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study
from creamtea.words import meant, shared_start, without_accents

TEST_SET = "test"
BUCKETS = "buckets"
_RULE = "give a name of letters from a to z, digits and . _ + - (letter or digit first)"
_NOT_IN_NAMES = re.compile(rf"[^{NAME_CHARACTERS}]|,")  # a comma separates systems on command lines
METRICS: dict[str, dict[str, Any]] = {
    "bleu": {"kind": "bleu"},
    "bleu-lc": {"kind": "bleu", "lowercase": True},
    **{f"bleu-{name}": {"kind": "bleu", "tokenize": name} for name in get_args(Tokenizer)},
    **{"chrf" + "+" * order: {"kind": "chrf", "word_order": order} for order in range(3)},
    "ter": {"kind": "ter"},
    "comet": {"kind": "comet"},
    "cometkiwi": {"kind": "comet", "model": "Unbabel/wmt22-cometkiwi-da"},
}
MARKED_UP = (".jsonl", ".json", ".xml", ".sgm", ".sgml", ".tmx", ".xlf", ".xliff", ".html")
STANDARD = ("bleu", "chrf")  # default metrics if there are references


@dataclass(frozen=True)
class Comparison:
    """A study of given files.

    `data`: the folder that the study's paths are relative to. `options`: the command-line option behind each
    place of the study. `files`: by path in the study, the path as the user gave it. `human`: the systems that
    are references.
    """

    study: Study
    data: Path
    options: dict[KeyPath, str]
    files: dict[str, str]
    human: tuple[str, ...]

    def plan(self) -> Plan:
        """Plan the study. Raise StudyErrors with every mistake in the files."""
        return plan(self.study, self.data, self._errors, names=self.files)

    def place_of(self, path: KeyPath) -> str:
        return self.options.get(path, dotted(path))

    def _errors(self, mistakes: Sequence[Mistake]) -> StudyErrors:
        lines = []
        for mistake in mistakes:
            place = self.place_of(mistake.path)
            allowed = mistake.allowed.partition("; paths are")[0]  # this hint is only about study files
            lines.append(replace(mistake, path=(place,), allowed=allowed).line())
        return StudyErrors(lines, "the files to compare")


def comparison(
    source: Path,
    references: Sequence[Path],
    outputs: Sequence[Path],
    *,
    name: str | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    languages: str | None = None,
    labels: Path | None = None,
) -> Comparison:
    """Make a study of these files; `named_outputs` says how outputs may be given.

    An output with the same text as a reference becomes that human reference. Buckets are scored too: by
    length of the source, and by `labels`, a file with one label per line. Without references there are no
    metrics, unless `metrics` names some that need none.

    Raises InputError for unusable options. `Comparison.plan` reads the files.
    """
    named = named_outputs(outputs)
    files = [source, *references, *named.values(), *([] if labels is None else [labels])]
    for path in files:
        if not is_utf8(str(path.absolute())):
            raise InputError(f"{path}: the path is not UTF-8; give the file another name")
        if path.name.removesuffix(".gz").lower().endswith(MARKED_UP):
            raise InputError(
                f"{path}: not a file of text alone; extract the text of each segment as one line, from WMT's "
                "JSON Lines with `jq -r .hypothesis`"
            )
    if not source.absolute().parent.is_dir():
        raise InputError(f"--source {source}: there is no folder {source.parent}")
    # relative to the source's folder, a file has the same path in every comparison, so results are reused
    data = source.absolute().parent.resolve()  # resolved, because `..` leaves the target of a link
    test_set: dict[str, Any] = {"kind": "files", "source": _from(source, data)}
    texts = [_from(path, data) for path in references]
    test_set |= {"target": texts[0]} if texts else {}
    test_set |= {"more_references": texts[1:]} if texts[1:] else {}
    options: dict[KeyPath, str] = {("test_sets", TEST_SET, "source"): f"--source {source}"}
    for position, path in enumerate(references):
        key: KeyPath = ("more_references", position - 1) if position else ("target",)
        options["test_sets", TEST_SET, *key] = f"--reference {path}"

    digests = _distinct(references)
    systems: dict[str, dict[str, Any]] = {}
    for system, path in named.items():
        options["systems", system, "outputs", TEST_SET] = str(path)
        digest = digest_if_readable(path)
        is_reference = digest is not None and digest in digests
        file = {"outputs": {TEST_SET: _from(path, data)}}
        systems[system] = {"reference": digests.index(digest) + 1} if is_reference else file
    buckets = {"kind": "buckets", "test_set": TEST_SET}
    if labels is not None:
        if not references:
            raise InputError(
                f"--labels {labels}: labels divide scores, and without --reference there are none"
            )
        buckets["labels"] = _from(labels, data)
        options["analyses", BUCKETS, "labels"] = f"--labels {labels}"

    requested = (STANDARD if references else ()) if metrics is None else metrics
    human = tuple(system for system, spec in systems.items() if "reference" in spec)
    document = {
        "name": name or f"compare-{_name(source)}",
        "languages": _languages(languages, source, (references or list(named.values()))[0]),
        "systems": systems,
        "test_sets": {TEST_SET: test_set},
        "baseline": _baseline(baseline, named, human),
        "metrics": [_metric(metric) for metric in requested],
        "analyses": {BUCKETS: buckets} if references else {},
    }
    original_paths = {_from(path, data): str(path) for path in files}
    try:
        study = Study.model_validate(document)
    except ValidationError as error:
        first = next(mistakes_of_pydantic(error.errors(include_url=False), Study, document))
        place, remedy = dotted(first.path), "choose another --name, or rename the file"
        if name is not None and first.path == ("name",):
            place, remedy = "--name", "choose another"
        raise InputError(f"{place}: found {first.found}, allowed {first.allowed}; {remedy}") from None
    for name, metric in zip(requested, study.metrics, strict=True):
        if metric.needs_references and not references:
            raise InputError(
                f"--metrics {name}: it needs references; give --reference, or a metric that needs none "
                "(cometkiwi, a scorer with `reference_free: true`)"
            )
    return Comparison(study, data, options, original_paths, human)


def _from(path: Path, data: Path) -> str:
    return Path(os.path.relpath(path.absolute().parent.resolve() / path.name, data)).as_posix()


def _name(path: Path) -> str:
    """Return a file's name without its ending, with only the characters that names allow."""
    stem = path.name.removesuffix(".gz")
    return _in_a_name(stem.rpartition(".")[0] or stem)


def _in_a_name(text: str) -> str:
    """Return the text with the characters that names allow: letters without accents, _ for any other."""
    return _NOT_IN_NAMES.sub("_", without_accents(text)).lstrip("._=+-")


def named_outputs(outputs: Sequence[Path]) -> dict[str, Path]:
    """Return the files of outputs by the names of their systems.

    NAME=FILE names a system. Any other system is named after its file, without the ending and without the
    parts that all these names begin or end with ("newstest.de-en.hyp."). If names are equal, endings or else
    folders distinguish them. Raises InputError for names that systems cannot have, and for two equal names.
    """
    pairs = [_split(output) for output in outputs]
    paths = [path for _, path in pairs]
    unnamed = [path for name, path in pairs if not name]
    name_of = dict(zip(unnamed, _without_common_parts(_names_of(unnamed)), strict=True))
    names = [name or name_of[path] for name, path in pairs]
    for name, path in zip(names, paths, strict=True):
        if not name or not _name(path):
            raise InputError(
                f"{path}: not a name that a system can have; give a file with letters from a to z or digits "
                "in it, or NAME=FILE"
            )
        alike = [other for other, same in zip(paths, names, strict=True) if same == name]
        if [other.resolve() for other in alike].count(path.resolve()) > 1:
            raise InputError(f"{path}: the same file twice; give each output once")
        if len(alike) > 1:
            raise InputError(f"{path}: a second system {name!r}; give it another name (NAME=FILE)")
    return dict(zip(names, paths, strict=True))


def _split(output: Path) -> tuple[str, Path]:
    """Split NAME=FILE. The name is "" for an existing file (its own name may have a "=")."""
    name, mark, file = str(output).partition("=")
    if not mark or output.exists():
        return "", output
    if not name or _in_a_name(name) != name:
        raise InputError(f"{output}: {name!r} is not a name that a system can have; {_RULE}")
    return name, Path(file)


def _names_of(paths: Sequence[Path]) -> list[str]:
    names = [_name(path) for path in paths]
    endings = {
        name: {path.name for path, name_of_path in zip(paths, names, strict=True) if name_of_path == name}
        for name in names
    }
    names = [
        _in_a_name(path.name) if len(endings[name]) > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]
    return [
        _in_a_name(f"{path.absolute().parent.name}-{name}") if names.count(name) > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]


def _without_common_parts(names: Sequence[str]) -> list[str]:
    """Remove the dotted parts that all names begin or end with, if each name keeps something."""
    if len(names) < 2:
        return list(names)
    parts = [name.split(".") for name in names]
    first = len(shared_start(parts))
    last = len(shared_start([name_parts[first:][::-1] for name_parts in parts]))
    shorter = [_in_a_name(".".join(name_parts[first : len(name_parts) - last])) for name_parts in parts]
    return shorter if all(shorter) and len(set(shorter)) == len(set(names)) else list(names)


def _distinct(references: Sequence[Path]) -> list[str | None]:
    """Return the references' digests. Raise InputError if one is given twice: it would count twice."""
    digests = [digest_if_readable(path) for path in references]
    for position, (path, digest) in enumerate(zip(references, digests, strict=True)):
        if digest is not None and digest in digests[:position]:
            first = references[digests.index(digest)]
            raise InputError(f"--reference {path}: the same text as --reference {first}; give each only once")
    return digests


def _baseline(asked: str | None, named: dict[str, Path], human: Sequence[str]) -> str:
    """Find the baseline by its name or file; by default the first file that is not a reference."""
    systems = [name for name in named if name not in human]
    if not systems:
        raise InputError("every output is the text of a reference: give at least one that is not")
    chosen = next((name for name, path in named.items() if asked in (name, str(path))), asked)
    chosen = chosen and meant(chosen, named)
    if chosen is not None and chosen not in systems:
        reason = "a human reference, which metrics score against fewer references" if chosen in human else ""
        raise InputError(f"--baseline {asked}: {reason or 'no such system'}; give {one_of(systems, asked)}")
    return chosen or systems[0]


def _languages(pair: str | None, source: Path, reference: Path) -> dict[str, str]:
    """Return the requested languages, else the languages in the files' names."""
    codes = guessed(source, reference) or (UNKNOWN, UNKNOWN)
    if pair is not None:
        given = parted(pair)
        if given is None:
            raise InputError(
                f"--languages {pair}: give two codes of languages (en-de), perhaps with a region (en-zh_CN)"
            )
        codes = given
    return dict(zip(("source", "target"), codes, strict=True))


def _metric(name: str) -> dict[str, Any]:
    kind = METRIC_KINDS.kinds.get(name)
    if kind is not None and issubclass(kind, OfWords):
        raise InputError(
            f"--metrics {name}: a metric of words, which are not compared by files; it needs a study with a "
            "test set of words (kind g2p or inflection), which may have systems of `outputs`"
        )
    if name in METRICS:
        return METRICS[name]
    path = Settings.load().scorers
    scorers = {} if path is None else read_scorers(path)
    if not name:
        raise InputError("--metrics: a name is missing between the commas")
    if name not in scorers:
        raise InputError(f"--metrics {name}: unknown metric; give {one_of([*METRICS, *scorers], name)}")
    scorer = scorers[name]
    metric: dict[str, Any] = {"kind": "command", "scorer": name, "display": {"better": scorer.better}}
    return metric | ({"reference_free": True} if scorer.reference_free else {})
