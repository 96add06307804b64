"""COMET in its own environment: stand-in interpreters, and COMET itself. What any scorer may do wrong is in
test_scorer.py."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from limits import COMMAND
from scored_texts import outputs, scoring, segments
from step_files import decoding, read_rows

from creamtea.errors import StepError, StepUnavailable
from creamtea.methods.metrics import Comet
from creamtea.settings import Settings
from creamtea_workers.metrics.base import Texts
from creamtea_workers.metrics.scorer import CometMetric, PinnedModel, Progress
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.candidates import Candidates, RerankSearch

NAMED = PinnedModel("a/b", "a/b")
TWO = Texts([0, 1], ["one", "two"], ["eins", ""], ["eins", "zwei"])
RESULT = '{"corpus": 0.5, "signature": "revision:abc|version:2.2.7", "facts": {"comet": "2.2.7"}}'


def quiet(done: float, total: float, message: str) -> None:
    pass


@pytest.fixture
def interpreter(tmp_path: Path) -> Callable[[str], Path]:
    """An executable that stands in for COMET's python: a shell script."""

    def write(body: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return write


def metric(python: Path, progress: Progress = quiet) -> CometMetric:
    return CometMetric(Comet(kind="comet", model="a/b"), python, NAMED, progress)


def test_scores_progress_and_facts_come_back(interpreter: Callable[[str], Path]) -> None:
    told: list[tuple[float, float, str]] = []
    python = interpreter(
        'echo \'{"message": "loading"}\'; echo \'{"done": 3, "total": 4}\'\n'
        'echo \'{"index": 0, "score": 0.25}\'; echo \'{"index": 1, "score": 0.75}\'\n'
        f"echo '{RESULT}'"
    )
    one = metric(python, lambda *now: told.append(now))
    statistics = one.statistics(TWO)
    assert one.segment_scores(statistics).tolist() == [0.25, 0.75]
    assert one.score(statistics.sum(axis=0)) == 0.5
    assert one.signature() == "model:a/b|revision:abc|version:2.2.7"
    assert one.facts == {"comet": "2.2.7"}
    assert (0, 1, "COMET: loading") in told
    assert (3, 4, "COMET: scoring") in told


@pytest.mark.slow
def test_a_gpu_that_is_missing_is_told_before_a_model_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    told: list[str] = []
    spec = Comet(kind="comet", model="a/b")
    one = CometMetric(spec, Path(sys.executable), NAMED, lambda *now: told.append(now[2]), gpus=1.0)
    with pytest.raises(StepUnavailable, match="a GPU was reserved"):
        one.statistics(TWO)
    assert not [message for message in told if "fetching" in message]


@pytest.mark.parametrize("what", ["missing", "not executable", "a folder"])
def test_without_an_interpreter_the_score_is_unavailable(what: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    if what == "not executable":
        python.write_text("")
    if what == "a folder":
        python.mkdir()
    with pytest.raises(StepUnavailable) as caught:
        metric(python).statistics(TWO)
    assert str(caught.value) == (
        f"COMET's environment is missing: {python} is not a Python interpreter; run `make install-comet`, or "
        "set CREAMTEA_COMET_PYTHON to the python of an environment with unbabel-comet"
    )


def test_a_checkpoint_that_has_changed_since_planning_is_not_used(
    interpreter: Callable[[str], Path], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "model.ckpt"
    checkpoint.write_text("another one")
    spec, pinned = (
        Comet(kind="comet", model="model.ckpt"),
        PinnedModel("model.ckpt", str(checkpoint), "0" * 64),
    )
    with pytest.raises(
        StepError, match=r"the model model\.ckpt has changed since the study was planned: submit"
    ):
        CometMetric(spec, interpreter("exit 3"), pinned, quiet).statistics(TWO)
    checkpoint.unlink()
    with pytest.raises(StepError, match=r"the model model\.ckpt: .* cannot be read .*must be visible"):
        CometMetric(spec, interpreter("exit 3"), pinned, quiet).statistics(TWO)


OVERLAP = f"""#!{sys.executable}
import json, sys
for row in map(json.loads, sys.stdin):
    words, others, source = (set(row[key].split()) for key in ("hypothesis", "reference", "source"))
    score = len(words & others) + 10 * len(words & source)
    print(json.dumps({{"index": row["index"], "score": score}}))
"""


def test_candidates_are_reranked_by_their_expected_comet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minimum Bayes risk (Fernandes et al. 2022): each candidate against all, as often as each was drawn."""
    python = tmp_path / "python"  # in its place a program that counts words
    python.write_text(OVERLAP)
    python.chmod(0o755)
    monkeypatch.setenv("CREAMTEA_COMET_PYTHON", str(python))
    sources = ["der hund", "zwei katzen"]
    drawn = [["ein", "Hund", "da", "da"], ["die katzen", "zwei Katzen", "zwei katzen da"]]
    texts = sorted({text for own in drawn for text in own})
    groups = [[Hypothesis([texts.index(text)], -1.0, True) for text in own] for own in drawn]
    spec = Comet(kind="comet", model="a/b")
    context = decoding({}, search={"kind": "rerank", "candidates": 4, "metric": spec.model_dump()})
    candidates = [Candidates(own[0].tokens, -1.0, True, own) for own in groups]
    rerank = RerankSearch(None, 4, spec, lambda tokens: texts[tokens[0]])
    chosen, _ = rerank.settle(sources, candidates, context)

    def utility(text: str, source: str, own: list[str]) -> float:
        words = set(text.split())
        return sum(len(words & {*other.split()}) + 10 * len(words & {*source.split()}) for other in own)

    for source, own, one in zip(sources, drawn, chosen, strict=True):
        best = max(own, key=lambda text: utility(text, source, own))
        assert texts[one.tokens[0]] == best != own[0]


# ---------------------------------------------------------------- COMET itself


@pytest.fixture(scope="session")
def comet_python() -> Path:
    python = Settings.load().comet_python
    if not python.is_file():
        if os.environ.get("CREAMTEA_TEST_WITHOUT_COMET") == "1":
            pytest.skip("CREAMTEA_TEST_WITHOUT_COMET=1")
        pytest.fail(
            f"COMET's environment is missing ({python}): run `make install-comet`, "
            "or set CREAMTEA_TEST_WITHOUT_COMET=1 to test without it"
        )
    return python


SOURCES = ["a dog runs", "two cats", "the moon", "tea"]
OUTPUTS = ["ein hund rennt", "", "der mond ist da", "tee tee tee tee"]
REFERENCES = ["ein hund läuft", "zwei katzen", "der mond", "tee"]


@pytest.fixture(scope="session")
def tiny(comet_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny COMET model, and what its own `predict` makes of the texts above."""
    folder = tmp_path_factory.mktemp("comet") / "tiny"
    script = Path(__file__).with_name("tiny_comet.py")
    rows = json.dumps([*zip(SOURCES, OUTPUTS, REFERENCES, strict=True)])
    command = [str(comet_python), "-I", str(script), str(folder), rows]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=COMMAND)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.comet
def test_scores_are_those_of_comets_own_predict(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    expected = json.loads((tiny / "direct.json").read_text())
    # the study names the checkpoint by a path of its own; the engine says where that is
    given = {"kind": "comet", "model": "models/tiny"}
    test_set = segments(tmp_path, REFERENCES, source=SOURCES)
    locations = {"models/tiny": str(tiny / "model")}
    context = scoring(test_set, outputs(tmp_path, OUTPUTS), given, locations=locations)
    result = context.run()
    (row,) = result.metrics
    assert row.value == pytest.approx(sum(expected) / 4, abs=1e-6)
    rows = read_rows(context.output / "segment_scores.jsonl")
    assert [line["value"] for line in rows] == pytest.approx(expected, abs=1e-6)
    assert len(set(expected)) == 4  # an untrained model tells them apart: the order is right
    assert row.detail["signature"].startswith("model:models/tiny|revision:")
    assert row.detail["signature"].endswith("|version:2.2.7")
    assert result.facts["class"] == "RegressionMetric"


@pytest.mark.comet
def test_a_model_that_cannot_be_had_is_unavailable_and_a_broken_one_an_error(
    comet_python: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))

    def run(model: str) -> None:
        CometMetric(
            Comet(kind="comet", model=model), comet_python, PinnedModel(model, model), quiet
        ).statistics(TWO)

    with pytest.raises(StepUnavailable, match=r"'creamtea/none' cannot be fetched: .*; fetch the model once"):
        run("creamtea/none")
    with pytest.raises(StepUnavailable, match=r"there is no checkpoint at /none/model\.ckpt"):
        run("/none/model.ckpt")
    broken = tmp_path / "broken"
    shutil.copytree(tiny / "model", broken)
    (broken / "checkpoints" / "model.ckpt").write_bytes(b"not a checkpoint")
    with pytest.raises(StepUnavailable, match=r"^COMET: "):
        run(str(broken))
