"""``vllm serve`` commands, alone and in shell scripts -> their arguments, as vLLM reads them."""

from __future__ import annotations

from vllm_advisor.errors import InputError
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.parsed_command import ParsedCommand, parse_serve_command
from vllm_advisor.parse.remarks import Note, Problem, UnknownFlag, Unresolved
from vllm_advisor.parse.shell import Script, Token, read_script
from vllm_advisor.parse.shell_servers import ShellServer, bare_arguments, shell_servers
from vllm_advisor.types.engine import EngineFacts

__all__ = [
    "Note",
    "ParsedCommand",
    "Problem",
    "Token",
    "UnknownFlag",
    "Unresolved",
    "parse_serve_command",
    "parse_shell_script",
    "read_shell",
]


def parse_shell_script(text: str, file: str, engine: EngineFacts) -> list[ParsedCommand]:
    """Read every command of a script that starts a server, for one version.

    Raises:
        InputError: the script has none.
    """
    script = read_script(text, file)
    commands = [server.command for server in read_shell(script, lambda _image: engine)]
    if not commands:
        raise InputError(
            "no vllm command found",
            where=file,
            fix="the text should have a line such as: vllm serve MODEL --max-model-len 32K",
        )
    return commands


def read_shell(script: Script, engine_of: EngineOf) -> list[ShellServer]:
    """Every command of a script that starts a server, each for the version of its image."""
    return shell_servers(script, engine_of) or bare_arguments(script, engine_of)
