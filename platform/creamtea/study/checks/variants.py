"""Variants: their corpora, training and what they start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import REQUIRED, KeyPath, Mistake, shown
from creamtea.document.raw import Block, RawStudy, parsed, repeated
from creamtea.methods.architectures import ARCHITECTURES, Architecture
from creamtea.methods.corpora import CORPORA, WordCorpus
from creamtea.methods.objectives import OBJECTIVES, Objective, Softmax
from creamtea.methods.texts import Subwords, needs_joint
from creamtea.methods.training import Training
from creamtea.study.checks.outputs import OF_OWN_SUBWORDS, imports
from creamtea.study.checks.resources import own_resources, resources_of

NAMED = {"corpus": "corpora", "subwords": "subwords", "alignment_corpus": "corpora"}


def check_variants(study: RawStudy) -> Iterator[Mistake]:
    shared: dict[KeyPath, Mistake] = {}  # one for the study's own resources, however many variants have them
    for name, variant in study.blocks("variants"):
        path: KeyPath = ("variants", name)
        for key, section in NAMED.items():
            yield from study.unknown_key(path, variant, key, section)
        yield from ARCHITECTURES.check((*path, "architecture"), variant.get("architecture", {}), study)
        yield from OBJECTIVES.check((*path, "objective"), variant.get("objective"), study)
        yield from _check_training((*path, "training"), variant)
        yield from _check_workers((*path, "training", "accumulate"), variant, study)
        yield from _check_device((*path, "training", "autocast"), variant, study)
        shared |= {mistake.path: mistake for mistake in _check_share(path, variant, study)}
        yield from _check_head((*path, "nvs"), variant.get("nvs"))
        if variant.get("nvs") is not None:
            yield from needs_joint((*path, "nvs"), variant.get("subwords"), study, "an NVS head")
        training = parsed(Training, variant.get("training", {}))
        if training and training.bpe_dropout:
            place = (*path, "training", "bpe_dropout")
            yield from needs_joint(place, variant.get("subwords"), study, "bpe_dropout")
        yield from _check_symbols((*path, "subwords"), variant, study)
        yield from repeated(variant.get("seeds"), (*path, "seeds"))
        yield from _check_start(path, name, variant, study)
        yield from _check_imported(path, name, variant, study)
        yield from _check_freeze(path, variant, study)
    yield from shared.values()


def _check_training(path: KeyPath, variant: Block) -> Iterator[Mistake]:
    block = variant.get("training", {})
    training = parsed(Training, block)
    if training and training.warmup == 0 and training.schedule in ("inverse_sqrt", "noam"):
        yield Mistake((*path, "warmup"), "0", f"at least 1 with `schedule: {training.schedule}`")
    for key in ("plateau_patience", "min_learning_rate"):
        if training and training.schedule != "plateau" and key in training.model_dump():
            yield Mistake((*path, key), f"{shown(block[key])} with this schedule", "`schedule: plateau`")
    if training and training.schedule == "linear":
        yield from _check_end((*path, "max_updates"), training, block)
    if training and training.schedule == "plateau" and training.min_learning_rate > training.learning_rate:
        allowed = f"at most the learning rate, {training.learning_rate:g}"
        yield Mistake((*path, "min_learning_rate"), f"{training.min_learning_rate:g}", allowed)
    for key, other in (("batch_tokens", "batch_sentences"), ("clip", "clip_value")):
        if training and key in block and block.get(other) is not None:
            yield Mistake((*path, key), f"{key} beside {other}", "one of the two")
    if training and training.weight_decay and training.optimizer == "adam":
        allowed = "0 with `optimizer: adam`, which has no decay; adamw and lamb have one"
        yield Mistake((*path, "weight_decay"), str(training.weight_decay), allowed)


def _check_end(path: KeyPath, training: Training, block: Block) -> Iterator[Mistake]:
    """A rate that falls to 0 has to know when."""
    if block.get("max_updates") is None:
        allowed = "with `schedule: linear` the number of updates, after which the rate is 0"
        yield Mistake(path, "nothing", allowed)
    elif training.max_updates <= training.warmup:
        yield Mistake(path, str(training.max_updates), f"more than the {training.warmup} updates of `warmup`")
    if training.max_epochs is not None:
        allowed = "`max_updates` alone with `schedule: linear`, whose rate is 0 after them"
        yield Mistake((*path[:-1], "max_epochs"), str(training.max_epochs), allowed)


def _check_workers(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """What an update is does not depend on the workers: each computes some of its batches."""
    training = parsed(Training, variant.get("training", {}))
    resources = resources_of("train", variant, study)
    most = resources.workers[1] if resources else 1
    if training and training.accumulate < most:
        allowed = (
            f"at least {most}, best a power of two: the batches of an update, which the workers of "
            "resources.train share out (an update of smaller batches is as large)"
        )
        yield Mistake(path, str(training.accumulate), allowed)


def _check_device(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    training, resources = parsed(Training, variant.get("training", {})), resources_of("train", variant, study)
    if training and training.autocast == "tf32" and resources and not resources.gpus:
        yield Mistake(path, "tf32 on a CPU", "bf16 or none, or `gpus: 1` in resources.train")


def _check_share(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """NCCL, by which the workers of a training send gradients, refuses two on one GPU."""
    resources = resources_of("train", variant, study)
    if resources and resources.workers[1] > 1 and 0 < resources.gpus < 1:
        own = "gpus" in own_resources("train", variant)
        place: KeyPath = (*path, "resources", "train", "gpus") if own else ("resources", "train", "gpus")
        yield Mistake(place, f"{resources.gpus:g} for each of several workers", "1 or more, or one worker")


def _check_symbols(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """Words without blanks must not become one symbol each: no other word would have any."""
    corpus = CORPORA.kind_of(study.named("corpora", variant.get("corpus")))
    subwords = parsed(Subwords, study.named("subwords", variant.get("subwords")))
    if not (corpus and issubclass(corpus, WordCorpus) and subwords):
        return
    sides = [("source", subwords.source, "read")]
    sides += [] if corpus.has_shared_tokens else [("target", subwords.target, "written")]
    name = variant["subwords"]
    for side, symbols, done in sides:
        if symbols == "tokens":
            yield Mistake(
                path,
                f"{name}, whose {side} symbols are tokens, with {corpus.noun}: each word would be one symbol",
                f"`{side}: characters` in subwords.{name}, by which a new word can be {done}",
            )


def _check_head(path: KeyPath, nvs: Any) -> Iterator[Mistake]:
    if isinstance(nvs, dict) and "positive_weight" in nvs and nvs.get("auto_weight") is not None:
        found = f"{shown(nvs['positive_weight'])} beside auto_weight {shown(nvs['auto_weight'])}"
        yield Mistake((*path, "positive_weight"), found, "one of the two: auto_weight takes its place")


def _check_start(path: KeyPath, name: str, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """What a variant starts from must have its subwords and architecture, and be trained with its seeds."""
    start = variant.get("start_from")
    if isinstance(start, dict):
        return
    parent = study.named("variants", start)
    if parent is None:
        yield from study.unknown_key(path, variant, "start_from", "variants")
        return
    chain = study.chain("variants", name, "start_from")
    if chain[-1] in chain[:-1]:
        yield Mistake((*path, "start_from"), f"{shown(start)}, a cycle", "a variant trained before this")
        return
    for key in ("subwords", "architecture"):
        own, other = (_comparable(key, block.get(key)) for block in (variant, parent))
        if own is not None and other is not None and own != other:
            but = ", in every key but those of dropout" if key == "architecture" else ""
            yield Mistake((*path, key), f"not {start}'s", f"the {key} of what it starts from{but}")
    if parent.get("nvs") is not None and variant.get("nvs") is None:
        yield Mistake((*path, "nvs"), f"nothing, where {start} has an NVS head", "`nvs`, as that one has")
    seeds, known_seeds = variant.get("seeds", [1]), parent.get("seeds", [1])
    if isinstance(seeds, list) and isinstance(known_seeds, list):
        missing = [seed for seed in seeds if seed not in known_seeds]
        if missing:
            allowed = f"seeds that {start} is trained with: {', '.join(map(str, known_seeds))}"
            yield Mistake((*path, "seeds"), ", ".join(map(str, missing)), allowed)


def _check_imported(path: KeyPath, name: str, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """A model from elsewhere brings its subwords and architecture."""
    if not imports(study, name):
        if "subwords" not in variant:
            yield Mistake((*path, "subwords"), "", REQUIRED)
        return
    for key in OF_OWN_SUBWORDS:
        if key in variant:
            found = f"{key} of a variant that starts from an imported model"
            yield Mistake((*path, key), found, "no such key: the model has its own")
    training = parsed(Training, variant.get("training", {}))
    if training and training.bpe_dropout:
        place = (*path, "training", "bpe_dropout")
        yield Mistake(place, "bpe_dropout in the subwords of an imported model", "0")


def _check_freeze(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """A head that is trained alone needs a model that has been trained, whose objective then stays."""
    training = parsed(Training, variant.get("training", {}))
    if training is None or training.freeze is None:
        return
    place: KeyPath = (*path, "training", "freeze")
    if variant.get("nvs") is None:
        yield Mistake(place, "translation without an NVS head to train", "it beside `nvs: {}`")
    if variant.get("start_from") is None:
        yield Mistake(place, "translation of a new model", "it with `start_from`, a trained model")
    if training.select_by != "loss":
        found = f"{training.select_by}, which no head changes"
        yield Mistake((*path, "training", "select_by"), found, "loss with `freeze`, the head's own")
    objective = parsed(Objective, variant.get("objective"))
    parent = study.named("variants", variant.get("start_from"))
    trained_by = Softmax(kind="softmax") if parent is None else parsed(Objective, parent.get("objective"))
    if parent is None:  # a model from elsewhere, whatever its label smoothing was
        objective = objective if objective is None or objective.kind != "softmax" else trained_by
    if objective and trained_by and objective != trained_by:
        found = f"{objective.describe()}, where the frozen model is trained by {trained_by.describe()}"
        yield Mistake((*path, "objective"), found, "the objective of what it starts from")


def _comparable(key: str, value: Any) -> Any:
    if key != "architecture":
        return value
    architecture = parsed(Architecture, value or {})
    return architecture and architecture.shape()
