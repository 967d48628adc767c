"""GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/."""

from __future__ import annotations

import json
import os.path
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from vllm_advisor.report.check_summary import one_line

_SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}


def code_quality(check: Mapping[str, Any]) -> str:
    """A JSON list of findings; those that are suppressed have the severity ``info``.

    The format has no place for what was not checked: the command says it on standard error.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
    """
    entries = []
    for finding in (*check["findings"], *check.get("suppressed", ())):
        severity = _SEVERITIES[finding["severity"]]
        text = finding["message"] + (f". Fix: {finding['fix']}" if finding["fix"] else "")
        if "suppressed_at" in finding:
            severity = "info"
            text = f"Suppressed ({finding['reason'] or 'without a reason'}): {text}"
        entries.append(
            {
                "description": one_line(text),
                "check_name": f"{finding['rule']} {finding['name']}",
                "fingerprint": finding["fingerprint"],
                "severity": severity,
                "location": {
                    "path": PurePath(os.path.normpath(finding["location"]["file"])).as_posix(),
                    "lines": {"begin": max(1, finding["location"]["line"])},
                },
            }
        )
    return json.dumps(entries, indent=2) + "\n"
