"""check as a user meets it: formats, rules that count, comments that suppress, fixes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from forked_cli import run_cli

BAD = "vllm serve Qwen/Qwen3-8B --max-model-len 131072 --enable-prefix-caching True\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "serve.sh"
    path.write_text(BAD)
    return path


def test_the_table_shows_the_line_and_the_caret(script: Path) -> None:
    done = run_cli("check", "serve.sh", cwd=script.parent)
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "serve.sh  2 errors, 0 warnings, 0 remarks"
    at = lines.index("error CTX001 max-model-len-above-model-limit  serve.sh:1:42")
    source, caret = lines[at + 1 : at + 3]
    assert "--max-model-len 131072" in source
    assert source[caret.index("^") :].startswith("131072")
    assert re.match(r"2 errors, 0 warnings, 0 remarks; \d+ rules not checked \(vLLM ", lines[-1])


@pytest.mark.parametrize("form", ["json", "yaml", "sarif", "github", "junit", "gitlab"])
def test_every_format_exits_alike_and_prints_the_result_only(script: Path, form: str) -> None:
    done = run_cli("check", "serve.sh", "--format", form, cwd=script.parent)
    assert done.returncode == 1
    found = {
        "json": lambda text: len(json.loads(text)["findings"]),
        "yaml": lambda text: len(yaml.safe_load(text)["findings"]),
        "sarif": lambda text: len(json.loads(text)["runs"][0]["results"]),
        "github": lambda text: text.count("::error "),
        "junit": lambda text: int(ET.fromstring(text.encode()).get("failures", "0")),  # noqa: S314
        "gitlab": lambda text: len(json.loads(text)),
    }[form](done.stdout)
    assert found == 2
    assert done.stderr.startswith("2 errors" if form == "gitlab" else "")
    assert (
        run_cli("check", "serve.sh", "-f", form, "--fail-on", "never", cwd=script.parent).returncode
        == 0
    )


def test_select_and_ignore(script: Path) -> None:
    def rules(*words: str) -> set[str]:
        done = run_cli("check", str(script), "--format", "json", *words)
        return {finding["rule"] for finding in json.loads(done.stdout)["findings"]}

    assert rules() == {"CTX001", "FLG002"}
    assert rules("--select", "FLG") == {"FLG002"}
    assert rules("--ignore", "FLG002,KV", "--ignore", "ctx001") == set()
    assert rules("--select", "max-model-len-above-model-limit,KV") == {"CTX001"}
    report = json.loads(run_cli("check", str(script), "-f", "json", "--select", "KV").stdout)
    assert report["rules"] == ["KV001", "KV002", "KV003", "KV004"]
    assert {skipped["rule"] for skipped in report["not_checked"]} <= set(report["rules"])


def test_a_rule_that_is_none_is_a_usage_error(script: Path) -> None:
    done = run_cli("check", str(script), "--ignore", "FLG02")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: no rule or family of rules is called 'FLG02'" in done.stderr
    assert "--> --ignore" in done.stderr
    assert "FLG002" in done.stderr


def test_a_file_of_options(script: Path, tmp_path: Path) -> None:
    (tmp_path / ".vllm-advisor.yaml").write_text("ignore: [CTX001, FLG]\n")
    assert run_cli("check", str(script)).returncode == 0
    assert run_cli("check", str(script), "--no-config").returncode == 1
    assert run_cli("check", str(script), "--ignore", "CTX001").returncode == 1  # FLG counts again
    other = tmp_path / "other.yaml"
    other.write_text("select: [CTX]\nfail_on: never\n")
    done = run_cli("check", str(script), "--config", str(other), "-f", "json")
    assert done.returncode == 0
    assert [f["rule"] for f in json.loads(done.stdout)["findings"]] == ["CTX001"]
    assert (
        run_cli("check", str(script), "--config", str(other), "--fail-on", "error").returncode == 1
    )


def test_suppressed_findings_are_listed_and_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    comment = '# vllm-advisor: ignore=CTX001,FLG002 reason="stretched; 100% sure"\n'
    path.write_text(comment + BAD)
    done = run_cli("check", "serve.sh", cwd=tmp_path)
    assert done.returncode == 0
    assert "0 errors, 0 warnings, 0 remarks; 2 suppressed; " in done.stdout
    assert (
        "- CTX001 max-model-len-above-model-limit serve.sh:2:42: stretched; 100% sure"
        in done.stdout
    )
    data = json.loads(run_cli("check", "serve.sh", "-f", "json", cwd=tmp_path).stdout)
    assert data["findings"] == []
    assert {s["rule"]: s["reason"] for s in data["suppressed"]} == {
        "CTX001": "stretched; 100% sure",
        "FLG002": "stretched; 100% sure",
    }
    assert data["suppressed"][0]["suppressed_at"] == {"file": "serve.sh", "line": 1, "column": 1}
    sarif = json.loads(run_cli("check", "serve.sh", "-f", "sarif", cwd=tmp_path).stdout)
    assert [len(r["suppressions"]) for r in sarif["runs"][0]["results"]] == [1, 1]
    assert (
        "::notice file=serve.sh"
        in run_cli("check", "serve.sh", "-f", "github", cwd=tmp_path).stdout
    )


def test_comments_without_reason_or_effect_are_warnings(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text("# vllm-advisor: ignore=CTX001,PAR001\n" + BAD.replace(" True", ""))
    assert run_cli("check", str(path)).returncode == 0
    done = run_cli("check", str(path), "--fail-on", "warning")
    assert done.returncode == 1
    assert "warning SUP001 suppression-without-reason" in done.stdout
    assert "no finding of PAR001 here" in done.stdout
    assert run_cli("check", str(path), "--fail-on", "warning", "--ignore", "SUP").returncode == 0


def test_diff_shows_and_fix_writes(script: Path) -> None:
    shown = run_cli("check", "serve.sh", "--diff", cwd=script.parent)
    assert shown.returncode == 1
    assert shown.stdout.splitlines()[:2] == ["--- a/serve.sh", "+++ b/serve.sh"]
    assert f"+{BAD.replace(' True', '')}" in shown.stdout
    assert shown.stderr == "1 of 2 findings can be fixed safely\n"
    assert script.read_text() == BAD
    done = run_cli("check", "serve.sh", "--fix", cwd=script.parent)
    assert done.returncode == 1  # what remains counts
    assert done.stderr == "fixed 1 of 2 findings\nwrote serve.sh\n"
    assert "CTX001" in done.stdout
    assert "FLG002" not in done.stdout
    assert script.read_text() == BAD.replace(" True", "")
    again = run_cli("check", "serve.sh", "--diff", "--fail-on", "never", cwd=script.parent)
    assert (again.returncode, again.stdout) == (0, "")


def test_fix_needs_a_file_and_excludes_diff(script: Path) -> None:
    piped = run_cli("check", "-", "--fix", stdin=BAD)
    assert piped.returncode == 2
    assert "--diff shows them" in piped.stderr
    assert "+vllm serve" in run_cli("check", "-", "--diff", stdin=BAD).stdout
    both = run_cli("check", str(script), "--fix", "--diff")
    assert both.returncode == 2
    assert "exclude each other" in both.stderr


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "a\n::error ::b.sh"
    path.write_text("vllm serve m '--x]]>\n::warning ::pwned\x1b[31m'\n")
    for form in ("github", "junit", "table"):
        out = run_cli("check", path.name, "-f", form, "--no-config", cwd=tmp_path).stdout
        assert "\x1b" not in out
        assert not [line for line in out.splitlines() if line.startswith("::error ::b")]
        assert not [line for line in out.splitlines() if line.startswith("::warning ::pwned")]
        if form == "junit":
            ET.fromstring(out.encode())  # noqa: S314


def test_rules_lists_and_explains() -> None:
    table = run_cli("rules").stdout
    assert "KV001  context-exceeds-kv-cache " in table
    family = run_cli("rules", "flg").stdout.splitlines()
    assert [line.split()[0] for line in family][:4] == ["FLG001", "FLG002", "FLG003", "FLG004"]
    page = run_cli("rules", "unknown-flag").stdout
    assert page.startswith("FLG001 unknown-flag (error)\n\nA flag that this version")
    assert "## Fix" in page
    data = json.loads(run_cli("rules", "--format", "json").stdout)
    assert data["schema_version"] == "1"
    assert len(data["rules"]) == len(table.splitlines())
    one = next(rule for rule in data["rules"] if rule["id"] == "KV001")
    assert yaml.safe_load(run_cli("rules", "KV001", "-f", "yaml").stdout)["rules"] == [one]
    unknown = run_cli("rules", "KV01")
    assert unknown.returncode == 2
    assert "KV001" in unknown.stderr
