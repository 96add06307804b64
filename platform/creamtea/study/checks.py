"""Check conditions between the parts of a study.

Methods check themselves (`creamtea.methods.family.Method.check`); this module checks the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from creamtea.contract.step import StepKind, StepResources
from creamtea.document.mistakes import (
    REQUIRED,
    Block,
    KeyPath,
    Mistake,
    RawStudy,
    kind_of,
    one_of,
    parsed,
    repeated,
    shown,
    target_language,
)
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.architectures import ARCHITECTURES, Architecture
from creamtea.methods.corpora import CORPORA, WordCorpus
from creamtea.methods.metrics import METRICS, Latency, Metric, OfWords, Recall
from creamtea.methods.objectives import OBJECTIVES, Objective, Softmax
from creamtea.methods.searches import PRECISIONS, SEARCHES, Beam
from creamtea.methods.selections import SELECTIONS, MapSelection
from creamtea.methods.test_sets import TEST_SETS, WordTestSet, is_without_references
from creamtea.methods.texts import Alignment, Subwords, needs_joint
from creamtea.methods.training import Training
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import DECODE, LATENCY, RECALL, TRAIN

SECTIONS = {"corpora": CORPORA, "test_sets": TEST_SETS, "analyses": ANALYSES}


def check(study: RawStudy) -> list[Mistake]:
    """Return all mistakes of methods and between parts."""
    of_methods = [
        mistake
        for section, family in SECTIONS.items()
        for name, block in study.blocks(section)
        for mistake in family.check((section, name), block, study)
    ]
    return [
        *of_methods,
        *check_trained(study),
        *check_subwords(study),
        *check_variants(study),
        *check_systems(study),
        *check_alignment(study),
        *study.unknown_key((), study.data, "baseline", "systems"),
        *check_metrics(study),
        *check_latency(study),
        *check_resources(study),
    ]


# ---------------------------------------------------------------- subwords and alignment

SENTENCEPIECE, SYMBOLS = ("vocabulary", "character_coverage"), ("source", "target")


def check_subwords(study: RawStudy) -> Iterator[Mistake]:
    for name, block in study.blocks("subwords"):
        characters = block.get("kind") == "characters"
        for key in SENTENCEPIECE if characters else SYMBOLS:
            if key in block:
                kinds = "bpe or unigram" if characters else "characters"
                yield Mistake(("subwords", name, key), "an unknown key of this kind", f"kind {kinds} with it")


def check_alignment(study: RawStudy) -> Iterator[Mistake]:
    alignment = parsed(Alignment, study.data.get("alignment", {}))
    if alignment is None:
        return
    if alignment.aligner == "table" and alignment.table is None:
        yield Mistake(("alignment", "table"), "nothing", "the path of a table, for `aligner: table`")
    if alignment.aligner != "table" and alignment.table is not None:
        found = f"a table beside `aligner: {alignment.aligner}`"
        yield Mistake(("alignment", "table"), found, "`aligner: table`, or no table")
    recall = parsed(Recall, study.data.get("recall", {}))
    selections = [SELECTIONS.kind_of(system.get("selection")) for _, system in study.blocks("systems")]
    has_lexicon = any(selection and selection.needs_lexicon for selection in selections)
    if recall and max(recall.k, default=0) > alignment.max_k and has_lexicon:
        found = f"{alignment.max_k}, and recall.k up to {max(recall.k)}"
        allowed = "at least the largest k of the sweep (list less in recall.k)"
        yield Mistake(("alignment", "max_k"), found, allowed)


# ---------------------------------------------------------------- the origin of outputs

ORIGINS = ("variant", "model", "outputs", "reference")
OF_MODELS = ("selection", "search", "precision", "ensemble", "batch_size", "alignment_corpus")
IN_CTRANSLATE2 = ("fp32", "int8")  # precisions
TRAINED = ("corpora", "subwords", "variants")
MAX_IN_A_ROW = 100  # longest chain of variants that start from each other
OF_OWN_SUBWORDS = ("subwords", "architecture")  # keys not allowed if a variant starts from an imported model


def outputs_of(system: Block) -> list[str]:
    """Return the test sets for which a raw system has files of outputs; [] if none or malformed."""
    outputs = system.get("outputs")
    return list(outputs) if isinstance(outputs, dict) else []


def check_origin(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    origins = [key for key in ORIGINS if key in system]
    if not origins:
        others = "`model`, one trained elsewhere, `outputs`, text files, or `reference`"
        yield Mistake((*path, "variant"), "", f"{REQUIRED} (or {others})")
        return
    for key in origins[1:]:
        yield Mistake((*path, key), f"{key} beside {origins[0]}", f"one of {', '.join(ORIGINS)}")
    if origins[0] == "variant":
        if "alignment_corpus" in system:
            place = (*path, "alignment_corpus")
            yield Mistake(place, "one beside a variant", "`alignment_corpus` of the variant")
        return
    model = system.get("model")
    if origins[0] == "model" and not (isinstance(model, dict) and {"marian", "ctranslate2"} & model.keys()):
        found = shown(", ".join(map(str, model))) if isinstance(model, dict) and model else shown(model)
        allowed = "one of `{marian: FOLDER}`, `{ctranslate2: FOLDER}`"
        yield Mistake((*path, "model"), found, allowed, settled=True)
        return
    if origins[0] == "model" and "ctranslate2" in system["model"]:
        yield from _check_shipped(path, system, study)
        return
    if origins[0] == "model":  # it has no seeds, no head, and no corpus to align a lexicon on
        yield from study.unknown_key(path, system, "alignment_corpus", "corpora")
        if system.get("ensemble") is True:
            yield Mistake((*path, "ensemble"), "an ensemble of one model", "a variant with several `seeds`")
        selection = SELECTIONS.kind_of(system.get("selection"))
        if selection is not None and selection.needs_head:
            found = f"{selection.title} of a model that was trained elsewhere, which has no NVS head"
            allowed = (
                "a variant with `start_from` this model, `nvs: {}` and `training: {freeze: translation}`"
            )
            yield Mistake((*path, "selection"), found, allowed)
        if selection is not None and selection.needs_lexicon and "alignment_corpus" not in system:
            yield Mistake((*path, "alignment_corpus"), "", f"{REQUIRED} (a corpus to align the lexicon on)")
        return
    for key in OF_MODELS:
        if key in system:
            found = f"{key} of a system that no model of the study runs"
            yield Mistake((*path, key), found, "no such key: the outputs are given")
    if origins[0] == "outputs":
        if system["outputs"] == {}:
            yield Mistake((*path, "outputs"), "a block of keys", "at least 1 entry (`TEST_SET: FILE`)")
        for test_set in outputs_of(system):
            yield from study.unknown_name((*path, "outputs", test_set), test_set, "test_sets")
        if "test_sets" in system:
            yield Mistake((*path, "test_sets"), "test_sets beside outputs", "no such key: outputs names them")
    elif isinstance(number := system["reference"], int):
        yield from _check_reference(path, number, system, study)


def _check_shipped(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """Refuse settings that CTranslate2 does not support for its models."""
    instead = "`model: {marian: FOLDER}` or a variant, which creamtea itself runs"
    for key in ("ensemble", "alignment_corpus"):
        if system.get(key) not in (None, False):
            yield Mistake((*path, key), f"{key} of a CTranslate2 model", f"no such key, or {instead}")
    search, selection = SEARCHES.kind_of(system.get("search")), SELECTIONS.kind_of(system.get("selection"))
    if search is not None and not search.in_ctranslate2:
        found = f"{search.title} of a CTranslate2 model, whose library does not have it"
        yield Mistake((*path, "search"), found, f"greedy or beam, or {instead}")
    beam = parsed(Beam, system.get("search"))
    if beam is not None and not beam.ranks_by_length:
        found = f"{beam.describe()} of a CTranslate2 model, which ranks by score / length^a"
        yield Mistake((*path, "search"), found, f"neither length_penalty nor coverage_penalty, or {instead}")
    if selection is not None and selection.selects and selection is not MapSelection:
        found = f"{selection.title} of a CTranslate2 model"
        yield Mistake((*path, "selection"), found, f"full, vmap (the folder's vmap.txt), or {instead}")
    precision = system.get("precision", "fp32")
    if precision in PRECISIONS and precision not in IN_CTRANSLATE2:
        found = f"{precision} of a CTranslate2 model"
        yield Mistake((*path, "precision"), found, f"{' or '.join(IN_CTRANSLATE2)}, or {instead}")
    for kind in _steps_that_run(str(path[1]), system, study):
        resources = parsed(StepResources, study.named("resources", kind) or {})
        if kind in (DECODE.name, LATENCY.name) and resources is not None and resources.gpus:
            found = f"a GPU for {path[1]}, a CTranslate2 model"
            yield Mistake(("resources", kind, "gpus"), found, "0: creamtea runs its library on CPUs")


def imports(study: RawStudy, variant: Any) -> bool:
    """Return True if a chain of `start_from` begins with a model trained elsewhere."""
    chain = study.chain("variants", variant, "start_from")
    block = study.named("variants", chain[-1]) if chain else None
    return block is not None and isinstance(block.get("start_from"), dict)


def check_trained(study: RawStudy) -> Iterator[Mistake]:
    """Require corpora, subwords and variants if the study trains a system."""
    trained = any("variant" in system for _, system in study.blocks("systems"))
    aligned = any("alignment_corpus" in system for _, system in study.blocks("systems"))
    for section in TRAINED:
        entries = study.data.get(section)
        names = [name for name, _ in study.blocks("variants")] if section == "subwords" else []
        if names and all(imports(study, name) for name in names):
            continue
        if section not in study.data and trained:
            yield Mistake((section,), "", f"{REQUIRED} (a system has a variant)")
        elif section == "corpora" and section not in study.data and aligned:
            yield Mistake((section,), "", f"{REQUIRED} (a system has an alignment_corpus)")
        elif entries == {}:
            yield Mistake((section,), "a block of keys", "at least 1 entry")
    if not study.data.get("variants"):
        for name, analysis in study.blocks("analyses"):
            kind = ANALYSES.kind_of(analysis)
            if kind is not None and kind.of_models:
                found = f"{kind_of(analysis)} in a study without variants"
                yield Mistake(("analyses", name), found, "variants, or an analysis of outputs (buckets)")


def _check_reference(path: KeyPath, number: int, system: Block, study: RawStudy) -> Iterator[Mistake]:
    chosen = system.get("test_sets")
    for name, test_set in study.blocks("test_sets"):
        if isinstance(chosen, list) and name not in chosen:
            continue
        more = test_set.get("more_references")
        first = 0 if is_without_references(test_set) else 1
        references = first + (len(more) if isinstance(more, list) else 0)
        if test_set.get("kind") != "files":
            found = f"a reference of {name}, whose references nobody has written"
            yield Mistake((*path, "reference"), found, "`test_sets` of kind files for this system")
        elif number > references:
            allowed = one_of([str(n + 1) for n in range(references)]) if references else "a `target` in it"
            yield Mistake((*path, "reference"), f"{number}, and {name} has {references}", allowed)


# ---------------------------------------------------------------- resources


LEAST_GPU = 0.0001  # the smallest share that Ray counts


def resources_of(kind: str, variant: Block, study: RawStudy) -> StepResources | None:
    """Return the resources of a variant's steps of a kind, with defaults; None if malformed.

    The variant's own values override the study's.
    """
    return parsed(StepResources, {**(study.named("resources", kind) or {}), **own_resources(kind, variant)})


def own_resources(kind: str, variant: Block) -> Block:
    """Return a raw variant's own resources for a kind of step; {} if none or malformed."""
    blocks = variant.get("resources")
    block = blocks.get(kind) if isinstance(blocks, dict) else None
    return block if isinstance(block, dict) else {}


def is_of_a_variant(kind: StepKind[Any]) -> bool:
    """Return True for steps of a single variant: its training, and steps that use its model or outputs.

    A latency run times several variants.
    """
    made_with = kind.inputs.keys() & {"train", "decode", "system"}
    return bool(made_with) or kind.name == "train"


def check_resources(study: RawStudy) -> Iterator[Mistake]:
    blocks: list[tuple[KeyPath, Any]] = [
        (("resources", kind), block) for kind, block in study.blocks("resources")
    ]
    for name, variant in study.blocks("variants"):
        variant_blocks = variant.get("resources")
        for kind, block in variant_blocks.items() if isinstance(variant_blocks, dict) else ():
            of_variant: KeyPath = ("variants", name, "resources", kind)
            blocks.append((of_variant, block))
            if kind in STEP_KINDS and not is_of_a_variant(STEP_KINDS[kind]):
                allowed = "it in the study's own `resources`, as all variants share these steps"
                yield Mistake(of_variant, f"a {kind} step", allowed)
    for path, block in blocks:
        kind = path[-1]
        if kind not in STEP_KINDS:
            yield Mistake(path, "an unknown step kind", one_of(STEP_KINDS, kind))
        elif not STEP_KINDS[kind].divisible and isinstance(block, dict) and "workers" in block:
            divisible = [other.name for other in STEP_KINDS.values() if other.divisible]
            allowed = f"it under {' or '.join(divisible)}"
            yield Mistake((*path, "workers"), f"several workers for a {kind} step", allowed)
        given = parsed(StepResources, block)
        if given and (0 < given.gpus < LEAST_GPU or 1 < given.gpus != int(given.gpus)):
            allowed = f"a whole number, or a share of one GPU of at least {LEAST_GPU}"
            yield Mistake((*path, "gpus"), f"{given.gpus:g}", allowed)


# ---------------------------------------------------------------- variants

NAMED = {"corpus": "corpora", "subwords": "subwords", "alignment_corpus": "corpora"}


def check_variants(study: RawStudy) -> Iterator[Mistake]:
    shared: dict[KeyPath, Mistake] = {}  # mistakes in the study's own resources, once for all variants
    for name, variant in study.blocks("variants"):
        path: KeyPath = ("variants", name)
        for key, section in NAMED.items():
            yield from study.unknown_key(path, variant, key, section)
        yield from ARCHITECTURES.check((*path, "architecture"), variant.get("architecture", {}), study)
        yield from OBJECTIVES.check((*path, "objective"), variant.get("objective"), study)
        yield from _check_training((*path, "training"), variant)
        training = parsed(Training, variant.get("training", {}))
        resources = resources_of(TRAIN.name, variant, study)
        most = resources.workers[1] if resources else 1
        if training and training.accumulate < most:  # each worker computes some of an update's batches
            allowed = (
                f"at least {most}, best a power of two: the batches of an update, which the workers of "
                "resources.train share out (an update of smaller batches is as large)"
            )
            yield Mistake((*path, "training", "accumulate"), str(training.accumulate), allowed)
        if training and training.autocast == "tf32" and resources and not resources.gpus:
            allowed = "bf16 or none, or `gpus: 1` in resources.train"
            yield Mistake((*path, "training", "autocast"), "tf32 on a CPU", allowed)
        if resources and resources.workers[1] > 1 and 0 < resources.gpus < 1:
            # NCCL, which sends gradients between a training's workers, refuses two workers on one GPU
            place: KeyPath = ("resources", "train", "gpus")
            if "gpus" in own_resources(TRAIN.name, variant):
                place = (*path, *place)
            found = f"{resources.gpus:g} for each of several workers"
            shared[place] = Mistake(place, found, "1 or more, or one worker")
        if (nvs := variant.get("nvs")) is not None:
            if isinstance(nvs, dict) and "positive_weight" in nvs and nvs.get("auto_weight") is not None:
                found = f"{shown(nvs['positive_weight'])} beside auto_weight {shown(nvs['auto_weight'])}"
                allowed = "one of the two: auto_weight takes its place"
                yield Mistake((*path, "nvs", "positive_weight"), found, allowed)
            yield from needs_joint((*path, "nvs"), variant.get("subwords"), study, "an NVS head")
        if training and training.bpe_dropout:
            place = (*path, "training", "bpe_dropout")
            yield from needs_joint(place, variant.get("subwords"), study, "bpe_dropout")
        yield from _check_symbols((*path, "subwords"), variant, study)
        yield from repeated(variant.get("seeds"), (*path, "seeds"))
        yield from _check_start(path, name, variant, study)
        yield from _check_imported(path, name, variant, study)
        yield from _check_freeze(path, training, variant, study)
        objective: Objective | None = parsed(Objective, variant.get("objective"))
        if training and training.select_by == "perplexity" and objective and objective.perplexity_note:
            found = f"perplexity of {objective.describe()}: {objective.perplexity_note}"
            yield Mistake((*path, "training", "select_by"), found, "loss, or a metric of translations")
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
    """Check that the end of training is given if the schedule falls to 0 there."""
    if block.get("max_updates") is None:
        allowed = "with `schedule: linear` the number of updates, after which the rate is 0"
        yield Mistake(path, "nothing", allowed)
    elif training.max_updates <= training.warmup:
        yield Mistake(path, str(training.max_updates), f"more than the {training.warmup} updates of `warmup`")
    if training.max_epochs is not None:
        allowed = "`max_updates` alone with `schedule: linear`, whose rate is 0 after them"
        yield Mistake((*path[:-1], "max_epochs"), str(training.max_epochs), allowed)


def _check_symbols(path: KeyPath, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """Refuse symbols that would be whole words: a new word would have no symbol."""
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


def _check_start(path: KeyPath, name: str, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """Check that a variant starts from one with the same subwords, architecture and seeds."""
    start = variant.get("start_from")
    if isinstance(start, dict):
        return
    parent = study.named("variants", start)
    if parent is None:
        for mistake in study.unknown_key(path, variant, "start_from", "variants"):
            yield replace(mistake, allowed=f"{mistake.allowed}; or `{{marian: FOLDER}}`, an imported model")
        return
    chain = study.chain("variants", name, "start_from")
    if chain[-1] in chain[:-1]:
        yield Mistake((*path, "start_from"), f"{shown(start)}, a cycle", "a variant trained before this")
        return
    if len(chain) == MAX_IN_A_ROW + 1:  # later variants of the chain would only repeat the mistake
        found = f"the last of {len(chain)} variants that start from each other in a chain"
        yield Mistake((*path, "start_from"), found, f"at most {MAX_IN_A_ROW} in a row")
    for key in ("subwords", "architecture"):
        written: list[Any] = [block.get(key) for block in (variant, parent)]
        but = ""
        if key == "architecture":
            architectures = [parsed(Architecture, block or {}) for block in written]
            written = [architecture and architecture.shape() for architecture in architectures]
            but = ", apart from dropout"
        if None not in written and written[0] != written[1]:
            yield Mistake((*path, key), f"not {start}'s", f"the {key} of {start}{but}")
    if parent.get("nvs") is not None and variant.get("nvs") is None:
        yield Mistake((*path, "nvs"), f"nothing, where {start} has an NVS head", "`nvs`, as that one has")
    seeds, known_seeds = variant.get("seeds", [1]), parent.get("seeds", [1])
    if isinstance(seeds, list) and isinstance(known_seeds, list):
        missing = [seed for seed in seeds if seed not in known_seeds]
        if missing:
            allowed = f"seeds that {start} is trained with: {', '.join(map(str, known_seeds))}"
            yield Mistake((*path, "seeds"), ", ".join(map(str, missing)), allowed)


def _check_imported(path: KeyPath, name: str, variant: Block, study: RawStudy) -> Iterator[Mistake]:
    """Refuse keys that an imported model determines: subwords and architecture."""
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


def _check_freeze(
    path: KeyPath, training: Training | None, variant: Block, study: RawStudy
) -> Iterator[Mistake]:
    """Check that `fit_logits` and `freeze` have a model to start from, and the frozen model's objective."""
    if training and training.fit_logits:
        place: KeyPath = (*path, "training", "fit_logits")
        if variant.get("start_from") is None:
            yield Mistake(place, "true for a new model", "it with `start_from`, a trained model")
        if training.freeze is not None:
            yield Mistake(place, "true beside `freeze`, which changes no logits", "one of the two")
        if kind_of(variant.get("architecture")) == "rnn":
            yield Mistake(place, "true for a recurrent model", "it for a Transformer")
    if training is None or training.freeze is None:
        return
    place = (*path, "training", "freeze")
    if variant.get("nvs") is None:
        yield Mistake(place, "translation without an NVS head to train", "it beside `nvs: {}`")
    if variant.get("start_from") is None:
        yield Mistake(place, "translation of a new model", "it with `start_from`, a trained model")
    if isinstance(head := variant.get("nvs"), dict) and head.get("detach") is False:
        found = "false with `freeze: translation`, which leaves the encoder as it is"
        yield Mistake((*path, "nvs", "detach"), found, "true, or no `freeze`")
    if training.select_by != "loss":
        found = f"{training.select_by}, which no head changes"
        yield Mistake((*path, "training", "select_by"), found, "loss with `freeze`, the head's own")
    objective = parsed(Objective, variant.get("objective"))
    parent = study.named("variants", variant.get("start_from"))
    trained_by = Softmax(kind="softmax") if parent is None else parsed(Objective, parent.get("objective"))
    if parent is None:  # an imported model, with unknown label smoothing
        objective = objective if objective is None or objective.kind != "softmax" else trained_by
    if objective and trained_by and objective != trained_by:
        found = f"{objective.describe()}, where the frozen model is trained by {trained_by.describe()}"
        yield Mistake((*path, "objective"), found, "the frozen model's objective")


# ---------------------------------------------------------------- systems


def check_systems(study: RawStudy) -> Iterator[Mistake]:
    for name, system in study.blocks("systems"):
        path: KeyPath = ("systems", name)
        yield from check_origin(path, system, study)
        yield from study.unknown_key(path, system, "variant", "variants")
        yield from _check_selection(path, system, study)
        yield from _check_ensemble((*path, "ensemble"), system, study)
        yield from SELECTIONS.check((*path, "selection"), system.get("selection"), study)
        yield from SEARCHES.check((*path, "search"), system.get("search"), study)
        yield from _check_precision((*path, "precision"), name, system, study)
        yield from study.unknown_names((*path, "test_sets"), system.get("test_sets") or None, "test_sets")
        yield from study.unknown_key(path, system, "baseline", "systems")
        yield from _check_pairing(path, name, system, study)
        yield from _check_more((*path, "more_baselines"), name, system, study)


def _check_selection(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """Check that the variant has the NVS head and the joint subwords that the selection needs."""
    path = (*path, "selection")
    selection = SELECTIONS.kind_of(system.get("selection"))
    variant = study.named("variants", system.get("variant"))
    if selection and selection.needs_head and variant is not None and variant.get("nvs") is None:
        without = [
            kind
            for kind, other in SELECTIONS.kinds.items()
            if not other.needs_head and other is not MapSelection
        ]
        found = f"{kind_of(system.get('selection'))}, but the variant has no NVS head"
        yield Mistake(
            (*path, "kind"), found, f"{' or '.join(without)}, or a block `nvs: {{}}` in the variant"
        )
    if selection and selection.selects and variant is not None:
        yield from needs_joint(path, variant.get("subwords"), study, "a vocabulary selection")


def _check_ensemble(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    if system.get("ensemble") is not True:
        return
    selection = SELECTIONS.kind_of(system.get("selection"))
    if selection and selection.selects:
        yield Mistake(path, "an ensemble with a vocabulary selection", "an ensemble with the full vocabulary")
    variant = study.named("variants", system.get("variant")) or {"seeds": None}
    seeds = variant.get("seeds", [1])
    if isinstance(seeds, list) and len(seeds) < 2:
        yield Mistake(path, "an ensemble of a variant with one seed", "a variant with several `seeds`")


def _check_precision(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    precision = system.get("precision")
    if not isinstance(precision, str) or precision not in PRECISIONS:
        return
    search = SEARCHES.kind_of(system.get("search"))
    if search and precision in search.excluded_precisions:
        reason = search.excluded_precisions[precision]
        yield Mistake(path, f"{precision} with {search.title}", f"another precision: {reason}")
    on_gpu: dict[str, bool] = {}  # by place of resources: True if a step that runs the system has a GPU
    chosen = system.get("variant")
    for kind in _steps_that_run(name, system, study):
        # one latency step runs several variants, and has the study's resources
        variant = {} if kind == LATENCY.name else study.named("variants", chosen) or {}
        resources = resources_of(kind, variant, study)
        if resources is not None:
            place = f"variants.{chosen}.resources" if own_resources(kind, variant) else "resources"
            on_gpu[f"{place}.{kind}"] = resources.gpus > 0
    for gpu, device in ((False, "cpu"), (True, "gpu")):
        places = " and ".join(place for place, has_gpu in on_gpu.items() if has_gpu == gpu)
        if places and device not in PRECISIONS[precision]:
            others = [other for other, devices in PRECISIONS.items() if device in devices]
            remedy = f"no gpus in {places}" if gpu else f"`gpus: 1` in {places}"
            yield Mistake(path, f"{precision} on a {device.upper()}", f"{', '.join(others)}, or {remedy}")


def _steps_that_run(name: str, system: Block, study: RawStudy) -> Iterator[str]:
    """Yield the kinds of the steps that load a system's model in the system's precision."""
    if "variant" not in system and "model" not in system:
        return
    yield DECODE.name
    selection = SELECTIONS.kind_of(system.get("selection"))
    if selection and selection.needs_model:
        yield RECALL.name
    latency = study.data.get("latency")
    if isinstance(latency, dict) and _includes(latency.get("systems"), name, otherwise=True):
        yield LATENCY.name
    for kind in dict.fromkeys(kind_of(block) for _, block in study.blocks("analyses")):
        analysis = ANALYSES.kinds.get(kind)
        if analysis is None or analysis.rows != "system":
            continue
        blocks = [block for _, block in study.blocks("analyses") if kind_of(block) == kind]
        if any(_includes(block.get("systems"), name, analysis.fits(system)) for block in blocks):
            yield kind


def _includes(chosen: Any, name: str, otherwise: bool) -> bool:
    return name in chosen if isinstance(chosen, list) else otherwise


def _check_pairing(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """Check that the baseline translates the same test sets, and is not a human reference."""
    chosen = system.get("baseline")
    names_baseline = isinstance(chosen, str)
    baseline = chosen if names_baseline else study.data.get("baseline")
    other = study.named("systems", baseline)
    if other is None or baseline == name or system.get("reference") is not None:
        return  # metrics compare no human reference
    place = (*path, "baseline") if names_baseline else (*path, "test_sets")
    chain = study.chain("systems", name, "baseline", study.data.get("baseline"))
    if names_baseline and len(chain) > 2 and chain[-1] == name:  # a baseline is its own
        yield Mistake(place, f"{baseline}, a cycle", "a system that is not compared with this one in turn")
        return
    if other.get("reference") is not None:
        yield _reference_mistake((*path, "baseline") if names_baseline else ("baseline",), baseline)
    if missing := _not_translated(system, other, study):
        found = f"{missing}, which {baseline} does not translate"
        yield Mistake(place, found, f"a `baseline` that translates all of {name}'s test sets")


def _check_more(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    names = system.get("more_baselines")
    if not isinstance(names, list):
        return
    yield from repeated(names, path)
    if names and system.get("reference") is not None:
        yield Mistake(path, "more baselines of a human reference", "none: metrics compare no human reference")
    for index, chosen in enumerate(names):
        place = (*path, index)
        yield from study.unknown_name(place, chosen, "systems")
        other = study.named("systems", chosen)
        if other is None or chosen == name:
            continue
        if other.get("reference") is not None:
            yield _reference_mistake(place, chosen)
        elif isinstance(others := other.get("more_baselines"), list) and name in others:
            yield Mistake(place, f"{chosen}, which is compared with {name}", "each pair of systems once")
        elif missing := _not_translated(system, other, study):
            found = f"{chosen}, which does not translate {missing}"
            yield Mistake(place, found, f"systems that translate all of {name}'s test sets")


def _reference_mistake(place: KeyPath, name: Any) -> Mistake:
    found = f"{name}, a human reference, which metrics score against fewer references than a system"
    return Mistake(place, found, "a system that translates")


def _not_translated(system: Block, other: Block, study: RawStudy) -> str:
    """Name the test sets of `system` that `other` does not translate."""
    if not any(key in entry for entry in (system, other) for key in ("outputs", "test_sets")):
        return ""  # both translate all
    every = [test_set for test_set, _ in study.blocks("test_sets")]
    test_sets, other_test_sets = (
        outputs_of(entry) or entry.get("test_sets") or every for entry in (system, other)
    )
    if not isinstance(test_sets, list) or not isinstance(other_test_sets, list):
        return ""
    return ", ".join(str(test_set) for test_set in test_sets if test_set not in other_test_sets)


# ---------------------------------------------------------------- metrics and latency


def check_metrics(study: RawStudy) -> Iterator[Mistake]:
    metrics = study.data.get("metrics")
    seen: dict[str, int] = {}
    for index, block in enumerate(metrics if isinstance(metrics, list) else []):
        yield from METRICS.check(("metrics", index), block, study)
        metric: Metric | None = parsed(Metric, block)
        if metric is None:
            continue
        name = metric.for_target(target_language(study)).name()
        if name in seen:
            found = f"{name} a second time (first: metrics[{seen[name]}])"
            yield Mistake(("metrics", index), found, "each metric once")
        seen.setdefault(name, index)
        test_sets = dict(study.blocks("test_sets"))
        if metric.needs_references and test_sets and all(map(is_without_references, test_sets.values())):
            found = f"{name}, which needs references, and no test set has any"
            allowed = "`target` in a test set, or metrics without references (`metrics: []` for none)"
            yield Mistake(("metrics", index), found, allowed)
        if isinstance(metric, OfWords):
            yield from _check_word_metric(("metrics", index), metric, study)


def _check_word_metric(path: KeyPath, metric: OfWords, study: RawStudy) -> Iterator[Mistake]:
    """Refuse a metric of words for sentences.

    It would be the share of wrong lines, under a misleading name.
    """
    kinds = {name: TEST_SETS.kind_of(block) for name, block in study.blocks("test_sets")}
    others = [name for name, kind in kinds.items() if kind is not None and not issubclass(kind, WordTestSet)]
    if others:
        of_words = [name for name, kind in TEST_SETS.kinds.items() if issubclass(kind, WordTestSet)]
        found = f"{metric.name()}, a metric of words, with sentences to translate ({', '.join(others)})"
        allowed = f"it if all test sets are of words ({', '.join(of_words)}); for sentences bleu or chrf"
        yield Mistake(path, found, allowed)


def check_latency(study: RawStudy) -> Iterator[Mistake]:
    latency, systems = study.data.get("latency"), study.data.get("systems")
    if not isinstance(latency, dict) or not isinstance(systems, dict):
        return
    yield from study.unknown_key(("latency",), latency, "test_set", "test_sets")
    timed = parsed(Latency, latency)
    if timed is not None and timed.sentences % timed.batch_size:
        found = f"{timed.batch_size}, and {timed.sentences} sentences"
        fitting = max(1, round(timed.sentences / timed.batch_size)) * timed.batch_size
        allowed = f"a size that divides latency.sentences ({fitting}, say), for batches of one size"
        yield Mistake(("latency", "batch_size"), found, allowed)
    path: KeyPath = ("latency",)
    given = [name for name, system in study.blocks("systems") if "outputs" in system or "reference" in system]
    names = [name for name in systems if name not in given]
    if isinstance(latency.get("systems"), list):
        path, names = ("latency", "systems"), latency["systems"]
        yield from study.unknown_names(path, names, "systems")
    for index, name in enumerate(names):
        if name in given:
            yield Mistake((*path, index), f"{name}, which runs no model", "systems with a variant")
        if (study.named("systems", name) or {}).get("ensemble") is True:
            place = (*path, index) if path != ("latency",) else path
            yield Mistake(
                place, f"{name}, an ensemble", "systems of one model (list them in latency.systems)"
            )
    if not names:
        yield Mistake(("latency",), "a study without a system to time", "no latency run, or a variant")
    baselines = latency.get("baselines")
    if not baselines and study.data.get("baseline") in given:
        found = f"nothing, and the study's baseline {study.data['baseline']} runs no model"
        yield Mistake(("latency", "baselines"), found, "systems with a variant")
    yield from study.unknown_names(("latency", "baselines"), baselines or None, "systems")
    for index, name in enumerate(baselines if isinstance(baselines, list) else []):
        if isinstance(name, str) and name in systems and name not in names:
            found = f"{name}, which is not timed"
            yield Mistake(("latency", "baselines", index), found, "one of latency.systems")
    for found, allowed in _several_vocabularies(names, study):
        yield Mistake(path, found, allowed)


def _several_vocabularies(names: list[Any], study: RawStudy) -> Iterator[tuple[str, str]]:
    """Yield (found, allowed) if one process cannot time all the systems.

    It times them on the same subwords, with one lexicon.
    """
    texts, lexica = set(), set()
    for name in names:
        system = study.named("systems", name) or {}
        variant = study.named("variants", system.get("variant"))
        root = variant or {}
        for _ in study.blocks("variants"):  # bounds the chain; `_check_start` reports a cycle
            root = study.named("variants", root.get("start_from")) or root
        if isinstance(model := system.get("model", root.get("start_from")), dict):
            if "ctranslate2" in model:  # it reads the sentences in its own subwords
                continue
            texts.add(f"those of {model.get('marian')}")
        elif all(isinstance(root.get(key), str) for key in ("corpus", "subwords")):
            texts.add(f"{root.get('corpus')} × {root.get('subwords')}")
        else:
            continue  # the validation reports it
        selection = SELECTIONS.kind_of(system.get("selection"))
        if selection and selection.needs_lexicon:
            owner = system if variant is None else variant
            lexica.add(str(owner.get("alignment_corpus") or owner.get("corpus")))
    remedy = "(list them in latency.systems)"
    if len(texts) > 1:
        found = f"systems over {len(texts)} subword models ({', '.join(sorted(texts))})"
        yield found, f"systems of one corpus and subwords {remedy}"
    elif len(lexica) > 1:
        found = f"systems with {len(lexica)} lexica ({', '.join(sorted(lexica))})"
        yield found, f"systems whose lexica are aligned on one corpus {remedy}"
