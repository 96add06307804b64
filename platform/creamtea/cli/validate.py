"""`creamtea validate`: lists every mistake in a study, or what the study would run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.table import Table

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.report import describe
from creamtea.report.terminal import PrintingConsole
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study
from creamtea.wording import counted

EXAMPLES = """Examples:

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
    from creamtea.study.checks.warnings import warnings_of  # NumPy takes long to import

    folder = None if no_files else workplace.data_folder(study, data)
    try:
        loaded = load_study(study, override or [])
        planned = plan(loaded.study, folder, loaded.errors)
    except InputError as error:
        if not as_json:
            raise
        lines = error.lines if isinstance(error, StudyErrors) else [str(error)]
        say(json.dumps({"valid": False, "mistakes": lines}, ensure_ascii=False))
        raise typer.Exit(error.exit_code) from None
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
    """Steps by kind, variants and systems, as plain JSON values."""
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
                "variant": system.variant if system.model is None else describe.imported(system.model),
                "selection": _in_words(system.selection),
                "search": _in_words(system.search),
                "precision": system.precision,
                "baseline": name == study.baseline,
            }
            if system.runs
            else {"name": name, "given": describe.system(study, name), "baseline": name == study.baseline}
            for name, system in study.systems.items()
        ],
        "test_sets": list(study.test_sets),
    }


def _in_words(model: BaseModel) -> str:
    """`beam width=4`: the kind, then what the study sets."""
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
