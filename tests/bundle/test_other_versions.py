"""A bundle that another version has packed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from creamtea.bundle.verifying import count_numbers


@pytest.mark.slow
def test_of_another_versions_report_the_numbers_are_compared(
    home, changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.__version__", "99.0")

    def other_words(report: dict[str, Any]) -> None:
        report["about"] = "Other words."
        systems = section(report, "systems")
        table = systems["blocks"][0]["blocks"][0]
        table["rows"][0]["cells"]["older"] = {"value": 3.0, "state": "ok"}
        del table["rows"][1]["cells"]["bleu"]

    checked = changed(("report.json", other_words))
    assert checked.differences == ()
    assert checked.recomputed["report"] > 0.9 * count_numbers(json.loads(home.files["report.json"]))
    left = {left.what: left for left in checked.not_recomputed}
    assert "1 are not compared" in left["report.json"].reason
    assert left["report.json"].places[0].endswith("/older/value")

    def another_number(report: dict[str, Any]) -> None:
        table = section(report, "systems")["blocks"][0]["blocks"][0]
        table["rows"][0]["cells"]["bleu"]["value"] += 1

    (difference,) = changed(("report.json", another_number)).differences
    assert difference.place.endswith("/bleu/value")


def section(report: dict[str, Any], key: str) -> dict[str, Any]:
    return next(section for section in report["sections"] if section["key"] == key)
