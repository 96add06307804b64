"""The component that draws a report's tables, by itself in a browser: no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from creamtea.contract.columns import Column
from creamtea.report.model import Cell, Row, Table
from creamtea_webapp.comparison import HERE, as_data

pytestmark = pytest.mark.browser

DRAW = """async ([script, html, tables]) => {
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const { default: render } = await import(address);
    document.body.innerHTML = html;
    const names = () => [...document.querySelectorAll("tbody .name")].map((name) => name.textContent);
    const shown = [];
    for (const data of tables) {
        render({ parentElement: document.body, data });
        document.querySelector("th:last-child button").click();
        shown.push(names());
    }
    return shown;
}"""


def table(columns: list[str], rows: dict[str, list[float]]) -> Table:
    return Table(
        "scores",
        "",
        "system",
        tuple(Column(name, name, 1, "higher") for name in columns),
        tuple(
            Row(name, {key: Cell("ok", value=value) for key, value in zip(columns, values, strict=True)})
            for name, values in rows.items()
        ),
    )


def test_a_table_with_fewer_columns_takes_the_place_of_one_that_was_sorted(quiet_page: Any) -> None:
    tables = [
        table(["BLEU", "chrF", "COMET"], {"okapi": [1, 2, 3], "zebra": [3, 2, 9]}),
        table(["BLEU"], {"okapi": [1], "zebra": [3]}),
    ]
    script, html = ((HERE / f"comparison.{end}").read_text(encoding="utf-8") for end in ("js", "html"))
    shown = quiet_page.evaluate(DRAW, [script, html, [as_data(one) for one in tables]])
    assert shown == [["zebra", "okapi"], ["zebra", "okapi"]]
    assert quiet_page.troubles == []
