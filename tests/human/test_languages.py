"""Languages are shown by their names."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.languages import ending, guessed, language, pair, parted


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
