"""A report's tables sort by a click on a head: the script by itself in a browser, no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from creamtea.contract.columns import Column
from creamtea.report.html import part
from creamtea.report.model import Cell, Row, Table
from creamtea_webapp.markup import HERE

pytestmark = pytest.mark.browser

SORT = """async ([script, html, clicks]) => {
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const { default: render } = await import(address);
    document.body.innerHTML = `<div class="ct">${html}</div>`;
    render();
    render(); // a second run of the page
    return clicks.map((head) => {
        document.querySelectorAll("th button")[head].click();
        return [...document.querySelectorAll("tbody .name")].map((name) => name.textContent);
    });
}"""


def test_a_table_is_sorted_by_its_columns_and_back(quiet_page: Any) -> None:
    columns = (Column("bleu", "BLEU", 1, "higher"), Column("p50", "p50", 1, "lower"))
    rows = {"okapi": (2.0, 9.0), "<b>zebra</b>": (-10.0, None), "quagga": (30.0, 1.0), "emu": (0.0, 20.0)}
    table = Table(
        "scores",
        "",
        "system",
        columns,
        tuple(
            Row(
                name,
                {
                    column.key: Cell("absent", "not timed") if value is None else Cell("ok", value=value)
                    for column, value in zip(columns, values, strict=True)
                },
            )
            for name, values in rows.items()
        ),
    )
    script = (HERE / "sorting.js").read_text(encoding="utf-8")
    shown = quiet_page.evaluate(SORT, [script, str(part("grid", table, "")), [1, 1, 2, 2, 0]])
    assert shown == [
        ["quagga", "okapi", "emu", "<b>zebra</b>"],
        ["<b>zebra</b>", "emu", "okapi", "quagga"],
        ["quagga", "okapi", "emu", "<b>zebra</b>"],
        ["emu", "okapi", "quagga", "<b>zebra</b>"],
        list(rows),
    ]
    assert quiet_page.troubles == []
