"""What methods ask of the plan. What an analysis needs decoded shares its steps with the study's systems and
with other analyses, where parameters and inputs are the same."""

from __future__ import annotations

from creamtea.methods.corpora import Corpus
from creamtea.methods.metrics import Bleu, Chrf, bleu_tokenizer
from creamtea.methods.planning import File, HeldOut, Inputs, Key, Labels
from creamtea.methods.searches import Search
from creamtea.methods.test_sets import FilesTestSet
from creamtea.study.data_files import DataFiles
from creamtea.study.plan.systems import Systems
from creamtea.study.spec import Study, System


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
