"""What `creamtea compare` plans of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.study.comparison import comparison


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.XML", "a.sgm.gz"])
def test_files_that_are_not_of_text_alone_are_refused(tmp_path: Path, name: str) -> None:
    """WMT's outputs of 2025 are JSON Lines: their braces and keys were scored as words."""
    source, reference = (written(tmp_path / name, "x\n") for name in ("src.en", "ref.de"))
    with pytest.raises(InputError, match=r"not a file of text alone.*jq -r \.hypothesis"):
        comparison(source, [reference], [written(tmp_path / name, "{}\n")])


def test_files_are_found_behind_a_link_to_the_sources_folder(tmp_path: Path) -> None:
    """Where `..` leads from the folder itself, not from the link."""
    source = written(tmp_path / "disk" / "deep" / "data" / "src.en", "tea\n")
    reference = written(source.with_name("ref.de"), "Tee\n")
    output = written(tmp_path / "work" / "out" / "a.de", "Tee!\n")
    link = tmp_path / "work" / "data"
    link.symlink_to(source.parent)
    assert comparison(link / source.name, [reference], [output]).plan().steps


def test_one_more_file_from_anywhere_computes_only_what_is_new(tmp_path: Path) -> None:
    source, reference = (
        written(tmp_path / "data" / "src.en", "tea\n"),
        written(tmp_path / "data" / "ref.de", "Tee\n"),
    )
    first = written(tmp_path / "data" / "a.de", "Tee!\n")
    others = [
        written(tmp_path / "data" / "out" / "b.de", "Kaffee\n"),
        written(tmp_path / "elsewhere" / "c.de", "Te\n"),
    ]
    before = {step.key for step in comparison(source, [reference], [first]).plan().steps}
    outputs = [first]
    for other in others:
        outputs.append(other)
        after = {step.key for step in comparison(source, [reference], outputs).plan().steps}
        assert before < after
        before = after


def test_files_of_one_name_are_told_apart_by_their_endings_or_their_folders(tmp_path: Path) -> None:
    source, reference = (written(tmp_path / name, f"{name}\n") for name in ("src.en", "ref.de"))

    def names(*paths: str) -> list[str]:
        outputs = [written(tmp_path / path, f"{path}\n") for path in paths]
        return list(comparison(source, [reference], outputs).study.systems)

    assert names("wmt/out.1", "wmt/out.2", "b.de") == ["out.1", "out.2", "b"]
    assert names("one/gpt.de", "two/gpt.de") == ["one-gpt", "two-gpt"]
    assert names("one/gpt.de", "one/gpt.txt.gz", "two/gpt.de") == ["one-gpt.de", "gpt.txt.gz", "two-gpt.de"]


def test_mistakes_name_what_was_given(tmp_path: Path) -> None:
    source, reference, output = (
        written(tmp_path / "data" / name, f"{name}\n") for name in ("src.en", "ref.de", "a.de")
    )
    missing = tmp_path / "elsewhere" / "b.de"
    with pytest.raises(InputError) as told:
        comparison(source, [reference], [output, missing]).plan()
    assert str(told.value).startswith(f'{missing}: found "{str(missing)[:20]}')
    assert ": no such file, allowed a text file" in str(told.value)  # and no path with `..` in it
    with pytest.raises(InputError, match=r'^--name: found "a b", allowed a name of letters, digits and '):
        comparison(source, [reference], [output], name="a b")
    with pytest.raises(InputError, match=r"^--metrics: a name is missing between the commas"):
        comparison(source, [reference], [output], metrics=["bleu", ""])
