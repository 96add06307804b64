"""The spec of a study, as strict models.

A study is data only: no import paths, no shell. Unknown keys are refused. The models describe a study *after*
its grids are expanded (`creamtea.study.loader`), so every parameter here is a single value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from creamtea.contract.step import StepResources
from creamtea.document.values import Name, Positive, Seed, Strict, descriptions, unstated
from creamtea.methods.analysis import Analysis
from creamtea.methods.architectures import ARCHITECTURES, Architecture, Nvs, TransformerArchitecture
from creamtea.methods.corpora import Corpus
from creamtea.methods.metrics import Bleu, Chrf, Latency, Metric, Recall, Significance
from creamtea.methods.objectives import Objective
from creamtea.methods.searches import Greedy, Precision, Search
from creamtea.methods.selections import FullVocabulary, Selection
from creamtea.methods.test_sets import TestSet
from creamtea.methods.texts import Alignment, Languages, Subwords
from creamtea.methods.training import Training
from creamtea.study.grid import GRID_KEYS


class ImportedModel(Strict):
    """A model that was trained elsewhere. Nothing in its folder is executed."""

    # folder of a model in Hugging Face's MarianMT format (OPUS-MT), relative to --data: config.json,
    # model.safetensors, source.spm, target.spm and vocab.json; or Marian's .npz or .bin file, or its folder,
    # with vocab*.spm, source.spm and target.spm, or the vocabularies that decoder.yml names
    marian: str

    @property
    def path(self) -> str:
        return self.marian


class ShippedModel(Strict):
    """A CTranslate2 model, which runs in its own library. Nothing in its folder is executed."""

    # folder of a CTranslate2 model, relative to --data: model.bin, config.json, its vocabularies, and
    # source.spm and target.spm, or one SentencePiece model for both sides (subwords.model or
    # sentencepiece.model)
    ctranslate2: str

    @property
    def path(self) -> str:
        return self.ctranslate2


# a function chooses the type, so that a mistake refers to only one of the two
Start = Annotated[
    Annotated[Name, Tag("name")] | Annotated[ImportedModel, Tag("model")],
    Discriminator(lambda value: "name" if isinstance(value, str) else "model"),
]


Elsewhere = Annotated[
    Annotated[ImportedModel, Tag("marian")] | Annotated[ShippedModel, Tag("ctranslate2")],
    Discriminator(
        lambda value: (
            "ctranslate2"
            if isinstance(value, ShippedModel) or (isinstance(value, dict) and "ctranslate2" in value)
            else "marian"
        )
    ),
]


class Variant(Strict):
    """A model to train.

    `start_from` adapts another variant to this corpus: training starts from its weights (of the same seed),
    with its subwords. `alignment_corpus`: the corpus for the lexicon, by default the variant's own (NVS
    paper, Appendix A: the general corpus with the in-domain text up-sampled).
    """

    corpus: Name  # a corpus of the study
    # a subword model of the study; none if it starts from an imported model, which has its own
    subwords: Name = unstated("")
    objective: Objective  # the training loss
    architecture: Architecture = TransformerArchitecture()  # how the model is built
    nvs: Nvs | None = None  # a vocabulary selection head; `{}`: with its defaults
    training: Training = Training()  # how it is trained
    # another variant to fine-tune: training starts from its weights (of the same seed), with its subwords; or
    # `{marian: FOLDER}`, a model that was trained elsewhere, with its subwords and architecture
    start_from: Start | None = None
    alignment_corpus: Name | None = None  # corpus on which its lexicon is aligned; none: its own
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]  # one training for each
    # by step kind: resources that override the study's `resources`
    resources: dict[str, StepResources] = unstated({})


class System(Strict):
    """A source of translations.

    It is a `variant`, which the study trains; or a `model` that was trained elsewhere; or `outputs` from
    anywhere, a text file per test set with a line for each segment; or `reference`, the number of a human
    reference of its test sets (1 is their `target`), which is rated like a system and scored against the
    others.

    `test_sets`: the test sets to translate, by default all. `baseline`: the system to compare it with, by
    default the study's; `more_baselines`: further systems.
    """

    # for editors; `creamtea.study.checks` reports which of the four is wrong
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [key]} for key in ("variant", "model", "outputs", "reference")]
        }
    )
    # the variant whose models translate
    variant: Name = unstated("")
    # instead of a variant: a model that was trained elsewhere
    model: Elsewhere | None = unstated(None)
    # with a `model`: the corpus on which the lexicon of its selection is aligned, in the model's subwords
    alignment_corpus: Name | None = unstated(None)
    # instead of a variant, by test set: path of a text file with a line for each segment
    outputs: dict[Name, str] = unstated({})
    # instead of a variant: the number of a human reference, 1 for `target`
    reference: Positive | None = unstated(None)
    selection: Selection = FullVocabulary()  # which subwords a sentence may use
    search: Search = Greedy()  # how a translation is found
    precision: Precision = "fp32"  # number format in which the model computes; fp16 on GPUs, int8 on CPUs
    # combine the variant's models of all seeds by the mean of their probabilities at each step
    ensemble: bool = unstated(False)
    # [segments] decoded at a time; changes speed, and no output in fp32 and int8. In bf16 and fp16 a batch of
    # another shape may round differently, which can decide between nearly equal words
    batch_size: Positive = 32
    # test sets to translate; none named: all
    test_sets: Annotated[list[Name], Field(min_length=1)] | None = None
    baseline: Name | None = None  # the system to compare it with; none: the study's
    # further systems to compare it with; itself, its baseline, and systems whose baseline it is are skipped
    more_baselines: list[Name] = unstated([])

    @property
    def runs(self) -> bool:
        """Return True if a model makes the outputs, so that it can be searched and timed."""
        return bool(self.variant) or self.model is not None


class Track(Strict):
    """A tracker to which trainings are sent as they run.

    Each training is a run, with its curves and the scores of its outputs. Keys and addresses come from the
    library's own environment variables (`MLFLOW_TRACKING_URI`, `WANDB_API_KEY`).
    """

    # the library; the extra with the same name installs it
    kind: Literal["tensorboard", "mlflow", "wandb"]
    project: str = ""  # MLflow's experiment, or the others' project; empty: the study's name


class Study(Strict):
    """A study as a researcher writes it.

    Every system translates every test set unless it names its own. A study that trains no system has no
    corpora, subwords and variants.
    """

    name: Name  # name for results and reports
    description: str = ""  # shown in reports
    languages: Languages  # codes of the languages
    corpora: dict[Name, Corpus] = {}  # text to train on
    subwords: dict[Name, Subwords] = {}  # subword models
    variants: dict[Name, Variant] = {}  # models to train
    systems: Annotated[dict[Name, System], Field(min_length=1)]  # sources of translations
    test_sets: Annotated[dict[Name, TestSet], Field(min_length=1)]  # segments to translate
    baseline: Name  # the system to compare the others with
    alignment: Alignment = Alignment()  # the aligner for the lexicon of selections
    metrics: list[Metric] = [Bleu(kind="bleu"), Chrf(kind="chrf")]  # scores of translations
    significance: Significance = Significance()  # tests of differences from the baseline
    recall: Recall = Recall()  # curves of recall over selected size
    latency: Latency | None = None  # a timing run; none: nothing is timed
    analyses: dict[Name, Analysis] = {}  # measurements beyond the main table
    resources: dict[str, StepResources] = {}  # by kind of step: the resources of its steps
    # tracker to which trainings are sent as they run, beside creamtea's own pages; no result depends on it
    track: Track | None = unstated(None)
    # human evaluations of its outputs, each as in a campaign file (campaign.md), without `name` and `study`;
    # `creamtea campaign create FILE` makes drafts of them
    campaigns: dict[Name, dict[str, Any]] = unstated({})

    @model_validator(mode="after")
    def _metrics_for_target(self) -> Study:
        metrics = [metric.for_target(self.languages.target) for metric in self.metrics]
        object.__setattr__(self, "metrics", metrics)  # the model is frozen
        return self

    @property
    def has_several_seeds(self) -> bool:
        """True if a variant is trained more than once."""
        return any(len(variant.seeds) > 1 for variant in self.variants.values())

    def test_sets_of(self, system: str) -> list[str]:
        spec = self.systems[system]
        return list(spec.outputs) or spec.test_sets or list(self.test_sets)

    def systems_on(self, test_set: str) -> list[str]:
        """Return the systems that translate a test set, in the study's order."""
        return [name for name in self.systems if test_set in self.test_sets_of(name)]

    def metrics_on(self, test_set: str) -> list[Metric]:
        """Return the metrics that score a test set; without references, the metrics that need none."""
        scored = self.test_sets[test_set].has_references
        return [metric for metric in self.metrics if scored or not metric.needs_references]

    def timed(self) -> list[str]:
        """Return the systems that the latency run times, in its order."""
        named = self.latency.systems if self.latency else []
        return [name for name, system in self.systems.items() if system.runs] if named is None else named

    def root_of(self, variant: str) -> str:
        """Return the variant at the start of a chain of `start_from`; all share its subwords."""
        start = self.variants[variant].start_from
        return self.root_of(start) if isinstance(start, str) else variant

    def imported_by(self, variant: str) -> ImportedModel | None:
        """Return the imported model at the start of the variant's chain, if there is one."""
        start = self.variants[self.root_of(variant)].start_from
        return start if isinstance(start, ImportedModel) else None

    def alignment_corpus(self, system: System) -> str:
        """Return the corpus on which a system's lexicon is aligned; "" if an imported model names none."""
        if system.model is not None:
            return system.alignment_corpus or ""
        variant = self.variants[system.variant]
        return variant.alignment_corpus or variant.corpus

    def subword_texts(self) -> set[tuple[str, str]]:
        """Return (corpus, subwords) for all subwords that the study learns."""
        roots = [variant for variant in self.variants.values() if variant.start_from is None]
        return {(root.corpus, root.subwords) for root in roots}

    def compared(self, system: str) -> bool:
        """Return True if metrics compare a system with its baseline.

        A human reference is not compared: it has fewer references to be scored against.
        """
        return system != self.baseline_of(system) and self.systems[system].reference is None

    def comparisons(self, system: str) -> list[str]:
        """Return the systems that metrics compare a system with, its baseline first."""
        spec = self.systems[system]
        if spec.reference is not None:
            return []
        baseline = self.baseline_of(system)
        # a system with this one as its baseline is compared with it already
        more = [other for other in spec.more_baselines if self.baseline_of(other) != system]
        return [other for other in dict.fromkeys([baseline, *more]) if other != system]

    def baseline_of(self, system: str) -> str:
        """Return the system to compare a system with; a baseline is its own baseline."""
        return self.systems[system].baseline or self.baseline


# ---------------------------------------------------------------- JSON Schema


# The schema gives editors completion, descriptions and errors while typing. Its descriptions are the models'
# docstrings and the comments beside their fields. It describes the file as written: lists where grids may
# have them, and blocks without a kind if there is a default. `creamtea validate` checks conditions between
# parts.


Schema = dict[str, Any]
SECTIONS = {"variants": "Variant", "systems": "System"}  # sections that may have grids, and their models
REFERENCE = "#/$defs/"


def study_schema() -> Schema:
    """Return the JSON Schema of a study file, grids included."""
    schema = schema_of(Study, "creamtea study")
    _allow_grids(schema["$defs"])
    return schema


def schema_of(model: type[BaseModel], title: str) -> Schema:
    """Return a document's schema (JSON Schema, draft 2020-12)."""
    schema = model.model_json_schema()
    models = {model.__name__: model for model in _subclasses(Strict)}
    for name, definition in [(model.__name__, schema), *schema["$defs"].items()]:
        if name in models:
            if description := definition.get("description"):
                definition["description"] = inspect.cleandoc(description)
            for field, meaning in descriptions(models[name]).items():
                if field in definition.get("properties", {}):
                    definition["properties"][field]["description"] = str(meaning)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_rewritten(schema), "title": title}


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


# ---------------------------------------------------------------- shape


def _rewritten(value: Any) -> Any:
    """Rewrite pydantic's schema for editors.

    A union discriminated by `kind` becomes conditions, so that an editor can name the one that fails. Names
    must match their pattern. Titles that only repeat a key are removed.
    """
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {
        key: {name: _rewritten(item) for name, item in inner.items()}
        if key in ("properties", "$defs", "patternProperties")
        else _rewritten(inner)
        for key, inner in value.items()
        if key not in ("title", "default", "discriminator", "oneOf")
    }
    if "default" in value:
        result["default"] = value["default"]
    if "patternProperties" in value:
        result["additionalProperties"] = False
    if "discriminator" in value:
        result |= _by_kind(value["discriminator"]["mapping"])
    return result


def _by_kind(mapping: dict[str, str]) -> Schema:
    # architectures are the only family whose kind a study may omit
    default = ARCHITECTURES.default if set(mapping) == set(ARCHITECTURES.kinds) else None
    conditions = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"$ref": reference}}
        for kind, reference in mapping.items()
    ]
    if default is None:
        required: Schema = {"required": ["kind"]}
    else:
        required = {}
        conditions.append(
            {"if": {"not": {"required": ["kind"]}}, "then": {"$ref": mapping[default]}},
        )
    kinds: Schema = {"kind": {"enum": list(mapping)}}
    return {"type": "object", "properties": kinds, **required, "allOf": conditions}


# ---------------------------------------------------------------- grids


def _allow_grids(definitions: dict[str, Schema]) -> None:
    """Allow lists instead of single values in the blocks that `creamtea.study.grid` expands.

    Elsewhere the same blocks stay as they are.
    """
    copies: dict[str, Schema] = {}
    for section, keys in GRID_KEYS.items():
        properties = definitions[SECTIONS[section]]["properties"]
        for key in keys:
            properties[key] = _listable(properties[key], definitions, copies)
    definitions |= copies


def _listable(schema: Schema, definitions: dict[str, Schema], copies: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        copy = f"{name}Grid"
        if copy not in copies:
            copies[copy] = {}
            copies[copy] |= _listable(definitions[name], definitions, copies)
        return {**schema, "$ref": f"{REFERENCE}{copy}"}
    if "properties" in schema:
        result = dict(schema)
        result["properties"] = {
            key: _listable(value, definitions, copies) for key, value in schema["properties"].items()
        }
        if "allOf" in schema:
            result["allOf"] = [
                {**condition, "then": _listable(condition["then"], definitions, copies)}
                for condition in schema["allOf"]
            ]
        return result
    if any("$ref" in choice for choice in schema.get("anyOf", ())):
        return {**schema, "anyOf": [_listable(choice, definitions, copies) for choice in schema["anyOf"]]}
    if schema == {"type": "null"}:
        return schema
    about: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    single = {key: value for key, value in schema.items() if key not in about}
    grid = {"type": "array", "items": single, "minItems": 1, "uniqueItems": True}
    return {**about, "anyOf": [single, grid]}
