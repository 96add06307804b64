"""Steps of variants and systems, and what methods ask of the plan.

Steps that analyses need share those of the study's systems and of other analyses if parameters and inputs are
the same.
"""

from __future__ import annotations

import math
from typing import Any

from creamtea.methods.analysis import SAMPLES_PER_COMPARISON
from creamtea.methods.corpora import Corpus
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
from creamtea.methods.planning import File, HeldOut, Inputs, Key, Labels
from creamtea.methods.searches import Search
from creamtea.methods.test_sets import FilesTestSet
from creamtea.steps.systems import (
    AGREEMENT,
    COMPARE,
    DECODE,
    LATENCY,
    OUTPUTS,
    PAIRS,
    RECALL,
    SCORE,
    TRAIN,
    AgreementParams,
    CompareParams,
    DecodeParams,
    LatencyParams,
    OutputsParams,
    PairsParams,
    RecallParams,
    ScoreParams,
    TimedSystem,
    TrainParams,
)
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.texts import Texts
from creamtea.study.spec import ImportedModel, ShippedModel, Study, System

MAX_PAIRED = 30  # systems of which every two are compared: 435 pairs, 43,500 resamples


class Systems(Texts):
    """Adds steps kind by kind; the dictionaries hold the keys of the steps added so far."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        super().__init__(study, files)
        self._train: dict[tuple[str, int], str] = {}  # variant, seed
        self.decode: dict[tuple[str, str], list[str]] = {}  # system, test set: those of each seed
        self.score: dict[tuple[str, str, str], list[str]] = {}  # system, test set, metric: likewise
        # digests that pin a metric's model by its content, where it is a file and not a name
        self.checkpoints = {
            metric.name(): self.files.checkpoint(metric.checkpoint()) for metric in self.study.metrics
        }
        self.scorers = {
            metric.name(): self.files.scorer(("metrics", index, "scorer"), metric.scorer_pins)
            for index, metric in enumerate(self.study.metrics)
        }

        self.compare_params = {
            metric.name(): CompareParams(
                metric=metric.of_step(), significance=self.study.significance, languages=self.study.languages
            )
            for metric in self.study.metrics
        }

    def seeds(self, variant: str) -> list[int]:
        return self.study.variants[variant].seeds

    def seeds_of(self, system: str) -> list[int]:
        """Return the seeds with which a system translates.

        An ensemble has one, the first, which stands for all. A model trained elsewhere has none.
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
            self.subwords_of(name)  # looks at the folder
        params = TrainParams(
            objective=variant.objective,
            architecture=variant.architecture
            if imported is None
            else self.files.architecture(imported.marian),
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
        """Return the inputs with a system's model: of the seed, in an ensemble of all seeds.

        A model that was trained elsewhere has no seed.
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
        """Return the lexicon, for selections that need it."""
        if not system.selection.needs_lexicon:
            return {}
        frequencies = system.selection.needs_frequencies
        if system.model is None:
            return {"align": [self.lexicon(system.variant, frequencies)]}
        assert isinstance(system.model, ImportedModel)  # the others have maps of their own
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
        """Decode with each seed, or read the given outputs; score them, and measure recall."""
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
        """Add outputs of a text file, or a reference of the test set."""
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
                # reports read scores without the study: errors are better when they are lower
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
        if not system.selection.needs_model:
            del inputs["train"]
            params = params.model_copy(
                update={"precision": "fp32"}
            )  # no model runs: all precisions share the step
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
            self.add(COMPARE, place, self.compare_params[metric.name()], inputs, labels)

    def pairs(self, test_set: str) -> None:
        """Compare every two of a test set's systems by the study's first metric.

        Only for 3 to MAX_PAIRED systems: two have their comparison with the baseline, and the work grows with
        the cube of their number.
        """
        names = [
            name for name in self.study.systems_on(test_set) if self.study.systems[name].reference is None
        ]
        metric = next(iter(self.study.metrics_on(test_set)), None)
        if not 3 <= len(names) <= MAX_PAIRED or metric is None:
            return
        systems = [self._compared(name, test_set, metric) for name in names]
        own = self.compare_params[metric.name()]
        fewest = SAMPLES_PER_COMPARISON * math.comb(len(names), 2)
        params = PairsParams(
            metric=own.metric,
            significance=Significance(
                samples=max(own.significance.samples, fewest),
                trials=max(own.significance.trials, fewest),
                seed=own.significance.seed,
            ),
            languages=own.languages,
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
        self.add(AGREEMENT, test_set, AgreementParams(), inputs, labels)

    def _compared(self, system: str, test_set: str, metric: Metric) -> list[str]:
        """Return the steps of each seed whose outputs or segment scores are compared."""
        if metric.compares == "segment scores":
            return self.score[system, test_set, metric.name()]
        return self.decode[system, test_set]

    def latency(self, latency: Latency) -> None:
        """Time the first seed of each system in one step, so that they are timed side by side."""
        names = self.study.timed()
        seeds = [next(iter(self.seeds_of(name)), None) for name in names]
        models: list[str] = []  # distinct trainings, in the order of their first system
        systems: list[TimedSystem] = []
        # subwords and lexicon are the same for all: creamtea.study.checks has seen to it
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
        """Describe where latency is measured, by `resources`: another place gives other times."""
        wanted = self.study.resources.get("latency")
        if wanted is None:
            return None
        parts = ["a GPU"] if wanted.gpus else []
        parts += [f"group {wanted.worker_group}"] if wanted.worker_group else []
        parts += [f"node {wanted.node}"] if wanted.node else []
        return ", ".join(parts) or None


class StudyPlanner(Systems):
    """Implements `creamtea.methods.planning.Planner`."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        super().__init__(study, files)
        self.languages, self.alignment = study.languages, study.alignment
        self.significance, self.baseline = study.significance, study.baseline
        bleu = (metric for metric in study.metrics if isinstance(metric, Bleu))
        self.bleu = next(bleu, Bleu(kind="bleu", tokenize=bleu_tokenizer(study.languages.target)))
        chrf = (metric for metric in study.metrics if isinstance(metric, Chrf))
        self.chrf = next(chrf, Chrf(kind="chrf"))

    def corpus_spec(self, name: str) -> Corpus:
        return self.study.corpora[name]

    def held_out(self, test_set: str) -> HeldOut:
        spec = self.study.test_sets[test_set]
        assert isinstance(spec, FilesTestSet)  # the corpus's check has seen to it
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
