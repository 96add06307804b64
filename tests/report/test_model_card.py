"""The first lines of a model's card, which model hubs read."""

from typing import Any

import pytest
import yaml
from teatime_study import fill_study

from creamtea.report.cells import StudyResults
from creamtea.report.model import Table
from creamtea.report.model_card import _data, _front_matter
from creamtea.store.database import Database
from creamtea.study.spec import Study


def test_the_data_of_a_fine_tuned_model_are_all_that_it_was_trained_on(
    database: Database, spec: dict[str, Any]
) -> None:
    spec["corpora"]["idioms"] = {"kind": "synthetic", "seed": 7}
    plain = {"subwords": "bpe", "objective": {"kind": "softmax"}}
    spec["variants"]["adapted"] = {**plain, "corpus": "idioms", "start_from": "softmax"}
    spec["systems"]["scones-greedy"] = {"variant": "adapted"}
    study = fill_study(database, spec)
    with database.session() as session:
        material = StudyResults(session, study, Study.model_validate(spec))
        corpora, trainings = _data(material, "scones-greedy", 1)
        own = _data(material, "softmax-greedy", 1)
        assert [[row.name for row in block.rows] for block in own] == [["toy"], ["softmax"]]  # type: ignore[attr-defined]
    assert isinstance(corpora, Table)
    assert isinstance(trainings, Table)
    assert {row.name for row in corpora.rows} == {"toy", "idioms"}
    assert {row.name for row in trainings.rows} == {"softmax", "adapted"}


@pytest.mark.parametrize("pair", [("en", "no"), ("de", "de"), ("zh-Hant", "no")])
def test_languages_are_texts(pair: tuple[str, str]) -> None:
    lines = _front_matter("ctranslate2", pair).strip("-\n")
    assert yaml.safe_load(lines)["language"] == list(dict.fromkeys(pair))
