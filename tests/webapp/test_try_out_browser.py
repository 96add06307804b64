"""The box to try a sentence in, on the page of a study that has really been trained."""

import re
from pathlib import Path
from typing import Any

import pytest
from accessibility import violations
from command_line import call
from keyboard import walk
from playwright.sync_api import expect
from watched import at_rest, press

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STUDY = Path(__file__).parents[1] / "e2e" / "tiny.yaml"
SHORT = {
    "corpora.grammar.train": "200",
    "variants.softmax.training.max_epochs": "2",
    "variants.softmax.training.autocast": "none",
    "metrics": "[]",
    "latency": "null",
}


@pytest.fixture(scope="module")
def trained(site: Any) -> str:
    """The name of a study whose models lie where the server looks for them."""
    settings = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
    command = ("run", STUDY, "--executor", "inline", "-q")
    done = call({**site.environment, "OMP_NUM_THREADS": "1"}, *command, *settings)
    assert done.returncode == 0, done.stderr
    return "tiny"


def test_a_sentence_by_two_systems_and_a_missing_word(site, trained, open_page) -> None:
    page = open_page(site.new_link("reader"))
    page.get_by_role("link", name=trained).click()
    button = page.get_by_role("button", name="Translate")
    expect(button).to_be_visible()
    at_rest(page)
    assert walk(page, ["Sentence", "Translated by", "Missing word", "Translate"]).troubles() == {}
    press(button)
    expect(page.get_by_text("Enter a sentence")).to_be_visible()

    at_rest(page)
    page.get_by_role("textbox", name="Sentence").fill("<b>the</b> dog ☃")
    page.get_by_role("textbox", name="Missing word").fill("xyzzy")
    chosen = page.get_by_role("combobox", name="Translated by")
    chosen.fill("nvs")
    chosen.press("Enter")
    chosen.press("Escape")  # an open list hides the rest of the page
    press(button)
    results = page.locator(".tried section")
    expect(results).to_have_count(3)
    expect(results.locator("h3")).to_have_text(["greedy", "beam", "nvs"])
    expect(results.nth(0)).to_contain_text("the whole vocabulary")
    expect(results.nth(0)).to_contain_text(re.compile(r"This model has never seen: .*☃"))
    expect(results.nth(2)).to_contain_text("subwords allowed")
    expect(results.nth(2).locator("tbody tr").first).to_contain_text("▁")
    expect(results.locator("table")).to_have_count(1)  # only a selection leaves subwords out
    press(results.nth(2).get_by_text("Which subwords"))
    expect(results.nth(2).locator("details p")).to_contain_text("</s>")
    assert page.locator(".tried b").count() == 0
    assert violations(page) == []
