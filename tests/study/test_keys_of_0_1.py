"""Steps of version 0.1.0 are found again: the same work has the same key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from creamtea.study.loader import load_study
from creamtea.study.plan import plan

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads(Path(__file__).with_name("keys-0.1.0.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STORED)
def test_the_keys_are_those_of_0_1_0(name: str) -> None:
    loaded = load_study(ROOT / name)
    assert loaded.config_hash == STORED[name]["config_hash"]
    # a step whose version has been raised since, and what stands on it, has another key: say so here
    assert {node.node: node.key[:16] for node in plan(loaded.study, None).nodes} == STORED[name]["keys"]
