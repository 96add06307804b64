"""`creamtea compare` with its own steps, from text files to a report and a campaign."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, runner
from sacrebleu.metrics import BLEU, CHRF
from sqlalchemy import select

from creamtea.engine import compare_outputs
from creamtea.errors import InputError
from creamtea.report.across_studies import common_test_sets, compared_systems
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import open_database
from creamtea.store.queries import find_study
from creamtea.store.tables import Metric, StepFile, StepRow, StudyStep
from creamtea.study.comparison import named_outputs

SOURCE = ["A house by the lake", "He does not walk today", "She sings a song", "The dog sleeps"]
FIRST = ["ein Haus am See", "er geht heute nicht", "sie singt ein Lied", "der Hund schläft jetzt"]
SECOND = ["das Haus beim See", "heute geht er nicht mehr", "ein Lied singt sie", "der Hund schlief nun"]
OUTPUTS = {
    "gpt.out": ["das Haus am See", "heute geht er nicht", "sie singt ein Lied", "der Hund schläft"],
    "nllb": ["Haus am See", "er geht nicht", "", "ein Hund schläft"],
    "human.de": FIRST,
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, lines in {"src.en": SOURCE, "a.de": FIRST, "b.de": SECOND, **OUTPUTS}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


@pytest.fixture
def run(
    files: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(files)
    monkeypatch.setenv("CREAMTEA_HOME", str(files / "home"))
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", empty_url)
    monkeypatch.setenv("COLUMNS", "200")
    return runner(monkeypatch, capsys)


def compare(run: Run, *more: str) -> tuple[int, str, str]:
    return run("compare", "--source", "src.en", "--reference", "a.de", *more, "-q", *OUTPUTS)


def table(report: dict[str, Any]) -> dict[str, Any]:
    [systems] = [section for section in report["sections"] if section["key"] == "systems"]
    return {row["name"]: row for row in systems["blocks"][0]["blocks"][0]["rows"]}


@pytest.mark.slow
def test_two_references_a_report_and_a_campaign(run: Run, files: Path) -> None:
    """The file that holds a reference's text is rated, scored against the other, and never compared."""
    (files / "labels").write_text("news\ntalk\nnews\nnews\n")
    more = ("--labels", "labels", "--json", "--html", "page.html")
    code, said, _ = compare(run, "--reference", "b.de", *more)
    assert code == 0
    (analyses,) = [section for section in json.loads(said)["sections"] if section["key"] == "analyses"]
    buckets = analyses["blocks"][0]["blocks"][0]["blocks"]
    (by_length, by_label) = [block for block in buckets if block["type"] == "table"]
    assert [column["title"] for column in by_label["columns"]][:2] == ["BLEU, news (3)", "BLEU, talk (1)"]
    assert [row["name"] for row in by_length["rows"]] == ["gpt", "nllb"]  # no human reference
    cell = by_label["rows"][0]["cells"]["bleu-label-1"]
    assert (cell["value"], cell["note"].partition(";")[0]) == (None, "3 segments")
    database = open_database(os.environ["CREAMTEA_DATABASE_URL"])
    with database.session() as session:
        assert find_study(session, "compare-src").spec["languages"] == {"source": "en", "target": "de"}
    database.close()
    rows = table(json.loads(said))
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        for system, lines in (("gpt", OUTPUTS["gpt.out"]), ("nllb", OUTPUTS["nllb"])):
            theirs = metric.corpus_score(lines, [FIRST, SECOND])
            assert rows[system]["cells"][name]["value"] == pytest.approx(theirs.score, rel=1e-12)
        human = rows["human"]["cells"][name]
        assert human["value"] == pytest.approx(metric.corpus_score(FIRST, [SECOND]).score, rel=1e-12)
        assert human.get("delta") is None
        assert rows["nllb"]["cells"][name]["delta"]["p_values"]["bootstrap"]["value"] > 0
    assert rows["gpt"]["baseline"]
    assert "selected_size" not in rows["gpt"]["cells"]
    assert "Recall against size" not in (files / "page.html").read_text()

    code, said, _ = run(
        *("campaign", "create", "rated", "--study", "compare-src", "--test-set", "test", "--json"),
        *("--systems", "gpt,nllb,human", "--items", "3"),
        *("--set", "controls.bad_references=0", "--set", "controls.repeats=0"),
    )
    assert (code, json.loads(said)["items"]) == (0, 3)


def test_systems_of_two_studies_are_tested_as_those_of_one(run: Run, files: Path) -> None:
    assert compare(run)[0] == 0
    (files / "later").write_text("das Haus\ner geht nicht\nsie singt\nder Hund schläft\n")
    (files / "text").mkdir()  # the same text in files of other names
    for name in ("src.en", "a.de"):
        shutil.copy(files / name, files / "text" / name)
    more = ("--name", "other", "-q", "later", "gpt.out")
    assert run("compare", "--source", "text/src.en", "--reference", "text/a.de", *more)[0] == 0
    database = open_database(os.environ["CREAMTEA_DATABASE_URL"])
    store = ArtefactStore(files / "home" / "artefacts")
    with database.session() as session:
        studies = [find_study(session, name) for name in ("compare-src", "other")]
        ((test_set, both),) = common_test_sets(session, studies).items()
        compared = compared_systems(session, test_set, both)
        (own,) = session.scalars(
            select(Metric)
            .join(StudyStep, StudyStep.step_key == Metric.step_key)
            .where(StudyStep.node == "compare/nllb/test/bleu")
        )
    baseline = "compare-src: gpt"
    comparisons = compared.comparisons(baseline)
    found = {place: compare_outputs.compared(database, store, **one) for place, one in comparisons.items()}
    database.close()
    columns = {column.title: column.key for column in compared.table.columns}
    bleu = columns["BLEU"]
    assert {row for row, _ in found} == {"compare-src: nllb", "other: later", "other: gpt"}  # no reference
    got = [found["compare-src: nllb", bleu][name] for name in ("value", "low", "high")]
    assert got == [own.value, own.low, own.high]
    table = {row.name: row for row in compared.against(baseline, found).rows}
    assert table[baseline].baseline
    deltas = {name: row.cells[bleu].delta for name, row in table.items()}
    assert deltas["other: gpt"].value == 0.0
    for p in deltas["other: later"].p_values.values():
        assert p.corrected >= p.value
    assert deltas[baseline] is None
    told = compared.against(baseline, {("other: later", bleu): {"error": "gone"}}).rows
    assert [row.cells[bleu].delta.note for row in told if row.cells[bleu].delta] == ["gone"]

    code, said, _ = run("report", "compare-src", "other", "--json")
    assert code == 0
    document = json.loads(said)
    assert document["state"] == "succeeded"
    answer, shown, settings = document["sections"]
    rows = {row["name"]: row for row in shown["blocks"][0]["rows"]}
    assert {name for name, row in rows.items() if row["baseline"]} == {baseline}
    for name in ("compare-src: nllb", "other: later"):
        theirs, delta = rows[name]["cells"][bleu]["delta"], deltas[name]
        assert (theirs["value"], theirs["low"], theirs["high"]) == (delta.value, delta.low, delta.high)
    assert "outputs" in json.dumps(settings)
    said = " ".join(answer["blocks"][0]["blocks"][0]["paragraphs"])
    assert f"{baseline} has, like other: gpt, the highest score" in said
    _, said, _ = run("report", "other", "compare-src", "--baseline", "other: later", "--markdown")
    assert "other: later** (baseline)" in said
    code, _, errors = run("report", "compare-src", "other", "--baseline", "later")
    assert code == 2
    assert "no such system; there are compare-src: gpt" in errors
    assert "are one study" in run("report", "other", "2")[2]

    database = open_database(os.environ["CREAMTEA_DATABASE_URL"])
    with database.transaction() as session:
        find_study(session, "other").state = "running"
    database.close()
    assert json.loads(run("report", "compare-src", "other", "--json")[1])["state"] == "running"


def test_a_human_reference_in_one_study_keeps_no_system_from_being_compared(run: Run) -> None:
    """Metrics score it against one reference fewer, and say so in its signature."""
    assert compare(run, "--reference", "b.de")[0] == 0
    both = ("--source", "src.en", "--reference", "a.de", "--reference", "b.de")
    assert run("compare", *both, "--name", "other", "-q", "gpt.out")[0] == 0
    code, said, _ = run("report", "compare-src", "other", "--json")
    assert code == 0
    (shown,) = [section for section in json.loads(said)["sections"] if section["key"] == "systems-0"]
    systems, meanings = (
        next(block for block in shown["blocks"] if block["type"] == kind) for kind in ("table", "facts")
    )
    (bleu,) = [column["key"] for column in systems["columns"] if column["title"] == "BLEU"]
    cells = {row["name"]: row["cells"][bleu] for row in systems["rows"]}
    assert (cells["other: gpt"]["value"], cells["other: gpt"]["delta"]["value"]) == (
        cells["compare-src: gpt"]["value"],
        0,
    )
    signatures = {fact["label"]: fact["value"] for fact in meanings["facts"]}["BLEU"]
    assert (signatures.count("nrefs:1"), signatures.count("nrefs:2")) == (1, 1)


def place(path: Path) -> None:
    """Let the study's outputs gpt.out be at this path."""
    database = open_database(os.environ["CREAMTEA_DATABASE_URL"])
    with database.transaction() as session:
        for step in session.scalars(select(StepRow)):
            if "gpt.out" in step.locations:
                step.locations = {"gpt.out": str(path)}
    database.close()


@pytest.mark.parametrize("change", ["other", "gone", "no folder"])
def test_a_retry_keeps_results_whose_text_could_not_be_read_again(run: Run, files: Path, change: str) -> None:
    assert compare(run)[0] == 0
    database = open_database(os.environ["CREAMTEA_DATABASE_URL"])
    with database.session() as session:
        outputs = StudyStep.node.startswith("outputs/gpt")
        stored = select(StepFile.digest).join(StudyStep, StudyStep.step_key == StepFile.step_key)
        lost = session.scalars(stored.where(outputs)).one()
    database.close()
    Path(ArtefactStore(files / "home" / "artefacts").object_path(lost)).unlink()
    text = (files / "gpt.out").read_text()
    if change == "no folder":  # as on another machine
        place(files / "elsewhere" / "gpt.out")
    elif change == "gone":
        (files / "gpt.out").unlink()
    else:
        (files / "gpt.out").write_text(text.replace("Haus", "Heim"))
    before = run("report", "compare-src", "--json")[1]
    code, _, errors = run("retry", "compare-src", "--executor", "inline")
    folder = f"is not here: there is no folder {files}/elsewhere"
    why = folder if change == "no folder" else "has changed since the study was planned"
    assert (code, f"gpt.out {why}" in errors) == (2, True)
    assert run("report", "compare-src", "--json")[1] == before
    (files / "gpt.out").write_text(text)
    place(files / "gpt.out")
    assert run("retry", "compare-src", "--executor", "inline", "--quiet")[0] == 0


def test_the_same_files_again_compute_nothing(run: Run) -> None:
    assert compare(run)[0] == 0
    code, said, errors = run("compare", "--source", "src.en", "--reference", "a.de", *OUTPUTS)
    assert code == 0
    assert "started" not in errors
    assert "only reference" in said  # why the human reference has no score
    assert "creamtea campaign create" in errors


@pytest.mark.parametrize(
    "outputs, names",
    [
        (["set.de-en.hyp.A.txt", "set.de-en.hyp.Online-B.txt"], ["A", "Online-B"]),
        (["set.hyp.A", "set.hyp.B", "set.hyp.C"], ["A", "B", "C"]),  # the ending tells them apart
        (["a.best.de", "b.best.de"], ["a", "b"]),
        (["softmax-greedy.de", "softmax-nvs.de"], ["softmax-greedy", "softmax-nvs"]),  # words of a name
        (["x.de", "x.1.de"], ["x", "x.1"]),  # nothing would be left of the first
        (["one/out.de", "two/out.de"], ["one-out", "two-out"]),
        (["ours=run7/best.de", "best.de"], ["ours", "best"]),
        (["only.set.de"], ["only.set"]),
        (["modèl.de", "Größe.de"], ["model", "Gro_e"]),
        (["東京/out.de", "x/out.de"], ["out", "x-out"]),
        (["한국어a.de"], ["a"]),
    ],
)
def test_systems_are_called_what_tells_their_files_apart(outputs: list[str], names: list[str]) -> None:
    assert list(named_outputs([Path(output) for output in outputs])) == names


@pytest.mark.parametrize("outputs", [["a b=x.de"], ["=x.de"], ["a,b=x.de"], ["a=x.de", "a=y.de"]])
def test_a_name_that_no_system_can_have_is_refused(outputs: list[str]) -> None:
    with pytest.raises(InputError, match="name"):
        named_outputs([Path(output) for output in outputs])


def test_no_text_is_overwritten_by_the_page(run: Run, files: Path) -> None:
    """`--html` before the outputs, and its own file forgotten: the first output stands in its place."""
    before = (files / "gpt.out").read_text()
    code, _, errors = run(
        *("compare", "--source", "src.en", "--reference", "a.de", "--html", "gpt.out", "gpt.out", "nllb")
    )
    assert (code, (files / "gpt.out").read_text()) == (2, before)
    assert "--html gpt.out: " in errors
    assert not (files / "home").exists()  # refused before the work


def test_a_mistake_names_the_option_or_the_file(run: Run, files: Path) -> None:
    (files / "nllb").write_text("one\ntwo\n")
    (files / "copy.de").write_bytes((files / "a.de").read_bytes())
    code, _, errors = compare(run)
    assert code == 2
    assert "nllb: found 4 lines in src.en and 2 in nllb" in errors
    for outputs, said in {
        ("missing",): 'missing: found "missing": no such file',
        (".",): "not a name that a system can have",
        ("gpt.out", "./gpt.out"): "gpt.out: the same file twice",
        ("x/gpt.out", "y/x/gpt.out"): "a second system",
        (f"{files}/missing",): f'missing: found "{files.anchor}',
    }.items():
        code, _, errors = run("compare", "--source", "src.en", "--reference", "a.de", *outputs)
        assert code == 2
        assert said in errors
        assert "--data" not in errors
    for options, said in {
        ("--metrics", "blue"): "did you mean bleu?",
        ("--metrics", "wer"): "it needs a study with a test set of words (kind g2p or inflection)",
        ("--baseline", "human"): "a human reference",
        ("--baseline", "gtp"): "did you mean gpt?",
        ("--languages", "english"): "(en-de)",
        ("--name", "a b"): "--name",
        ("--labels", "none"): '--labels none: found "none": no such file',
        ("--reference", "a.de"): "--reference a.de: the same text as --reference a.de",
        ("--reference", "b.de", "--reference", "./copy.de"): "--reference copy.de: the same text as",
    }.items():
        code, _, errors = compare(run, *options)
        assert code == 2
        assert said in errors
    assert "every output is" in run("compare", "--source", "src.en", "--reference", "a.de", "human.de")[2]
