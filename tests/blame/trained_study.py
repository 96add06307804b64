"""A small trained study whose systems differ by search, selection and model."""

import os
from dataclasses import dataclass
from pathlib import Path

from blame_by_rule import REFERENCE, campaign_by_rule, disturbed
from command_line import call
from sqlalchemy import select

from creamtea.blame.gathering import Settings, gather
from creamtea.report.human.build import build_human
from creamtea.report.model import Row
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Campaign

STUDY = """
name: tiny
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
    """Run the study `tiny`."""
    study = folder / "tiny.yaml"
    study.write_text(STUDY)
    done = call({**os.environ, **_environment(folder)}, "run", study, "--executor", "inline", "--quiet")
    assert done.returncode == 0, done.stderr


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
