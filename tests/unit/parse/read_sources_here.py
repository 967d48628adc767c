"""What the tests of every reader share: one engine, and instances by their names."""

from __future__ import annotations

from textwrap import dedent

from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.sources import read_source

ENGINE = load_engine("0.33.0")


def read(text: str, kind: str | None = None, *, name: str = "f.yaml") -> Deployed:
    return read_source(dedent(text), name, lambda _image: ENGINE, kind=kind)


def only(text: str, kind: str | None = None, *, name: str = "f.yaml") -> ServedInstance:
    (instance,) = read(text, kind, name=name).instances
    return instance


def codes(instance: ServedInstance) -> list[str]:
    return [problem.code for problem in instance.command.problems]


def place(instance: ServedInstance, dest: str) -> str:
    """``line:column`` of an argument."""
    (arg,) = (arg for arg in instance.command.engine_args if arg.dest == dest)
    return str(arg.origin).partition(":")[2]
