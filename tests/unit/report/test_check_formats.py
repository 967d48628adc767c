"""check's formats for machines: their structure, and that no text of a user breaks them."""

from __future__ import annotations

import json
import os
import re
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor.report.check_summary import summary
from vllm_advisor.report.excerpt import excerpt
from vllm_advisor.report.github import workflow_commands
from vllm_advisor.report.gitlab import code_quality
from vllm_advisor.report.junit import junit_xml
from vllm_advisor.report.sarif import sarif_log
from vllm_advisor.report.structured import to_json, to_yaml
from vllm_advisor.rules.registry import all_rules

TESTS = Path(__file__).parents[2]
SCHEMAS = [TESTS / "data" / "sarif-2.1.0-subset.json"]
if "SARIF_SCHEMA" in os.environ:
    SCHEMAS.append(Path(os.environ["SARIF_SCHEMA"]))
VALIDATORS = [
    jsonschema.validators.validator_for(schema)(schema)
    for schema in (json.loads(path.read_text("utf-8")) for path in SCHEMAS)
]

HOSTILE = [
    "::error file=x,line=1::pwned",
    "a\n::set-output name=x::y\r\n",
    "##[error]x",
    "]]></failure><testcase/>",
    "\"&<>'",
    "\x00\x07\x1b[31m\x7f\x85\u2028\u202e",
    "\udcff\udc80",
    "100% sure, at: a,b",
    "\U0001f600 caf\u00e9",
]
_words = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE))
_paths = st.one_of(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=20),
    st.sampled_from(
        [
            "deploy/serve me.sh",
            "a%20b/c.sh",
            "../up.sh",
            "/tmp/x.sh",
            "-",
            "\ud800",
            "../\udcff\ud800",
        ]
    ),
)


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "rule": "KV001",
        "name": "context-exceeds-kv-cache",
        "severity": "error",
        "confidence": "high",
        "message": "one request needs 16.00 GiB",
        "location": {"file": "deploy/serve.sh", "line": 3, "column": 5},
        "evidence": {"needed_bytes": 17179869184},
        "fix": "--max-model-len 65520",
        "edits": [],
        "fingerprint": "0" * 32,
        **changes,
    }


def suppressed(reason: str = "tested by hand", **changes: Any) -> dict[str, Any]:
    place = {"file": "deploy/serve.sh", "line": 1, "column": 1}
    return {**finding(**changes), "reason": reason, "suppressed_at": place}


def report(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "1",
        "vllm_version": "0.33.0",
        "findings": [finding(), finding(rule="SUP001", name="x", severity="warning", fix="")],
        "suppressed": [suppressed(rule="FLG001", name="unknown-flag")],
        "not_checked": [{"rule": "PAR002", "reason": "the GPU is not known; give --gpu"}],
        "rules": ["FLG001", "KV001", "KV002", "PAR002", "SUP001"],
        "figures": {},
        **changes,
    }


@st.composite
def reports(draw: st.DrawFn) -> dict[str, Any]:
    """Reports whose every text is a user's."""

    def one(**more: Any) -> dict[str, Any]:
        return finding(
            severity=draw(st.sampled_from(("error", "warning", "info"))),
            message=draw(_words) or "x",
            fix=draw(_words),
            evidence={"value": draw(_words)},
            location={
                "file": draw(_paths),
                "line": draw(st.integers(1, 9)),
                "column": draw(st.integers(1, 9)),
            },
            **more,
        )

    kept_back = {**one(), "reason": draw(_words), "suppressed_at": one()["location"]}
    return report(
        findings=[one() for _ in range(draw(st.integers(0, 2)))],
        suppressed=[kept_back] * draw(st.integers(0, 1)),
        not_checked=[{"rule": "KV002", "reason": draw(_words)}] * draw(st.integers(0, 1)),
    )


def accepted(log: dict[str, Any]) -> None:
    as_read = json.loads(to_json(log))
    for validator in VALIDATORS:
        validator.validate(as_read)


# --- SARIF


def test_sarif_has_every_rule_with_its_page() -> None:
    log = sarif_log(report())
    accepted(log)
    driver = log["runs"][0]["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == [rule.id for rule in all_rules()]
    for described, rule in zip(driver["rules"], all_rules(), strict=True):
        assert described["shortDescription"]["text"] == rule.summary
        assert "## Fix" in described["help"]["markdown"]
        assert "\n" not in described["fullDescription"]["text"]
        assert described["defaultConfiguration"]["level"] == str(rule.severity).replace(
            "info", "note"
        )


def test_sarif_results_point_at_their_rule_and_place() -> None:
    run = sarif_log(report())["runs"][0]
    first, second, kept_back = run["results"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert first["level"] == "error"
    assert first["message"]["text"] == "one request needs 16.00 GiB. Fix: --max-model-len 65520"
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "deploy/serve.sh", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 3, "startColumn": 5},
            }
        }
    ]
    assert second["level"] == "warning"
    assert [r["suppressions"] for r in (first, second)] == [[], []]
    (suppression,) = kept_back["suppressions"]
    assert suppression["kind"] == "inSource"
    assert suppression["justification"] == "tested by hand"


def test_sarif_says_what_was_not_checked() -> None:
    run = sarif_log(report())["runs"][0]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "note"
    assert notification["message"]["text"].startswith("PAR002 was not checked: the GPU is not")
    index = notification["associatedRule"]["index"]
    assert run["tool"]["driver"]["rules"][index]["id"] == "PAR002"


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("deploy/serve me.sh", "deploy/serve%20me.sh"),
        ("./a/../b.sh", "b.sh"),
        ("caf\u00e9#1?.sh", "caf%C3%A9%231%3F.sh"),
        ("100%.sh", "100%25.sh"),
        ("bad\udcff.sh", "bad%FF.sh"),  # a byte that is no UTF-8, as Python gives it
        ("a:b.sh", "a%3Ab.sh"),  # else it would be a scheme
    ],
)
def test_sarif_paths_are_relative_uris(file: str, uri: str) -> None:
    log = sarif_log(report(findings=[finding(location={"file": file, "line": 1, "column": 1})]))
    accepted(log)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def test_sarif_of_a_file_in_the_working_folder_given_in_full(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "x.sh", tmp_path.parent / "y.sh"
    found = [
        finding(location={"file": str(path), "line": 1, "column": 1}) for path in (inside, outside)
    ]
    results = sarif_log(report(findings=found))["runs"][0]["results"]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results[:2]]
    assert uris == ["x.sh", outside.resolve().as_uri()]


def test_sarif_of_standard_input_has_no_file() -> None:
    log = sarif_log(report(findings=[finding(location={"file": "-", "line": 1, "column": 1})]))
    accepted(log)
    assert log["runs"][0]["results"][0]["locations"] == [{"logicalLocations": [{"name": "-"}]}]


def test_sarif_carries_safe_edits_only() -> None:
    edit = {
        "file": "a.sh",
        "start": {"line": 1, "column": 3},
        "end": {"line": 1, "column": 5},
        "old": "ab",
        "new": "c",
        "safe": True,
    }
    log = sarif_log(
        report(findings=[finding(edits=[edit]), finding(edits=[edit, {**edit, "safe": False}])])
    )
    accepted(log)
    safe, unsafe, _ = log["runs"][0]["results"]
    assert "fixes" not in unsafe
    (change,) = safe["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 1, "startColumn": 3, "endLine": 1, "endColumn": 5},
            "insertedContent": {"text": "c"},
        }
    ]


# --- GitHub

_COMMAND = re.compile(r"::(error|warning|notice) ([^\n\r:]*)::([^\n\r]*)")


def github(check: dict[str, Any]) -> list[tuple[str, dict[str, str], str]]:
    """Commands as the runner reads them: a line each, then unescaped."""
    read = []
    for line in workflow_commands(check).split("\n")[:-1]:
        command = _COMMAND.fullmatch(line)
        assert command, line
        pairs = (pair.partition("=") for pair in command[2].split(","))
        properties = {key: unescaped(value) for key, _, value in pairs}
        read.append((command[1], properties, unescaped(command[3])))
    return read


def unescaped(text: str) -> str:
    for code, char in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_github_has_a_command_per_finding_and_one_for_the_rest() -> None:
    first, second, kept_back, rest = github(report())
    assert first == (
        "error",
        {
            "file": "deploy/serve.sh",
            "line": "3",
            "col": "5",
            "title": "KV001 context-exceeds-kv-cache",
        },
        "one request needs 16.00 GiB | fix: --max-model-len 65520",
    )
    assert second[0] == "warning"
    assert kept_back[:2] == (
        "notice",
        {
            "file": "deploy/serve.sh",
            "line": "3",
            "col": "5",
            "title": "suppressed: FLG001 unknown-flag",
        },
    )
    assert kept_back[2].endswith("(tested by hand)")
    assert rest[0] == "notice"
    assert "1 suppressed; 1 rule not checked" in rest[2]
    assert "PAR002 not checked: the GPU is not known" in rest[2]


def test_github_escapes_what_has_a_meaning() -> None:
    found = finding(
        message="50% of\r\nit: a,b",
        location={"file": "a:b,c%\n.sh", "line": 1, "column": 1},
        fix="",
    )
    line = workflow_commands(report(findings=[found])).split("\n")[0]
    assert line == (
        "::error file=a%3Ab%2Cc%25%0A.sh,line=1,col=1,title=KV001 context-exceeds-kv-cache::"
        "50%25 of%0D%0Ait: a,b"
    )


def test_github_of_standard_input_has_no_file() -> None:
    found = finding(location={"file": "-", "line": 1, "column": 1})
    assert set(github(report(findings=[found]))[0][1]) == {"title"}


# --- JUnit


def junit(check: dict[str, Any], fail_on: str = "error") -> ET.Element:
    """The XML, with the counts that its structure promises."""
    root = ET.fromstring(junit_xml(check, fail_on).encode())  # noqa: S314 - our own
    assert root.tag == "testsuites"
    sums = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in root:
        assert suite.tag == "testsuite"
        counts = {
            "tests": len(suite),
            "failures": len(suite.findall("testcase/failure")),
            "errors": 0,
            "skipped": len(suite.findall("testcase/skipped")),
        }
        assert {key: int(suite.get(key, "-1")) for key in counts} == counts
        sums = {key: sums[key] + counts[key] for key in sums}
        for case in suite:
            assert case.tag == "testcase"
            assert case.get("name") is not None
            assert case.get("classname") is not None
            assert [child.tag for child in case] in (
                [], ["failure"], ["skipped"], ["system-out"],
            )  # fmt: skip
    assert {key: int(root.get(key, "-1")) for key in sums} == sums
    return root


@pytest.mark.parametrize(
    ("fail_on", "failures"), [("error", 1), ("warning", 2), ("info", 2), ("never", 0)]
)
def test_junit_fails_where_the_command_does(fail_on: str, failures: int) -> None:
    root = junit(report(), fail_on)
    assert root.get("failures") == str(failures)
    # KV001 and SUP001 found something, FLG001 is suppressed, PAR002 not checked: KV002 passes.
    # 3 findings + PAR002 + KV002.
    assert root.get("tests") == "5"
    assert root.get("skipped") == "2"


def test_junit_says_why_a_case_is_skipped() -> None:
    reasons = [skipped.get("message") for skipped in junit(report()).iter("skipped")]
    assert reasons == [
        "suppressed: tested by hand",
        "not checked: the GPU is not known; give --gpu",
    ]


def test_junit_failure_holds_message_and_fix() -> None:
    (failure,) = junit(report()).iter("failure")
    assert failure.get("type") == "error"
    assert failure.text == "one request needs 16.00 GiB\nfix: --max-model-len 65520"


# --- GitLab


def test_gitlab_entries() -> None:
    entries = json.loads(code_quality(report()))
    assert [entry["severity"] for entry in entries] == ["critical", "major", "info"]
    assert entries[0]["location"] == {"path": "deploy/serve.sh", "lines": {"begin": 3}}
    assert entries[0]["check_name"] == "KV001 context-exceeds-kv-cache"
    assert entries[2]["description"].startswith("Suppressed (tested by hand): ")


# --- all of them


@settings(max_examples=60, deadline=None)
@given(check=reports(), fail_on=st.sampled_from(("error", "warning", "info", "never")))
def test_no_text_breaks_a_format(check: dict[str, Any], fail_on: str) -> None:
    count = len(check["findings"]) + len(check["suppressed"])
    assert json.loads(to_json(check)) == check
    assert yaml.safe_load(to_yaml(check)) == check
    accepted(sarif_log(check))
    assert len(github(check)) == count + 1
    entries = json.loads(code_quality(check))
    assert len(entries) == count
    root = junit(check, fail_on)
    by_rule = [s for s in root if s.get("name") == "rules without findings"]
    assert sum(len(suite) for suite in root) - len(by_rule[-1]) == count
    for text in (workflow_commands(check), junit_xml(check, fail_on), code_quality(check)):
        assert not [c for c in text if c != "\n" and not c.isprintable()]
        text.encode("utf-8")


@given(
    file=st.text(st.characters(exclude_characters="\0/", exclude_categories=("Cs",)), min_size=1)
)
def test_a_sarif_uri_is_the_path(file: str) -> None:
    if file in (".", "..", "-"):
        return
    log = sarif_log(report(findings=[finding(location={"file": file, "line": 1, "column": 1})]))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == file


def test_the_summary_counts_everything() -> None:
    assert summary(report()) == (
        "1 error, 1 warning, 0 remarks; 1 suppressed; 1 rule not checked (vLLM 0.33.0)"
    )


# --- excerpts


def shown(line: str, column: int, width: int = 60) -> tuple[str, str]:
    return excerpt({"file": "f", "line": 1, "column": column}, {"f": line}, width)


def test_an_excerpt_points_at_the_column() -> None:
    assert shown("  vllm serve m --swap-space 4", 16) == (
        "   1 | vllm serve m --swap-space 4",
        "     |              ^",
    )


def test_wide_characters_and_escapes_keep_the_caret_in_place() -> None:
    # Two characters of two columns each; one escape of four characters.
    assert shown("\u6f22\u5b57\x1b x", 5) == ("   1 | \u6f22\u5b57\\x1b x", "     |          ^")


def test_no_text_no_excerpt() -> None:
    assert excerpt({"file": "g", "line": 1, "column": 1}, {"f": "x"}, 80) == ("", "")
    assert excerpt({"file": "f", "line": 2, "column": 1}, {"f": "x"}, 80) == ("", "")


@given(
    before=st.text(max_size=200),
    after=st.text(max_size=200),
    width=st.integers(40, 120),
)
def test_an_excerpt_fits_and_the_caret_is_under_the_character(
    before: str, after: str, width: int
) -> None:
    line = (before + "X" + after).replace("\n", " ")
    text, caret = shown(line, len(before) + 1, width)
    columns = [
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    ]
    assert sum(columns) <= width
    at = caret.index("^")
    # The character that begins in the caret's column, behind any marks that take none.
    under = [c for i, c in enumerate(text) if sum(columns[:i]) == at and columns[i]]
    assert under[:1] == ["X"]
