"""What counts as a difference of a bundle, and what its place is called."""

from __future__ import annotations

import json

from creamtea.bundle.verifying import NOTHING, differences


def test_places_are_named_by_what_readers_know() -> None:
    old = {
        "sections": [{"key": "means", "rows": [{"name": "plain", "setting": "seed 1", "cells": {"m": 1.0}}]}]
    }
    new = json.loads(json.dumps(old))
    new["sections"][0]["rows"][0]["cells"]["m"] = 1.0 + 1e-8
    (found,) = differences(old, new, "report.json")
    assert found.place == "report.json/means/plain seed 1/m"
    assert list(differences(old, old, "")) == []
    new["sections"][0]["rows"][0]["cells"]["m"] = 1.0 + 1e-11  # of another order of additions
    assert list(differences(old, new, "")) == []
    assert [d.stored for d in differences([1], [1, 2], "")] == [NOTHING]
    assert list(differences(1, True, "")) != []
