"""What is scored is the text as given, with the tokenizer of its language, against the references that count:
beside sacreBLEU itself."""

import hashlib
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from scored_texts import comparing, outputs, printed_by_sacrebleu, scoring, segments
from step_context import Context

from creamtea.contract.step import MetricRow
from creamtea.errors import StepError
from creamtea.methods.metrics import Bleu, Metric, bleu_tokenizer, development_tokenizer
from creamtea.steps.systems import OUTPUTS
from creamtea.steps.texts import TEST_SET
from creamtea.words import plain
from creamtea_workers.corpora.text import read_jsonl

LINES = [
    "Le café a déjà été fermé à Noël .",
    "Élève très fatigué après l'été dernier .",
    "Où est passée la clé du garçon ?",
] * 4
CHINESE = ["今天的天气非常好，我们去公园散步。", "他昨天买了一本新书。", "会议将于下周三上午九点举行。"]
TRANSLATED = ["今天天气很好，我们去公园走走。", "他昨天买了一本新的书。", "会议将在下周三上午九点举行。"]
Score = Callable[..., dict[str, MetricRow]]


@pytest.fixture
def scored(tmp_path: Path) -> Score:
    """Scores, by name, of what is in files, as a study of them has it."""

    def run(
        references: list[str], outputs: list[str], target: str = "fr", tokenized: str = "no", **bleu: Any
    ) -> dict[str, MetricRow]:
        files = {"src": ["x"] * len(references), "ref": references, "hyp": outputs}
        for name, lines in files.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        digests = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in files}
        places = {name: str(tmp_path / name) for name in files}
        languages = {"source": "en", "target": target}
        spec = {"kind": "files", "source": "src", "target": "ref", "tokenized": tokenized}
        params = {"test_set": spec, "corpus": None, "languages": languages, "digests": digests}
        test_set = Context(TEST_SET, params, {}, locations=places)
        test_set.run()
        folders = {"test_set": [test_set.output]}
        given = Context(OUTPUTS, {"file": "hyp", "digests": digests}, folders, locations=places)
        given.run()
        rows = {}
        for metric in ({"kind": "bleu", **bleu}, {"kind": "chrf"}):
            step = scoring(test_set.output, given.output, metric, languages=languages)
            rows |= {row.name: row for row in step.run().metrics}
        own = test_set.output, [given.output], [given.output], {"kind": "bleu", **bleu}, languages
        (rows["delta"],) = comparing(*own, samples=100, trials=100).run().metrics
        return rows

    return run


def sacrebleu_itself(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    printed = printed_by_sacrebleu(folder, "-m", "bleu", "chrf", "-w", "12", *options)
    return {row["name"]: row for row in printed}


def decomposed(lines: list[str], every: int) -> list[str]:
    return [unicodedata.normalize("NFD", line) if n % every == 0 else line for n, line in enumerate(lines)]


@pytest.mark.parametrize(
    "outputs, unfit",
    [
        (decomposed(LINES, every=1), "Unicode's form NFC"),
        (decomposed(LINES, every=3), None),
        ([line.replace(" ", "▁") for line in LINES], "12 of 12 outputs have ▁"),
        ([line.replace(" ", "\u00a0 ") + "\t" for line in LINES], None),
    ],
    ids=["decomposed", "some decomposed", "subwords", "white space"],
)
def test_scores_under_sacrebleus_signature_are_sacrebleus(
    scored: Score, tmp_path: Path, outputs: list[str], unfit: str | None
) -> None:
    rows, theirs = scored(LINES, outputs), sacrebleu_itself(tmp_path)
    for ours, name in (("bleu", "BLEU"), ("chrf", "chrF2")):
        assert rows[ours].value == pytest.approx(theirs[name]["score"], abs=1e-9)
        assert rows[ours].detail["signature"] == theirs[name]["signature"]
    assert ("unfit" in rows["bleu"].detail) == (unfit is not None)
    assert (unfit or "") in rows["bleu"].note
    if outputs == decomposed(LINES, every=3):
        assert rows["bleu"].note.startswith("in 4 of 12 segments")


@pytest.mark.parametrize("words, unfit", [(3, True), (4, False)])
def test_bleu_is_unfit_for_references_of_fewer_than_four_words(
    scored: Score, words: int, unfit: bool
) -> None:
    references = [f"a b c d e {number}"[: 2 * words - 1] for number in range(9)]
    rows = scored(references, ["x y z w v u"] * 9)  # long outputs do not make it fit
    assert ("fewer than four tokens" in rows["bleu"].detail.get("unfit", "")) == unfit
    assert "unfit" not in rows["chrf"].detail


def test_what_is_done_to_references_stands_in_every_signature(scored: Score) -> None:
    reference, output = "Haus &amp; Hof sind längst verkauft .", "Haus & Hof sind längst verkauft."
    rows = scored([reference], [output], "de", tokenized="moses")
    assert rows["bleu"].value == pytest.approx(100.0)
    for name in ("bleu", "chrf", "length_ratio"):
        assert rows[name].detail["signature"].endswith("|ref:detokenized")
    assert "|ref:detokenized|seed:" in rows["delta"].detail["signature"]


def test_a_nul_character_is_refused_with_its_line(scored: Score) -> None:
    with pytest.raises(StepError, match=r"hyp, line 2: the line has a NUL character"):
        scored(["a", "b"], ["a", "b\0"])
    with pytest.raises(StepError, match=r"ref, line 1: the line has a NUL character"):
        scored(["\0a", "b"], ["a", "b"])


WRITTEN = st.lists(
    st.text(st.sampled_from("ab.,'’-1é\u0301▁今。\t\r\u00a0\u3000\u2028\x85\x1c "), max_size=12),
    min_size=1,
    max_size=3,
)


@given(outputs=WRITTEN, references=WRITTEN)
@example(outputs=["\t,1 a"], references=[",1 a"])  # which intl parts by the blank before the mark
@pytest.mark.parametrize(
    "scorer",
    [*(BLEU(tokenize=name) for name in ("13a", "intl", "char", "zh", "none")), CHRF(), CHRF(word_order=2)],
    ids=["13a", "intl", "char", "zh", "none", "chrf", "chrf++"],
)
def test_plain_white_space_changes_no_score(scorer: Any, outputs: list[str], references: list[str]) -> None:
    count = min(len(outputs), len(references))
    outputs, references = outputs[:count], references[:count]
    as_given = scorer.corpus_score(outputs, [references])
    made_plain = scorer.corpus_score(list(map(plain, outputs)), [list(map(plain, references))])
    assert made_plain.score == pytest.approx(as_given.score, abs=1e-9)


# ---------------------------------------------------------------- tokenizers by language


@pytest.mark.parametrize(
    "language, tokenizer, of_development",
    [
        *((code, "zh", "zh") for code in ("zh", "zh-CN", "zh_TW", "zho_Hans", "cmn", "wuu", "lzh")),
        *((code, "ja-mecab", "char") for code in ("ja", "ja-JP", "jpn")),
        *((code, "ko-mecab", "13a") for code in ("ko", "ko_KR", "kor_Hang")),
        *((code, "char", "char") for code in ("th", "lo", "km-KH", "mya", "bo", "dzo")),
        *((code, "zh", "zh") for code in ("nan-Hant", "hak_Hani_TW", "nan_hans")),
        *((code, "13a", "13a") for code in ("de", "pt-BR", "sr_Latn", "und", "nan", "nan-Latn-TW")),
    ],
)
def test_the_tokenizer_of_a_language(language: str, tokenizer: str, of_development: str) -> None:
    assert bleu_tokenizer(language) == tokenizer
    assert development_tokenizer(language) == of_development
    metric: Metric = Bleu(kind="bleu").for_target(language)
    assert metric == Bleu.model_validate({"kind": "bleu", "tokenize": tokenizer})
    assert Bleu(kind="bleu", tokenize="intl").for_target(language).name() == "bleu-intl"


@pytest.mark.parametrize("language", ["zh", "ja", "ko", "de"])
def test_the_choice_is_sacrebleus(language: str) -> None:
    pytest.importorskip("MeCab")
    pytest.importorskip("mecab_ko")
    scorers = BLEU(trg_lang=language), BLEU(tokenize=bleu_tokenizer(language))
    assert len({type(scorer.tokenizer) for scorer in scorers}) == 1


@pytest.mark.parametrize("target", ["zh", "zh-CN"])
def test_chinese_is_split(scored: Score, tmp_path: Path, target: str) -> None:
    """The metric as a study in that language has it."""
    metric = Bleu(kind="bleu").for_target(target).model_dump(mode="json")
    rows = scored(CHINESE * 5, TRANSLATED * 5, target, **metric)
    theirs = sacrebleu_itself(tmp_path, "-l", "en-zh")["BLEU"]["score"]
    assert rows["bleu"].value == pytest.approx(theirs, abs=1e-9)
    assert rows["bleu"].value == pytest.approx(64.7, abs=0.05)
    assert "unfit" not in rows["bleu"].detail


@pytest.mark.parametrize("target", ["zh", "de", "und"])
def test_a_tokenizer_that_does_not_split_the_text_is_unfit_whatever_the_language(
    scored: Score, target: str
) -> None:
    rows = scored(CHINESE, TRANSLATED, target, tokenize="13a")
    assert rows["bleu"].value == 0.0
    assert "tokenizer 13a does not split" in rows["bleu"].detail["unfit"]
    assert "unfit" not in rows["chrf"].detail


def test_a_text_with_some_words_of_another_script_is_split(scored: Score) -> None:
    rows = scored(["das Zeichen 猫 heißt neko"], ["das Zeichen 猫 ist neko"], "de", tokenize="13a")
    assert rows["bleu"].note == "only one segment: no spread to judge by"


# ---------------------------------------------------------------- outputs of files, several references


Read = Callable[..., tuple[list[dict[str, Any]], Any]]
FIRST = ["ein Haus am See", "er geht heute nicht", "sie singt ein Lied"]
SECOND = ["das Haus beim See", "heute geht er nicht mehr", "ein Lied singt sie"]
TEXTS = ["das Haus am See", "heute geht er nicht", "sie singt Lieder gern"]
METRICS = {"bleu": BLEU(), "chrf": CHRF()}


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    return segments(tmp_path, FIRST, more_references=[[text] for text in SECOND])


@pytest.fixture
def read(tmp_path: Path, test_set: Path) -> Read:
    def run(content: bytes = b"", **params: Any) -> tuple[list[dict[str, Any]], Any]:
        path = tmp_path / "gpt.de"
        path.write_bytes(content)
        if not params.get("reference"):
            params |= {"file": "gpt.de", "digests": {"gpt.de": hashlib.sha256(content).hexdigest()}}
        context = Context(OUTPUTS, params, {"test_set": [test_set]}, locations={"gpt.de": str(path)})
        result = context.run()
        return read_jsonl(context.output / "hypotheses.jsonl"), result

    return run


def test_lines_become_hypotheses_without_what_only_a_model_gives(read: Read) -> None:
    rows, result = read("eins\rund\x85zwei\r\n\n drei\u2028vier".encode())
    assert [row["text"] for row in rows] == ["eins und zwei", "", " drei vier"]
    assert {(row["score"], row["length"], row["selected_size"]) for row in rows} == {(None, None, None)}
    assert [(metric.name, metric.value) for metric in result.metrics] == [("empty", pytest.approx(1 / 3))]


def test_a_reference_is_an_output(read: Read) -> None:
    assert [row["text"] for row in read(reference=2)[0]] == SECOND


def test_a_test_sets_limit_takes_the_first_lines(read: Read) -> None:
    assert len(read(b"1\n2\n3\n4\n", limit=3)[0]) == 3


def test_a_wrong_number_of_lines_is_an_error_with_both_counts(read: Read) -> None:
    with pytest.raises(StepError, match=r"gpt\.de has 2 lines and the test set 3 segments"):
        read(b"1\n2\n")


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("without", [None, 1, 2])
def test_scores_are_sacrebleus_of_the_references_that_count(
    tmp_path: Path, test_set: Path, kind: str, without: int | None
) -> None:
    context = scoring(test_set, outputs(tmp_path, TEXTS), {"kind": kind}, without_reference=without)
    score, *_ = context.run().metrics
    references = [lines for number, lines in enumerate((FIRST, SECOND), 1) if number != without]
    theirs = METRICS[kind].corpus_score(TEXTS, references)
    assert score.value == pytest.approx(theirs.score, rel=1e-12)
    assert score.detail["signature"] == str(METRICS[kind].get_signature())
    assert ("other reference" in score.note) == (without is not None)


def test_a_metric_of_one_reference_says_so(tmp_path: Path, test_set: Path) -> None:
    score, *_ = scoring(test_set, outputs(tmp_path, TEXTS), {"kind": "wer"}).run().metrics
    assert score.note == "against one reference of 2, the first"


def test_a_comparison_uses_all_references(tmp_path: Path, test_set: Path) -> None:
    folders = [outputs(tmp_path, FIRST)], [outputs(tmp_path, TEXTS)]
    (delta,) = comparing(test_set, *folders, {"kind": "chrf"}, samples=100, trials=100).run().metrics
    scores = [CHRF().corpus_score(lines, [FIRST, SECOND]).score for lines in (FIRST, TEXTS)]
    assert delta.value == pytest.approx(scores[1] - scores[0])
