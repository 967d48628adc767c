"""Safe fixes: the diff, the files that are written, and what is left alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vllm_advisor.api import writing
from vllm_advisor.api.check_report import CheckReport
from vllm_advisor.api.checking import check
from vllm_advisor.api.fixing import fixes_of
from vllm_advisor.api.writing import Rewrite, rewrite_files
from vllm_advisor.errors import InputError, OutputError
from vllm_advisor.types.decision import Location
from vllm_advisor.types.edit import Edit
from vllm_advisor.types.finding import Finding, Severity
from vllm_advisor.types.source import Confidence

SCRIPT = """\
#!/bin/bash
# start it
vllm serve Qwen/Qwen3-8B \\
  --enable-prefix-caching True --dtype=BF16 \\
  --nonsense 3   # stays
"""
FIXED = SCRIPT.replace(" True", "").replace("BF16", "bfloat16")


def finding(*edits: Edit) -> Finding:
    return Finding(
        rule="FLG001",
        name="unknown-flag",
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        message="m",
        location=Location(file="f", line=1),
        fix="x",
        edits=edits,
    )


def report(text: str, *findings: Finding) -> CheckReport:
    return CheckReport(
        vllm_version="0.33.0", findings=findings, not_checked=(), figures={}, texts={"f": text}
    )


def edit(column: int, old: str, new: str, *, safe: bool = True) -> Edit:
    return Edit(file="f", line=1, column=column, old=old, new=new, safe=safe)


def test_a_script_is_fixed_once_and_for_all(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text(SCRIPT)
    path.chmod(0o751)
    before = check(path)
    fixes = fixes_of(before)
    assert fixes.count == 2
    fixes.write()
    assert path.read_text() == FIXED
    assert path.stat().st_mode & 0o777 == 0o751
    assert [p.name for p in tmp_path.iterdir()] == ["serve.sh"]
    after = check(path)
    assert [f.rule for f in after.findings] == ["FLG001"]
    assert fixes_of(after).files == ()
    assert fixes_of(after).diff() == ""


def test_flags_of_another_version_get_their_name_here(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text("vllm serve Qwen/Qwen3-8B --disable-prefix-caching\n")
    fixes_of(check(path, vllm_version="0.32.0")).write()
    assert path.read_text() == "vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching\n"
    assert "FLG001" not in {f.rule for f in check(path, vllm_version="0.32.0").findings}


@pytest.mark.parametrize("ending", ["\n", "", "\r\n"])
def test_patch_makes_of_the_diff_what_fix_writes(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    path = folder / "serve.sh"
    text = SCRIPT.removesuffix("\n").replace("\n", ending or "\n") + ending
    path.write_bytes(text.encode())
    fixes = fixes_of(check("serve.sh", text=text))
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, input=fixes.diff().encode(), check=False, capture_output=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == fixes.files[0].after.encode()
    assert (
        path.read_bytes()
        == FIXED.removesuffix("\n").replace("\n", ending or "\n").encode() + ending.encode()
    )


def test_findings_that_change_the_same_place_are_fixed_one_after_the_other() -> None:
    fixes = fixes_of(
        report("abcd", finding(edit(1, "abc", "x")), finding(edit(3, "cd", "y"), edit(1, "", "#")))
    )
    assert fixes.count == 1
    assert [file.after for file in fixes.files] == ["xd"]


def test_all_edits_of_a_finding_or_none() -> None:
    both = finding(edit(1, "a", "x"), edit(4, "d", "y"))
    assert [f.after for f in fixes_of(report("abcd", both)).files] == ["xbcy"]
    unsafe = finding(edit(1, "a", "x"), edit(4, "d", "y", safe=False))
    assert fixes_of(report("abcd", unsafe)).files == ()


def test_suppressed_findings_are_not_fixed() -> None:
    text = '# vllm-advisor: ignore=FLG003 reason="x"\nvllm serve Qwen/Qwen3-8B --dtype bf16\n'
    found = check("serve.sh", text=text)
    assert [s.finding.rule for s in found.suppressed] == ["FLG003"]
    assert fixes_of(found).files == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [("-", "vllm serve m --dtype bf16"), (["vllm", "serve", "m", "--dtype", "bf16"], None)],
)
def test_what_is_no_file_is_shown_and_not_written(source, text: str | None) -> None:
    fixes = fixes_of(check(source, text=text))
    assert "+vllm serve m --dtype bfloat16" in fixes.diff()
    with pytest.raises(InputError, match="no file to write"):
        fixes.write()


def test_a_file_that_has_changed_since_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text(SCRIPT)
    fixes = fixes_of(check(path))
    path.write_text("mine")
    with pytest.raises(OutputError, match="changed since"):
        fixes.write()
    assert path.read_text() == "mine"


def test_all_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second move fails: the first file gets its text back."""
    paths = [tmp_path / "a.sh", tmp_path / "deep" / "b.sh"]
    paths[1].parent.mkdir()
    for path in paths:
        path.write_text("old")
    moves = []
    move = Path.replace

    def fail(self: Path, target: Path) -> Path:
        moves.append(target)
        if len(moves) == 2:
            raise OSError(28, "No space left on device")
        return move(self, target)

    monkeypatch.setattr(writing.Path, "replace", fail)
    with pytest.raises(OutputError, match="No space left"):
        rewrite_files([Rewrite(path=str(p), before="old", after="new") for p in paths])
    monkeypatch.undo()
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert moves[0] == paths[0].resolve()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sh", "deep"]


def test_links_are_followed(tmp_path: Path) -> None:
    real = tmp_path / "real" / "serve.sh"
    real.parent.mkdir()
    real.write_text("old")
    link = tmp_path / "serve.sh"
    link.symlink_to(real)
    rewrite_files([Rewrite(path=str(link), before="old", after="new")])
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_fingerprints_stay_when_lines_are_added_above() -> None:
    command = "vllm serve Qwen/Qwen3-8B --nonsense 1\n"
    prints = [
        [f["fingerprint"] for f in check("s.sh", text=text).to_dict()["findings"]]
        for text in (command, f"# more\n\n{command}", command + command)
    ]
    assert prints[0] == prints[1]
    assert prints[2][0] == prints[0][0]
    assert len(set(prints[2])) == 2  # equal lines are told apart
    other = check("t.sh", text=command).to_dict()["findings"][0]["fingerprint"]
    assert other != prints[0][0]


def test_edits_that_do_not_stand_at_their_place_are_not_reported() -> None:
    text = 'D=bf16\nvllm serve m --dtype "$D"\n'
    (found,) = check("s.sh", text=text).findings
    assert (found.rule, found.edits) == ("FLG003", ())
