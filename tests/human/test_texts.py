"""Texts from files: mt-metrics-eval's folder and WMT's JSON Lines as a test set; languages by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from media_files import png
from ready_campaigns import draft_campaign

from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.human.making.campaign_file import load_campaign
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.settings import TextsBlock
from creamtea.human.making.texts import Texts, read_texts
from creamtea.human.rating.drawing import page_ahead
from creamtea.languages import ending, guessed, language, pair, parted
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Item


def write(path: Path, *lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """mt-metrics-eval's layout, with a line separator that is no line end, and another direction."""
    write(tmp_path / "sources/en-de.txt", "one\u2028more", "two", "three")
    write(tmp_path / "documents/en-de.docs", "news\td1", "news\td1", "chat\td2")
    write(tmp_path / "references/en-de.refA.txt", "eins", "zwei", "drei")
    write(tmp_path / "references/en-de.refB.txt", "Eins", "", "Drei")
    write(tmp_path / "references/en-cs.refA.txt", "jedna")
    write(tmp_path / "system-outputs/en-de/B.txt", "b1", "b2", "b3")
    write(tmp_path / "system-outputs/en-de/A.x.txt", "a1", "a2", "")
    return tmp_path


def read(beside: Path, systems: list[str] | None = None, **keys: Any) -> Texts:
    asked = TextsBlock.model_validate({"languages": "en-de"} | keys)
    return read_texts(asked, beside, systems or [], None)


def test_a_folder_of_mt_metrics_eval(folder: Path) -> None:
    texts = read(folder, folder=".")
    assert texts.languages == ("en", "de")
    assert texts.sources == ["one\u2028more", "two", "three"]
    assert texts.outputs == {"A.x": ["a1", "a2", ""], "B": ["b1", "b2", "b3"]}
    assert list(texts.references) == ["refA", "refB"]
    assert texts.documents.names == ("d1", "d1", "d2")
    assert texts.documents.domains == {"d1": "news", "d2": "chat"}
    assert texts.shown_references([2, 1], "test") == [["Eins", "eins"], ["zwei"], ["Drei", "drei"]]
    line = texts.lines("test", texts.documents.names, context=1)[1]
    assert (line.index, line.source, line.reference, line.outputs) == (1, "two", "zwei", ("a2", "b2"))
    assert line.context == ("one\u2028more",)


def test_other_files_and_names_that_look_alike_are_named(folder: Path) -> None:
    (folder / "system-outputs/en-de/._B.txt").write_bytes(b"\0\5\x16\7\xff")  # of a Mac
    write(folder / "system-outputs/en-de/C.out", "c1", "c2", "c3")
    write(folder / "system-outputs/en-de/b.txt", "1", "2", "3")
    write(folder / "documents/en-de.docs", "news\td1", "news\tD1", "chat\td2")
    texts = read(folder, folder=".")
    assert list(texts.outputs) == ["A.x", "B", "b"]
    assert [notice.partition(": ")[2] or notice for notice in texts.notices] == [
        "C.out (1) left out: outputs are SYSTEM.txt",
        "systems 'B' and 'b' look alike or differ in case, and count as different",
        "documents 'd1' and 'D1' look alike or differ in case, and count as different",
    ]


def test_a_document_within_another_of_nearly_the_same_name_is_named(folder: Path) -> None:
    write(folder / "documents/en-de.docs", "news\tmorning", "news\tmornnig", "news\tmorning")
    (notice,) = read(folder, folder=".").notices
    assert "'mornnig' has one segment" in notice
    for other in ("evening", "morning2 "):  # another name; a further document that begins where it ends
        write(folder / "documents/en-de.docs", "news\tmorning", f"news\t{other.strip()}", "news\tnight")
        assert not read(folder, folder=".").notices


def test_files_may_be_named_one_by_one_and_references_be_none(folder: Path) -> None:
    texts = read(
        folder,
        ["B", "refA"],
        sources="sources/en-de.txt",
        outputs="system-outputs/en-de",
        references=["references/en-de.refA.txt"],
    )
    assert texts.outputs == {"B": ["b1", "b2", "b3"], "refA": ["eins", "zwei", "drei"]}
    assert texts.documents is None
    assert read(folder, folder=".", references=[]).references == {}


@pytest.mark.parametrize(
    ("keys", "systems", "message"),
    [
        ({"folder": ".", "languages": "en"}, [], r'texts.languages: "en": give the codes of source and'),
        ({}, [], r"texts.sources: name it, or a folder in mt-metrics-eval's layout"),
        ({"folder": ".", "languages": "en-cs"}, [], r"sources/en-cs.txt: no such file; there are: en-de"),
        ({"folder": "documents"}, [], r"texts.folder: .*documents: it has no sources/PAIR.txt"),
        ({"folder": "wmt"}, [], r"texts.folder: .*wmt: no such folder"),
        ({"folder": "."}, ["B", "A"], r'systems: "A": no outputs of it in en-de; there are: A\.x, B'),
        ({"folder": ".", "outputs": "nowhere"}, [], r"nowhere: No such file or directory: give a folder"),
        ({"folder": ".", "outputs": "documents"}, [], r"documents: no outputs: give a folder with a file"),
        ({"folder": "short"}, [], r"short/documents/en-de.docs: 1 line, and .*sources/en-de.txt has 2"),
        (
            {"folder": ".", "references": ["references/en-de.refA.txt", "./references/en-de.refA.txt"]},
            [],
            r'texts.references: "refA": two files have this name',
        ),
        ({"folder": ".", "references": ["references/en-cs.refA.txt"]}, [], r"en-cs.refA.txt: 1 line, and"),
        (
            {"sources": "short/sources/en-de.txt", "outputs": "system-outputs/en-de"},
            [],
            r"A\.x\.txt: 3 lines; .*B\.txt: 3 lines, and .*en-de\.txt has 2",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_a_remedy(
    folder: Path, keys: dict[str, Any], systems: list[str], message: str
) -> None:
    for name, lines in (("sources/en-de", 2), ("system-outputs/en-de/B", 2)):
        write(folder / f"short/{name}.txt", *["x"] * lines)
    write(folder / "short/documents/en-de.docs", "news\td1")
    with pytest.raises(InputError, match=message):
        read(folder, systems, **keys)


# ---------------------------------------------------------------- WMT's JSON Lines


def test_wmt_2026_has_a_file_per_system_and_references_or_none(tmp_path: Path) -> None:
    name = "WMT26_###_{}_###_eng_Latn_###_{}_###_{}".format
    first, second = name("news", "ces_Latn", "a"), name("speech", "ces_Latn", "b")
    other = name("news", "deu_Latn", "a")
    languages = {"src_lang": "eng_Latn", "tgt_lang": "ces_Latn"}
    reference = {"refPE": {"ref": "c"}}
    write(
        tmp_path / "test.jsonl",
        {"doc_id": first, "domain": "news", **languages, "src_text": "<p>A</p>\n<p>B</p>", "refs": {}},
        {"doc_id": second, "domain": "speech", **languages, "src_text": "C\nC", "refs": reference},
        {"doc_id": other, **languages, "tgt_lang": "deu_Latn", "src_text": "A", "refs": {}},
    )
    for system, hypotheses in {
        "X 1": {first: "<p>a</p>\n<p>b</p>", second: "c", other: "a"},
        "Y": {first: "<p>ab</p>", second: "c c"},
        "only German": {other: "a"},
    }.items():
        lines = ({"doc_id": name, "hypothesis": text, "metadata": {}} for name, text in hypotheses.items())
        write(tmp_path / f"systems/{system}.jsonl", *lines)
    keys = {"sources": "test.jsonl", "outputs": "systems", "languages": "eng_Latn-ces_Latn"}
    texts = read(tmp_path, **keys)
    assert texts.languages == ("eng-Latn", "ces-Latn")
    # Y wrote one paragraph instead of two: this document stays whole, and the organiser hears of it
    assert texts.sources == ["<p>A</p>\n\n<p>B</p>", "C\nC"]
    assert texts.outputs == {"X 1": ["<p>a</p>\n\n<p>b</p>", "c"], "Y": ["<p>ab</p>", "c c"]}
    assert texts.references == {"refPE": ["", "c"]}
    left_out, missing, not_cut = texts.notices
    assert left_out == "without an output of eng_Latn-ces_Latn, and left out: only German"
    assert missing.startswith("reference refPE is missing for 1 of 2 documents")
    assert not_cut.startswith("1 document of 2 not cut into paragraphs")
    assert not_cut.endswith(f"(the first: {first})")
    assert texts.documents.domains == {first: "news", second: "speech"}
    alone = read(tmp_path, ["X 1"], **keys)
    assert alone.sources == ["<p>A</p>", "<p>B</p>", "C\nC"]
    assert alone.documents.names == (first, first, second)
    with pytest.raises(InputError, match=r"allowed: eng_Latn-ces_Latn, eng_Latn-deu_Latn"):
        read(tmp_path, **keys | {"languages": "eng_Latn-cex"})


def test_wmt_2025_names_the_direction_in_the_document(tmp_path: Path) -> None:
    write(
        tmp_path / "test.jsonl",
        *(
            {"doc_id": f"{pair}_#_social_#_17", "src_text": "A\nA\n\nB", "refs": {"refA": {"ref": "a\n\nb"}}}
            for pair in ("en-ja_JP", "en-cs_CZ")
        ),
    )
    write(tmp_path / "o/S.jsonl", {"doc_id": "en-ja_JP_#_social_#_17", "hypothesis": "x\n\ny", "system": "S"})
    write(tmp_path / "o/empty.jsonl", {"doc_id": "en-ja_JP_#_social_#_17", "hypothesis": ""})
    write(tmp_path / "o/T.txt", "x")
    texts = read(tmp_path, sources="test.jsonl", outputs="o", languages="en-ja_JP")
    assert [notice.partition(": ")[2] for notice in texts.notices] == [
        "T.txt (1) left out: outputs are SYSTEM.jsonl or SYSTEM.json"
    ]
    shown = (texts.sources, texts.outputs, texts.references)
    assert shown == (["A\nA", "B"], {"S": ["x", "y"], "empty": ["", ""]}, {"refA": ["a", "b"]})
    assert texts.languages == ("en", "ja-JP")


@pytest.mark.parametrize("start", ["", "WMT25_###_news_###_en_###_de_###_"], ids=["2024", "2025"])
def test_wmt_has_segments_with_their_outputs(tmp_path: Path, start: str) -> None:
    """By `doc_id` sorted as text, so that segment 10 comes before segment 9."""
    write(
        tmp_path / "test.jsonl",
        *(
            {"doc_id": f"{start}d{document}_#_{number}", "src_text": f"s{number}", "scores": {},
             "tgt_text": {"S": f"t{number}", "refA": f"r{number}"}}
            for document, number in ((1, 10), (2, 11), (1, 9))
        ),
    )  # fmt: skip
    texts = read(tmp_path, sources="test.jsonl")
    assert texts.sources == ["s9", "s10", "s11"]
    assert texts.outputs == {"S": ["t9", "t10", "t11"]}
    assert texts.references == {"refA": ["r9", "r10", "r11"]}
    assert texts.documents.names == (f"{start}d1", f"{start}d1", f"{start}d2")


def test_a_document_that_is_not_cut_counts_once_and_a_system_has_all_of_them(tmp_path: Path) -> None:
    lines = [{"doc_id": f"d_#_{number}", "src_text": "a\n\nb", "tgt_text": {"S": "ab"}} for number in (1, 2)]
    write(tmp_path / "test.jsonl", *lines)
    [notice] = read(tmp_path, sources="test.jsonl").notices
    assert notice.startswith("1 document of 1 not cut into paragraphs")
    assert notice.endswith("(the first: d)")
    write(tmp_path / "test.jsonl", lines[0], lines[1] | {"tgt_text": {"S": "t", "T": "t"}})
    with pytest.raises(InputError, match=r"system 'T' has no output of 1 of 2 documents .*the first: d_#_1"):
        read(tmp_path, sources="test.jsonl")
    write(tmp_path / "test.jsonl", lines[0], lines[0])
    with pytest.raises(InputError, match=r"test.jsonl: 1 line with the doc_id of a line before"):
        read(tmp_path, sources="test.jsonl")


def test_nothing_takes_the_place_of_something_else_silently(tmp_path: Path) -> None:
    keys = {"sources": "test.jsonl", "outputs": "o"}
    write(tmp_path / "test.jsonl", {"doc_id": "d", "src_text": "s"}, {"doc_id": "d_#_1", "src_text": "t"})
    outputs = [{"doc_id": "d_#_1", "hypothesis": "y"}, {"doc_id": "d", "hypothesis": "x"}]
    write(tmp_path / "o/S.jsonl", *outputs)
    assert read(tmp_path, **keys).outputs == {"S": ["x", "y"]}  # what has no number comes first
    write(tmp_path / "o/T.jsonl", {"doc_id": "elsewhere", "hypothesis": "z"})
    assert read(tmp_path, **keys).notices == ["without an output of en-de, and left out: T"]
    with pytest.raises(InputError, match=r"texts.references: .*test.jsonl has its own"):
        read(tmp_path, **keys, references=["r.txt"])
    write(tmp_path / "o/S.json", *outputs)
    with pytest.raises(InputError, match=r'texts.outputs: "S": two files have outputs of it'):
        read(tmp_path, **keys)
    write(tmp_path / "o/S.jsonl", *outputs, outputs[0])
    with pytest.raises(InputError, match=r"S.jsonl: 1 line with the doc_id of a line before"):
        read(tmp_path, **keys)


# ---------------------------------------------------------------- a campaign on them


def request_of(folder: Path, text: str, database: Database) -> CampaignRequest:
    (folder / "c.yaml").write_text(text)
    return load_campaign(folder / "c.yaml").request(database, ArtefactStore(str(folder / "artefacts")))


def test_a_campaign_without_a_study(folder: Path, database: Database) -> None:
    text = "name: c\ntexts: {folder: ., languages: en-de}\nprotocol: {kind: esa, show_reference: [2]}\n"
    request = request_of(folder, text + "controls: {bad_references: 0, repeats: 0}\n", database)
    made = draft_campaign(database, "c", request)
    assert (made.study, made.systems, made.test_set, made.items) == (None, ["A.x", "B"], "test", 6)
    with database.session() as session:
        row = find_campaign(session, "c")
        assert row.settings["domains"] == {"d1": "news", "d2": "chat"}
        items = session.query(Item).filter(Item.campaign_id == row.id, Item.segment_index == 0).all()
    assert {(item.source, item.document, tuple(item.references)) for item in items} == {
        ("one\u2028more", "d1", ("Eins",))
    }
    again = request_of(folder, text + "systems: [B, refB]\n", database)
    with pytest.raises(InputError, match="that is system 'refB', which takes part"):
        draft_campaign(database, "again", again)


def test_instructions_by_domain_are_with_its_items(folder: Path, database: Database) -> None:
    text = "name: c\ntexts: {folder: ., languages: en-de}\nprotocol: {kind: da}\n"
    text += "controls: {bad_references: 0, repeats: 0}\n"
    text += "raters: {domain_instructions: {chat: 'As *friends* talk.'}}\n"
    draft_campaign(database, "c", request_of(folder, text, database))
    with database.session() as session:
        campaign = find_campaign(session, "c")
        pages = [page_ahead(session, campaign, number) for number in range(6)]
    found = {(work.source, work.instructions) for work in pages if work is not None}
    assert found == {("one\u2028more", ""), ("two", ""), ("three", "As *friends* talk.")}
    refused = request_of(folder, text.replace("{chat", "{chats"), database)
    with pytest.raises(InputError, match=r'of domain "chats"; there are: .*did you mean chat\?'):
        draft_campaign(database, "again", refused)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("baseline: C", "4: baseline: 'C' does not take part"),
        ("delta: 101", "4: delta: scores lie at most 100 points apart"),
        ("study: s\ntest_set: t\nsystems: [a, b]", "2: texts: the outputs are those of the study"),
        ("raters: {disputed_from: 101}", "4: raters.disputed_from: scores"),
        ("raters: {domain_instructions: {sport: x}}", "4: raters.domain_instructions: no document"),
        ("sample: {kind: stratified, strata: [length], items: 1}", "4: .* strata by length for 1 segment"),
        ("controls: {repeats: 50}", "4: .* repeats too many"),
        ("practice: [{source: x, outputs: [{text: y}], explanation: z}]", "4: practice item 1, .*required"),
        ("media: seen.jsonl", "4: media: seen.jsonl, line 1: there is no segment 9"),
        ("raters: {instructions: no.md}", "4: raters.instructions: .*no.md: no such file"),
        ("raters: {domain_instructions: {news: no.md}}", "4: raters.domain_instructions.news: .*no.md"),
    ],
)
def test_a_file_is_refused_before_it_is_created(folder: Path, more: str, place: str) -> None:
    write(folder / "seen.jsonl", {"segment": 9, "file": "a.png"})
    (folder / "a.png").write_bytes(png())
    write(folder / "c.yaml", "name: c", "texts: {folder: ., languages: en-de}", "protocol: {kind: da}", more)
    with pytest.raises((InputError, StudyErrors), match=rf"c\.yaml:{place}"):
        load_campaign(folder / "c.yaml").check()


def test_a_file_of_texts_is_checked_without_a_study(folder: Path) -> None:
    keys = ("protocol: {kind: da}", "controls: {bad_references: 1, repeats: 0}")
    write(folder / "news.md", "Formal, *please*.")
    write(folder / "c.yaml", "name: c", "texts: {folder: ., languages: en-de}", *keys)
    loaded = load_campaign(folder / "c.yaml", ["raters.domain_instructions={news: news.md}"])
    assert loaded.check() == ["A.x", "B"]
    assert loaded.campaign.raters.domain_instructions == {"news": "Formal, *please*.\n"}


def test_texts_that_are_unusual_are_noted(folder: Path) -> None:
    write(folder / "sources/en-de.txt", "one", " ", "three")
    write(folder / "system-outputs/en-de/C.txt", "b1", "b2", "b3")
    notices = read(folder, folder=".").notices
    assert any(notice.startswith("1 segment without a source text (2)") for notice in notices)
    assert any(notice.startswith("systems B and C have the same outputs") for notice in notices)
    assert not read(folder, ["A.x", "B"], folder=".").notices[1:]


# ---------------------------------------------------------------- languages, by code, file and name


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("de", "German (de)"),
        ("ces", "Czech (ces)"),  # ISO 639-2, as in WMT's files
        ("pt-BR", "Brazilian Portuguese (pt-BR)"),
        ("zh-Hant", "Traditional Chinese (zh-Hant)"),
        ("sr-Latn", "Serbian (sr-Latn)"),
        ("tlh", "Klingon (tlh)"),
        ("und", "Unknown language (und)"),
        ("qzz", "qzz"),
        ("", ""),
        ("../de", "../de"),
    ],
)
def test_a_known_code_has_a_name(code: str, shown: str) -> None:
    assert language(code) == shown


@given(st.text(max_size=20))
def test_the_code_is_always_there(code: str) -> None:
    assert language(code) == code or language(code).endswith(f" ({code})")
    assert pair("en", "de") == "English (en) → German (de)"


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("test.en", "gpt.de", ("en", "de")),
        ("test.en.gz", "test.DE", ("en", "de")),
        ("t.en", "t.zh-CN", ("en", "zh-CN")),
        ("t.en", "t.zh_TW.gz", ("en", "zh_TW")),
        ("t.eng_Latn", "t.jpn_Jpan", ("eng_Latn", "jpn_Jpan")),
        ("en-zh_CN.src", "en-zh_CN.ref", ("en", "zh_CN")),
        ("wmt.zh-TW-en.zh-TW", "wmt.zh-TW-en.en", ("zh-TW", "en")),
        ("t.en", "t.en-de", None),  # a pair, not English in Germany
        ("en-de.txt", "en-de.refA.txt", ("en", "de")),
        ("newstest2014-fra-eng-src", "newstest2014-fra-eng-ref", ("fra", "eng")),
        ("en-de.en", "en-de.de", ("en", "de")),
        ("dev-en-de.src", "dev-en-de.ref", ("en", "de")),
        ("en-de.txt", "de-en.txt", None),
        ("test.en", "test.en", None),
        ("source.txt", "reference.txt", None),
        ("my-qzz.txt", "my-qzz.out", None),
        ("Ben-dex.txt", "Ben-dex.txt", None),
    ],
)
def test_languages_by_the_names_of_files(source: str, target: str, codes: tuple[str, str] | None) -> None:
    assert guessed(Path(source), Path(target)) == codes


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("en-de", ("en", "de")),
        ("en-xx", ("en", "xx")),
        ("en-zh-CN", ("en", "zh-CN")),
        ("en-zh-cn", ("en", "zh-CN")),
        ("zh_TW-ja-JP", ("zh_TW", "ja-JP")),
        ("pt-BR-en", ("pt-BR", "en")),
        ("zho_Hans-es-419", ("zho_Hans", "es-419")),
        ("en", None),
        ("en-de-fr", None),
        ("en_de", None),
    ],
)
def test_a_pair_is_parted(text: str, codes: tuple[str, str] | None) -> None:
    assert parted(text) == codes


@pytest.mark.parametrize(
    ("name", "code"), [("a/train.cs.gz", "cs"), ("train.txt", ""), ("train", ""), ("en", "")]
)
def test_the_ending_of_a_name(name: str, code: str) -> None:
    assert ending(Path(name)) == code
