"""A study of a model in MarianMT format, from its folder to a report and to translations."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import runner
from marian_folders import SIDES, make_folder
from sqlalchemy import select

from creamtea.marian import read_folder
from creamtea.shipped import read_shipped
from creamtea.store.database import open_database
from creamtea.store.tables import Point, StepRow

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "opus-mt.md").read_text()
SOURCE = b"the old man\na \xd0\xb6\n"
EXACT = "  opus-exact: {model: {marian: opus-mt-en-de}, search: {kind: exact, max_states: 200}}\n"


def block(language: str, number: int = 1) -> str:
    """One of the page's blocks in this language."""
    return PAGE.split(f"```{language}\n")[number].split("```")[0]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line in a folder with the model and texts that the page names. `lines`: standard input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    command_line = runner(monkeypatch, capsys)
    make_folder(tmp_path / "opus-mt-en-de", ends=5.0)
    for side, ending in (("source", "en"), ("target", "de")):
        lines = "".join(f"{line}\n" for line in SIDES[side])
        for name, times in (("train", 4), ("dev", 1), ("test", 1)):
            (tmp_path / f"{name}.{ending}").write_text(lines * times)

    def given(*words: str, lines: bytes = SOURCE) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return command_line(*words, *(("-q", "--executor", "inline") if words[0] == "run" else ()))

    return given


def run_block(run: Callable[..., tuple[int, str, str]], number: int) -> list[str]:
    """Run a block's commands; the output of each."""
    outputs = []
    for command in block("sh", number).splitlines():
        program, *words = command.removesuffix(" < sentences.en").split()
        code, out, err = run(*words)
        assert (program, code) == ("creamtea", 0), out + err
        outputs.append(out)
    return outputs


def test_the_commands_of_the_page(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    study = block("yaml").replace("baseline: opus\n", f"{EXACT}baseline: opus\n")
    (tmp_path / "opus.yaml").write_text(study)
    assert len(run_block(run, 1)[-1].splitlines()) == 2
    code, out, _ = run("report", "opus", "--json")
    report = json.loads(out)
    sections = {section["key"]: section for section in report["sections"]}
    told = json.dumps(sections["provenance"]), json.dumps(sections["configuration"])
    assert all("creamtea/tiny-en-de" in text and "licence: cc-by-4.0" in text for text in told)
    assert "latency: " in told[0]
    warned = json.dumps(sections["warnings"])  # nothing was trained here
    assert "are they in the target language" in warned
    assert not [words for words in ("trained long", "train longer") if words in warned]

    assert run("bundle", "opus", "--out", "opus.zip")[0] == 0
    code, out, _ = run("verify", "opus.zip")
    assert code == 0  # exact search has a file beside its outputs
    assert "import a model (1): needs the model's files" in out

    code, out, err = run("translate", "opus", "opus", "--json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["source"] for row in rows] == ["the old man", "a ж"]
    assert (rows[0]["unknown"], rows[1]["unknown"]) == ([], ["ж"])
    assert "ж (1)" in err
    code, out, err = run("export", "opus", "opus", "--to", "safetensors", "out", "--json")
    assert code == 0, err
    proof = json.loads(out)["proof"]
    assert proof["identical"] == proof["sentences"] == 3
    card = (tmp_path / "out" / "README.md").read_text()
    assert "licence: cc-by-4.0" in card
    assert f"sha256 {read_folder(tmp_path / 'opus-mt-en-de').digest}" in card
    assert "trained elsewhere: its own card" in card


def test_the_page_selects_vocabularies(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    quick = block("yaml", 2).replace(
        "max_updates: 2000, validate_every: 200", "max_updates: 12, validate_every: 6"
    )
    (tmp_path / "small.yaml").write_text(quick)
    _, _, report, translated = run_block(run, 2)
    assert "latency" in report
    assert "a threshold below" in translated
    _, out, _ = run("report", "small", "--json")
    sections = {section["key"]: section for section in json.loads(out)["sections"]}
    table = sections["systems"]["blocks"][0]["blocks"][0]
    cells = {row["name"]: row["cells"] for row in table["rows"]}
    sizes = {name: row["selected_size"]["value"] for name, row in cells.items()}
    assert sizes["full"] > sizes["lexicon"] > 1
    # the head's logits are rounded in int8, and differently by each processor: sizes are about the same
    assert sizes["full"] > max(sizes["nvs"], sizes["nvs-int8"])
    assert min(sizes["nvs"], sizes["nvs-int8"]) > 1
    measured = ("bleu", "recall_sentence", "latency_p50")
    assert {row[name]["state"] for row in cells.values() for name in measured} == {"ok"}


def test_the_page_exports_with_a_map_and_compares_what_is_shipped(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    lexicon = block("yaml", 2).replace("  nvs: {variant: head, selection: {kind: nvs}}\n", "")
    lexicon = lexicon.replace("  nvs-int8: {variant: head, selection: {kind: nvs}, precision: int8}\n", "")
    start, end = lexicon.index("variants:"), lexicon.index("systems:")
    (tmp_path / "small.yaml").write_text(lexicon[:start] + lexicon[end:])
    code, out, err = run("run", "small.yaml")
    assert code == 0, out + err
    (tmp_path / "shipped.yaml").write_text(block("yaml", 4))
    run_block(run, 3)
    _, out, _ = run("report", "shipped", "--json")
    sections = {section["key"]: section for section in json.loads(out)["sections"]}
    table = sections["systems"]["blocks"][0]["blocks"][0]
    cells = {row["name"]: row["cells"] for row in table["rows"]}
    assert cells["shipped"]["bleu"]["value"] == cells["opus"]["bleu"]["value"]
    assert cells["shipped-map"]["selected_size"]["value"] < cells["shipped"]["selected_size"]["value"]
    measured = ("bleu", "latency_p50")
    assert {row[name]["state"] for row in cells.values() for name in measured} == {"ok"}
    code, _, err = run("export", "shipped", "shipped", "--to", "ctranslate2", "out")
    assert code == 2
    assert "is a CTranslate2 folder already" in err
    digest = read_shipped(tmp_path / "opus-ct2").digest
    for section in ("provenance", "configuration"):
        assert f"sha256 {digest}" in json.dumps(sections[section]), section


def test_the_page_fine_tunes_by_each_objective(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    quick = block("yaml", 3).replace("max_updates: 2000", "max_updates: 12, validate_every: 6")
    (tmp_path / "tuned.yaml").write_text(quick.replace("learning_rate: 0.00005", "learning_rate: 0.01"))
    code, out, err = run("run", "tuned.yaml")
    assert code == 0, out + err
    with open_database(f"sqlite:///{tmp_path / 'home' / 'creamtea.db'}").session() as session:
        rows = session.scalars(select(StepRow).where(StepRow.kind == "train")).all()
        losses = {
            row.params["objective"]["kind"]: [
                point.y
                for point in session.scalars(
                    select(Point)
                    .where(Point.step_key == row.key, Point.series == "dev_loss")
                    .order_by(Point.x)
                )
            ]
            for row in rows
        }
    assert all(row.params["architecture"]["norm"] == "post" for row in rows)
    assert losses.keys() == {"softmax", "scones", "entmax"}
    # the first is of the imported model itself, the last after twelve updates
    assert all(last < first for first, *_, last in losses.values())
