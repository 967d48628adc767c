"""The command line: options to api to report to exit code. No maths, no YAML, no rules.

One file per command. Everything but typer is imported inside the commands, so that ``--help``
stays fast.
"""

from vllm_advisor.cli.app import main

__all__ = ["main"]
