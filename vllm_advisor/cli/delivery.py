"""What plan and render share: where files go, for which target, in which environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vllm_advisor.cli.output import say
from vllm_advisor.errors import EXIT_NO, InputError

if TYPE_CHECKING:
    from vllm_advisor.api.planning import PlanReport

Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        help="What to write: serve (the default), kubernetes, helm-production-stack, llm-d, "
        "kserve, leaderworkerset or compose; of routers litellm, gateway-api, envoy or nginx; or "
        "routing. May be repeated.",
    ),
]
OutputDir = Annotated[
    Path | None,
    typer.Option(
        help="Write the target's files, routing.yaml, plan.yaml and PLAN.md here: all or none."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of other content.")]
Check = Annotated[
    bool, typer.Option("--check", help="Write nothing; fail if --output-dir differs (GitOps).")
]
Diff = Annotated[
    Path | None,
    typer.Option(help="Write nothing; print what would change in this folder."),
]
EnvironmentFile = Annotated[
    Path | None,
    typer.Option("--environment", help="File of environment keys; never changes the plan."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Environment fact KEY=VALUE, such as namespace=llm. May be repeated."
    ),
]


def deliver(
    report: PlanReport,
    targets: list[str] | None,
    folder: Path | None,
    *,
    overwrite: bool,
    check: bool,
    diff: Path | None,
) -> None:
    """Write the files, or tell what would change.

    Raises:
        InputError: ``--check`` has no folder to look at.
        Exit: something differs from what a folder holds.
    """
    names = tuple(targets or ("serve",))
    if diff is not None:
        from vllm_advisor.api.writing import differences

        text = differences(report.artifacts(names), diff)
        sys.stdout.write(text)
        if text:
            raise typer.Exit(EXIT_NO)
        return
    if check:
        from vllm_advisor.api.writing import drift

        if folder is None:
            raise InputError("--check has no folder to look at", fix="add --output-dir DIR")
        changed = drift(report.artifacts(names), folder)
        if changed:
            say(f"differs from the plan: {', '.join(changed)} in {folder}")
            raise typer.Exit(EXIT_NO)
    elif folder is not None and report.feasible:
        from vllm_advisor import api

        for name in api.write_plan(report, folder, targets=names, overwrite=overwrite):
            say(f"wrote {folder / name}")
    elif targets:
        report.artifacts(names)  # one that cannot be written is told without a folder, too
