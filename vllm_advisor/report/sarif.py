"""SARIF 2.1.0, as code scanning services read it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from vllm_advisor.report.check_summary import is_file
from vllm_advisor.rules.protocol import Rule
from vllm_advisor.rules.registry import all_rules
from vllm_advisor.version import __version__

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_HOME = "https://pypi.org/project/vllm-advisor/"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_FINGERPRINT = "vllmAdvisorFinding/v1"
_NO_BYTE = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte
_ROOT = "%SRCROOT%"  # services put the root of the repository here


def sarif_log(check: Mapping[str, Any]) -> dict[str, Any]:
    """The report as a SARIF log of one run.

    Findings are results, suppressed ones with their reason; what was not checked is a notification
    of the run. Paths are relative to the working folder where they are below it.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
    """
    rules = {rule.id: index for index, rule in enumerate(all_rules())}
    results = [_result(finding, rules) for finding in check["findings"]]
    results += [_result(finding, rules) for finding in check.get("suppressed", ())]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "vllm-advisor",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "informationUri": _HOME,
                        "rules": [_descriptor(rule) for rule in all_rules()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            _notification(skipped, rules) for skipped in check["not_checked"]
                        ],
                    }
                ],
                "results": results,
                "properties": {"vllmVersion": check["vllm_version"]},
            }
        ],
    }


def _descriptor(rule: Rule) -> dict[str, Any]:
    body = rule.page.partition("\n")[2].strip()
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": _first_section(body)},
        "help": {"text": body, "markdown": body},
        "defaultConfiguration": {"level": _LEVELS[rule.severity.value]},
        "properties": {"tags": ["vllm", rule.family], "problem.severity": _problem(rule)},
    }


def _first_section(body: str) -> str:
    """What the rule checks, as one paragraph."""
    section = body.partition("\n## ")[0]
    return " ".join(section.partition("\n")[2].split())


def _problem(rule: Rule) -> str:
    """The severity in GitHub's words."""
    return {"info": "recommendation"}.get(rule.severity.value, rule.severity.value)


def _notification(skipped: Mapping[str, Any], rules: Mapping[str, int]) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": f"{skipped['rule']} was not checked: {skipped['reason']}"},
        "associatedRule": {"id": skipped["rule"], "index": rules[skipped["rule"]]},
    }


def _result(finding: Mapping[str, Any], rules: Mapping[str, int]) -> dict[str, Any]:
    message = finding["message"]
    if finding["fix"]:
        message += f". Fix: {finding['fix']}"
    result = {
        "ruleId": finding["rule"],
        "ruleIndex": rules[finding["rule"]],
        "level": _LEVELS[finding["severity"]],
        "message": {"text": message},
        "locations": [_location(finding["location"])],
        "partialFingerprints": {_FINGERPRINT: finding["fingerprint"]},
        "suppressions": _suppressions(finding),
        "properties": {
            "confidence": finding["confidence"],
            "evidence": dict(finding["evidence"]),
        },
    }
    edits = [edit for edit in finding["edits"] if is_file(edit["file"])]
    if edits and edits == finding["edits"] and all(edit["safe"] for edit in edits):
        result["fixes"] = [_fix(finding["fix"], edits)]
    return result


def _suppressions(finding: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "suppressed_at" not in finding:
        return []  # if one result has the property, all have to
    suppression = {
        "kind": "inSource",
        "status": "accepted",
        "location": _location(finding["suppressed_at"]),
    }
    if finding["reason"]:
        suppression["justification"] = finding["reason"]
    return [suppression]


def _fix(text: str, edits: list[Mapping[str, Any]]) -> dict[str, Any]:
    files = dict.fromkeys(edit["file"] for edit in edits)
    return {
        "description": {"text": text},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(file),
                "replacements": [_replacement(edit) for edit in edits if edit["file"] == file],
            }
            for file in files
        ],
    }


def _replacement(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "deletedRegion": {
            "startLine": edit["start"]["line"],
            "startColumn": edit["start"]["column"],
            "endLine": edit["end"]["line"],
            "endColumn": edit["end"]["column"],
        },
        "insertedContent": {"text": edit["new"]},
    }


def _location(place: Mapping[str, Any]) -> dict[str, Any]:
    region = {"startLine": max(1, place["line"]), "startColumn": max(1, place["column"])}
    if not is_file(place["file"]):
        return {"logicalLocations": [{"name": place["file"]}]}
    return {"physicalLocation": {"artifactLocation": _artifact(place["file"]), "region": region}}


def _artifact(file: str) -> dict[str, str]:
    """A path below the working folder relative to it, any other as it is on this machine."""
    file = _NO_BYTE.sub("\ufffd", file)
    path = os.path.relpath(file)
    if path == os.pardir or path.startswith(os.pardir + os.sep):
        return {"uri": Path(file).resolve().as_uri()}
    raw = PurePath(path).as_posix().encode("utf-8", "surrogateescape")
    return {"uri": quote(raw), "uriBaseId": _ROOT}
