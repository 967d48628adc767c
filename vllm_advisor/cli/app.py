"""The typer app, and the one place where errors become text and exit codes."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from vllm_advisor.cli.plain_values import PlainCommand, PlainGroup
from vllm_advisor.errors import EXIT_CANNOT_RUN, EXIT_INTERRUPTED, EXIT_READER_GONE, AdvisorError
from vllm_advisor.version import __version__


class _Group(PlainGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run the command; a reader that goes (head, less) ends it as it ends any Unix tool."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # What is still buffered has nowhere to go, and must not be an error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(EXIT_READER_GONE) from None


app = typer.Typer(
    name="vllm-advisor",
    cls=_Group,
    help="Plans, explains and checks vLLM deployments: memory, KV cache, flags, replicas, routing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
COMMANDS = (
    "plan",
    "check",
    "size",
    "estimate",
    "calibrate",
    "report",
    "observe",
    "render",
    "route",
    "explain",
    "probe",
    "verify",
    "init",
    "profiles",
    "rules",
    "schema",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"vllm-advisor {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Plans, explains and checks vLLM deployments: memory, KV cache, flags, replicas, routing."""


def _command(first: list[str]) -> Any:
    """The command line; where the first word names a command, nothing of the others is built."""
    for name in first if first and first[0] in COMMANDS else COMMANDS:
        import_module(f"vllm_advisor.cli.{name}").register(app)
    owners = [app]
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.typer_instance.info.cls = PlainGroup
            owners.append(group.typer_instance)
    for owner in owners:
        for command in owner.registered_commands:
            command.cls = PlainCommand
    return app


def main() -> None:
    """Run the command line; every failure a person can cause ends as error / where / fix."""
    gc.disable()  # a tenth of a short process goes into looking for garbage that it does not make
    verbose = "-v" in sys.argv or "--verbose" in sys.argv
    try:
        _command(sys.argv[1:2])()
    except AdvisorError as error:
        if verbose:
            raise
        _print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if verbose:
            raise
        name = type(error).__name__
        sys.stderr.write(
            f"error: {name}: {error}\n"
            "  this is a bug in vllm-advisor\n"
            "  fix: run it again with -v and report the traceback with the input\n"
        )
        sys.exit(EXIT_CANNOT_RUN)


def _print_error(error: AdvisorError) -> None:
    lines = []
    for one in (error, *getattr(error, "others", ())):
        lines.append(f"error: {one.what}")
        if one.where:
            lines.append(f"  --> {one.where}")
        if one.fix:
            lines.append(f"  fix: {one.fix}")
    sys.stderr.write("\n".join(lines) + "\n")
