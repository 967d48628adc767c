"""Reading a source without running it, on small sources of our own."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"

SERVE = """
from vllm.entrypoints.openai.cli_args import make_arg_parser

class ServeSubcommand:
    def subparser_init(self, subparsers):
        serve_parser = subparsers.add_parser("serve")
        serve_parser = make_arg_parser(serve_parser)
        return serve_parser
"""
CLI_ARGS = """
import argparse
import json
from vllm.engine.arg_utils import get_kwargs, optional_type, human_readable_int
from vllm.config import CacheConfig, Shape

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key", type=optional_type(str), nargs="+")
    parser.add_argument("--origins", type=json.loads, default=["*"])
    parser.add_argument("--old", action="store_true", help="[DEPRECATED] It is deprecated. Gone.")
    group = parser.add_argument_group("cache")
    kwargs = get_kwargs(CacheConfig)
    kwargs["length"]["type"] = human_readable_int
    del kwargs["hidden"]
    for key, value in kwargs.items():
        group.add_argument(f"--{key.replace('_', '-')}", **value)
    if unreadable():
        parser.add_argument("--maybe")
    parser.add_argument("--strange", type=unreadable)
    return parser
"""
ARG_UTILS = """
import argparse
from dataclasses import MISSING, fields
from typing import Literal, Union, get_args, get_origin

def optional_type(return_type):
    def _optional_type(val):
        return None if val == "None" else return_type(val)
    return _optional_type

def human_readable_int(value):
    return int(value)

def get_kwargs(cls):
    kwargs = {}
    for field in fields(cls):
        hints = {field.type}
        if get_origin(field.type) is Union:
            hints = set(get_args(field.type))
        default = field.default
        if default is MISSING and field.default_factory is not MISSING:
            default = field.default_factory()
        kwargs[field.name] = {"default": default}
        if bool in hints:
            kwargs[field.name]["action"] = argparse.BooleanOptionalAction
        elif any(get_origin(hint) is Literal for hint in hints):
            literal = next(hint for hint in hints if get_origin(hint) is Literal)
            kwargs[field.name].update(type=str, choices=sorted(get_args(literal)))
        elif float in hints:
            kwargs[field.name]["type"] = float
        else:
            kwargs[field.name]["type"] = int
    return kwargs
"""
CONFIG = """
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Optional
from pydantic import Field
from vllm.shapes import Shape

Kind = Literal["auto", "fp8"]

@dataclass
class Base:
    utilization: float = Field(default=0.9, gt=0)

@dataclass
class CacheConfig(Base):
    LIMIT: ClassVar[int] = 3
    kind: Kind = "auto"
    caching: Optional[bool] = None
    sizes: int = field(default_factory=lambda: [1, 2 * 4])
    length: int = Base.utilization
    shape: int = Shape.ROUND
    hidden: int = 1
"""
SHAPES = """
from enum import Enum

class Shape(str, Enum):
    ROUND = "round"
"""
ENVS = """
import os

def switch(name, default):
    return lambda: bool(int(os.environ.get(name, default)))

environment_variables = {
    "VLLM_A": lambda: int(os.getenv("VLLM_A", "3")),
    "VLLM_B": switch("VLLM_B", "1"),
    "VLLM_HOME": lambda: os.path.expanduser("~"),
}
"""
QUANTIZATION = """
from typing import Literal, get_args
from vllm.platforms import current_platform

QuantizationMethods = Literal["fp8", "tpu"]
QUANTIZATION_METHODS = list(get_args(QuantizationMethods))

class Base:
    @classmethod
    def get_min_capability(cls):
        return 75

class Fp8(Base):
    pass

class Tpu(Base):
    @classmethod
    def get_min_capability(cls):
        raise NotImplementedError

def get_quantization_config(name):
    methods = {"fp8": Fp8 if current_platform.is_cuda() else None, "tpu": Tpu}
    return methods[name]
"""
FACTORY = """
class KVConnectorFactory:
    pass

KVConnectorFactory.register_connector("Near", "vllm.connectors", "Near")
KVConnectorFactory.register_connector("Far", "vllm.connectors", "Far")
"""
CONNECTORS = """
from elsewhere import Far

class SupportsHMA:
    pass

class Near(SupportsHMA):
    pass
"""
FILES = {
    "entrypoints/cli/serve.py": SERVE,
    "entrypoints/openai/cli_args.py": CLI_ARGS,
    "engine/arg_utils.py": ARG_UTILS,
    "config/__init__.py": CONFIG,
    "shapes.py": SHAPES,
    "envs.py": ENVS,
    "model_executor/layers/quantization/__init__.py": QUANTIZATION,
    "distributed/kv_transfer/kv_connector/factory.py": FACTORY,
    "connectors.py": CONNECTORS,
}


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("engine_history")
    sys.path.remove(str(TOOLS))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def release(tool: ModuleType, tmp_path: Path) -> dict[str, Any]:
    return tool.read_release("1.2.3", write(tmp_path / "1.2.3", FILES))


def test_flags(release: dict[str, Any]) -> None:
    assert release["source"] == "vllm:1.2.3:vllm/entrypoints/openai/cli_args.py#make_arg_parser"
    assert release["flags"] == {
        "api_key": {"spellings": ["--api-key"], "kind": "str", "nargs": "+", "default": None},
        "caching": {
            "spellings": ["--caching"],
            "negations": ["--no-caching"],
            "kind": "bool",
            "default": None,
        },
        "kind": {
            "spellings": ["--kind"],
            "kind": "str",
            "choices": ["auto", "fp8"],
            "default": "auto",
        },
        "length": {"spellings": ["--length"], "kind": "tokens", "default": 0.9},
        "old": {
            "spellings": ["--old"],
            "kind": "bool",
            "default": False,
            "deprecated": "[DEPRECATED] It is deprecated.",
        },
        "origins": {"spellings": ["--origins"], "kind": "json", "default": ["*"]},
        "port": {"spellings": ["--port"], "kind": "int", "default": 8000},
        "shape": {"spellings": ["--shape"], "kind": "int", "default": "round"},
        "sizes": {"spellings": ["--sizes"], "kind": "int", "default": [1, 8]},
        "strange": {"spellings": ["--strange"], "kind": None, "default": None},
        "utilization": {"spellings": ["--utilization"], "kind": "float", "default": 0.9},
    }


def test_what_cannot_be_read_is_said(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tool.read_release("1.2.3", write(tmp_path / "1.2.3", FILES))
    said = capsys.readouterr().out
    assert "kind not told: strange" in said
    assert "unreadable" in said  # the condition that decides on --maybe
    assert "maybe" not in release["flags"]


def test_other_tables(release: dict[str, Any]) -> None:
    assert release["environment"] == {
        "VLLM_A": {"default": 3},
        "VLLM_B": {"default": True},
        "VLLM_HOME": {},
    }
    assert release["quantization"] == {"fp8": {"capability": 75}, "tpu": {}}
    assert release["connectors"] == {"Near": {"grouped": True}, "Far": {}}


def test_nothing_of_a_source_is_run(tool: ModuleType, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    harm = f"open({str(mark)!r}, 'w').close()\n"
    files = {name: harm + text for name, text in FILES.items()}
    files["entrypoints/openai/cli_args.py"] = files["entrypoints/openai/cli_args.py"].replace(
        "    group = ",
        f"    {harm}    __import__('os').mkdir({str(mark)!r})\n"
        f"    argparse._sys.modules['os'].mkdir({str(mark)!r})\n"
        f"    [c for c in ().__class__.__base__.__subclasses__()][0]\n    group = ",
    )
    read = tool.read_release("1.2.3", write(tmp_path / "1.2.3", files))
    assert "port" in read["flags"]
    assert not mark.exists()


def test_no_parser(tool: ModuleType, tmp_path: Path) -> None:
    from engine_source.values import NotReadError

    files = {"envs.py": ENVS}
    with pytest.raises(NotReadError, match="make_arg_parser"):
        tool.read_release("1.2.3", write(tmp_path / "1.2.3", files))


def test_spans(tool: ModuleType) -> None:
    tables = [
        ("1.0", {"a": {"default": 1}, "b": {}}),
        ("1.1", {"a": {"default": 1}}),
        ("1.2", {"a": {"default": 2}, "b": {}}),
    ]
    assert tool.ranges(tables, "1.2") == [
        {"name": "a", "since": "1.0", "until": "1.1", "default": 1},
        {"name": "a", "since": "1.2", "default": 2},
        {"name": "b", "since": "1.0", "until": "1.0"},
        {"name": "b", "since": "1.2"},
    ]


def test_a_release_is_added_to_the_history(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines, folder = tmp_path / "engines", tmp_path / "sources"
    monkeypatch.setattr(tool, "ENGINES", engines)
    monkeypatch.setattr(tool, "HISTORY", engines / "history")
    engines.mkdir()
    (engines / "1.1.yaml").write_text(json.dumps({"flags": []}))  # a snapshot keeps its flags
    monkeypatch.setattr(sys, "argv", ["engine_history.py", str(folder)])
    write(folder / "1.0", FILES)
    write(folder / "1.1", FILES)
    tool.main()
    for path in sorted(folder.rglob("*.py")):
        path.unlink()
    for name in ("1.0", "1.1"):
        (folder / name / "vllm").rename(folder / f"{name}-gone")
    write(folder / "1.2", {**FILES, "envs.py": ENVS.replace('"3"', '"4"')})
    tool.main()
    flags = json.loads((engines / "history" / "flags.yaml").read_text())
    assert flags["versions"] == ["1.0", "1.2"]
    assert {e["since"] for e in flags["entries"]} == {"1.0"}
    environment = json.loads((engines / "history" / "environment.yaml").read_text())
    assert environment["versions"] == ["1.0", "1.1", "1.2"]
    assert environment["entries"][:2] == [
        {"name": "VLLM_A", "since": "1.0", "until": "1.1", "default": 3},
        {"name": "VLLM_A", "since": "1.2", "default": 4},
    ]
