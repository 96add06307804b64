"""The card of an exported model: README.md, as people and model hubs expect it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import creamtea
from creamtea.contract.step import BeamProof, Difference, ExportFacts
from creamtea.languages import language
from creamtea.methods.objectives import Softmax
from creamtea.orders.submission import spec_of
from creamtea.report.cells import Measured, StudyResults, read_cell
from creamtea.report.configuration import (
    describe_architecture,
    describe_imported,
    describe_system,
    describe_variant,
    imported_models,
)
from creamtea.report.markdown import paragraphs, plain, sections_to_markdown
from creamtea.report.model import Block, Fact, Facts, Notes, Row, Section, Table
from creamtea.report.tables import corpora_table, trainings_table
from creamtea.store.database import Database
from creamtea.store.queries import Node, find_study

PROGRAMS = {"ctranslate2": "CTranslate2", "safetensors": "creamtea"}  # the program that loads the format
SHOWN = 5  # differences listed

CTRANSLATE2 = '''\
import math
import unicodedata

import ctranslate2
import sentencepiece

FOLDER = "."  # where this file is

model = ctranslate2.Translator(FOLDER, compute_type="{compute_type}")
source, target = (
    sentencepiece.SentencePieceProcessor(model_file=f"{{FOLDER}}/{{name}}") for name in {subwords}
)


def normalise(line):
    """Normalise a line like the training text: NFC, and one blank for any white space."""
    return unicodedata.normalize("NFC", " ".join(line.replace("\\0", " ").replace("\\u2581", " ").split()))


def translate(lines):
    sources = source.encode([normalise(line) for line in lines], out_type=str)
    limits = [math.ceil({ratio:g} * len(source)) + 10 for source in sources]
    results = model.translate_batch(
        sources,
        beam_size=1,
        min_decoding_length=0,  # CTranslate2 otherwise forbids an empty translation
        max_input_length=0,
        max_decoding_length=max(limits),
    )
    best = (result.hypotheses[0][:limit] for result, limit in zip(results, limits))
    return [" ".join(target.decode(pieces).split()) for pieces in best]


print(translate([{example}]))
'''

SAFETENSORS = """\
from creamtea_workers.export import load

model = load(".", max_length_ratio={ratio:g})  # where this file is; beam=4 for a beam search

print(model.translate([{example}]))
"""
SNIPPETS = {"ctranslate2": CTRANSLATE2, "safetensors": SAFETENSORS}
INSTALL = {
    "ctranslate2": "pip install ctranslate2 sentencepiece",
    "safetensors": "pip install 'creamtea[workers]'",
}


@dataclass(frozen=True)
class Export:
    """An exported model: its format, the step that made the model, and the result of the export."""

    to: str
    node: Node  # the step that trained or imported the model
    proved_on: str  # "test set newstest", "the file held-out.en"
    facts: ExportFacts


def proof_words(export: Export) -> str:
    """Say how many outputs are identical: "1,000 of 1,000 outputs on test set test are identical"."""
    proof = export.facts.proof
    words = f"{proof.identical:,} of {proof.sentences:,} outputs on {export.proved_on} are identical"
    left_out = f"; {proof.left_out:,} that are empty or too long for {PROGRAMS[export.to]} are left out"
    return words + (left_out if proof.left_out else "")


def beam_words(beam: BeamProof) -> str:
    """Say the same of beam search: "with beam 4, 995 of 1,000 outputs are identical"."""
    return f"with {beam.search}, {beam.identical:,} of {beam.sentences:,} outputs are identical"


def difference_words(difference: Difference) -> str:
    """Say where two outputs differ: "line 12: from subword 3 on; the logits … are 0.000001 apart"."""
    return (
        f"line {difference.line}: from subword {difference.position + 1} on; the logits of the two subwords "
        f"are {abs(difference.gap):.2g} apart"
    )


def model_card(database: Database, export: Export, study: str | int) -> str:
    """Write the card as Markdown, with the front matter that model hubs read."""
    with database.session() as session:
        row = find_study(session, study)
        spec = spec_of(row)
        results = StudyResults(session, row.id, spec)
        system, seed = export.node.labels["system"], export.node.labels.get("seed")
        title = f"{row.name}: {system}" + ("" if seed is None else f", seed {seed}")
        sections = [
            Section("model", "Model", tuple(_model(results, export, row.config_hash))),
            Section("data", "Training data", tuple(_data(results, system, seed))),
            Section("scores", "Scores", tuple(_scores(results, system, seed))),
        ]
    languages = (spec.languages.source, spec.languages.target)
    snippet = SNIPPETS[export.to].format(
        ratio=export.facts.max_length_ratio,
        compute_type=export.facts.quantization or "float32",
        subwords=export.facts.subwords,
        example='"A sentence."',
    )
    parts = [
        _front_matter(export.to, languages),
        f"# {plain(title)}",
        paragraphs(
            f"Translates {language(languages[0])} into {language(languages[1])}. {spec.description}".strip()
        ),
        f"## Load it\n\n```sh\n{INSTALL[export.to]}\n```\n\n```python\n{snippet}```",
        sections_to_markdown([*sections, Section("proof", "Proof", tuple(_proof(export)))]).rstrip(),
        "## Licence\n\nNot stated yet: fill it in here and in the first lines of this file. The terms of the "
        "training data, or of the model that it started from, may bind the model.\n",
    ]
    return "\n\n".join(parts)


def _front_matter(to: str, languages: Sequence[str]) -> str:
    # quoted, because YAML reads `no`, Norwegian, as false
    listed = "".join(f"\n- {json.dumps(code)}" for code in dict.fromkeys(languages))
    library = PROGRAMS[to].lower()
    return (
        f"---\nlicense: unknown # fill this in\nlanguage:{listed}\nlibrary_name: {library}\n"
        "pipeline_tag: translation\n---"
    )


# ---------------------------------------------------------------- sections


def _model(results: StudyResults, export: Export, config_hash: str) -> Iterator[Block]:
    spec, labels = results.spec, export.node.labels
    model = spec.systems[labels["system"]].model  # that was trained elsewhere
    imported = imported_models(results) if model is not None else ()
    trained = [replace(fact, label="model") for fact in imported if model and fact.label == model.path]
    if "variant" in labels:
        variant, start = spec.variants[labels["variant"]], spec.imported_by(labels["variant"])
        built = describe_architecture(variant.architecture) if start is None else describe_imported(start)
        trained = [
            Fact("variant", f"{labels['variant']}: {describe_variant(spec, labels['variant'])}"),
            Fact("objective", f"{variant.objective.title} ({variant.objective.describe()})"),
            Fact("architecture", built),
            Fact("seed", labels["seed"]),
        ]
    yield Facts(
        "facts",
        "",
        (
            Fact("study", f"{spec.name} (config hash {config_hash})"),
            *trained,
            Fact("parameters", f"{export.facts.parameters:,}"),
            Fact("vocabulary", f"{export.facts.vocabulary_size:,} target symbols"),
            Fact(
                "written by",
                f"creamtea {creamtea.__version__} for {PROGRAMS[export.to]}, in {_precision(export)}",
            ),
        ),
    )
    yield Notes("not_exported", tuple(_not_exported(results, export)))


def _precision(export: Export) -> str:
    return export.facts.quantization or "fp32"


def _not_exported(results: StudyResults, export: Export) -> Iterator[str]:
    system = results.spec.systems[export.node.labels["system"]]
    variant = results.spec.variants.get(system.variant)
    if by_map := export.facts.map:
        yield (
            f"The system's vocabulary selection ({by_map.selection}) is in vmap.txt, which CTranslate2 "
            "reads with use_vmap=True; for a batch, it takes the union. One sentence at a time, "
            f"{by_map.identical:,} of {by_map.sentences:,} outputs are identical to creamtea's."
        )
    elif system.selection.selects:
        yield (
            f"Not exported: the system's vocabulary selection ({system.selection.describe()}). The exported "
            "model may use its whole vocabulary."
        )
    if variant is not None and variant.nvs is not None:
        kept = "is not in this model" if export.to == "ctranslate2" else "is among the weights, but unused"
        yield f"The head for neural vocabulary selection {kept}."
    if system.search.kind != "greedy":
        measured = "and also with its beam" if export.facts.beam else "but not with this search"
        yield (
            f"Not exported: the system's search ({system.search.describe()}). The model is compared below "
            f"with greedy search, {measured}."
        )
    if system.precision != _precision(export):
        yield (
            f"Not exported: the system's precision ({system.precision}). The weights are "
            f"{_precision(export)}."
        )
    if export.to == "ctranslate2":
        yield _scoring_note(Softmax(kind="softmax") if variant is None else variant.objective)


def _scoring_note(objective: Any) -> str:
    if objective.kind == "softmax":
        return (
            "CTranslate2's scores are log-probabilities of softmax, as this model was trained. Its beam "
            "search is not creamtea's: it normalises by length unless length_penalty=0, and stops by other "
            "rules."
        )
    return (
        "Greedy search takes the largest logit, whatever the objective. Scores depend on it: this model was "
        f"trained with {objective.describe()}, and CTranslate2 scores by softmax, so that its scores and its "
        "beam search differ from creamtea's."
    )


def _data(results: StudyResults, system: str, seed: int | None) -> Iterator[Block]:
    """Show the training text of the model and of the models that it started from."""
    if seed is None:
        yield Notes("elsewhere", ("The model was trained elsewhere: its own card has its training data.",))
        return
    names, corpora, trainings = [], corpora_table(results), trainings_table(results)
    name: str | None = results.spec.systems[system].variant
    while name is not None:
        names.append(name)
        start = results.spec.variants[name].start_from
        name = start if isinstance(start, str) else None
    texts = {results.spec.variants[name].corpus for name in names}
    rows = [row for row in trainings.rows if row.name in names and row.setting == f"seed {seed}"]
    yield _only(corpora, [row for row in corpora.rows if row.name in texts])
    yield _only(trainings, rows)


def _only(table: Table, rows: Sequence[Row]) -> Table:
    """Keep these rows, and the columns in which one of them has a value."""
    columns = [
        column for column in table.columns if any(row.cells[column.key].value is not None for row in rows)
    ]
    return replace(table, columns=tuple(columns), rows=tuple(rows))


def _scores(results: StudyResults, system: str, seed: int | None) -> Iterator[Block]:
    with_seed = "" if seed is None else ", with this seed"
    yield Notes(
        "of",
        (
            f"Scores of the study's system ({describe_system(results.spec, system)}){with_seed}; brackets "
            "are 95 % intervals over segments.",
        ),
    )
    metrics = {metric.name(): metric for metric in results.spec.metrics}
    rows = []
    for test_set in results.spec.test_sets_of(system):
        place = {"system": system, "test_set": test_set} | ({} if seed is None else {"seed": seed})
        cells = {
            key: read_cell(
                results.of("score", **place, metric=key), partial(Measured.find, name=metric.row()), ""
            )
            for key, metric in metrics.items()
        }
        rows.append(Row(test_set, cells))
    columns = tuple(metric.column() for metric in metrics.values())
    yield Table("scores", "", "test set", columns, tuple(rows))


def _proof(export: Export) -> Iterator[Block]:
    program, precision = PROGRAMS[export.to], _precision(export)
    both = "both in fp32" if precision == "fp32" else f"the first in fp32, the second in {precision}"
    notes = [
        f"{proof_words(export)}: creamtea's greedy search in the study's model, and {program}'s in this one, "
        f"{both}, over the whole vocabulary, on the machine that exported."
    ]
    differences = [difference_words(difference) for difference in export.facts.proof.differences]
    if differences and precision != "fp32":
        notes.append(
            f"{precision} rounds weights and activations, which can change the choice between two nearly "
            f"equal words. The first differences: {'; '.join(differences[:SHOWN])}."
        )
    else:
        notes += differences[:SHOWN]
    if beam := export.facts.beam:
        notes.append(
            f"By beam search, {beam_words(beam)}: both use the same width and length normalisation. Outputs "
            f"may differ because {program}, unlike creamtea, replaces a finished hypothesis by another, and "
            "scores by softmax whatever the objective."
        )
    yield Notes("proof", tuple(notes))
