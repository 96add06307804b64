"""Write the tables of docs/results/claims.md: `python -m creamtea.report.papers.claims FOLDER`.

The papers' claims and our figures are in claims.yaml beside the page: each figure as the report of its study
prints it (docs/results/data). `verdict.judge` gives the verdicts, on the papers' pages, too.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, TypeAdapter, model_validator

from creamtea.contract.step import Column
from creamtea.document.document import read_document
from creamtea.document.values import Positive, Strict
from creamtea.papers.catalogue import Direction
from creamtea.report import text
from creamtea.report.model import Cell, Delta
from creamtea.report.papers.verdict import RULE, Judgement, OurValue, judge, margin_of
from creamtea.stats.paired import SIGNIFICANT

NUMBER = r"([+−±]?[\d,]*\.?\d+)"
INTERVAL = rf"\[{NUMBER}, {NUMBER}\]"
VALUE = re.compile(rf"{NUMBER}(?: ± {NUMBER})?(?: {INTERVAL})?")
DIFFERENCE = re.compile(rf"{NUMBER} {INTERVAL}(?: p=(\S+))?(?: with seeds {INTERVAL}(?: p=(\S+))?)?")
PLACE = re.compile(r"(<!-- (?!end)([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
NOT_JUDGED = "not judged"


class Comparison(Strict):
    """Two values of ours, and their paired `difference` with the p-values of the study."""

    what: str = ""
    own: str
    other: str
    difference: str = ""
    direction: Direction = ""  # if it differs from the claim's


class Study(Strict):
    page: str  # the file below docs/results with the study's report
    n: str  # "1,000 captions"
    seeds: Positive


class PaperClaim(Strict):
    claim: str
    paper: str  # what it prints
    unit: str = ""
    direction: Direction = ""
    compared: list[Comparison] = Field(default_factory=list)
    not_judged: str = ""  # why
    study: Study | None = None  # if it differs from the table's

    @model_validator(mode="after")
    def _compared_or_why_not(self) -> Self:
        if bool(self.compared) == bool(self.not_judged):
            raise ValueError("give either `compared` or `not_judged`")
        if any(not (comparison.direction or self.direction) for comparison in self.compared):
            raise ValueError("a comparison has no direction")
        return self


class ClaimTable(Strict):
    study: Study
    claims: list[PaperClaim]


def read_claims(folder: Path) -> dict[str, ClaimTable]:
    """Read claims.yaml: its tables by their names."""
    return TypeAdapter(dict[str, ClaimTable]).validate_python(read_document(folder / "claims.yaml").data)


def markdown(folder: Path) -> str:
    """Return the page with its rule and tables rewritten, each between `<!-- NAME -->` and `<!-- end -->`."""
    blocks = {name: "\n".join(_table(table)) for name, table in read_claims(folder).items()} | {"rule": RULE}

    def block(place: re.Match[str]) -> str:
        return f"{place[1]}{blocks.pop(place[2])}\n"

    page = (folder / "claims.md").read_text(encoding="utf-8")
    written = PLACE.sub(block, page)
    if blocks:
        raise ValueError(f"claims.md has no place for {', '.join(blocks)}")
    return written


def _table(table: ClaimTable) -> Iterator[str]:
    yield "| | claim | verdict | paper | here | n |\n| --: | :-- | :-- | :-- | :-- | :-- |"
    for number, claim in enumerate(table.claims, start=1):
        if claim.not_judged:
            yield f"| {number} | {claim.claim} | {NOT_JUDGED} | {claim.paper} | {claim.not_judged} | – |"
        study = claim.study or table.study
        n = f"{study.n}, {'one seed' if study.seeds == 1 else f'{study.seeds} seeds'}"
        for place, comparison in enumerate(claim.compared):
            first = (str(number), f"{claim.claim}: {comparison.what}".removesuffix(": "), claim.paper)
            start, words, paper = ("", comparison.what, "") if place else first
            verdict, here = judged(comparison, claim, study.seeds)
            yield f"| {start} | {words} | {verdict.outcome} | {paper} | {_escaped(here)} | {n} |"


def judged(comparison: Comparison, claim: PaperClaim, seeds: int) -> tuple[Judgement, str]:
    """Return the verdict on a comparison, and its figures.

    For example "36.4 → 37.5 BLEU, +1.1 [0.3, 2.0], p = 0.15".
    """
    own, other, ps = _ours(comparison.own, seeds), _ours(comparison.other, seeds), ""
    if comparison.difference:
        delta, ps = _delta(comparison.difference)
        own, other = replace(own, row="own", deltas={"other": delta}), replace(other, row="other")
    direction = comparison.direction or claim.direction
    judgement = judge(own, other, direction)
    printed = (comparison.difference or comparison.own).partition(" ")[0]
    column = Column("", "", len(printed.partition(".")[2]))
    values = (words.partition(" [")[0] for words in (comparison.other, comparison.own))
    change = text.number(judgement.difference or 0.0, column)
    change = f"+{change}" if (judgement.difference or 0.0) > 0 else change
    if judgement.low is not None and judgement.high is not None:
        change += f" [{text.number(judgement.low, column)}, {text.number(judgement.high, column)}]"
    margin = text.number(margin_of(other), replace(column, digits=column.digits + 1))
    shown = [f"{' → '.join(values)} {claim.unit}".strip(), change]
    shown += [f"p = {ps}"] if ps else []
    shown += [f"margin {margin}"] if direction == "alike" else []
    return judgement, ", ".join(shown)


def _ours(words: str, seeds: int) -> OurValue:
    value, deviation, low, high = map(_number, _match(VALUE, words).groups())
    return OurValue(Cell("ok", "", value, low, high, deviation, seeds if deviation is not None else 1))


def _delta(words: str) -> tuple[Delta, str]:
    """Return the paired difference, and its p-values in words: over segments, and over seeds."""
    value, low, high, over_segments, seeds_low, seeds_high, over_seeds = _match(DIFFERENCE, words).groups()
    ps = [p for printed in (over_segments, over_seeds) if printed for p in printed.split("/")]
    over_segments_alone = Delta("ok", value=_number(value), low=_number(low), high=_number(high))
    delta = replace(over_segments_alone, seeds_low=_number(seeds_low), seeds_high=_number(seeds_high))
    significant = delta.excludes_zero and all(float(p.lstrip("<")) < SIGNIFICANT for p in ps)
    return replace(delta, significant=significant), ", ".join(ps)


def _match(pattern: re.Pattern[str], words: str) -> re.Match[str]:
    match = pattern.fullmatch(words)
    if match is None:
        raise ValueError(f"claims.yaml: {words!r} is not a figure as reports print it")
    return match


def _number(printed: str | None) -> float | None:
    return None if printed is None else float(re.sub("[±+,]", "", printed).replace("−", "-"))


def _escaped(words: str) -> str:
    return re.sub(r"([\[\]<])", r"\\\1", words)


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m creamtea.report.papers.claims", description="Write claims.md.")
    parser.add_argument("folder", type=Path, help="the folder of claims.yaml and claims.md")
    folder: Path = parser.parse_args().folder
    (folder / "claims.md").write_text(markdown(folder), encoding="utf-8")
