"""A strict reader of the layout that mt-metrics-eval documents:
https://github.com/google-research/mt-metrics-eval, README.md, "File organization and naming convention".

It is stricter than a reader needs to be: whatever the README asks of a file is asserted. What the README
leaves open is as the toolkit's own `EvalSet` has it (mt_metrics_eval/data.py): files are found by shell
patterns, texts lose white space at their ends, a certain text stands for a missing one, and scores of people
and of metrics share their names at each level.
"""

import glob
import re
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

LEVELS = ("sys", "domain", "doc", "seg")
FOLDERS = {"documents", "human-scores", "metric-scores", "references", "sources", "system-outputs"}

NO_TRANSLATION = "[No translation supplied]"

Scores = dict[str, list[float | None]]
Texts = list[str | None]


@dataclass
class EvalSet:
    pair: str
    source: Texts = field(default_factory=list)
    documents: dict[str, tuple[int, int]] = field(default_factory=dict)  # first and one past the last line
    domains: list[str] = field(default_factory=list)  # different ones, sorted
    by_domain: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # (file, system) → scores
    domain_of: dict[str, str] = field(default_factory=dict)  # document → domain
    references: dict[str, Texts] = field(default_factory=dict)
    outputs: dict[str, Texts] = field(default_factory=dict)
    human: dict[tuple[str, str], Scores] = field(default_factory=dict)  # (name, level)
    metrics: dict[tuple[str, str, str], Scores] = field(default_factory=dict)  # (name, reference, level)


def read(folder: Path, pair: str) -> EvalSet:
    found = EvalSet(pair)
    assert len(pair.split("-")) == 2, "SRC-TGT: the toolkit takes it apart there"
    assert {path.name for path in folder.iterdir()} <= FOLDERS
    assert all(pair in path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    found.source = texts(folder / "sources" / f"{pair}.txt")
    assert None not in found.source, "every segment has a source"
    _read_documents(found, folder)
    _read_texts(found, folder)
    _read_human(found, folder)
    _read_metrics(found, folder)
    return found


def lines(path: Path) -> list[str]:
    """As Python reads text by default: CR, LF and CR LF end a line. The last line ends, too."""
    assert path.read_bytes().endswith(b"\n")
    with path.open(encoding="utf-8") as file:
        return [line.removesuffix("\n") for line in file]


def texts(path: Path) -> Texts:
    """Lines without the white space at their ends, as the toolkit strips them; None for a missing text."""
    stripped = [line.rstrip() for line in lines(path)]
    return [None if line == NO_TRANSLATION else line for line in stripped]


def files(folder: Path, pattern: str) -> list[Path]:
    """The toolkit finds files by patterns that hold SRC-TGT as it stands: every file must be found. Unlike
    Path.glob, glob.glob passes over names that begin with a dot."""
    found = {Path(name) for name in glob.glob(f"{glob.escape(str(folder))}/{pattern}")}  # noqa: PTH207
    assert found == set(folder.iterdir()), f"{pattern} finds {found} of {list(folder.iterdir())}"
    return sorted(found)


def _read_documents(found: EvalSet, folder: Path) -> None:
    words = [line.split() for line in lines(folder / "documents" / f"{found.pair}.docs")]
    assert len(words) == len(found.source)
    assert all(len(one) == 2 for one in words)
    at = 0
    domain_of = found.domain_of
    for document, block in groupby(words, key=lambda one: one[1]):
        block_words = list(block)
        assert document not in found.documents, "documents are contiguous blocks of segments"
        found.documents[document] = (at, at + len(block_words))
        at += len(block_words)
        for domain, _ in block_words:
            assert domain_of.setdefault(document, domain) == domain, "a document belongs to one category"
    found.domains = sorted(set(domain_of.values()))


def _read_texts(found: EvalSet, folder: Path) -> None:
    for path in files(folder / "references", f"{found.pair}.*.*"):
        match = re.fullmatch(rf"{re.escape(found.pair)}\.([^.-]+)\.txt", path.name)
        assert match, f"SRC-TGT.NAME.txt without . and - in NAME: {path.name}"
        assert match[1] not in ("all", "src")
        found.references[match[1]] = texts(path)
    for path in files(folder / "system-outputs", found.pair):
        assert path.is_dir()
    for path in files(folder / "system-outputs" / found.pair, "*.*"):
        assert path.name.endswith(".txt")
        name = path.name.removesuffix(".txt")
        assert name
        assert not re.search(r"\s", name), "a system is one word of a score file"
        found.outputs[name] = texts(path)
    assert found.references
    assert found.outputs
    for column in (*found.references.values(), *found.outputs.values()):
        assert len(column) == len(found.source), "lines match those in the source file"


def _read_human(found: EvalSet, folder: Path) -> None:
    for path in files(folder / "human-scores", f"{found.pair}.*.score"):
        pair, *name, level, ending = path.name.split(".")
        assert (pair, ending) == (found.pair, "score")
        assert name
        assert level in LEVELS
        found.human[".".join(name), level] = _scores(found, path, level)


def _read_metrics(found: EvalSet, folder: Path) -> None:
    if not (folder / "metric-scores").exists():
        return
    for path in files(folder / "metric-scores" / found.pair, "*.score"):
        name, level, ending = path.name.rsplit(".", 2)
        assert ending == "score"
        assert level in LEVELS
        metric, reference = name.rsplit("-", 1)
        assert reference in ("all", "src") or set(reference.split(".")) <= set(found.references)
        scores = _scores(found, path, level)
        assert all(None not in values for values in scores.values()), "None is for human scores alone"
        used = set(reference.split("."))
        assert set(scores) == set(found.outputs) - used, "metrics score every output but their references"
        assert (name, level) not in found.human, "scores of people and of metrics share their names"
        found.metrics[metric, reference, level] = scores


def _scores(found: EvalSet, path: Path, level: str) -> Scores:
    scores: Scores = {}
    blocks: list[str] = []
    for line in lines(path):
        words = line.split()
        domain = words.pop(0) if level == "domain" else ""
        system, score = words
        assert system in found.outputs, "SYSNAME must match a NAME in system outputs"
        if level == "domain":
            assert domain in found.domains
            found.by_domain.setdefault((path.name, system), {})[domain] = score
        if not blocks or blocks[-1] != system:
            blocks.append(system)
        scores.setdefault(system, []).append(None if score == "None" else float(score))
    assert len(blocks) == len(set(blocks)), "the scores of a system are one block"
    expected = {"sys": 1, "domain": len(found.domains), "doc": len(found.documents), "seg": len(found.source)}
    assert all(len(values) == expected[level] for values in scores.values())
    return scores
