"""From a study to its steps: content-addressed, in an order in which they can run.

The plan has two lists. `steps` has each key once, after the keys of its inputs. `nodes` are the places of the
study that steps fill, such as "decode/softmax-beam4/1/test", with the labels by which the report finds them.
Two systems that differ only in name are two nodes of one step.

labels by kind: corpus {corpus}; test_set {test_set}; overlap {corpus, test_sets: [in the order of the
step's `test_sets`]}; subwords, align and ibm3 {corpus, subwords}; import_model {model}; train
{variant, seed, corpus, subwords}; decode and recall {system, variant, seed, test_set}, for an imported
model {system, test_set}; outputs {system, test_set}; score the labels of its decode or outputs and {metric},
with {better} unless it is "higher"; compare
{system, baseline, variant if it has one, test_set, metric}; pairs {systems: [in the order of the step's
`outputs`], test_set, metric};
latency {test_set, systems: [in the order of the step's `systems`], seeds: [one for each system], baselines};
analyses {analysis, variant, seed, test_set}, empty_string also {system}; differences
{analysis, variant, test_set}, for an analysis of systems also {system}, and {baseline} if two variants or
systems are compared. A decode for an analysis has
{analysis} and no {system}; a part of a test set {first_of} and no {test_set}.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from creamtea.contract.step import P, Resources, StepKind, StepParams, step_key
from creamtea.document.mistakes import KeyPath, Mistake, StudyErrors
from creamtea.errors import InputError
from creamtea.methods.analysis import SAMPLES_PER_COMPARISON
from creamtea.methods.corpora import Corpus, FilesCorpus, WordCorpus
from creamtea.methods.metrics import (
    Bleu,
    Chrf,
    Latency,
    Metric,
    OfWords,
    Significance,
    bleu_tokenizer,
    development_tokenizer,
)
from creamtea.methods.planning import File, HeldOut, Inputs, Key, Labels, TextPlan
from creamtea.methods.plugins import plugins_of
from creamtea.methods.searches import Search
from creamtea.methods.test_sets import FilesTestSet, TestSet, WordTestSet
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import (
    AGREEMENT,
    COMPARE,
    DECODE,
    IMPORT_MODEL,
    LATENCY,
    OUTPUTS,
    PAIRS,
    RECALL,
    SCORE,
    TRAIN,
    CompareParams,
    DecodeParams,
    ImportModelParams,
    LatencyParams,
    OutputsParams,
    PairsParams,
    RecallParams,
    ScoreParams,
    TimedSystem,
    TrainParams,
)
from creamtea.steps.texts import (
    ALIGN,
    CORPUS,
    ENCODE,
    OVERLAP,
    SHORTLIST,
    SUBWORDS,
    TEST_SET,
    AlignParams,
    CorpusParams,
    OverlapParams,
    SubwordsParams,
    TestSetParams,
)
from creamtea.study.data_files import DataFiles
from creamtea.study.spec import ImportedModel, ShippedModel, Study, System
from creamtea.words import any_unspaced

ErrorMaker = Callable[[Sequence[Mistake]], InputError]
MAX_PAIRED = 30  # most systems that are compared pairwise: 435 pairs, 43,500 resamples
# kinds of corpora, and of the test sets whose segments may be in them
OVERLAPPING = ((FilesCorpus, FilesTestSet), (WordCorpus, WordTestSet))


@dataclass(frozen=True)
class PlannedStep:
    key: str
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[str]]  # role: keys of steps
    resources: Resources
    locations: dict[str, str]  # a user's path as in the parameters -> its path on this machine


@dataclass(frozen=True)
class PlannedNode:
    node: str  # unique in the study: "decode/softmax-beam4/1/test"
    key: str  # key of the step that fills it
    labels: dict[str, Any]


@dataclass
class Plan:
    study: str
    steps: list[PlannedStep] = field(default_factory=list)
    nodes: list[PlannedNode] = field(default_factory=list)

    def kinds(self) -> dict[str, int]:
        """Count the steps of each kind, in the catalogue's order."""
        counts = Counter(step.kind for step in self.steps)
        return {kind: counts[kind] for kind in STEP_KINDS if counts[kind]}


def plan(
    study: Study,
    data: Path | None,
    errors: ErrorMaker | None = None,
    confined: bool = False,
    names: Mapping[str, str] | None = None,
) -> Plan:
    """Return the steps of a study whose files lie under `data`.

    Reads every file of the study. Raises all mistakes in the files together, as the error that `errors`
    makes: pass `LoadedStudy.errors` to name the lines of the study. With `data` None no file is read, and
    steps over files have other keys than in a run.

    `confined`: paths that lead out of `data` are mistakes. `names`: names of files in messages, instead of
    their paths in the study.
    """
    planner = StudyPlanner(study, DataFiles(data, confined, names=names or {}))
    for name, variant in study.variants.items():
        for seed in variant.seeds:
            planner.train(name, seed)
    for test_set in study.test_sets:
        planner.test_set(test_set)
    planner.overlaps()
    for name in study.systems:
        for test_set in study.test_sets_of(name):
            planner.translate(name, test_set)
    for name in study.systems:
        for baseline in study.comparisons(name):
            for test_set in study.test_sets_of(name):
                planner.compare(name, baseline, test_set)
    for test_set in study.test_sets:
        planner.pairs(test_set)
        planner.agreement(test_set)
    for name, analysis in study.analyses.items():
        analysis.plan(name, planner)
    if study.latency:
        planner.latency(study.latency)
    if mistakes := planner.files.mistakes:
        raise errors(mistakes) if errors else StudyErrors([m.line() for m in mistakes], study.name)
    return planner.result


class StudyPlanner:
    """Adds steps to a plan, each key once, when it is first requested.

    Analyses share steps with the study's systems and with each other if parameters and inputs are the same.
    Implements `creamtea.methods.planning.Planner`.
    """

    def __init__(self, study: Study, files: DataFiles) -> None:
        self.study, self.files = study, files
        self.result = Plan(study.name)
        self.languages, self.alignment = study.languages, study.alignment
        self.significance, self.baseline = study.significance, study.baseline
        bleu = (metric for metric in study.metrics if isinstance(metric, Bleu))
        self.bleu = next(bleu, Bleu(kind="bleu", tokenize=bleu_tokenizer(study.languages.target)))
        chrf = (metric for metric in study.metrics if isinstance(metric, Chrf))
        self.chrf = next(chrf, Chrf(kind="chrf"))
        self._plugins: dict[str, dict[str, str]] = {}  # by key: the plug-ins of the step itself
        self._nodes: set[str] = set()
        self._known_resources: dict[tuple[Any, ...], Resources] = {}  # by kind, variant and plug-ins
        # keys of the steps added so far
        self._corpus: dict[str, str] = {}
        self._test_set: dict[tuple[str, int | None], str] = {}
        self._train: dict[tuple[str, int], str] = {}  # variant, seed
        self.decode: dict[tuple[str, str], list[str]] = {}  # (system, test set): a key for each seed
        self.score: dict[tuple[str, str, str], list[str]] = {}  # (system, test set, metric): likewise
        # digests that pin a metric's model by its content, if it is a file and not a name
        self.checkpoints = {metric.name(): files.checkpoint(metric.checkpoint()) for metric in study.metrics}
        self.scorers = {
            metric.name(): files.scorer(("metrics", index, "scorer"), metric.scorer_pins)
            for index, metric in enumerate(study.metrics)
        }

    def add(
        self,
        kind: StepKind[P],
        place: str,
        params: P,
        inputs: Inputs,
        labels: dict[str, Any],
        paths: Sequence[str] = (),
    ) -> str:
        """Add a place of the study and its step, unless they exist; return the step's key.

        `paths`: the user's files that the step reads.
        """
        roles = {role: list(keys) for role, keys in inputs.items()}
        plugins, values = plugins_of(kind, params), params.to_json()
        key = step_key(kind.name, kind.version, values, roles, plugins)
        node = f"{kind.name}/{place}" if place else kind.name
        if node not in self._nodes:
            self._nodes.add(node)
            self.result.nodes.append(PlannedNode(node, key, labels))
        if key not in self._plugins:
            self._plugins[key] = plugins
            # the key depends on its inputs' plug-ins through their keys; a worker needs all, to read a model
            before = (self._plugins[input_key] for keys in roles.values() for input_key in keys)
            needed = dict(ChainMap(plugins, *before))
            step = PlannedStep(
                key=key,
                kind=kind.name,
                version=kind.version,
                params=values,
                inputs=roles,
                resources=self._resources(kind, needed, labels.get("variant")),
                locations=self.files.locations(paths),
            )
            self.result.steps.append(step)
        return key

    def _resources(self, kind: StepKind[P], plugins: dict[str, str], variant: str | None) -> Resources:
        """Return the resources that the variant or the study sets, by default one core.

        A latency run has as many cores as the threads it measures with.
        """
        key = (kind.name, variant, *sorted(plugins.items()))
        if key in self._known_resources:
            return self._known_resources[key]
        wanted: dict[str, Any] = {"exclusive": kind.exclusive, "plugins": plugins}
        if kind.name in self.study.resources:
            wanted |= self.study.resources[kind.name].model_dump()
        elif kind.name == "latency" and self.study.latency:
            wanted["cpus"] = self.study.latency.threads
        if variant is not None and kind.name in (variant_resources := self.study.variants[variant].resources):
            wanted |= variant_resources[kind.name].model_dump(exclude_unset=True)
        for limit in ("timeout_minutes", "silent_minutes"):
            if wanted.get(limit) is None:
                wanted[limit] = getattr(kind, limit)
        self._known_resources[key] = Resources(**wanted)
        return self._known_resources[key]

    # ------------------------------------------------------------ subwords, lexica and encoded text

    def subwords_of(self, variant: str) -> str:
        root = self.study.root_of(variant)
        if (model := self.study.imported_by(variant)) is not None:
            return self.import_model(model, ("variants", root, "start_from", "marian"))
        return self.subwords(self.study.variants[root].corpus, self.study.variants[root].subwords)

    def import_model(self, model: ImportedModel | ShippedModel, key: KeyPath) -> str:
        """Add the import of a model; `key` is the place in the study that names it."""
        params = ImportModelParams(**model.model_dump(), digest=self.files.model_digest(key, model))
        return self.add(IMPORT_MODEL, model.path, params, {}, {"model": model.path}, [model.path])

    def encode_for(self, variant: str, corpus: str) -> str:
        root = self.study.variants[self.study.root_of(variant)]
        if (model := self.study.imported_by(variant)) is None:
            return self.encode(corpus, root.subwords, root.corpus)
        return self.encode_in(model, corpus)

    def encode_in(self, model: ImportedModel, corpus: str) -> str:
        """Encode a corpus in the subwords of an imported model, whose folder has been checked."""
        return self.add(
            ENCODE,
            f"{corpus}@{model.marian}",
            StepParams(),
            {"corpus": [self.corpus(corpus)], "subwords": [self.import_model(model, ())]},
            {"corpus": corpus, "subwords": model.marian},
        )

    def lexicon(self, variant: str, frequencies: bool = False) -> str:
        """Add the lexicon for all lexicon selections over a corpus and its subwords.

        An adapted variant's lexicon is in the subwords of the variant that it started from. `frequencies`:
        add the target subwords by frequency.
        """
        spec, root = self.study.variants[variant], self.study.variants[self.study.root_of(variant)]
        corpus = spec.alignment_corpus or spec.corpus
        if (model := self.study.imported_by(variant)) is not None:
            return self.lexicon_in(model, corpus, frequencies)
        encoded, subwords = self.encode(corpus, root.subwords, root.corpus), self.subwords_of(variant)
        place = _place(corpus, spec.subwords, root.corpus)
        labels = {"corpus": corpus, "subwords": spec.subwords}
        return self._align(place, encoded, subwords, labels, frequencies)

    def lexicon_in(self, model: ImportedModel, corpus: str, frequencies: bool) -> str:
        """Add the lexicon of a corpus in the subwords of an imported model."""
        subwords, labels = self.import_model(model, ()), {"corpus": corpus, "subwords": model.marian}
        encoded = self.encode_in(model, corpus)
        return self._align(f"{corpus}@{model.marian}", encoded, subwords, labels, frequencies)

    def _align(
        self, place: str, encoded: str, subwords: str, labels: dict[str, str], frequencies: bool
    ) -> str:
        alignment = self.study.alignment
        paths = [] if alignment.table is None else [alignment.table]
        if alignment.table is not None:
            self.files.aligned([(("alignment", "table"), alignment.table)])
        params = AlignParams(alignment=alignment, digests=self.files.digests(paths) if paths else None)
        inputs = {"encode": [encoded], "subwords": [subwords]}
        lexicon = self.add(ALIGN, place, params, inputs, labels, paths)
        if not frequencies:
            return lexicon
        return self.add(SHORTLIST, place, StepParams(), {**inputs, "align": [lexicon]}, labels)

    def subwords(self, corpus: str, name: str) -> str:
        return self.add(
            SUBWORDS,
            f"{corpus}/{name}",
            SubwordsParams(subwords=self.study.subwords[name]),
            {"corpus": [self.corpus(corpus)]},
            {"corpus": corpus, "subwords": name},
        )

    def encode(self, corpus: str, subwords: str, trained_on: str | None = None) -> str:
        """Encode a corpus in its own subwords, or in the subwords of the corpus `trained_on`."""
        base = trained_on or corpus
        return self.add(
            ENCODE,
            _place(corpus, subwords, base),
            StepParams(),
            {"corpus": [self.corpus(corpus)], "subwords": [self.subwords(base, subwords)]},
            {"corpus": corpus, "subwords": subwords},
        )

    # ------------------------------------------------------------ corpora and test sets

    def corpus(self, name: str) -> str:
        if name in self._corpus:
            return self._corpus[name]
        corpus, languages = self.study.corpora[name], self.study.languages
        plan, paths = self._text_plan("corpora", name, corpus)
        params = CorpusParams(
            corpus=corpus,
            languages=languages,
            digests=self.files.digests(paths),
            held_out=plan.held_out,
            unspaced=isinstance(corpus, FilesCorpus) and any_unspaced(languages.source, languages.target),
        )
        self._corpus[name] = self.add(CORPUS, name, params, plan.inputs, {"corpus": name}, paths)
        return self._corpus[name]

    def test_set(self, name: str, sentences: int | None = None) -> str:
        """Add the step that prepares a test set, or only its first `sentences`."""
        if (name, sentences) in self._test_set:
            return self._test_set[name, sentences]
        test_set = self.study.test_sets[name]
        plan, paths = self._text_plan("test_sets", name, test_set)
        params = TestSetParams(
            test_set=test_set if sentences is None else test_set.first(sentences),
            corpus=plan.corpus,
            languages=self.study.languages,
            digests=self.files.digests(paths),
        )
        # a part of a test set has no `test_set` label: the report's tables show whole test sets
        labels = {"test_set": name} if sentences is None else {"first_of": name, "sentences": sentences}
        place = name if sentences is None else f"{name}@{sentences}"
        self._test_set[name, sentences] = self.add(TEST_SET, place, params, plan.inputs, labels, paths)
        return self._test_set[name, sentences]

    def overlaps(self) -> None:
        """Compare each training text of files with all test sets of files of its kind, in a single pass.

        Sampled and made-up sentences are not compared: they may well occur twice.
        """
        trained_on = dict.fromkeys(variant.corpus for variant in self.study.variants.values())
        for name in trained_on:
            corpus = self.study.corpora[name]
            kinds = [tests for texts, tests in OVERLAPPING if isinstance(corpus, texts)]
            test_sets = [
                test_set for test_set, spec in self.study.test_sets.items() if isinstance(spec, tuple(kinds))
            ]
            if test_sets:
                inputs = {
                    "corpus": [self.corpus(name)],
                    "test_sets": [self.test_set(test_set) for test_set in test_sets],
                }
                params = OverlapParams(symbols=isinstance(corpus, WordCorpus))
                self.add(OVERLAP, name, params, inputs, {"corpus": name, "test_sets": test_sets})

    def _text_plan(self, section: str, name: str, text: Corpus | TestSet) -> tuple[TextPlan, list[str]]:
        """Return the plan for a text's step and the paths of its files; check the files."""
        plan = text.plan((section, name), self)
        for group in plan.aligned:
            self.files.aligned(group)
        for checked in plan.checked:
            self.files.readable(checked)
        return plan, [path for group in plan.aligned for _, path in group]

    # ------------------------------------------------------------ variants and systems

    def seeds(self, variant: str) -> list[int]:
        return self.study.variants[variant].seeds

    def seeds_of(self, system: str) -> list[int]:
        """Return the seeds with which a system translates.

        An ensemble has only the first. An imported model has none.
        """
        spec = self.study.systems[system]
        if spec.model is not None:
            return []
        return self.seeds(spec.variant)[: 1 if spec.ensemble else None]

    def train(self, name: str, seed: int) -> str:
        if (name, seed) in self._train:
            return self._train[name, seed]
        variant, imported = self.study.variants[name], self.study.imported_by(name)
        if imported is not None:
            self.subwords_of(name)  # reads the folder
        params = TrainParams(
            objective=variant.objective,
            architecture=self.files.architecture(imported.marian) if imported else variant.architecture,
            nvs=variant.nvs,
            training=variant.training,
            seed=seed,
            tokenize=development_tokenizer(self.study.languages.target),
        )
        inputs = {
            "corpus": [self.corpus(variant.corpus)],
            "subwords": [self.subwords_of(name)],
            "encode": [self.encode_for(name, variant.corpus)],
        }
        if isinstance(variant.start_from, ImportedModel):
            inputs["initial"] = inputs["subwords"]
        elif variant.start_from is not None:
            inputs["initial"] = [self.train(variant.start_from, seed)]
        labels = {"variant": name, "seed": seed, "corpus": variant.corpus}
        labels["subwords"] = variant.subwords if imported is None else imported.marian
        self._train[name, seed] = self.add(TRAIN, f"{name}/{seed}", params, inputs, labels)
        return self._train[name, seed]

    def model(self, variant: str, seed: int) -> Inputs:
        return {"subwords": [self.subwords_of(variant)], "train": [self.train(variant, seed)]}

    def models(self, system: System, seed: int | None) -> Inputs:
        """Return the inputs with a system's model: of this seed, for an ensemble of all seeds.

        An imported model has no seed.
        """
        if system.model is not None:
            imported = self.import_model(system.model, ())
            return {"subwords": [imported], "train": [imported]}
        assert seed is not None
        inputs = self.model(system.variant, seed)
        if system.ensemble:
            inputs["train"] = [
                self.train(system.variant, each_seed) for each_seed in self.seeds(system.variant)
            ]
        return inputs

    def lexicon_input(self, system: System) -> Inputs:
        if not system.selection.needs_lexicon:
            return {}
        frequencies = system.selection.needs_frequencies
        if system.model is None:
            return {"align": [self.lexicon(system.variant, frequencies)]}
        assert isinstance(system.model, ImportedModel)  # CTranslate2 models have maps instead
        corpus = self.study.alignment_corpus(system)
        return {"align": [self.lexicon_in(system.model, corpus, frequencies)]}

    def add_decode(self, place: str, system: System, seed: int | None, test_set: str, labels: Labels) -> str:
        """Add the decoding of a test set; `test_set` is a key."""
        search, pins, digests = system.search, dict[str, Any](), dict[str, str]()
        if (metric := search.scored_by()) is not None:
            languages, digests = self.study.languages, self.files.checkpoint(metric.checkpoint())
            key = ("systems", labels.get("system", ""), "search", "metric", "scorer")
            scorer = self.files.scorer(key, metric.scorer_pins)
            pins = {"languages": languages, "digests": digests or None, "scorer": scorer}
            metric = metric.for_target(languages.target).of_step()
            search = search.model_copy(update={"metric": metric})
        params = DecodeParams(
            selection=system.selection,
            search=search,
            precision=system.precision,
            batch_size=system.batch_size,
            **pins,
        )
        inputs = {
            "test_set": [test_set],
            **self.models(system, seed),
            **self.lexicon_input(system),
        }
        return self.add(DECODE, place, params, inputs, labels, list(digests))

    def translate(self, name: str, test_set: str) -> None:
        """Add steps that decode with each seed (or read given outputs), score, and measure recall."""
        system = self.study.systems[name]
        segments = self.test_set(test_set)
        if not system.runs:
            self._given(name, test_set, segments)
            return
        if system.model is not None:
            (kind,) = type(system.model).model_fields
            self.import_model(system.model, ("systems", name, "model", kind))
            if isinstance(system.model, ShippedModel):
                self.files.check_shipped(("systems", name), system, system.model)
        for seed in self.seeds_of(name) if system.model is None else [None]:
            place = f"{name}/{test_set}" if seed is None else f"{name}/{seed}/{test_set}"
            labels: Labels = {"system": name, "test_set": test_set}
            if seed is not None:
                labels |= {"variant": system.variant, "seed": seed}
            decode = self.add_decode(place, system, seed, segments, labels)
            self._measure(place, decode, segments, labels)
            if system.selection.selects and self.study.test_sets[test_set].has_references:
                self.recall(place, system, seed, segments, labels)

    def _given(self, name: str, test_set: str, segments: str) -> None:
        """Add outputs from a text file, or a reference of the test set."""
        system, spec = self.study.systems[name], self.study.test_sets[test_set]
        paths = [system.outputs[test_set]] if system.outputs else []
        sources: list[File] = []
        limit = None
        if isinstance(spec, FilesTestSet) and paths:
            sources, limit = [(("test_sets", test_set, "source"), spec.source)], spec.limit
        if paths:
            self.files.aligned(sources, [(("systems", name, "outputs", test_set), path) for path in paths])
        params = OutputsParams(
            file=paths[0] if paths else None,
            digests=self.files.digests(paths) if paths else None,
            reference=system.reference,
            limit=limit,
        )
        place, labels = f"{name}/{test_set}", {"system": name, "test_set": test_set}
        outputs = self.add(OUTPUTS, place, params, {"test_set": [segments]}, labels, paths)
        references = 1 + len(spec.more_references) if isinstance(spec, FilesTestSet) else 1
        if system.reference is None or references > 1:
            self._measure(place, outputs, segments, labels, system.reference)

    def _measure(
        self,
        place: str,
        outputs: str,
        segments: str,
        labels: Labels,
        without_reference: int | None = None,
    ) -> None:
        name, test_set = labels["system"], labels["test_set"]
        self.decode.setdefault((name, test_set), []).append(outputs)
        for metric in self.study.metrics_on(test_set):
            digests, better = self.checkpoints[metric.name()], metric.column().better
            score = self.add(
                SCORE,
                f"{place}/{metric.name()}",
                ScoreParams(
                    metric=metric.of_step(),
                    languages=self.study.languages,
                    without_reference=without_reference,
                    digests=digests or None,
                    scorer=self.scorers[metric.name()],
                    each_group=isinstance(metric, OfWords),
                ),
                {"test_set": [segments], "decode": [outputs]},
                # reports read scores without the study, so the label says if lower is better
                {**labels, "metric": metric.name(), **({} if better == "higher" else {"better": better})},
                paths=list(digests),
            )
            self.score.setdefault((name, test_set, metric.name()), []).append(score)

    def recall(self, place: str, system: System, seed: int | None, segments: str, labels: Labels) -> None:
        inputs = {
            "test_set": [segments],
            **self.models(system, seed),
            **self.lexicon_input(system),
        }
        params = RecallParams(selection=system.selection, sweep=self.study.recall, precision=system.precision)
        if not system.selection.needs_model:  # all precisions share the step
            del inputs["train"]
            params = params.model_copy(update={"precision": "fp32"})
        self.add(RECALL, place, params, inputs, labels)

    # ------------------------------------------------------------ across systems

    def compare(self, name: str, baseline: str, test_set: str) -> None:
        """Compare two systems on a test set by every metric, paired over segments."""
        is_baseline = baseline == self.study.baseline_of(name)
        for metric in self.study.metrics_on(test_set):
            inputs = {
                "test_set": [self.test_set(test_set)],
                "baseline": self._compared(baseline, test_set, metric),
                "system": self._compared(name, test_set, metric),
            }
            labels = {
                "system": name,
                "baseline": baseline,
                **({"variant": variant} if (variant := self.study.systems[name].variant) else {}),
                "test_set": test_set,
                "metric": metric.name(),
            }
            place = f"{name}/{test_set}/{metric.name()}" + ("" if is_baseline else f"/{baseline}")
            params = CompareParams(
                metric=metric.of_step(), significance=self.significance, languages=self.languages
            )
            self.add(COMPARE, place, params, inputs, labels)

    def pairs(self, test_set: str) -> None:
        """Compare all pairs of a test set's systems by the study's first metric.

        Only for 3 to MAX_PAIRED systems: two are already compared with the baseline, and the work grows with
        the cube of their number.
        """
        names = [
            name for name in self.study.systems_on(test_set) if self.study.systems[name].reference is None
        ]
        metric = next(iter(self.study.metrics_on(test_set)), None)
        if not 3 <= len(names) <= MAX_PAIRED or metric is None:
            return
        systems = [self._compared(name, test_set, metric) for name in names]
        fewest = SAMPLES_PER_COMPARISON * math.comb(len(names), 2)
        params = PairsParams(
            metric=metric.of_step(),
            significance=Significance(
                samples=max(self.significance.samples, fewest),
                trials=max(self.significance.trials, fewest),
                seed=self.significance.seed,
            ),
            languages=self.languages,
            outputs=[len(keys) for keys in systems],
        )
        inputs = {
            "test_set": [self.test_set(test_set)],
            "systems": [key for own in systems for key in own],
        }
        labels = {"systems": names, "test_set": test_set, "metric": metric.name()}
        self.add(PAIRS, test_set, params, inputs, labels)

    def agreement(self, test_set: str) -> None:
        """Measure how much the outputs of several systems agree, if there are no references."""
        names = self.study.systems_on(test_set)
        if self.study.test_sets[test_set].has_references or len(names) < 2:
            return
        outputs = [self.decode[name, test_set][0] for name in names]
        inputs = {"test_set": [self.test_set(test_set)], "systems": outputs}
        labels = {"systems": names, "test_set": test_set}
        self.add(AGREEMENT, test_set, StepParams(), inputs, labels)

    def _compared(self, system: str, test_set: str, metric: Metric) -> list[str]:
        """Return the steps, one per seed, whose outputs or segment scores the metric compares."""
        if metric.compares == "segment scores":
            return self.score[system, test_set, metric.name()]
        return self.decode[system, test_set]

    def latency(self, latency: Latency) -> None:
        """Time the first seed of each system in one step, so that they are timed side by side."""
        names = self.study.timed()
        seeds = [next(iter(self.seeds_of(name)), None) for name in names]
        models: list[str] = []  # distinct trainings, in the order of their first system
        systems: list[TimedSystem] = []
        # subwords and lexicon are the same for all: creamtea.study.checks ensures it
        inputs: Inputs = {
            "test_set": [self.test_set(latency.test_set)],
            "subwords": self.models(self.study.systems[names[0]], seeds[0])["subwords"],
            "models": models,
        }
        for name, seed in zip(names, seeds, strict=True):
            system = self.study.systems[name]
            (model,) = self.models(system, seed)["train"]
            if model not in models:
                models.append(model)
            timed = TimedSystem(
                selection=system.selection,
                search=system.search,
                precision=system.precision,
                model=models.index(model),
            )
            systems.append(timed)
            if "align" not in inputs or system.selection.needs_frequencies:
                inputs |= self.lexicon_input(system)
        baselines = latency.baselines or [self.study.baseline]
        labels = {
            "test_set": latency.test_set,
            "systems": names,
            "seeds": seeds,
            "baselines": [name for name in baselines if name in names],
        }
        params = LatencyParams(latency=latency.protocol(), systems=systems, place=self._timed_at())
        self.add(LATENCY, "", params, inputs, labels)

    def _timed_at(self) -> str | None:
        """Describe where latency is measured, according to `resources`: another place gives other times."""
        wanted = self.study.resources.get("latency")
        if wanted is None:
            return None
        parts = ["a GPU"] if wanted.gpus else []
        parts += [f"group {wanted.worker_group}"] if wanted.worker_group else []
        parts += [f"node {wanted.node}"] if wanted.node else []
        return ", ".join(parts) or None

    # ------------------------------------------------------------ the rest of `Planner`

    def corpus_spec(self, name: str) -> Corpus:
        return self.study.corpora[name]

    def held_out(self, test_set: str) -> HeldOut:
        spec = self.study.test_sets[test_set]
        assert isinstance(spec, FilesTestSet)  # the corpus's check ensures it
        return HeldOut(source=spec.source, tokenized=spec.tokenized)

    def variants(self, with_head: bool = False) -> list[str]:
        return [
            name for name, variant in self.study.variants.items() if variant.nvs is not None or not with_head
        ]

    def variant_of(self, system: str) -> str:
        return self.study.systems[system].variant

    def searching_systems(self, test_set: str) -> list[str]:
        return [
            name
            for name in self.study.systems_on(test_set)
            if (system := self.study.systems[name]).variant
            and not system.selection.selects
            and system.search.maximises
        ]

    def precision_of(self, system: str) -> str:
        return self.study.systems[system].precision

    def training_corpus(self) -> str | None:
        name = self.study.systems[self.study.baseline].variant or next(iter(self.study.variants), None)
        return None if name is None else self.study.variants[name].corpus

    def outputs(self, test_set: str) -> list[tuple[Labels, Key]]:
        outputs: list[tuple[Labels, Key]] = []
        for name in self.study.systems_on(test_set):
            system, keys = self.study.systems[name], self.decode.get((name, test_set), [])
            labels: Labels = {"system": name, "test_set": test_set}
            if system.variant:
                seeds = zip(self.seeds_of(name), keys, strict=True)
                outputs += [({**labels, "variant": system.variant, "seed": seed}, key) for seed, key in seeds]
            elif system.reference is None:
                outputs += [(labels, key) for key in keys]
        return outputs

    def lines_of(self, test_set: str, file: File) -> tuple[dict[str, str], int | None]:
        spec = self.study.test_sets[test_set]
        if not isinstance(spec, FilesTestSet):
            self.files.aligned([file])
            return self.files.digests([file[1]]), None
        self.files.aligned([(("test_sets", test_set, "source"), spec.source), file])
        return self.files.digests([file[1]]), spec.limit

    def decode_variant(
        self, place: str, variant: str, seed: int, search: Search, test_set: Key, labels: Labels
    ) -> Key:
        return self.add_decode(place, System(variant=variant, search=search), seed, test_set, labels)

    def models_of(self, system: str, seed: int) -> Inputs:
        return self.models(self.study.systems[system], seed)

    def decode_system(self, place: str, system: str, seed: int, test_set: Key, labels: Labels) -> Key:
        return self.add_decode(place, self.study.systems[system], seed, test_set, labels)


def _place(corpus: str, subwords: str, trained_on: str) -> str:
    return f"{corpus}/{subwords}" + ("" if corpus == trained_on else f"@{trained_on}")
