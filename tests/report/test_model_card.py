"""The first lines of a model's card, which model hubs read."""

from __future__ import annotations

import pytest
import yaml

from creamtea.report.model_card import _front_matter


@pytest.mark.parametrize("pair", [("en", "no"), ("de", "de"), ("zh-Hant", "no")])
def test_languages_are_texts(pair: tuple[str, str]) -> None:
    lines = _front_matter("ctranslate2", pair).strip("-\n")
    assert yaml.safe_load(lines)["language"] == list(dict.fromkeys(pair))
