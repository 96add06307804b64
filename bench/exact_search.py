"""Speed of exact search: how many prefixes per second its decoder continues (the papers' explored states).

Two shapes: that of the Multi30k study (3+3 layers, width 128, V 4,000) and a base Transformer (6+6 layers,
width 512, V 32,000). Without --model the weights are random (SCONES) and every search runs to its
limit of expansions. A search continues at most --nodes prefixes of a sentence with one call of the
decoder: 1 is depth-first search as in the papers, step by step.

    python bench/exact_search.py --shape multi30k --sentences 1 16 64 --nodes 1 16
    python bench/exact_search.py --model FOLDER --source test.src --subwords subwords.model --json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.models.interface import EOS, TranslationModel
from creamtea_workers.models.model import ModelConfig, build_model, load_model
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.exact import ExactHypothesis, ExactSearch, SearchBudget
from creamtea_workers.search.translator import Translator, device_name
from creamtea_workers.selection.tables import FullSelector

LENGTH = 16  # subwords of a random source
LIKELY = 3
SPREAD = 8.0
SHAPES: dict[str, tuple[int, dict[str, int]]] = {  # vocabulary, architecture
    "multi30k": (4000, {}),
    "base": (
        32000,
        {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "heads": 8, "feed_forward": 2048},
    ),
}


@dataclass(frozen=True)
class Subject:
    """What is searched in."""

    name: str
    model: TranslationModel
    objective: Objective
    sources: list[list[int]]


@dataclass(frozen=True)
class Row:
    subject: str
    sentences: int  # side by side
    nodes: int  # prefixes of a sentence that a call of the decoder continues at most
    expansions: int  # of all sentences
    seconds: float
    expansions_per_second: float
    proved: float  # share
    improved: float


def random_subject(shape: str, sentences: int) -> Subject:
    """SCONES with random weights: about `LIKELY` words per step have a score near 0, and </s> has -10, so
    that no sentence is ever done."""
    vocabulary, architecture = SHAPES[shape]
    torch.manual_seed(1)
    config = ModelConfig.model_validate(
        {
            "architecture": architecture,
            "nvs": None,
            "objective": {"kind": "scones"},
            "vocabulary_size": vocabulary,
        }
    )
    model = build_model(config).eval()
    with torch.no_grad():
        model.decoder_norm.weight.fill_(SPREAD)  # the standard deviation of the logits
        model.output_bias.fill_(-SPREAD * NormalDist().inv_cdf(1 - LIKELY / vocabulary))
        model.embedding.weight[EOS] = 0.0
        model.output_bias[EOS] = -10.0
    draw = np.random.default_rng(2)
    sources = [draw.integers(4, vocabulary, size=LENGTH).tolist() for _ in range(sentences)]
    return Subject(shape, model, build_objective(config.objective), sources)


def trained_subject(folder: Path, source: Path, subwords: Path, sentences: int) -> Subject:
    model, objective, _ = load_model(folder)
    encode = SubwordModel.load(subwords).encode
    lines = source.read_text(encoding="utf-8").split("\n")[:sentences]
    return Subject(folder.name, model, objective, [encode(line) for line in lines])


def measure(subject: Subject, sentences: int, nodes: int, expansions: int) -> Row:
    """All of the subject's sentences, so many side by side. The beam search that gives the bound is not
    timed."""
    search = ExactSearch(SearchBudget(expansions, nodes=nodes))
    translator = Translator(subject.model, subject.objective, FullSelector(), search)
    translator.translate([subject.sources[0][:2]])  # warm
    hypotheses: list[Hypothesis] = []
    seconds = 0.0
    for start in range(0, len(subject.sources), sentences):
        rounds = translator.translate_gradually(subject.sources[start : start + sentences])
        next(rounds)  # before the first call of the decoder
        began = time.perf_counter()
        hypotheses += [translation.hypothesis for finished in rounds for _, translation in finished]
        seconds += time.perf_counter() - began
    exact = [each for each in hypotheses if isinstance(each, ExactHypothesis)]
    total = sum(each.expansions for each in exact)
    outcomes = [each.outcome for each in exact]
    return Row(
        subject=subject.name,
        sentences=sentences,
        nodes=nodes,
        expansions=total,
        seconds=seconds,
        expansions_per_second=total / seconds,
        proved=outcomes.count("proved") / len(outcomes),
        improved=outcomes.count("improved") / len(outcomes),
    )


def table(rows: Sequence[Row]) -> Table:
    shown = Table(title=rows[0].subject, title_justify="left")
    for name in ("sentences", "nodes", "expansions", "seconds", "per second", "proved %", "improved %"):
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(
            str(row.sentences),
            str(row.nodes),
            f"{row.expansions:,}",
            f"{row.seconds:.1f}",
            f"{row.expansions_per_second:,.0f}",
            f"{100 * row.proved:.1f}",
            f"{100 * row.improved:.1f}",
        )
    return shown


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="all", help="of random weights")
    parser.add_argument("--model", type=Path, help="folder with model.safetensors, instead of random weights")
    parser.add_argument("--source", type=Path, help="lines to translate with --model")
    parser.add_argument("--subwords", type=Path, help="subword model of --model")
    parser.add_argument("--lines", type=int, default=64, help="how many of --source's lines")
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 16, 64], help="side by side")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--expansions", type=int, default=2000, help="limit per sentence")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    options = parser.parse_args()
    if options.model and not (options.source and options.subwords):
        parser.error("--model needs --source and --subwords")
    return options


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    machine = {"hardware": device_name(torch.device("cpu")), "threads": options.threads}
    results: list[list[Row]] = []
    for shape in SHAPES if options.shape == "all" else [options.shape]:
        rows = []
        for sentences in options.sentences:
            subject = (
                trained_subject(options.model, options.source, options.subwords, options.lines)
                if options.model
                else random_subject(shape, sentences)
            )
            rows += [measure(subject, sentences, nodes, options.expansions) for nodes in options.nodes]
        results.append(rows)
        if options.model:
            break
    if options.json:
        print(json.dumps({**machine, "rows": [asdict(row) for rows in results for row in rows]}, indent=2))
        return
    console = Console()
    console.print(f"{machine['hardware']}, {options.threads} thread(s)")
    for rows in results:
        console.print(table(rows))


if __name__ == "__main__":
    main()
