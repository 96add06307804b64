"""The verdicts against enumeration, and the step's rows."""

from pathlib import Path
from typing import Any

import pytest
import step_files
from step_context import Context, FolderCheckpoints
from toy_models import OBJECTIVES, Slow, TableModel, batch_of

from creamtea.contract.step import StepCancelled
from creamtea.methods.analyses.search import DepthLimited
from creamtea_workers.search.base import length_limit
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import SearchBudget
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.steps import search

LENGTHS = [1, 2, 3]
ENOUGH = SearchBudget(100_000, only_first=True)


def judge(
    model: TableModel, objective: str, numbers: list[int], budget: SearchBudget
) -> list[search.Verdict]:
    trained = TrainedModel(model, OBJECTIVES[objective], step_files.model_config(5), "fp32")
    return search.judge(trained, [[n] for n in numbers], 2, LENGTHS, budget, lambda: None)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_shortest_that_outscores_the_beam(objective: str) -> None:
    model, numbers = TableModel(5, seed=3, end=-2.5), list(range(1, 13))
    verdicts = judge(model, objective, numbers, ENOUGH)
    limit = length_limit(2.0, 1)
    beams = BeamSearch(2)(batch_of(model, objective, numbers, [limit] * 12))
    seen = set()
    for number, beam, verdict in zip(numbers, beams, verdicts, strict=True):
        slow = list(Slow(model, OBJECTIVES[objective], number, range(5)).enumerate(4))
        bar = beam.score + 1e-4 * (len(beam.tokens) + 1) if beam.finished else float("-inf")
        better = [len(tokens) - 1 for score, tokens in slow if score > bar]
        expected = min((length for length in LENGTHS if min(better, default=9) <= length), default=None)
        assert verdict.shortest == expected
        assert verdict.undecided == []
        seen.add(expected)
    assert len(seen) > 1


def test_what_a_limit_leaves_open() -> None:
    model, numbers = TableModel(5, seed=3, end=-2.5), list(range(1, 31))
    whole, limited = (
        judge(model, "scones", numbers, budget) for budget in (ENOUGH, SearchBudget(2, only_first=True))
    )
    assert any(verdict.undecided for verdict in limited)
    for certain, verdict in zip(whole, limited, strict=True):
        for length in LENGTHS:
            assert not (verdict.is_better(length) and verdict.is_undecided(length))
            if not verdict.is_undecided(length):
                assert verdict.is_better(length) == certain.is_better(length)


PARAMS: dict[str, Any] = {"lengths": [2, 1], "width": 2, "max_states": 50}


def test_rows_rise_with_the_length_and_a_stopped_step_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = step_files.input_folders(tmp_path, ["the cat sat", "a dog", "she took the cake", ""] * 3)
    result = Context(DepthLimited.step, PARAMS, folders).run()
    named = {(row.name, row.subject): row.value for row in result.metrics}
    assert set(named) == {(n, s) for n in ("shorter_better", "undecided") for s in ("1", "2")}
    assert (named["shorter_better", "1"] or 0.0) <= (named["shorter_better", "2"] or 0.0)
    assert [(point.x, point.y) for point in result.points] == [
        (1.0, named["shorter_better", "1"]),
        (2.0, named["shorter_better", "2"]),
    ]

    monkeypatch.setattr(search, "SAVE_EVERY", -1.0)
    monkeypatch.setattr(search, "_DEPTH_BATCH", 3)

    class Stopped(Context):
        def progress(self, done: float, total: float, message: str = "") -> None:
            if done >= 6:
                raise StepCancelled

    kept = FolderCheckpoints()
    with pytest.raises(StepCancelled):
        Stopped(DepthLimited.step, PARAMS, folders, checkpoints=kept).run()
    again = Context(DepthLimited.step, PARAMS, folders, checkpoints=kept)
    assert again.run() == result
    assert again.progresses[0][0] == 6
