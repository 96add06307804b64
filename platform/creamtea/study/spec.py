"""The study spec: what a researcher may write, as strict models.

Data only: no import paths, no shell. Unknown keys are refused. The models describe a study *after* its
grids are expanded (`creamtea.study.loader`), so every parameter here is a single value.
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
    # model.safetensors, source.spm, target.spm and vocab.json; or an .npz or .bin file of Marian's, or its
    # folder, with vocab*.spm, source.spm and target.spm, or the vocabularies that decoder.yml names
    marian: str

    @property
    def path(self) -> str:
        return self.marian


class ShippedModel(Strict):
    """A CTranslate2 model, which its library translates with. Nothing in its folder is executed."""

    # folder of a CTranslate2 model, relative to --data: model.bin, config.json, its vocabularies, and
    # source.spm and target.spm, or one SentencePiece model for both sides (subwords.model or
    # sentencepiece.model)
    ctranslate2: str

    @property
    def path(self) -> str:
        return self.ctranslate2


# told apart by a function, so that a mistake is about one of the two
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
    """What is trained.

    `start_from` names another variant from whose trained weights (of the same seed) this one is fine-tuned,
    with its subwords: adaptation to another corpus. `alignment_corpus`: the corpus for its lexicon, by
    default its own (NVS paper, Appendix A: the general corpus with the in-domain text up-sampled).
    """

    corpus: Name  # a corpus of the study
    # a subword model of the study; none where it starts from an imported model, which has its own
    subwords: Name = unstated("")
    objective: Objective  # the training loss
    architecture: Architecture = TransformerArchitecture()  # how the model is built
    nvs: Nvs | None = None  # a vocabulary selection head; `{}`: with its defaults
    training: Training = Training()  # how it is trained
    # another variant, whose trained weights (of the same seed) it is fine-tuned from, with its subwords; or
    # `{marian: FOLDER}`, a model that was trained elsewhere, with its subwords and architecture
    start_from: Start | None = None
    alignment_corpus: Name | None = None  # a corpus that its lexicon is aligned on; none: its own
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]  # one training for each
    # by step kind: needs that override the study's `resources`
    resources: dict[str, StepResources] = unstated({})


class System(Strict):
    """What translates.

    That is a `variant`, which the study trains; or a `model` that was trained elsewhere; or `outputs` from
    anywhere, text files by test set with a line for each segment; or `reference`, the number of a human
    reference of its test sets (1 is their `target`), which is rated like a system and scored against the
    others.

    `test_sets`: what it translates, by default all of the study's. `baseline`: the system that it is compared
    with, by default the study's; `more_baselines`: further ones.
    """

    # for editors; `creamtea.study.checks` says which of the four is wrong
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [key]} for key in ("variant", "model", "outputs", "reference")]
        }
    )
    # the variant whose models translate
    variant: Name = unstated("")
    # instead of a variant: a model that was trained elsewhere
    model: Elsewhere | None = unstated(None)
    # of a `model`: the corpus that the lexicon of its selection is aligned on, in the model's subwords
    alignment_corpus: Name | None = unstated(None)
    # instead of a variant, by test set: path of a text file with a line for each segment
    outputs: dict[Name, str] = unstated({})
    # instead of a variant: the number of a human reference, 1 for `target`
    reference: Positive | None = unstated(None)
    selection: Selection = FullVocabulary()  # which subwords a sentence may use
    search: Search = Greedy()  # how a translation is found
    precision: Precision = "fp32"  # number format in which the model computes; fp16 on GPUs, int8 on CPUs
    # the variant's models of all seeds as one: the mean of their probabilities at each step
    ensemble: bool = unstated(False)
    # [segments] decoded at a time; changes speed, and no output in fp32 and int8. In bf16 and fp16 a
    # product may be rounded differently in a batch of another shape, which decides between words that are
    # nearly equal
    batch_size: Positive = 32
    # what it translates; none named: all
    test_sets: Annotated[list[Name], Field(min_length=1)] | None = None
    baseline: Name | None = None  # the system that it is compared with; none: the study's
    # systems that it is compared with besides; itself, its baseline and those whose baseline it is are
    # passed over
    more_baselines: list[Name] = unstated([])

    @property
    def runs(self) -> bool:
        """Return True if a model makes the outputs, so that it can be searched and timed."""
        return bool(self.variant) or self.model is not None


class Track(Strict):
    """Where trainings are sent as they run.

    Each training is a run, with its curves and the scores of its outputs. Keys and addresses come from the
    library's own environment variables (`MLFLOW_TRACKING_URI`, `WANDB_API_KEY`).
    """

    # the library, which an extra of the same name installs
    kind: Literal["tensorboard", "mlflow", "wandb"]
    project: str = ""  # MLflow's experiment, or the project of the others; empty: the study's name


class Study(Strict):
    """A study as a researcher writes it.

    Every system translates every test set unless it names its own. Without a system that is trained here
    there are no corpora, subwords and variants.
    """

    name: Name  # under which results are kept and reports are asked for
    description: str = ""  # shown in reports
    languages: Languages  # codes of the languages
    corpora: dict[Name, Corpus] = {}  # text to train on
    subwords: dict[Name, Subwords] = {}  # subword models
    variants: dict[Name, Variant] = {}  # what is trained
    systems: Annotated[dict[Name, System], Field(min_length=1)]  # what translates
    test_sets: Annotated[dict[Name, TestSet], Field(min_length=1)]  # what is translated
    baseline: Name  # the system that the others are compared with
    alignment: Alignment = Alignment()  # where the lexicon of selections comes from
    metrics: list[Metric] = [Bleu(kind="bleu"), Chrf(kind="chrf")]  # what scores translations
    significance: Significance = Significance()  # tests of differences from the baseline
    recall: Recall = Recall()  # curves of recall over selected size
    latency: Latency | None = None  # a timing run; none: nothing is timed
    analyses: dict[Name, Analysis] = {}  # what is measured beyond the main table
    resources: dict[str, StepResources] = {}  # of a kind of step: what its steps need
    # where trainings are sent as they run, beside creamtea's own pages; no result depends on it
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
        """Whether some variant is trained more than once."""
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
        """Return the model from elsewhere at the start of the variant's chain, if there is one."""
        start = self.variants[self.root_of(variant)].start_from
        return start if isinstance(start, ImportedModel) else None

    def alignment_corpus(self, system: System) -> str:
        """Return the corpus that a system's lexicon is aligned on; "" if an imported model names none."""
        if system.model is not None:
            return system.alignment_corpus or ""
        variant = self.variants[system.variant]
        return variant.alignment_corpus or variant.corpus

    def subword_texts(self) -> set[tuple[str, str]]:
        """Return each corpus from which subwords are learnt, with the name of the subwords."""
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
        """Return what a system is compared with; a baseline is its own."""
        return self.systems[system].baseline or self.baseline


# ---------------------------------------------------------------- JSON Schema


# The schema is for editors: completion, descriptions and errors while typing. It is made from these models:
# their docstrings and the comments beside their fields are its descriptions. It describes the file as
# written: with lists where grids may have them, and blocks that leave their kind to a default. `creamtea
# validate` checks what must hold between parts.


Schema = dict[str, Any]
SECTIONS = {"variants": "Variant", "systems": "System"}  # the models of what may have grids
REFERENCE = "#/$defs/"


def study_schema() -> Schema:
    """Return the JSON Schema of a study file, grids included."""
    schema = schema_of(Study, "creamtea study")
    _allow_grids(schema["$defs"])
    return schema


def schema_of(model: type[BaseModel], title: str) -> Schema:
    """Return a document's schema in JSON Schema's draft of 2020-12."""
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

    A union told apart by `kind` becomes conditions, so that an editor can name the one that fails. Names are
    held to their pattern. Titles that only repeat a key are removed.
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
    # architectures are the one family whose kind a study may leave out
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
    """Allow lists for single values in the blocks that `creamtea.study.grid` expands.

    The same blocks keep their shape in other places.
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
