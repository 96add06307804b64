"""A plan, and its steps over text: corpora, test sets, subwords, alignments."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from creamtea.contract.step import Resources, StepKind, StepParams, step_key
from creamtea.document.mistakes import KeyPath
from creamtea.methods.corpora import Corpus, FilesCorpus, WordCorpus
from creamtea.methods.planning import Planner, TextPlan
from creamtea.methods.plugins import plugins_of
from creamtea.methods.test_sets import FilesTestSet, TestSet, WordTestSet
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.steps.systems import IMPORT_MODEL, ImportModelParams
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
    EncodeParams,
    OverlapParams,
    ShortlistParams,
    SubwordsParams,
    TestSetParams,
)
from creamtea.study.data_files import DataFiles
from creamtea.study.spec import ImportedModel, ShippedModel, Study
from creamtea.words import any_unspaced


@dataclass(frozen=True)
class PlannedStep:
    key: str
    kind: str
    version: int
    params: dict[str, Any]
    inputs: dict[str, list[str]]  # role: keys of steps
    resources: Resources
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
        """Count the steps of each kind, in the catalogue's order."""
        counts = Counter(step.kind for step in self.steps)
        return {kind: counts[kind] for kind in STEP_KINDS if counts[kind]}


Inputs = Mapping[str, Sequence[str]]
P = TypeVar("P", bound=StepParams)


class Builder:
    """Adds steps to a plan, each key once."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        self.study, self.files = study, files
        self.result = Plan(study.name)
        self._plugins: dict[str, dict[str, str]] = {}  # by key: the plug-ins of the step itself
        self._nodes: set[str] = set()
        self._known_resources: dict[tuple[Any, ...], Resources] = {}  # by kind, variant and plug-ins

    def add(
        self,
        kind: StepKind[P],
        place: str,
        params: P,
        inputs: Inputs,
        labels: dict[str, Any],
        paths: Sequence[str] = (),
    ) -> str:
        """Add a place of the study and its step, each once; return the step's key.

        `paths`: the user's files.
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
            # the key has those of its inputs by their keys; to read a model, a worker needs the same
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
        """Return what the variant or the study sets, by default one core.

        A latency run has the threads that it measures with.
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


# corpora, and the test sets whose segments may be in them
OVERLAPPING = ((FilesCorpus, FilesTestSet), (WordCorpus, WordTestSet))


class Texts(Builder):
    """Plans text steps, each when its key is first asked for."""

    def __init__(self, study: Study, files: DataFiles) -> None:
        super().__init__(study, files)
        self._corpus: dict[str, str] = {}
        self._test_set: dict[tuple[str, int | None], str] = {}

    # ------------------------------------------------------------ what a variant stands on

    def subwords_of(self, variant: str) -> str:
        root = self.study.root_of(variant)
        if (model := self.study.imported_by(variant)) is not None:
            return self.import_model(model, ("variants", root, "start_from", "marian"))
        return self.subwords(self.study.variants[root].corpus, self.study.variants[root].subwords)

    def import_model(self, model: ImportedModel | ShippedModel, key: KeyPath) -> str:
        """Add the import of a model; `key` is where the study names it."""
        params = ImportModelParams(**model.model_dump(), digest=self.files.model_digest(key, model))
        return self.add(IMPORT_MODEL, model.path, params, {}, {"model": model.path}, [model.path])

    def encode_for(self, variant: str, corpus: str) -> str:
        """Encode a corpus in the subwords of a variant."""
        root = self.study.variants[self.study.root_of(variant)]
        if (model := self.study.imported_by(variant)) is None:
            return self.encode(corpus, root.subwords, root.corpus)
        return self.encode_in(model, corpus)

    def encode_in(self, model: ImportedModel, corpus: str) -> str:
        """Encode a corpus in the subwords of a model from elsewhere, whose folder has been checked."""
        return self.add(
            ENCODE,
            f"{corpus}@{model.marian}",
            EncodeParams(),
            {"corpus": [self.corpus(corpus)], "subwords": [self.import_model(model, ())]},
            {"corpus": corpus, "subwords": model.marian},
        )

    def lexicon(self, variant: str, frequencies: bool = False) -> str:
        """Add the lexicon that serves all lexicon selections over a corpus and its subwords.

        An adapted variant's lexicon is in the subwords of the variant that it started from. `frequencies`:
        with the target subwords by frequency.
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
        """Add the lexicon of a corpus in the subwords of a model from elsewhere."""
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
        return self.add(SHORTLIST, place, ShortlistParams(), {**inputs, "align": [lexicon]}, labels)

    def subwords(self, corpus: str, name: str) -> str:
        return self.add(
            SUBWORDS,
            f"{corpus}/{name}",
            SubwordsParams(subwords=self.study.subwords[name]),
            {"corpus": [self.corpus(corpus)]},
            {"corpus": corpus, "subwords": name},
        )

    def encode(self, corpus: str, subwords: str, trained_on: str | None = None) -> str:
        """Encode a corpus in its own subwords, or in those of another corpus."""
        base = trained_on or corpus
        return self.add(
            ENCODE,
            _place(corpus, subwords, base),
            EncodeParams(),
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
        # a part of a test set has no `test_set` label: the report's tables are of whole ones
        labels = {"test_set": name} if sentences is None else {"first_of": name, "sentences": sentences}
        place = name if sentences is None else f"{name}@{sentences}"
        self._test_set[name, sentences] = self.add(TEST_SET, place, params, plan.inputs, labels, paths)
        return self._test_set[name, sentences]

    def overlaps(self) -> None:
        """Compare each training text of files with all test sets of files of its kind, reading it once.

        Sampled and made-up sentences are left out: they may well occur twice.
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
        """Return what a text's step needs and the paths of its files, which are checked."""
        plan = text.plan((section, name), cast(Planner, self))  # which a StudyPlanner is
        for group in plan.aligned:
            self.files.aligned(group)
        for checked in plan.checked:
            self.files.readable(checked)
        return plan, [path for group in plan.aligned for _, path in group]


def _place(corpus: str, subwords: str, trained_on: str) -> str:
    return f"{corpus}/{subwords}" + ("" if corpus == trained_on else f"@{trained_on}")
