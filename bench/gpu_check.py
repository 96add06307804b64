"""One command on a GPU: every path is compared with the CPU, then timed. At most eight minutes.

    make gpu-check               # writes the tables of docs/results/data/gpu.md, if GPU and CPU agree
    make gpu-check REHEARSE=1    # the same on a CPU with small shapes: shows that it runs

Compared: gradients of each objective and architecture in fp32, whole trainings with replayed kernels and
without, and translations of each search, selection and architecture. Timed, with the peak of the GPU's
memory: updates in bf16 of the shapes base and big with each objective, on random text with the lengths of WMT
(mean 25 subwords), and searches by vocabulary and batch, beside Hugging Face's MarianMT of the same shape
where transformers is installed. The time of capturing CUDA graphs is not in the speed of searches, but in a
column of its own.

The page is a template: each table replaces what stands between `<!-- table: NAME -->` and
`<!-- end of table -->`, and all other text stays as it is.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peers.marian_peer import Peer, marian
from random_models import random_lexicon, random_model, random_sentences, threshold_for
from train_speed import OBJECTIVES, RandomSubwords, Unused

from creamtea.methods.searches import SEARCHES
from creamtea.steps.systems import TrainParams
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import PAD
from creamtea_workers.objectives import build_objective
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search import build_search, fixed
from creamtea_workers.search.base import length_limit
from creamtea_workers.search.translator import Translator, device_name
from creamtea_workers.selection.base import Selector
from creamtea_workers.selection.nvs import NvsSelector
from creamtea_workers.selection.tables import FullSelector, LexiconSelector
from creamtea_workers.training.evaluate import Development
from creamtea_workers.training.trainer import Trainer, can_pack

CPU = torch.device("cpu")
SMALL: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer"},
    "ssru": {"kind": "ssru"},
    "rnn": {"kind": "rnn", "width": 64, "embedding": 32},
}
LENGTH = {"max_length_ratio": 0.6}  # the random models never end a sentence
COMPARED: list[dict[str, Any]] = [
    {"kind": "greedy", **LENGTH},
    {"kind": "beam", "width": 4, **LENGTH},
    {"kind": "exact", "max_states": 50, **LENGTH},
    {"kind": "sample", "seed": 1, **LENGTH},
    {"kind": "beam", "width": 4, "length_normalization": 0.6, **LENGTH},
]
TIMED = COMPARED[:2]
UPDATES = 9  # of trainings with and without recordings
MAX_ERROR = 1e-3  # of a gradient, relative to its norm
MAX_BF16_ERROR = 3e-2  # of the whole gradient in bf16
MIN_EQUAL = 0.9  # translations; nearly equal words may be rounded the other way
TABLE = 32000  # subwords of the timed shapes
NVS_SIZE = 800  # subwords that the head selects
MEAN_LENGTH = 25
BATCHES = 10  # that are trained on again and again
PEER = "MarianMT, softmax"
WRONG = " (wrong)"
ON_A_GPU = "# Results on a GPU"
REHEARSAL = """# A rehearsal of `make gpu-check`

Every path ran on a CPU with small shapes, and was compared with itself: no figure here is one of a GPU."""
NO_GPU = "torch sees no GPU here. `make gpu-check REHEARSE=1` runs the same on a CPU, and writes nothing"
Row = list[str]


class Page:
    """Tables in Markdown, shown line by line."""

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}

    def add(self, table: str, text: str) -> None:
        print(text, flush=True)
        self.tables[table] = f"{self.tables.get(table, '')}{text}\n"

    def write(self, path: Path) -> None:
        """Put the tables into their places in the file. SystemExit where it lacks one."""
        text = path.read_text(encoding="utf-8")
        for name, table in self.tables.items():
            begin, end = re.escape(f"<!-- table: {name} -->"), re.escape("<!-- end of table -->")
            place = re.search(f"(?<={begin}\n).*?(?={end})", text, re.DOTALL)
            if place is None:
                sys.exit(f"{path} has no place for the table {name}: give it <!-- table: {name} -->")
            text = f"{text[: place.start()]}\n{table}\n{text[place.end() :]}"
        path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="on a CPU, with small shapes; writes nothing")
    parser.add_argument("--output", type=Path, help="the page whose tables are written")
    options = parser.parse_args()
    if options.rehearse and options.output:
        sys.exit("--rehearse measures nothing worth a file: leave out --output")
    if not options.rehearse and not torch.cuda.is_available():
        sys.exit(NO_GPU)
    prepare_torch(1 if options.rehearse else 2, deterministic=False)
    page = Page()
    failed = check(page, options.rehearse)
    if failed:
        sys.exit("\n".join(["GPU and CPU disagree, and nothing was written:", *failed]))
    if options.output:
        page.write(options.output)


def check(page: Page, rehearse: bool) -> list[str]:
    """The rows on which GPU and CPU disagree."""
    device, failed, began = CPU if rehearse else torch.device("cuda"), [], time.monotonic()
    print(f"{REHEARSAL if rehearse else ON_A_GPU}\n")
    with fixed_shapes(device.type):
        for name, heading, rows in (
            ("gradients", "architecture | objective | largest relative error", gradients(device)),
            (
                "recordings",
                "architecture | autocast | largest relative error of a weight",
                recordings(device),
            ),
            ("deterministic", "architecture | largest difference of a weight", twice(device)),
            ("translations", "architecture | search | vocabulary | equal", translations(device)),
            (
                "training",
                "shape | objective | batch | target tokens/s | times MarianMT | GiB at most",
                trainings(device, rehearse),
            ),
            (
                "translation",
                "precision | search | vocabulary | batch | sentences/s | s of captures | GiB at most | "
                "MarianMT | times as fast",
                decodings(device, rehearse),
            ),
            (
                "papers",
                "paper | random weights | search | vocabulary | result | compared",
                papers(device, rehearse),
            ),
        ):
            page.add(name, f"| {heading} |\n|{'---|' * (heading.count('|') + 1)}")
            try:
                for row in rows:
                    page.add(name, f"| {' | '.join(row)} |")
                    failed += [f"{name}: {', '.join(row)}"] if row[-1].endswith(WRONG) else []
            except Exception as error:  # GPU time is rare: the other tables are still measured
                traceback.print_exc(file=sys.stdout)
                failed.append(f"{name}: {type(error).__name__}: {error}")
            print()
    libraries = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
    page.add("machine", f"{device_name(device)}, {libraries}; {time.monotonic() - began:.0f} seconds in all.")
    return failed


@contextmanager
def fixed_shapes(*devices: str) -> Iterator[None]:
    """Searches decode in tensors of fixed shape (`search.fixed`) on these devices only. In a rehearsal the
    CPU is one of them, but where it stands for itself."""
    before = set(fixed.DEVICES)
    fixed.DEVICES = set(devices)
    try:
        yield
    finally:
        fixed.DEVICES = before


# ---------------------------------------------------------------- agreement


def trainer(
    architecture: dict[str, Any], objective: str, device: torch.device, table: int, **training: Any
) -> Trainer:
    params = TrainParams.model_validate(
        {
            "objective": OBJECTIVES[objective].model_dump(),
            "architecture": architecture,
            "nvs": None,
            "training": training,
            "seed": 1,
        }
    )
    pairs = random_pairs(table, 40 * training["batch_tokens"] // MEAN_LENGTH)
    development = Development(pairs, [], Words(table))
    return Trainer(params, pairs, development, device, Unused(), lambda *_: None)


class Words(RandomSubwords):
    def __init__(self, size: int) -> None:
        self.size = size


def random_pairs(table: int, count: int) -> Pairs:
    draw = np.random.default_rng(1)
    lengths = np.clip(
        draw.normal(MEAN_LENGTH, 12, size=(count, 1)) + draw.normal(0, 3, size=(count, 2)), 4, 100
    )
    sides = ([draw.integers(4, table, int(n)).tolist() for n in lengths[:, side]] for side in (0, 1))
    return Pairs(*sides)


def gradients(device: torch.device) -> Iterator[Row]:
    for name, architecture in SMALL.items():
        for objective in OBJECTIVES:
            found = []
            for place in (CPU, device):
                recipe = {"autocast": "none", "accumulate": 2, "batch_tokens": 512}
                made = trainer({**architecture, "dropout": 0.0}, objective, place, 500, **recipe)
                if found and can_pack(made.model):  # in a rehearsal, too
                    made.pack()
                made.accumulate(made.plan_of(0)[:2])
                found.append([p.grad.cpu() for p in made.model.parameters() if p.grad is not None])
            yield [name, objective, largest_error(*found)]
    if "transformer" in SMALL:
        yield ["transformer, bf16", "softmax", bf16_error(device)]


def bf16_error(device: torch.device) -> str:
    """Compare the whole gradient in bf16 with that in fp32 on the CPU."""
    found = []
    for place, autocast in ((CPU, "none"), (device, "bf16")):
        architecture = {**SMALL["transformer"], "dropout": 0.0}
        made = trainer(architecture, "softmax", place, 500, autocast=autocast, batch_tokens=512)
        if found:
            made.pack()
        made.accumulate(made.plan_of(0)[:1])
        weights = made.model.parameters()
        found.append(torch.cat([p.grad.flatten().cpu() for p in weights if p.grad is not None]))
    error = float((found[0] - found[1]).norm() / found[0].norm())
    return f"{error:.1e}" + ("" if error < MAX_BF16_ERROR else WRONG)


def recordings(device: torch.device) -> Iterator[Row]:
    """Compare weights after some updates with dropout, of which each shape's first makes a recording
    (`creamtea_workers.models.packed`), with those of a training without recordings."""
    rnn, transformer = {**SMALL["rnn"], "layers": 2}, SMALL.get("transformer", {})
    for name, architecture, autocast in (
        ("rnn, softmax", rnn, "none"),
        ("rnn, entmax", {**rnn, "attention": "entmax"}, "none"),
        ("rnn, sparsemax", {**rnn, "attention": "sparsemax"}, "none"),
        ("rnn, entmax", {**rnn, "attention": "entmax"}, "tf32"),
        ("transformer", {**transformer, "attention_dropout": 0.1}, "bf16"),
        ("transformer", transformer, "bf16"),
        ("transformer", transformer, "none"),
    ):
        if name.partition(",")[0] not in SMALL:
            continue
        ends, replays = [], []
        for record_at in (1, sys.maxsize):
            tokens = 128 if device == CPU else 512
            recipe = {"autocast": autocast, "accumulate": 2, "batch_tokens": tokens, "clip_value": 1.0}
            made = trainer(architecture, "softmax", device, 500, **recipe)
            if can_pack(made.model):
                made.pack()
            recorder, plan = made.model.recorder, made.plan_of(0)
            assert recorder is not None
            recorder.record_at = record_at
            for update in range(2 if device == CPU else UPDATES):
                made.update([plan[update % 3], plan[3]])
            ends.append([weight.detach().cpu() for weight in made.model.parameters()])
            replays.append(recorder.replays)
        compared = replays == [0, 0] if device == CPU else replays[0] > replays[1] == 0
        yield [name, autocast, largest_error(*ends) if compared else f"nothing replayed{WRONG}"]


def twice(device: torch.device) -> Iterator[Row]:
    """Compare the weights of two trainings with `deterministic: true`."""
    for name, architecture in SMALL.items():
        ends = []
        prepare_torch(torch.get_num_threads(), deterministic=True)
        for _ in range(2):
            made = trainer(architecture, "softmax", device, 500, batch_tokens=512, deterministic=True)
            for members in made.plan_of(0)[:UPDATES]:
                made.update([members])
            ends.append(torch.cat([weight.detach().flatten() for weight in made.model.parameters()]))
        prepare_torch(torch.get_num_threads(), deterministic=False)
        yield [name, f"{float((ends[0] - ends[1]).abs().max()):.1e}"]


def largest_error(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> str:
    error = max(
        float((a - b).norm() / a.norm().clamp(min=1e-6)) for a, b in zip(expected, found, strict=True)
    )
    return f"{error:.1e}" + ("" if error < MAX_ERROR else WRONG)


def translations(device: torch.device) -> Iterator[Row]:
    """Each search and selection of a Transformer, and each architecture with the full vocabulary."""
    cases = [("transformer", spec, v) for spec in COMPARED for v in ("full", "lexicon", "NVS")]
    cases += [
        (name, spec, "full") for name in ("ssru", "rnn") for spec in COMPARED if spec["kind"] != "exact"
    ]
    sentences, models = random_sentences(4000), {}
    for name, spec, vocabulary in cases:
        if name not in models:
            models[name] = random_model(4000, {"preset": "small"} if name == "transformer" else SMALL[name])
        outputs = []
        for place, devices in ((CPU, []), (device, [device.type])):
            ready = prepare(copy.deepcopy(models[name]).to(place), "fp32")
            system = translator(ready, models[name], spec, vocabulary, sentences)
            with fixed_shapes(*devices):
                done = system.translate(sentences, with_scores=False)
            outputs.append([translation.hypothesis.tokens for translation in done])
        share = float(np.mean([a == b for a, b in zip(*outputs, strict=True)]))
        yield [name, label(spec), vocabulary, f"{share:.0%}" + ("" if share >= MIN_EQUAL else WRONG)]


def label(spec: dict[str, Any]) -> str:
    normalised = ", normalised" if spec.get("length_normalization") else ""
    return f"{spec['kind']} {spec.get('width', '')}".strip() + normalised


def translator(
    ready: Any, model: Any, spec: dict[str, Any], vocabulary: str, sentences: Sequence[list[int]]
) -> Translator:
    selectors: dict[str, Callable[[], Selector]] = {
        "full": FullSelector,
        "lexicon": lambda: LexiconSelector(random_lexicon(model.vocabulary_size, 200), 200),
        "NVS": lambda: NvsSelector(ready, threshold_for(model, sentences, NVS_SIZE)),
    }
    search = build_search(SEARCHES.kinds[spec["kind"]].model_validate(spec))
    return Translator(ready, build_objective(OBJECTIVES["softmax"]), selectors[vocabulary](), search)


# ---------------------------------------------------------------- speed


def trainings(device: torch.device, rehearse: bool) -> Iterator[Row]:
    shapes = ["small"] if rehearse else ["base", "big"]
    table, tokens, batches = (4000, 512, 2) if rehearse else (TABLE, 16384, BATCHES)
    for shape in shapes:
        peer: float | None = None
        for name in (PEER, *OBJECTIVES):
            objective = name if name in OBJECTIVES else "softmax"
            made = trainer({"preset": shape}, objective, device, table, batch_tokens=tokens)
            plan = made.plan_of(0)[:batches]
            clear(device)
            if name == PEER:
                try:
                    speed = peer = tokens_per_second(peer_update(made, device), plan, made, device)
                except ImportError:
                    yield [shape, name, f"{tokens:,}", "not installed", "", ""]
                    continue
            else:
                speed = tokens_per_second(lambda rows, made=made: made.update([rows]), plan, made, device)
            ratio = f"{speed / peer:.2f}" if peer else ""
            yield [shape, name, f"{tokens:,}", f"{speed:,.0f}", ratio, memory(device)]


def tokens_per_second(
    update: Callable[[Any], None], plan: Sequence[Any], made: Trainer, device: torch.device
) -> float:
    """After two passes over the batches, in which kernels are chosen, compiled and recorded."""
    for rows in [*plan, *plan]:
        update(rows)
    synchronise(device)
    began = time.perf_counter()
    for rows in [*plan, *plan]:
        update(rows)
    synchronise(device)
    return 2 * made.target_tokens(plan) / (time.perf_counter() - began)


def peer_update(made: Trainer, device: torch.device) -> Callable[[Any], None]:
    """MarianMT on the same batches: eager, in bf16 by autocast, with a fused AdamW."""
    model = marian(made.model, dropout=0.1).to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def update(rows: Any) -> None:
        batch = made.pairs.batch(rows).to(device)
        inputs = {"input_ids": batch.source, "attention_mask": (batch.source != PAD).long()}
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(**inputs, decoder_input_ids=batch.target_in).logits
        wanted = batch.target.masked_fill(batch.target == PAD, -100).flatten()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), wanted, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return update


def decodings(device: torch.device, rehearse: bool) -> Iterator[Row]:
    shape, table, batches = ("small", 1000, (1, 2)) if rehearse else ("base", TABLE, (1, 4, 64, 512))
    model = random_model(table, {"preset": shape})
    sentences = random_sentences(table)[: 2 if rehearse else None]
    ready = prepare(copy.deepcopy(model).to(device), "bf16")
    try:
        peer = marian(model).to(device, torch.bfloat16).eval()
    except ImportError:
        peer = None
    for spec in TIMED:
        for batch in batches:
            sources = [sentences[n % len(sentences)] for n in range(max(batch, len(sentences)))]
            parts = [sources[first : first + batch] for first in range(0, len(sources), batch)]
            theirs = None if peer is None else of_peer(Peer(peer, spec.get("width", 1)), parts, device)
            for vocabulary in ("full", "NVS"):
                system = translator(ready, model, spec, vocabulary, sentences)
                before = 0.0 if ready.graphs is None else ready.graphs.seconds
                speed = sentences_per_second(
                    lambda part, own=system: own.translate(part, with_scores=False), parts, device
                )
                captured = 0.0 if ready.graphs is None else ready.graphs.seconds - before
                row = ["bf16", label(spec), vocabulary, str(batch), f"{speed:,.1f}", f"{captured:.2f}"]
                beside = (
                    ["not installed", ""] if theirs is None else [f"{theirs:,.1f}", f"{speed / theirs:.1f}"]
                )
                yield [*row, memory(device), *beside]


def papers(device: torch.device, rehearse: bool) -> Iterator[Row]:
    """Figure 2 of the SCONES paper, whose batches have 4 sentences, and the GPU columns of the NVS paper's
    Table 5: p90 of one sentence at a time, half precision, a beam of 5."""
    table = 1000 if rehearse else TABLE
    sentences = random_sentences(table)[: 2 if rehearse else None]
    model = random_model(table, {"preset": "small" if rehearse else "base"})
    ready = prepare(copy.deepcopy(model).to(device), "bf16")
    parts = [sentences[first : first + 4] for first in range(0, len(sentences), 4)]
    speeds = {}
    for spec in (COMPARED[0], *({"kind": "beam", "width": width, **LENGTH} for width in (2, 4, 8))):
        system = translator(ready, model, spec, "full", sentences)
        speeds[label(spec)] = sentences_per_second(
            lambda part, own=system: own.translate(part, with_scores=False), parts, device
        )
    for name, speed in speeds.items():
        ratio = f"{speed / speeds['beam 4']:.2f} times beam 4"
        yield ["SCONES", "base, bf16, batch of 4", name, "full", f"{speed:,.1f} sentences/s", ratio]
    model = random_model(table, {"kind": "ssru"} if rehearse else {"preset": "deep"})
    ready = prepare(copy.deepcopy(model).to(device), "bf16" if device is CPU else "fp16")
    beam, full = {"kind": "beam", "width": 5, **LENGTH}, 0.0
    for vocabulary in ("full", "lexicon", "NVS"):
        p90 = ninetieth(translator(ready, model, beam, vocabulary, sentences), sentences, device)
        full = full or p90
        row = ["NVS", "deep, fp16, batch of 1", label(beam), vocabulary]
        yield [*row, f"{1000 * p90:.1f} ms", f"{p90 / full:.0%} of full"]


def ninetieth(system: Translator, sentences: Sequence[list[int]], device: torch.device) -> float:
    """The 90th percentile of the sentences' seconds, the median of ten rounds after a first one."""
    rounds = []
    for _ in range(11):
        seconds = []
        for sentence in sentences:
            synchronise(device)
            began = time.perf_counter()
            system.translate([sentence], with_scores=False)
            seconds.append(time.perf_counter() - began)
        rounds.append(np.percentile(seconds, 90))
    return float(np.median(rounds[1:]))


def of_peer(peer: Peer, parts: Sequence[Sequence[list[int]]], device: torch.device) -> float:
    def translate(part: Sequence[list[int]]) -> None:
        peer.translate(part, max(length_limit(LENGTH["max_length_ratio"], len(source)) for source in part))

    return sentences_per_second(translate, parts, device, rounds=1)


def sentences_per_second(
    translate: Callable[[Sequence[list[int]]], Any],
    parts: Sequence[Sequence[list[int]]],
    device: torch.device,
    rounds: int = 3,
) -> float:
    """The median of some rounds after a first one, which is not timed."""
    clear(device)
    seconds = []
    for _ in range(1 + rounds):
        synchronise(device)
        began = time.perf_counter()
        for part in parts:
            translate(part)
        synchronise(device)
        seconds.append(time.perf_counter() - began)
    return sum(map(len, parts)) / float(np.median(seconds[1:]))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def clear(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def memory(device: torch.device) -> str:
    return f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if device.type == "cuda" else "–"


if __name__ == "__main__":
    main()
