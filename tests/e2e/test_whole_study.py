"""A whole study through the command line, and what can be done with it afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from limits import COMMAND
from places import STUDY, Place
from sqlalchemy import select

from creamtea.store.database import open_database
from creamtea.store.tables import Hypothesis, Segment, StepRow, StudyStep

pytestmark = pytest.mark.slow


def test_a_second_run_reuses_every_step(undisturbed: Place) -> None:
    before = undisturbed.contents()
    output = undisturbed.run("run", str(STUDY))
    assert "starting Ray" not in output  # the default, but nothing is left for it to do
    assert undisturbed.contents() == before
    assert undisturbed.happened("train/softmax/1").count("started") == 1


def of_node(place: Place, table: type[Segment] | type[Hypothesis], node: str) -> Sequence[Any]:
    """The rows of a node's step, in the segments' order."""
    database = open_database(place.url)
    try:
        with database.session() as session:
            key = select(StudyStep.step_key).where(StudyStep.node == node)
            return session.scalars(select(table).where(table.step_key.in_(key)).order_by(table.index)).all()
    finally:
        database.close()


@pytest.mark.parametrize("system", ["beam", "nvs"])
def test_lines_are_translated_as_the_test_set_was(undisturbed: Place, system: str) -> None:
    sources = of_node(undisturbed, Segment, "test_set/test")
    outputs = of_node(undisturbed, Hypothesis, f"decode/{system}/1/test")
    command = [sys.executable, "-m", "creamtea.cli.main", "translate", "tiny", system, "--json", "--selected"]
    lines = "".join(f"{row.source}\n" for row in sources)
    done = subprocess.run(
        command, env=undisturbed.environment, input=lines, capture_output=True, text=True, timeout=COMMAND
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["text"] for row in rows] == [output.text for output in outputs]
    assert [row["score"] for row in rows] == pytest.approx([output.score for output in outputs], abs=1e-4)
    sizes = [row["selected_size"] for row in rows]
    assert sizes == [output.selected_size for output in outputs]
    allowed = [row["selected"] for row in rows]
    assert allowed == [None] * len(rows) if system == "beam" else [len(words) for words in allowed] == sizes


def test_several_translations_of_a_line(undisturbed: Place) -> None:
    def translate(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "creamtea.cli.main", "translate", "tiny", *more]
        return subprocess.run(
            command,
            env=undisturbed.environment,
            input="the dog\nthe old house\n",
            capture_output=True,
            text=True,
            timeout=COMMAND,
        )

    rows = [line.split("\t") for line in translate("beam", "--nbest", "3").stdout.splitlines()]
    objects = [json.loads(line) for line in translate("beam", "--nbest", "3", "--json").stdout.splitlines()]
    assert [(number, text) for number, _, text in rows] == [
        (str(number), best["text"]) for number, line in enumerate(objects, start=1) for best in line["best"]
    ]
    for line in objects:
        assert line["text"] == line["best"][0]["text"]
        assert [best["score"] for best in line["best"]] == sorted(
            (best["score"] for best in line["best"]), reverse=True
        )
    word = objects[0]["text"].split()[0]
    rows = [json.loads(line) for line in translate("nvs", "--word", word, "--json").stdout.splitlines()]
    for line in rows:
        assert "".join(found["subword"] for found in line["word"]) == f"▁{word}"
        assert all(found["allowed"] == (not found["needs"]) for found in line["word"])
    for system, said in {"greedy": "only one translation", "beam": "at most 3"}.items():
        refused = translate(system, "--nbest", "4")
        assert refused.returncode == 2
        assert said in refused.stderr


@pytest.mark.parametrize("to", ["ctranslate2", "safetensors"])
def test_an_exported_model_loads_as_its_card_says(undisturbed: Place, tmp_path: Path, to: str) -> None:
    folder, study = tmp_path / "model", ("export", "tiny", "greedy", "--to", to)
    assert "40 of 40 outputs" in undisturbed.run(*study, str(folder))
    card = (folder / "README.md").read_text()
    for words in ("softmax", "600", "BLEU", "40 of 40 outputs", "license: unknown"):
        assert words in card
    snippet = card.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "sources").write_text(
        "".join(f"{row.source}\n" for row in of_node(undisturbed, Segment, "test_set/test"))
    )
    for_lines = "\nfrom pathlib import Path\nlines = Path('../sources').read_text().split('\\n')[:-1]\n"
    printed = "translate(lines)" if to == "ctranslate2" else "model.translate(lines)"
    program = f"{snippet}{for_lines}print(*{printed}, sep='\\n')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=COMMAND
    )
    assert done.returncode == 0, done.stderr
    outputs = of_node(undisturbed, Hypothesis, "decode/greedy/1/test")
    assert done.stdout.splitlines()[1:] == [row.text for row in outputs]

    process = undisturbed.start(*study, str(folder))
    assert "there is something already" in process.communicate(timeout=COMMAND)[0]
    assert process.returncode == 2


def test_every_step_succeeded(undisturbed: Place) -> None:
    database = open_database(undisturbed.url)
    try:
        with database.session() as session:
            rows = session.scalars(select(StepRow)).all()
    finally:
        database.close()
    assert {row.state for row in rows} == {"succeeded"}
    assert {row.kind for row in rows} == {
        "corpus", "test_set", "subwords", "encode", "align", "train", "decode", "score", "compare", "recall",
        "latency",
    }  # fmt: skip
