"""What a researcher can get wrong in a study: the exact message of each, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from creamtea.cli import study_files
from creamtea.errors import InputError
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.study.loader import load_study

Write = Callable[..., Path]

SYSTEMS = "allowed a system: greedy, lexicon, nvs, scones"
BAD = {
    "unknown key": (
        ("objective: {kind: softmax}", "objective: {kind: softmax, label_smooting: 0.1}"),
        "study.yaml:11: variants.softmax.objective.label_smooting: found an unknown key, "
        "allowed one of kind, label_smoothing, smoothing (did you mean label_smoothing?)",
    ),
    "missing key": (
        ("baseline: greedy\n", ""),
        "study.yaml:1: baseline: required key is missing",
    ),
    "text for a number": (
        ("vocabulary: 100", 'vocabulary: "100"'),
        'study.yaml:6: subwords.joint.vocabulary: found "100", allowed a whole number',
    ),
    "fraction for a whole number": (
        ("vocabulary: 100", "vocabulary: 100.5"),
        "study.yaml:6: subwords.joint.vocabulary: found 100.5, allowed a whole number",
    ),
    "value for a block": (
        ("objective: {kind: softmax}", "objective: softmax"),
        'study.yaml:11: variants.softmax.objective: found "softmax", allowed a block of keys with a kind',
    ),
    "unknown objective": (
        ("{kind: softmax}", "{kind: scone}"),
        'study.yaml:11: variants.softmax.objective.kind: found "scone", '
        "allowed one of softmax, scones, entmax (did you mean scones?)",
    ),
    "no kind": (
        ("{kind: softmax}", "{label_smoothing: 0.1}"),
        "study.yaml:11: variants.softmax.objective.kind: required key is missing: "
        "one of softmax, scones, entmax",
    ),
    "number out of range": (
        ("{kind: softmax}", "{kind: softmax, label_smoothing: 1.0}"),
        "study.yaml:11: variants.softmax.objective.label_smoothing: found 1.0, allowed less than 1",
    ),
    "infinite number": (
        ("alpha: 0.5", "alpha: .inf"),
        "study.yaml:16: variants.scones.objective.alpha: found Infinity, allowed a finite number",
    ),
    "k = 0": (("k: 5", "k: 0"), "study.yaml:19: systems.lexicon.selection.k: found 0, allowed at least 1"),
    "k beyond the lexicon": (
        ("k: 5", "k: 5000"),
        "study.yaml:19: systems.lexicon.selection.k: found 5000, allowed at most alignment.max_k = 1000",
    ),
    "sweep beyond the lexicon": (
        ("baseline: greedy", "baseline: greedy\nalignment: {max_k: 50}"),
        "study.yaml:23: alignment.max_k: found 50, and recall.k up to 1000, "
        "allowed at least the largest k of the sweep (list less in recall.k)",
    ),
    "unknown word of a fixed set": (
        ("greedy: {variant: softmax}", "greedy: {variant: softmax, precision: fp61}"),
        'study.yaml:18: systems.greedy.precision: found "fp61", '
        "allowed one of fp32, bf16, fp16, int8 (did you mean fp16?)",
    ),
    "baseline that is no system": (
        ("baseline: greedy", "baseline: beam"),
        f'study.yaml:22: baseline: found "beam", {SYSTEMS}',
    ),
    "baseline that is a grid": (
        ("greedy: {variant: softmax}", "greedy: {variant: softmax, search: {kind: beam, width: [2, 4]}}"),
        'study.yaml:22: baseline: found "greedy", a grid, '
        "allowed one of its members: greedy+width=2, greedy+width=4",
    ),
    "unknown variant": (
        ("scones: {variant: scones}", "scones: {variant: scone}"),
        'study.yaml:21: systems.scones.variant: found "scone", '
        "allowed a variant: softmax, scones (did you mean scones?)",
    ),
    "unknown corpus of a variant": (
        ("  scones:\n    corpus: grammar", "  scones:\n    corpus: wmt"),
        'study.yaml:14: variants.scones.corpus: found "wmt", allowed a corpus: grammar',
    ),
    "unknown subwords": (
        (
            "    subwords: joint\n    objective: {kind: scones",
            "    subwords: bpe\n    objective: {kind: scones",
        ),
        'study.yaml:15: variants.scones.subwords: found "bpe", allowed subwords: joint',
    ),
    "test set of no corpus": (
        ("test: {kind: synthetic, corpus: grammar}", "test: {kind: synthetic, corpus: gramar}"),
        'study.yaml:24: test_sets.test.corpus: found "gramar", '
        "allowed a synthetic corpus: grammar (did you mean grammar?)",
    ),
    "synthetic test set of a files corpus": (
        (
            "{kind: synthetic}",
            "{kind: files, train: [{source: a, target: b}], dev: {source: a, target: b}}",
        ),
        'study.yaml:24: test_sets.test.corpus: found "grammar", a corpus of files, '
        "allowed a synthetic corpus (there is none)",
    ),
    "NVS selection without an NVS head": (
        ("    nvs: {}\n", ""),
        "study.yaml:19: systems.nvs.selection.kind: found nvs, but the variant has no NVS head, "
        "allowed full or lexicon, or a block `nvs: {}` in the variant",
    ),
    "heads that do not divide the width": (
        ("    nvs: {}\n", "    nvs: {}\n    architecture: {width: 130}\n"),
        "study.yaml:13: variants.softmax.architecture.heads: found 4 heads for width 130, "
        "allowed a number of heads that divides the width",
    ),
    "unknown key of an architecture whose kind is not written": (
        ("    nvs: {}\n", "    nvs: {}\n    architecture: {widht: 64}\n"),
        "study.yaml:13: variants.softmax.architecture.widht: found an unknown key, allowed one of kind, "
        "preset, encoder_layers, decoder_layers, width, heads, feed_forward, dropout, attention_dropout "
        "(did you mean width?)",
    ),
    "seed twice": (
        ("    nvs: {}\n", "    nvs: {}\n    seeds: [1, 2, 1]\n"),
        "study.yaml:13: variants.softmax.seeds[2]: found 1 twice, allowed each once",
    ),
    "metric twice": (
        ("baseline: greedy", "baseline: greedy\nmetrics:\n  - {kind: bleu}\n  - {kind: bleu, tokenize: 13a}"),
        "study.yaml:25: metrics[1]: found bleu a second time (first: metrics[0]), allowed each metric once",
    ),
    "latency of an unknown system": (
        ("baseline: greedy", "baseline: greedy\nlatency: {test_set: test, systems: [greedy, beam]}"),
        f'study.yaml:23: latency.systems[1]: found "beam", {SYSTEMS}',
    ),
    "latency on an unknown test set": (
        ("baseline: greedy", "baseline: greedy\nlatency: {test_set: dev}"),
        'study.yaml:23: latency.test_set: found "dev", allowed a test set: test',
    ),
    "latency over two subword models": (
        (
            "variants:\n  softmax:\n    corpus: grammar\n    subwords: joint\n",
            "  large: {kind: bpe, vocabulary: 200}\nlatency: {test_set: test}\n"
            "variants:\n  softmax:\n    corpus: grammar\n    subwords: large\n",
        ),
        "study.yaml:8: latency: found systems over 2 subword models (grammar × joint, grammar × large), "
        "allowed systems of one corpus and subwords (list them in latency.systems)",
    ),
    "resources of an unknown step": (
        ("baseline: greedy", "baseline: greedy\nresources: {training: {cpus: 2}}"),
        "study.yaml:23: resources.training: found an unknown step kind, allowed one of "
        f"{', '.join(STEP_KINDS)} (did you mean train?)",
    ),
    "bad name": (
        ("name: small", "name: a small study"),
        'study.yaml:1: name: found "a small study", '
        "allowed a name of letters, digits and . _ = , + - (letter or digit first, 120 at most)",
    ),
    "key twice": (
        ("baseline: greedy", "baseline: greedy\nbaseline: nvs"),
        "study.yaml:23: baseline: found the key a second time (first in line 22), allowed each key once",
    ),
    "number as a key": (
        ("  scones: {variant: scones}", "  7: {variant: scones}"),
        "study.yaml:21: systems: found the key 7, allowed text as a key (quote it)",
    ),
    "empty list in a grid": (
        ("alpha: 0.5", "alpha: []"),
        "study.yaml:16: variants.scones.objective.alpha: found an empty list, "
        "allowed one value, or a list of values",
    ),
    "block in a grid": (
        ("objective: {kind: softmax}", "objective: [{kind: softmax}, {kind: entmax}]"),
        "study.yaml:11: variants.softmax.objective: found a block of keys in a list, "
        "allowed single values in a list; write one entry for each block",
    ),
    "name that a grid makes too": (
        (
            "  scones: {variant: scones}",
            "  nvs-all: {variant: softmax, selection: {kind: nvs, threshold: [0.1, 0.9]}}\n"
            "  nvs-all+threshold=0.1: {variant: softmax}",
        ),
        "study.yaml:22: systems.nvs-all+threshold=0.1: found nvs-all+threshold=0.1, "
        "which makes a second nvs-all+threshold=0.1, allowed each name once",
    ),
    "Python object": (
        ("name: small", "name: !!python/name:os.system"),
        "study.yaml:1: name: found !!python/name:os.system, "
        "allowed text, a number, true, false, null, a list or a block of keys",
    ),
    "control character": (
        ("name: small", 'name: small\ndescription: "a\\0b"'),
        "study.yaml:2: description: found a control character in 'a\\x00b', "
        "allowed text, a number, true, false, null, a list or a block of keys",
    ),
    "seed out of range": (
        ("    nvs: {}\n", "    nvs: {}\n    seeds: [5000000000]\n"),
        "study.yaml:13: variants.softmax.seeds[0]: found 5000000000, allowed less than 4,294,967,296",
    ),
    "no language code": (
        ("source: en", "source: English"),
        'study.yaml:2: languages.source: found "English", allowed a language code (en, deu, zh-CN)',
    ),
}


@pytest.mark.parametrize("change, line", BAD.values(), ids=BAD.keys())
def test_one_mistake_is_one_line(write: Write, change: tuple[str, str], line: str) -> None:
    path = write(change)
    with pytest.raises(InputError) as caught:
        load_study(path)
    found, allowed = line.split(", allowed ", 1) if ", allowed " in line else (line, "")
    mistake, total = str(caught.value).split("\n")
    assert mistake.startswith(found)  # the place, the key and what is there
    assert mistake.count(allowed[:12]) >= 1
    assert total == "1 mistake in study.yaml"
    assert caught.value.exit_code == 2


NO_STUDY = {
    "empty": (
        b"",
        "study.yaml:1: found an empty file, allowed a block of keys (name, languages, corpora, …)",
    ),
    "list": (b"- a\n", "study.yaml:1: found a list, allowed a block of keys (name, languages, corpora, …)"),
    "tab": (
        b"name: x\nlanguages:\n\tsource: en\n",
        "study.yaml:3: found a tab where there must be spaces, allowed valid YAML",
    ),
    "open bracket": (
        b"name: [a\nb: c\n",
        "study.yaml:1: found a list that is not closed: a comma or ] is missing, allowed valid YAML",
    ),
    "control character": (
        b"name: x\nb: \x07\n",
        "study.yaml:2: found the control character '\\x07', allowed valid YAML",
    ),
    "two documents": (
        b"name: x\n---\nname: y\n",
        "study.yaml:2: found a second document after ---; a study is one, allowed valid YAML",
    ),
    "open quote": (b'name: "x\nb: c\n', "study.yaml:1: found a quote that is not closed, allowed valid YAML"),
    "second colon": (b"name: a: b\n", "study.yaml:1: found a second colon in a line, allowed valid YAML"),
    "at sign": (b"name: @x\n", "study.yaml:1: found text that begins with @; put it, allowed valid YAML"),
    "unknown alias": (
        b"a: 1\nname: *x\n",
        "study.yaml:2: found the alias *x, which no &x, allowed valid YAML",
    ),
    "indentation": (b"a:\n  b: 1\n c: 2\n", "study.yaml:3: found a line that is not indented, allowed valid"),
    "brace": (b"a: {b: 1\nc: 2\n", "study.yaml:1: found a block that is not closed, allowed valid YAML"),
    "escape": (b'name: "a\\q"\n', "study.yaml:1: found the escape \\q in double quotes, allowed valid YAML"),
    "no colon": (b"a: 1\nname\nb: 2\n", "study.yaml:3: found a line without a colon, allowed valid YAML"),
    "nested too deeply": (b"[" * 5_000, "study.yaml:1: found blocks nested too deeply, allowed valid YAML"),
}


@pytest.mark.slow
@pytest.mark.parametrize("content, line", NO_STUDY.values(), ids=NO_STUDY.keys())
def test_what_is_no_yaml(write: Write, content: bytes, line: str) -> None:
    path = write()
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_study(path)
    found, allowed = line.split(", allowed ", 1) if ", allowed " in line else (line, "")
    mistake, total = str(caught.value).split("\n")
    assert mistake.startswith(found)  # the place, the key and what is there
    assert mistake.count(allowed[:12]) >= 1
    assert total == "1 mistake in study.yaml"


UNREADABLE = {
    "invalid UTF-8": (b"name: x\n# \xff\n", "study.yaml, line 2: not UTF-8 text: save it as UTF-8"),
    "too large": (b"#" * 1_000_001, "study.yaml: larger than 1,000,000 bytes, the limit for a study"),
    "alias bomb": (
        b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)),
        "study.yaml: its aliases expand to more than 50,000 values",
    ),
}


@pytest.mark.parametrize("content, message", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read(write: Write, content: bytes, message: str) -> None:
    path = write()
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert str(caught.value) == message


def test_a_missing_file_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^x\.yaml: no such file; give the path of a study \(\.yaml\)$"):
        load_study(Path("x.yaml"))
    with pytest.raises(InputError, match=r"^\.: cannot be read: Is a directory$"):
        load_study(Path())


@pytest.mark.parametrize("inner, key", [("train: *r", "resources.train"), ("<<: *r", "resources")])
def test_an_alias_of_itself(write: Write, inner: str, key: str) -> None:
    path = write(("name: small", f"name: small\nresources: &r {{{inner}}}"))
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert str(caught.value) == (
        f"study.yaml:2: {key}: found an alias inside the value that it stands for, "
        "allowed an alias of something else\n1 mistake in study.yaml"
    )


def test_all_mistakes_in_the_order_of_the_file(write: Write) -> None:
    path = write(
        ("vocabulary: 100", "vocabulary: 1"),
        ("alpha: 0.5", "alpha: 0"),
        ("k: 5", "k: 0"),
        ("baseline: greedy", "baseline: nobody"),
    )
    with pytest.raises(InputError) as caught:
        load_study(path, ["corpora.grammar.size=3"])
    assert str(caught.value).splitlines() == [
        "study.yaml:6: subwords.joint.vocabulary: found 1, allowed at least 16",
        "study.yaml:16: variants.scones.objective.alpha: found 0, allowed at least 0.000001",
        "study.yaml:19: systems.lexicon.selection.k: found 0, allowed at least 1",
        f'study.yaml:22: baseline: found "nobody", {SYSTEMS}',
        "--set corpora.grammar.size=3: corpora.grammar.size: found an unknown key, "
        "allowed one of kind, train, dev, seed, gamma, idiom_rate",
        "5 mistakes in study.yaml",
    ]


def test_a_mistake_of_a_grid_is_said_once_and_at_its_value(write: Write) -> None:
    path = write(("alpha: 0.5}", "alpha: [0.5, -1, 2.0]}\n    training: {warmup: 0}"))
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert str(caught.value).splitlines() == [
        "study.yaml:16: variants.scones.objective.alpha[1]: found -1, allowed at least 0.000001",
        "study.yaml:17: variants.scones.training.warmup: found 0, "
        "allowed at least 1 with `schedule: inverse_sqrt`",
        "2 mistakes in study.yaml",
    ]


OVERRIDES = {
    "variants.softmax.corpus=[a, b]": "variants.softmax.corpus: found a list of 2, allowed text\n1 mistake",
    "name": 'found "name", allowed key=value, where a dotted key leads into blocks (block.key=value)',
    "name.x=1": 'name: found "small", allowed a block of keys',
    "name=[a": "name: found a list that is not closed: a comma or ] is missing, allowed a value in YAML",
    "variants.softmax.trainin.warmup=2": (
        "variants.softmax.trainin: found an unknown key, allowed one of corpus, subwords, objective, "
        "architecture, nvs, training, start_from, "
        "alignment_corpus, seeds, resources (did you mean training?)"
    ),
    "variants.softmx.seeds=[2]": (
        'variants.softmx: found "softmx", not in the study, allowed an entry of variants, or a new one with '
        "all it needs: softmax, scones (did you mean softmax?)\n1 mistake in study.yaml"
    ),
    "systems.new.batch_size=2": 'systems.new: found "new", not in the study, allowed an entry of systems',
    "metrics.0.kind=nist": 'metrics[0].kind: found "nist", allowed one of bleu, chrf, ter, comet',
    "metrics.1.kind=chrf": "metrics: found entry 1, allowed an entry from 0 to 0",
}


@pytest.mark.parametrize("override, message", OVERRIDES.items(), ids=OVERRIDES.keys())
def test_a_bad_override(write: Write, override: str, message: str) -> None:
    path = write(("baseline: greedy", "baseline: greedy\nmetrics: [{kind: bleu}]"))
    with pytest.raises(InputError) as caught:
        load_study(path, [override])
    assert str(caught.value).startswith(f"--set {override}: {message}")


def test_an_override_may_begin_an_entry_that_needs_no_more(write: Write) -> None:
    assert load_study(write(), ["systems.new.variant=scones"]).study.systems["new"].variant == "scones"


def test_validate_json_lists_the_mistakes_and_leaves_with_2(write: Write) -> None:
    path = write(("k: 5", "k: 0"), ("alpha: 0.5", "alpha: 0"))
    app = typer.Typer()
    app.callback()(lambda: None)
    app.command()(study_files.validate)
    result = CliRunner().invoke(app, ["validate", str(path), "--json"])
    assert result.exit_code == 2
    answer = json.loads(result.output)
    assert answer["valid"] is False
    assert [line.split(": found")[0] for line in answer["mistakes"]] == [
        "study.yaml:16: variants.scones.objective.alpha",
        "study.yaml:19: systems.lexicon.selection.k",
    ]
