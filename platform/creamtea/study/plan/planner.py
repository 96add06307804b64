"""What methods ask of the plan. What an analysis needs decoded shares its steps with the study's systems and
with other analyses, where parameters and inputs are the same."""

from __future__ import annotations

from collections.abc import Sequence

from creamtea.methods.corpora import Corpus
from creamtea.methods.metrics import Bleu
from creamtea.methods.planning import HeldOut, Key, Labels
from creamtea.methods.searches import Search
from creamtea.methods.test_sets import FilesTestSet
from creamtea.study.plan.builder import Builder
from creamtea.study.plan.systems import Systems
from creamtea.study.plan.texts import Texts
from creamtea.study.spec import System


class StudyPlanner:
    """Implements `creamtea.methods.planning.Planner`."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.study = builder, builder.study
        self.texts = Texts(builder, self)
        self.systems = Systems(builder, self.texts)
        self.languages, self.alignment = self.study.languages, self.study.alignment
        bleu = (metric for metric in self.study.metrics if isinstance(metric, Bleu))
        self.bleu = next(bleu, Bleu(kind="bleu"))
        self.corpus, self.subwords = self.texts.corpus, self.texts.subwords
        self.test_set, self.lexicon = self.texts.test_set, self.texts.lexicon_of
        self.model, self.add = self.systems.model_inputs, builder.add

    # ------------------------------------------------------------ what the study says

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

    def seeds(self, variant: str) -> Sequence[int]:
        return self.study.variants[variant].seeds

    def variant_of(self, system: str) -> str:
        return self.study.systems[system].variant

    def searching_systems(self, test_set: str) -> list[str]:
        return [
            name
            for name in self.study.systems_on(test_set)
            if not self.study.systems[name].selection.selects and self.study.systems[name].search.maximises
        ]

    def precision_of(self, system: str) -> str:
        return self.study.systems[system].precision

    # ------------------------------------------------------------ steps

    def decode_variant(
        self, place: str, variant: str, seed: int, search: Search, test_set: Key, labels: Labels
    ) -> Key:
        system = System(variant=variant, search=search)
        return self.systems.add_decode(place, system, seed, test_set, labels)

    def decode_system(self, place: str, system: str, seed: int, test_set: Key, labels: Labels) -> Key:
        return self.systems.add_decode(place, self.study.systems[system], seed, test_set, labels)
