"""Workflow commands of GitHub Actions: findings become annotations of a pull request.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.report.check_summary import is_file, one_line, summary

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def workflow_commands(check: Mapping[str, Any]) -> str:
    """A command in a line for every finding, suppressed or not, and one for what is left to say.

    Args:
        check: the report as plain data, as ``--format json`` prints it.
    """
    lines = []
    for finding in check["findings"]:
        message = finding["message"] + (f" | fix: {finding['fix']}" if finding["fix"] else "")
        lines.append(_command(_COMMANDS[finding["severity"]], finding, "", message))
    for finding in check.get("suppressed", ()):
        reason = finding["reason"] or "without a reason"
        lines.append(
            _command("notice", finding, "suppressed: ", f"{finding['message']} ({reason})")
        )
    skipped = "".join(f" | {n['rule']} not checked: {n['reason']}" for n in check["not_checked"])
    text = f"::notice title=vllm-advisor check::{_data(summary(check) + skipped)}"
    return "".join(f"{line}\n" for line in (*lines, text))


def _command(name: str, finding: Mapping[str, Any], before: str, message: str) -> str:
    place = finding["location"]
    properties = {"title": f"{before}{finding['rule']} {finding['name']}"}
    if is_file(place["file"]):
        file, line, column = place["file"], str(place["line"]), str(place["column"])
        properties = {"file": file, "line": line, "col": column, **properties}
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {shown}::{_data(message)}"


def _data(text: str) -> str:
    """A message: in one line, with the command's own characters escaped."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return one_line(escaped)


def _property(text: str) -> str:
    """The value of a property, in which two more characters have a meaning."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
