"""What `creamtea compare` plans of files."""

from __future__ import annotations

from pathlib import Path

from creamtea.study.comparison import comparison


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


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
