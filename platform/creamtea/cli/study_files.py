"""Commands on the file of a study: init writes it, validate checks it, schema describes it."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel
from rich.table import Table

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.report.configuration import describe_imported, describe_system
from creamtea.report.terminal import PrintingConsole
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study, schema_of, study_schema
from creamtea.wording import counted, option

if TYPE_CHECKING:
    from creamtea.study.start import FirstStudy
    from creamtea.study.survey import Side

INIT_EXAMPLES = """Examples:

`creamtea init --source train.en --target train.de`

`creamtea init --source train.en --target train.de --dev dev.en dev.de --test test.en test.de
-o with-dev.yaml`

`creamtea init --source a.txt --target b.txt --source-language en --target-language ja -o en-ja.yaml`

`creamtea init --source en-de.tsv --target en-de.tsv --columns 1 2 --source-language en
--target-language de -o en-de.yaml`
"""

TwoFiles = tuple[Path, Path]


def init(
    source: Annotated[Path, typer.Option(metavar="FILE", help="Training text, a sentence per line.")],
    target: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, line by line.")],
    dev: Annotated[
        TwoFiles | None, typer.Option(metavar="SOURCE TARGET", help="Development text; by default set aside.")
    ] = None,
    test: Annotated[
        TwoFiles | None, typer.Option(metavar="SOURCE TARGET", help="Test text; by default set aside.")
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="en, de, … By default the ending of the file's name.")
    ] = None,
    target_language: Annotated[str | None, typer.Option(metavar="CODE", help="The same.")] = None,
    columns: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Columns, from 1, of tab-separated training text; also of --dev with one file for both.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="STUDY.yaml", help="The study to write.")
    ] = Path("study.yaml"),
    seed: Annotated[int, typer.Option(min=0, help="Seed for the choice of the text set aside.")] = 1,
    no_timing: Annotated[
        bool, typer.Option("--no-timing", help="Do not time updates: gives no estimate, and trains in bf16.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the study and its text.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Look at two text files and write a study with settings that fit them.

    Exit code 0: written; 2: a file or an option is wrong, and nothing was written.
    """
    if columns is not None and min(columns) < 1:
        raise InputError(f"{option('columns')} {columns[0]} {columns[1]}: columns are counted from 1")
    from creamtea.study.start import InitOptions, Pair, begin, data_option, doubts, duration

    given = {}
    for name, pair in (("dev", dev), ("test", test)):
        if pair is None:
            continue
        of_one_file = pair[0].resolve() == pair[1].resolve()
        if of_one_file and (name == "test" or columns is None):
            remedy = f"`cut -f 1 {quote(str(pair[0]))}` prints the first column of a tab-separated file"
            raise InputError(f"{option(name)} {pair[0]} {pair[1]}: give a file for each side; {remedy}")
        given[name] = Pair(*pair, columns if of_one_file else None)
    options = InitOptions(
        train=Pair(source, target, columns),
        given=given,
        languages=(source_language, target_language),
        output=output,
        seed=seed,
        force=force,
        timed=not no_timing,
    )
    begun = begin(options, lambda words: say(f"{words} …", err=True))
    if as_json:
        say(json.dumps(_facts(begun), ensure_ascii=False))
        return
    text, recipe, size = begun.text, begun.recipe, begun.recipe.size
    say(
        f"{text.usable:,} pairs to train on, of {text.pairs:,}: {text.empty:,} with an empty side, "
        f"{text.long:,} too long, {text.uneven:,} of uneven lengths, {text.held_out:,} with a sentence of "
        f"the test set, {text.repeated:,} repeated\n"
        f"{_side(begun.languages[0], text.source)}; {_side(begun.languages[1], text.target)}\n"
        f"{recipe.vocabulary:,} subwords, {size.encoder_layers}+{size.decoder_layers} layers of width "
        f"{size.width}, batches of {size.batch_tokens:,} subwords, {recipe.updates:,} updates "
        f"(about {recipe.epochs:.0f} epochs), warm-up {recipe.warmup:,}\n"
        f"{duration(begun)}\n"
        f"{output} is written and valid. Next: creamtea run {quote(str(output))}{data_option(begun)}"
    )
    workplace.show_warnings(doubts(begun))


def _side(code: str, side: Side) -> str:
    return f"{code}: {side.words:,} words, {side.vocabulary:,} distinct, {side.alphabet} characters"


def _facts(begun: FirstStudy) -> dict[str, Any]:
    from creamtea.study.start import doubts

    text, recipe = begun.text, begun.recipe
    minutes = begun.timing.minutes(recipe)
    return {
        "study": begun.name,
        "file": str(begun.file),
        "data": str(begun.root),
        "languages": list(begun.languages),
        "pairs": {
            "all": text.pairs,
            "usable": text.usable,
            "empty": text.empty,
            "too_long": text.long,
            "uneven": text.uneven,
            "held_out": text.held_out,
            "repeated": text.repeated,
        },
        "words": [text.source.words, text.target.words],
        "updates": recipe.updates,
        "minutes": None if minutes is None else [round(value, 1) for value in minutes],
        "tokens_per_second": begun.timing.speeds,
        "warnings": [warning.values() for warning in doubts(begun)],
    }


VALIDATE_EXAMPLES = """Examples:

`creamtea validate studies/demo.yaml`

`creamtea validate my-study.yaml --data corpora`

`creamtea validate studies/demo.yaml --set variants.softmax.training.max_updates=900 --json`
"""


def validate(
    study: workplace.StudyFile,
    data: workplace.Data = None,
    override: workplace.Overrides = None,
    no_files: Annotated[bool, typer.Option("--no-files", help="Do not check the study's files.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Check a study and its files, and show what it would run.

    Mistakes are printed with their place, what was found and what is allowed; the exit code is then 2.
    Warnings, about likely mistakes, do not change the exit code.
    """
    from creamtea.study.warnings import warnings_of  # NumPy takes long to import

    folder = None if no_files else workplace.data_folder(study, data)
    with workplace.mistakes_as_json(as_json):
        loaded = load_study(study, override or [])
        for campaign in workplace.load_campaigns(loaded).values():
            if not no_files:
                campaign.check()
        planned = plan(loaded.study, folder, loaded.errors)
    warnings = warnings_of(loaded.study, planned, folder, loaded.place_of)
    summary = _summary(loaded.study, planned)
    if as_json:
        summary["warnings"] = [warning.values() for warning in warnings]
        facts = {"valid": True, "files_checked": not no_files, "config_hash": loaded.config_hash}
        say(json.dumps({**facts, **summary}, ensure_ascii=False))
    else:
        _show(summary, study, no_files)
        workplace.show_warnings(warnings)


def _summary(study: Study, planned: Plan) -> dict[str, Any]:
    """Summarise steps by kind, variants and systems as plain JSON values."""
    return {
        "study": study.name,
        "steps": planned.kinds(),
        "variants": [
            {
                "name": name,
                "objective": _in_words(variant.objective),
                "nvs": variant.nvs is not None,
                "corpus": variant.corpus,
                "subwords": variant.subwords,
                "seeds": variant.seeds,
            }
            for name, variant in study.variants.items()
        ],
        "systems": [
            {
                "name": name,
                "variant": system.variant if system.model is None else describe_imported(system.model),
                "selection": _in_words(system.selection),
                "search": _in_words(system.search),
                "precision": system.precision,
                "baseline": name == study.baseline,
            }
            if system.runs
            else {"name": name, "given": describe_system(study, name), "baseline": name == study.baseline}
            for name, system in study.systems.items()
        ],
        "test_sets": list(study.test_sets),
    }


def _in_words(model: BaseModel) -> str:
    """Describe a method by its kind, then what the study sets: `beam width=4`."""
    values = model.model_dump()
    written = [f"{key}={values[key]}" for key in values if key in model.model_fields_set and key != "kind"]
    return " ".join([values["kind"], *written])


def _show(summary: dict[str, Any], path: Path, no_files: bool) -> None:
    console = PrintingConsole(highlight=False, markup=False)  # names and paths are text
    variants = Table("variant", "objective", "NVS head", "corpus", "subwords", "seeds", title="Variants")
    for variant in summary["variants"]:
        seeds = ", ".join(map(str, variant["seeds"]))
        head = "yes" if variant["nvs"] else "no"
        variants.add_row(
            variant["name"], variant["objective"], head, variant["corpus"], variant["subwords"], seeds
        )
    systems = Table("system", "variant", "selection", "search", "precision", title="Systems")
    for system in sorted(summary["systems"], key=lambda system: "given" not in system):
        name = f"{system['name']} (baseline)" if system["baseline"] else system["name"]
        if "given" in system:
            systems.add_row(name, system["given"], "", "", "")
        else:
            cells = [system[part] for part in ("variant", "selection", "search", "precision")]
            systems.add_row(name, *cells)
    console.print(*([variants] if summary["variants"] else []), systems)
    steps = summary["steps"]
    console.print("Steps: " + ", ".join(f"{count} {kind}" for kind, count in steps.items()))
    files = "its files were not checked (--no-files)" if no_files else "its files are in order"
    console.print(f"{path} is valid; {files}. {counted(sum(steps.values()), 'step')}.", soft_wrap=True)


SCHEMA_EXAMPLES = """Example: `creamtea schema > creamtea.schema.json`, and as first line of a study:

`# yaml-language-server: $schema=creamtea.schema.json`
"""


def schema() -> None:
    """Print the JSON Schema of a study, with which an editor completes keys and marks mistakes.

    It includes the methods of the plug-ins that are installed here.
    """
    say(json.dumps(whole_schema(), ensure_ascii=False, indent=1))


def whole_schema() -> dict[str, Any]:
    """Return the schema of a study file and its campaigns, which the model of a study does not include."""
    from creamtea.human.making.settings import CampaignDocument

    schema = study_schema()
    text = json.dumps(schema_of(CampaignDocument, ""))
    campaign = json.loads(text.replace("#/$defs/", "#/$defs/Campaign."))
    schema["$defs"] |= {f"Campaign.{name}": block for name, block in campaign["$defs"].items()}
    block = {key: campaign[key] for key in ("type", "properties", "additionalProperties")}
    for implied in ("name", "study", "texts"):
        del block["properties"][implied]
    block["required"] = [key for key in campaign["required"] if key in block["properties"]]
    schema["properties"]["campaigns"]["patternProperties"] = dict.fromkeys(
        schema["properties"]["campaigns"]["patternProperties"], block
    )
    return schema
