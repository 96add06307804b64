"""From a study to its steps: content-addressed, in an order in which they can run.

The plan has two lists. `steps` are what runs: each key once, inputs before what needs them. `nodes` are
the places of the study that a step fills: "decode/softmax-beam4/1/test" with the labels by which the
report finds it. Two systems that differ in name only are two nodes of one step.

labels by kind: corpus {corpus}; test_set {test_set}; subwords and align {corpus, subwords}; train
{variant, seed, corpus, subwords}; decode and recall {system, variant, seed, test_set}; score the same and
{metric}; compare {system, baseline, variant, test_set, metric}; latency {test_set, systems: [in the
order of the step's `systems`], seeds: [of the model of each]}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from creamtea.errors import InputError
from creamtea.study.catalogue import STEP_KINDS
from creamtea.study.checks import metric_name
from creamtea.study.data_files import DataFiles
from creamtea.study.keys import step_key
from creamtea.study.mistakes import KeyPath, Mistake, StudyErrors
from creamtea.study.spec import (
    FilesCorpus,
    FilesTestSet,
    Metric,
    StepResources,
    Study,
    SyntheticCorpus,
    SyntheticTestSet,
)


@dataclass(frozen=True)
class PlannedStep:
    key: str
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[str]]  # role: keys of steps
    resources: StepResources
    exclusive: bool  # starts only when nothing else runs, and nothing starts beside it
    locations: dict[str, str]  # a user's path as in the parameters -> where it is on this machine


@dataclass(frozen=True)
class PlannedNode:
    node: str  # unique in the study: "decode/softmax-beam4/1/test"
    key: str  # of the step that fills it
    labels: dict[str, Any]


@dataclass
class Plan:
    study: str
    steps: list[PlannedStep] = field(default_factory=list)
    nodes: list[PlannedNode] = field(default_factory=list)

    def kinds(self) -> dict[str, int]:
        """How many steps of each kind, in the catalogue's order."""
        counts = Counter(step.kind for step in self.steps)
        return {kind: counts[kind] for kind in STEP_KINDS if counts[kind]}


ErrorMaker = Callable[[Sequence[Mistake]], InputError]


def plan(study: Study, data: Path | None, errors: ErrorMaker | None = None) -> Plan:
    """The steps of a study whose files lie under `data`.

    Reads every file of the study once. All that is wrong with them is raised together, as what `errors`
    makes of the mistakes: pass `LoadedStudy.errors` to name the lines of the study. With `data` None no
    file is looked at, and the keys of steps over files are not those of a run.
    """
    planner = _Planner(study, DataFiles(data))
    planner.plan()
    if mistakes := planner.files.mistakes:
        raise errors(mistakes) if errors else StudyErrors([m.line() for m in mistakes], study.name)
    return planner.result


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


class _Planner:
    """Adds steps kind by kind; the dictionaries hold the keys of what has been added."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        self.study, self.files = study, files
        self.result = Plan(study.name)
        self.languages = _dump(study.languages)
        self.corpus: dict[str, str] = {}  # corpus
        self.test_set: dict[str, str] = {}  # test set
        self.subwords: dict[tuple[str, str], str] = {}  # corpus, subwords
        self.align: dict[tuple[str, str], str] = {}  # corpus, subwords
        self.train: dict[tuple[str, int], str] = {}  # variant, seed
        self.decode: dict[tuple[str, int, str], str] = {}  # system, seed, test set
        self.score: dict[tuple[str, int, str, str], str] = {}  # system, seed, test set, metric
        self.checkpoints = {metric_name(metric): self._checkpoint(metric) for metric in study.metrics}
        self._keys: set[str] = set()

    def plan(self) -> None:
        for name, variant in self.study.variants.items():
            self._plan_texts(variant.corpus, variant.subwords)
            for seed in variant.seeds:
                self._plan_train(name, seed)
        for test_set in self.study.test_sets:
            self._plan_test_set(test_set)
        for name in self.study.systems:
            self._plan_align(name)
            for test_set in self.study.test_sets:
                for seed in self._seeds(name):
                    self._plan_decode(name, seed, test_set)
        for name in self.study.systems:
            if name != self.study.baseline:
                for test_set in self.study.test_sets:
                    self._plan_compare(name, test_set)
        if self.study.latency:
            self._plan_latency()

    def _add(
        self,
        node: str,
        params: dict[str, Any],
        inputs: dict[str, list[str]],
        labels: dict[str, Any],
        paths: Sequence[str] = (),
    ) -> str:
        kind = STEP_KINDS[node.partition("/")[0]]
        key = step_key(kind.name, kind.version, params, inputs)
        self.result.nodes.append(PlannedNode(node, key, labels))
        if key not in self._keys:
            self._keys.add(key)
            step = PlannedStep(
                key=key,
                kind=kind.name,
                version=kind.version,
                params=params,
                inputs=inputs,
                resources=self._resources(kind.name),
                exclusive=kind.exclusive,
                locations=self.files.locations(paths),
            )
            self.result.steps.append(step)
        return key

    def _resources(self, kind: str) -> StepResources:
        """As the study says, or one core; a latency run has the threads that it measures with."""
        if kind == "latency" and self.study.latency:
            return self.study.resources.get(kind, StepResources(cpus=self.study.latency.threads))
        return self.study.resources.get(kind, StepResources())

    def _checkpoint(self, metric: Metric) -> dict[str, Any]:
        """Parameters that pin a metric's model by its content, where it is a file and not a name."""
        digests = self.files.checkpoint(metric.model) if metric.kind == "comet" else {}
        return {"digests": digests} if digests else {}

    def _seeds(self, system: str) -> list[int]:
        return self.study.variants[self.study.systems[system].variant].seeds

    def _texts(self, system: str) -> tuple[str, str]:
        """The corpus and the subwords that a system stands on."""
        variant = self.study.variants[self.study.systems[system].variant]
        return variant.corpus, variant.subwords

    # ------------------------------------------------------------ data

    def _plan_texts(self, corpus: str, subwords: str) -> None:
        if corpus not in self.corpus:
            self.corpus[corpus] = self._plan_corpus(corpus)
        if (corpus, subwords) not in self.subwords:
            self.subwords[corpus, subwords] = self._add(
                f"subwords/{corpus}/{subwords}",
                {"subwords": _dump(self.study.subwords[subwords])},
                {"corpus": [self.corpus[corpus]]},
                {"corpus": corpus, "subwords": subwords},
            )

    def _plan_corpus(self, name: str) -> str:
        corpus = self.study.corpora[name]
        paths: list[str] = []
        if isinstance(corpus, FilesCorpus):
            at: KeyPath = ("corpora", name)
            pairs = [((*at, "train", index), pair) for index, pair in enumerate(corpus.train)]
            for key, pair in [*pairs, ((*at, "dev"), corpus.dev)]:
                self.files.aligned([((*key, "source"), pair.source), ((*key, "target"), pair.target)])
                paths += [pair.source, pair.target]
        params = {"corpus": _dump(corpus), "languages": self.languages, "digests": self.files.digests(paths)}
        return self._add(f"corpus/{name}", params, {}, {"corpus": name}, paths)

    def _plan_test_set(self, name: str) -> None:
        test_set = self.study.test_sets[name]
        paths: list[str] = []
        corpus: dict[str, Any] | None = None
        if isinstance(test_set, SyntheticTestSet):
            synthetic = self.study.corpora[test_set.corpus]
            assert isinstance(synthetic, SyntheticCorpus)  # creamtea.study.checks has seen to it
            corpus = _dump(synthetic)
        if isinstance(test_set, FilesTestSet):
            named = [("source", test_set.source), ("target", test_set.target), ("idioms", test_set.idioms)]
            given = [(("test_sets", name, key), path) for key, path in named if path is not None]
            self.files.aligned(given)
            paths = [path for _, path in given]
        params = {
            "test_set": _dump(test_set),
            "corpus": corpus,
            "languages": self.languages,
            "digests": self.files.digests(paths),
        }
        self.test_set[name] = self._add(f"test_set/{name}", params, {}, {"test_set": name}, paths)

    # ------------------------------------------------------------ variants and systems

    def _plan_train(self, name: str, seed: int) -> None:
        variant = self.study.variants[name]
        texts = (variant.corpus, variant.subwords)
        params = {
            "objective": _dump(variant.objective),
            "architecture": _dump(variant.architecture),
            "nvs": _dump(variant.nvs) if variant.nvs else None,
            "training": _dump(variant.training),
            "seed": seed,
        }
        inputs = {"corpus": [self.corpus[variant.corpus]], "subwords": [self.subwords[texts]]}
        labels = {"variant": name, "seed": seed, "corpus": variant.corpus, "subwords": variant.subwords}
        self.train[name, seed] = self._add(f"train/{name}/{seed}", params, inputs, labels)

    def _plan_align(self, system: str) -> None:
        """One lexicon serves all the lexicon selections over a corpus and its subwords."""
        texts = corpus, subwords = self._texts(system)
        if self.study.systems[system].selection.kind == "lexicon" and texts not in self.align:
            self.align[texts] = self._add(
                f"align/{corpus}/{subwords}",
                {"alignment": _dump(self.study.alignment)},
                {"corpus": [self.corpus[corpus]], "subwords": [self.subwords[texts]]},
                {"corpus": corpus, "subwords": subwords},
            )

    def _plan_decode(self, name: str, seed: int, test_set: str) -> None:
        """Translate, score with every metric, and measure the selection's recall."""
        system = self.study.systems[name]
        place = f"{name}/{seed}/{test_set}"
        labels = {"system": name, "variant": system.variant, "seed": seed, "test_set": test_set}
        texts = self._texts(name)
        text_inputs = {"test_set": [self.test_set[test_set]], "subwords": [self.subwords[texts]]}
        train = {"train": [self.train[system.variant, seed]]}
        align = {"align": [self.align[texts]]} if system.selection.kind == "lexicon" else {}

        params = {
            "selection": _dump(system.selection),
            "search": _dump(system.search),
            "precision": system.precision,
            "batch_size": system.batch_size,
        }
        decode = self._add(f"decode/{place}", params, {**text_inputs, **train, **align}, labels)
        self.decode[name, seed, test_set] = decode
        for metric in self.study.metrics:
            metric_label = metric_name(metric)
            self.score[name, seed, test_set, metric_label] = self._add(
                f"score/{place}/{metric_label}",
                {"metric": _dump(metric), "languages": self.languages, **self.checkpoints[metric_label]},
                {"test_set": [self.test_set[test_set]], "decode": [decode]},
                {**labels, "metric": metric_label},
                paths=list(self.checkpoints[metric_label].get("digests", {})),
            )
        if system.selection.kind != "full":
            params = {"selection": _dump(system.selection), "sweep": _dump(self.study.recall)}
            self._add(f"recall/{place}", params, {**text_inputs, **(align or train)}, labels)

    # ------------------------------------------------------------ across systems

    def _plan_compare(self, name: str, test_set: str) -> None:
        """Against the baseline, by a paired bootstrap. COMET's reads the segment scores that its score
        steps left, so that no neural metric runs twice."""
        baseline = self.study.baseline

        def outputs(system: str, metric: Metric) -> list[str]:
            seeds = self._seeds(system)
            if metric.kind == "comet":
                return [self.score[system, seed, test_set, metric_name(metric)] for seed in seeds]
            return [self.decode[system, seed, test_set] for seed in seeds]

        for metric in self.study.metrics:
            self._add(
                f"compare/{name}/{test_set}/{metric_name(metric)}",
                {
                    "metric": _dump(metric),
                    "significance": _dump(self.study.significance),
                    "languages": self.languages,
                },
                {
                    "test_set": [self.test_set[test_set]],
                    "baseline": outputs(baseline, metric),
                    "system": outputs(name, metric),
                },
                {
                    "system": name,
                    "baseline": baseline,
                    "variant": self.study.systems[name].variant,
                    "test_set": test_set,
                    "metric": metric_name(metric),
                },
            )

    def _plan_latency(self) -> None:
        """All the systems in one step, so that they are timed side by side; the first seed of each."""
        latency = self.study.latency
        assert latency is not None
        names = latency.systems or list(self.study.systems)
        models: list[str] = []  # distinct trainings, in the order of their first system
        systems: list[dict[str, Any]] = []
        for name in names:
            system = self.study.systems[name]
            model = self.train[system.variant, self._seeds(name)[0]]
            if model not in models:
                models.append(model)
            systems.append(
                {
                    "selection": _dump(system.selection),
                    "search": _dump(system.search),
                    "precision": system.precision,
                    "model": models.index(model),
                }
            )
        texts = self._texts(names[0])  # the same for all: creamtea.study.checks has seen to it
        inputs = {
            "test_set": [self.test_set[latency.test_set]],
            "subwords": [self.subwords[texts]],
            "models": models,
        }
        if any(system["selection"]["kind"] == "lexicon" for system in systems):
            inputs["align"] = [self.align[texts]]
        protocol = latency.model_dump(mode="json", include={"sentences", "repetitions", "warmup", "threads"})
        labels = {
            "test_set": latency.test_set,
            "systems": names,
            "seeds": [self._seeds(name)[0] for name in names],
        }
        self._add("latency", {"latency": protocol, "systems": systems}, inputs, labels)
