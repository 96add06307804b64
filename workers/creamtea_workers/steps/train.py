"""Steps that make a model: `train` and `import_model`, which write the same files."""

from __future__ import annotations

import math
import shutil
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.marian import UnusableModel
from creamtea.marian_files import read_marian
from creamtea.methods.training import Training
from creamtea.shipped import ShippedFolder, read_shipped
from creamtea.steps.systems import ImportModelParams, TrainParams
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.corpora.subwords import (
    MARIAN_FILE,
    MarianSubwords,
    SubwordModel,
    TextModel,
    load_text_model,
)
from creamtea_workers.corpora.text import iterate_lines, read_lines
from creamtea_workers.corpora.tokens import Ids, Rows
from creamtea_workers.models.marian import load_marian
from creamtea_workers.models.model import save_model
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import device_name, step_device
from creamtea_workers.training.evaluate import BLEU_SENTENCES, Development
from creamtea_workers.training.group import current_group
from creamtea_workers.training.trainer import Trainer, TrainingResult

PART = 1 << 14  # lines to segment at a time
EXAMPLES = 4  # sentences whose translations a page shows while the training runs


def run(context: StepContext[TrainParams]) -> StepResult:
    """Train a variant with one seed, from random weights or from another variant's model."""
    prepare_torch(context.cpus, context.params.training.is_deterministic(context.gpus > 0))
    device = step_device(context.gpus)
    encoded = context.input("encode")
    pairs = training_pairs(encoded, context.params.training)
    corpus, subwords = context.input("corpus"), load_text_model(context)
    development = development_set(corpus, encoded, subwords, context.params)
    pairs_of_epoch = None
    if context.params.training.bpe_dropout:
        assert isinstance(subwords, SubwordModel)  # the study's check ensures it
        pairs_of_epoch = partial(sampled_pairs, corpus, pairs, subwords, context.params)
    initial = context.inputs("initial")
    trainer = Trainer(
        context.params,
        pairs,
        development,
        device,
        context.checkpoints,
        context.progress,
        initial=initial[0] if initial else None,
        group=current_group(),
        show=context.show,
        has_more_room=context.has_more_room,
        pairs_of_epoch=pairs_of_epoch,
    )
    outcome = trainer.run()
    save_model(context.output, outcome.model, trainer.config)
    points = [PointRow(series, update, value) for series, update, value in outcome.position.points]
    facts = {**facts_of(outcome, device), "deterministic": trainer.deterministic}
    return StepResult(metrics(outcome, pairs, development), points, facts)


def training_pairs(encoded: Path, training: Training) -> Pairs:
    # eos takes one of a batch's tokens
    longest, limit = training.max_tokens, f"training.max_tokens (now {training.max_tokens})"
    if training.batch_sentences is None and training.batch_tokens - 1 < longest:
        longest, limit = training.batch_tokens - 1, f"training.batch_tokens (now {training.batch_tokens})"
    pairs = Pairs.load(encoded, "train", longest)
    if len(pairs) == 0:
        raise StepError(f"every training pair is longer than {longest} subwords: raise {limit}")
    return pairs


def sampled_pairs(
    corpus: Path, pairs: Pairs, subwords: SubwordModel, params: TrainParams, epoch: int
) -> Pairs:
    """Segment the training text by BPE-dropout.

    The result depends on seed and epoch alone, so that a training resumes with the same subwords. A sentence
    that becomes too long keeps its plain subwords.
    """
    sides: list[Rows] = []
    for side, (name, plain) in enumerate((("train.src", pairs.sources), ("train.tgt", pairs.targets))):
        kept = range(len(plain)) if plain.kept is None else plain.kept.tolist()
        longest, wanted = int(plain.lengths.max()), frozenset(kept)
        lines = (line for n, line in enumerate(iterate_lines(corpus / name)) if n in wanted)
        rows: list[Ids] = []
        while part := list(islice(lines, PART)):
            seed = np.random.SeedSequence((params.seed, epoch, side, len(rows))).generate_state(1)[0]
            sampled = subwords.sampled_lines(part, params.training.bpe_dropout, int(seed) >> 1)
            rows += [
                ids if len(ids) <= longest else plain[len(rows) + n].tolist() for n, ids in enumerate(sampled)
            ]
        sides.append(Rows.of(rows))
    return Pairs(sides[0], sides[1])


def development_set(corpus: Path, encoded: Path, subwords: TextModel, params: TrainParams) -> Development:
    """Load the development text, with references for its first sentences.

    If a metric of translations selects the model, there are references for all sentences.
    """
    references = read_lines(corpus / "dev.tgt")
    sources = read_lines(corpus / "dev.src")[:EXAMPLES]
    groups = read_lines(corpus / "dev.groups") if (corpus / "dev.groups").exists() else ()
    select_by = params.training.select_by
    some = references[:BLEU_SENTENCES] if select_by in ("loss", "perplexity") else references
    return Development(
        Pairs.load(encoded, "dev"), some, subwords, select_by, groups, sources, params.tokenize
    )


def metrics(outcome: TrainingResult, pairs: Pairs, development: Development) -> list[MetricRow]:
    position, select_by = outcome.position, development.select_by
    bleu = {"sentences": len(development.references), "search": "greedy", "tokenize": development.tokenize}
    errors, perplexity = outcome.evaluation.errors, outcome.evaluation.perplexity
    return [
        *([] if errors is None else [MetricRow(f"dev_{select_by}", errors)]),
        *([MetricRow("dev_perplexity", perplexity)] if select_by == "perplexity" else []),
        MetricRow("dev_loss", outcome.evaluation.loss),
        MetricRow("dev_bleu", None, note="the translation model is frozen")
        if math.isnan(outcome.evaluation.bleu)
        else MetricRow("dev_bleu", outcome.evaluation.bleu, detail=bleu),
        MetricRow("updates", position.update),
        MetricRow("tokens_per_second", position.tokens / max(position.seconds, 1e-9)),
        MetricRow(
            "parameters", sum(weight.numel() for weight in outcome.model.parameters() if weight.requires_grad)
        ),
        MetricRow("left_out", pairs.left_out),
    ]


def facts_of(outcome: TrainingResult, device: torch.device) -> dict[str, Any]:
    position, recorder = outcome.position, outcome.model.recorder
    share = None if recorder is None else recorder.share  # share of batches whose kernels a GPU replayed
    return {
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "stopped": outcome.stopped,
        "averaged_updates": sorted(best.update for best in position.best),
        "training_seconds": round(position.seconds, 1),
        **({} if share is None else {"replayed": round(share, 3)}),
    }


def import_model(context: StepContext[ImportModelParams]) -> StepResult:
    """Import a model. Raise StepError if its folder is unusable or has changed since planning."""
    params = context.params
    place = Path(context.locations[params.path])
    try:
        folder = read_shipped(place) if params.ctranslate2 else read_marian(place)
    except UnusableModel as error:
        raise StepError(f"{params.path}: {error}") from None
    if folder.digest != params.digest:
        raise StepError(f"{params.path} has changed since the study was submitted: submit it again")
    if isinstance(folder, ShippedFolder):
        note, subwords, parameters = "", _copy(folder, context.output), folder.parameters
    else:
        note = folder.note
        model, config, subwords = load_marian(folder)
        save_model(context.output, model, config)
        parameters = sum(weight.numel() for weight in model.parameters())
    subwords.save(context.output / MARIAN_FILE)
    sizes = {"parameters": parameters, "vocabulary_size": subwords.size}
    facts = {
        "name": folder.name,
        "digest": folder.digest,
        "licence": folder.licence or "not stated",
        "note": note,
    }
    return StepResult([MetricRow(name, size) for name, size in sizes.items()], facts=facts)


def _copy(shipped: ShippedFolder, output: Path) -> MarianSubwords:
    """Copy the files that CTranslate2 reads; return the subwords that it names."""
    for name in shipped.files:
        shutil.copyfile(shipped.folder / name, output / name)
    models = [(shipped.folder / name).read_bytes() for name in shipped.spm]
    source = None if shipped.source == shipped.target else shipped.source
    return MarianSubwords(models, source, shipped.target)
