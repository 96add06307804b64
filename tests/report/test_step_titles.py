"""Steps in words."""

from __future__ import annotations

from typing import Any

import pytest
from teatime_study import Fill

from creamtea.report.cells import step_title
from creamtea.store.database import Database
from creamtea.store.queries import study_nodes


@pytest.fixture
def titles(filled: Database, fill: Fill, spec: dict[str, Any]) -> dict[str, str]:
    spec["systems"]["scones-greedy"]["more_baselines"] = ["softmax-nvs"]
    study = fill(filled, spec=spec)
    with filled.session() as session:
        return {node.name: step_title(node) for node in study_nodes(session, study)}


@pytest.mark.parametrize(
    ("node", "title"),
    [
        ("train/scones/2", "train: scones, seed 2"),
        ("score/softmax-nvs/1/test/bleu", "score: softmax-nvs, seed 1, test, bleu"),
        ("compare/scones-greedy/test/bleu", "compare: scones-greedy, against softmax-greedy, test, bleu"),
        (
            "compare/scones-greedy/test/bleu/softmax-nvs",
            "compare: scones-greedy, against softmax-nvs, test, bleu",
        ),
    ],
)
def test_words_of_a_step(titles: dict[str, str], node: str, title: str) -> None:
    assert titles[node] == title


def test_no_two_steps_have_the_same_words(titles: dict[str, str]) -> None:
    assert len(set(titles.values())) == len(titles)
