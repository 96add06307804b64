"""What `creamtea blame` says where no model of the study made what was marked."""

from __future__ import annotations

from creamtea.blame.gathering import why_none
from creamtea.study.spec import Study

STUDY = {
    "name": "given",
    "languages": {"source": "en", "target": "de"},
    "test_sets": {"test": {"kind": "files", "source": "test.en", "target": "test.de"}},
    "systems": {"gpt": {"outputs": {"test": "gpt.de"}}, "human": {"reference": 1}},
    "baseline": "gpt",
}


def test_systems_that_are_given_are_told_apart() -> None:
    spec = Study.model_validate(STUDY)
    given = "the outputs of gpt, human are given as texts: no model of it made them"
    others = "ours, nllb are not among its systems, or their texts differ"
    assert why_none(spec, ["gpt", "human"]) == given
    assert why_none(spec, ["ours", "nllb"]) == others
    assert why_none(spec, ["ours", "gpt", "nllb", "human"]) == f"{given}; {others}"
