"""A small trained study whose systems have known faults."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from blame_by_rule import REFERENCE, campaign_by_rule, disturbed
from sqlalchemy import select

from creamtea.blame.gathering import Settings, gather
from creamtea.cli.main import main
from creamtea.report.human.build import build_human
from creamtea.report.model import Row
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.queries import find_study, study_nodes
from creamtea.store.tables import Campaign, Hypothesis, Segment

COMMON = """
languages: {source: en, target: de}
corpora: {grammar: {kind: synthetic, train: 500, dev: 30}}
subwords: {joint: {kind: bpe, vocabulary: 300}}
metrics: [{kind: bleu}]
variants:
  softmax: &variant
    corpus: grammar
    subwords: joint
    objective: {kind: softmax, label_smoothing: 0.0}
    architecture: {encoder_layers: 1, decoder_layers: 1, width: 32, heads: 2, feed_forward: 64}
    nvs: {positive_weight: 20.0}
    training: {batch_tokens: 256, learning_rate: 0.01, warmup: 20, max_epochs: 6, autocast: none}
"""
TINY = """
  scones:
    <<: *variant
    objective: {kind: scones, alpha: 0.5}
    nvs: null
    training: {batch_tokens: 256, learning_rate: 0.01, warmup: 20, max_epochs: 1, autocast: none}
systems:
  greedy: {variant: softmax}
  beam: {variant: softmax, search: {kind: beam, width: 8, length_normalization: 0.0}}
  exact: {variant: softmax, search: {kind: exact, max_states: 20000}}
  nvs: {variant: softmax, selection: {kind: nvs, threshold: 0.97}}
  lexicon: {variant: softmax, selection: {kind: lexicon, k: 1}}
  scones: {variant: scones}
baseline: greedy
test_sets: {test: {kind: synthetic, corpus: grammar, lines: 40}}
"""
FAULTY = """
  short:
    <<: *variant
    training: {batch_tokens: 256, learning_rate: 0.01, warmup: 20, max_epochs: 2, autocast: none}
systems:
  none: {variant: softmax, search: &beam {kind: beam, width: 2, length_normalization: 0.0}}
  model: {variant: short, search: *beam}
  search: {variant: softmax}
  selection: {variant: softmax, search: *beam, selection: {kind: nvs, threshold: 0.9}}
baseline: none
test_sets: {test: {kind: synthetic, corpus: grammar, lines: 60, seed: 3}}
"""
SEARCHES = Settings(beam=8, states=20_000)


@dataclass(frozen=True, repr=False)
class Trained:
    database: Database
    store: ArtefactStore
    environment: dict[str, str]

    def shares(self, system: str, better: str, higher: bool = False) -> Row:
        """Of a system's differences from a better output, marked by rule; the evidence is gathered once."""
        name = f"{system} against {better}"
        with self.database.session() as session:
            known = session.scalar(select(Campaign.id).where(Campaign.name == name))
        if known is None:
            self._mark_by_rule(name, system, better, higher)
        (row,) = build_human(self.database, name).table("origins").rows
        assert row.name == system
        return row

    def _mark_by_rule(self, name: str, system: str, better: str, higher: bool) -> None:
        found = disturbed(self.database, "tiny", "test", system, better, higher)
        assert len(found) >= 3, f"the systems hardly differ: {name}"
        systems = [system] if better == REFERENCE else [system, better]
        campaign_by_rule(self.database, "tiny", "test", name, systems, found)
        gather(self.database, self.store, "tiny", name, SEARCHES)


def train(folder: Path) -> None:
    """Two studies, `tiny` and `faulty`, which share a model."""
    for name, systems in (("tiny", TINY), ("faulty", FAULTY)):
        study = folder / f"{name}.yaml"
        study.write_text(f"name: {name}{COMMON.rstrip()}{systems}")
        arguments = ["run", str(study), "--executor", "inline", "--quiet"]
        with (
            patch.dict(os.environ, _environment(folder)),
            patch.object(sys, "argv", ["creamtea", *arguments]),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        assert ended.value.code == 0
    database = open_database(_environment(folder)["CREAMTEA_DATABASE_URL"])
    _say_what_has_no_fault(database)
    database.close()


def trained_in(folder: Path) -> Trained:
    """What `train` left in the folder."""
    environment = _environment(folder)
    database = open_database(environment["CREAMTEA_DATABASE_URL"])
    return Trained(database, ArtefactStore(folder / "home" / "artefacts"), environment)


def _environment(folder: Path) -> dict[str, str]:
    return {
        "CREAMTEA_HOME": str(folder / "home"),
        "CREAMTEA_DATABASE_URL": f"sqlite:///{folder / 'creamtea.db'}",
    }


def _say_what_has_no_fault(database: Database) -> None:
    """So small a model never says what a reference says: the references become its best translations."""
    with database.transaction() as session:
        nodes = study_nodes(session, find_study(session, "faulty").id)
        (test_set,) = (node.key for node in nodes if node.kind == "test_set")
        (decode,) = (node.key for node in nodes if node.kind == "decode" and node.labels["system"] == "none")
        texts = select(Hypothesis.index, Hypothesis.text).where(Hypothesis.step_key == decode)
        for index, text in session.execute(texts).all():
            session.get_one(Segment, (test_set, index)).reference = text
