"""The real vLLM as judge: skipped where it is not installed (see tools/make_vllm_env.sh)."""

from __future__ import annotations

import importlib.util
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from vllm_server import BootResult, boot, write_model

REPOSITORY = Path(__file__).resolve().parents[2]
HAS_VLLM = importlib.util.find_spec("vllm") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if HAS_VLLM:
        return
    skip = pytest.mark.skip(reason="vLLM is not installed here (tools/make_vllm_env.sh DIR)")
    for item in items:
        if item.get_closest_marker("vllm"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def snapshot_tool() -> ModuleType:
    """tools/snapshot_engine.py; its first import of the parser makes vLLM fill in help texts."""
    path = REPOSITORY / "tools" / "snapshot_engine.py"
    spec = importlib.util.spec_from_file_location("snapshot_engine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def installed_snapshot(snapshot_tool: ModuleType) -> dict[str, object]:
    """The installed vLLM, recorded now (20 s)."""
    return snapshot_tool.snapshot()


@pytest.fixture(scope="session")
def parse_for_real(installed_snapshot: dict[str, object]) -> Callable[[list[str]], Namespace]:
    """``vllm serve``'s own parsing: argv after ``vllm``; SystemExit or ValueError when refused."""
    from vllm.entrypoints.cli.serve import cmd_init
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(prog="vllm")
    subparsers = parser.add_subparsers(required=False, dest="subparser")
    for command in cmd_init():
        command.subparser_init(subparsers)

    def parse(argv: list[str]) -> Namespace:
        namespace = parser.parse_args(argv)
        if namespace.model_tag is not None:  # as ServeSubcommand.cmd does
            namespace.model = namespace.model_tag
        return namespace

    return parse


@pytest.fixture(scope="session")
def assert_vllm_accepts(
    parse_for_real: Callable[[list[str]], Namespace],
    snapshot_tool: ModuleType,
) -> Callable[[list[str]], Namespace]:
    """Fails unless vLLM takes ``["serve", MODEL, ...]``: parser, its checks, engine arguments."""

    def accepts(argv: list[str]) -> Namespace:
        from vllm.engine.arg_utils import AsyncEngineArgs

        cli_args = next(
            sys.modules[name] for name in snapshot_tool.PARSER_MODULES if name in sys.modules
        )
        try:
            namespace = parse_for_real(argv)
            cli_args.validate_parsed_serve_args(namespace)
            AsyncEngineArgs.from_cli_args(namespace)
        except (SystemExit, ValueError, TypeError) as error:
            pytest.fail(f"vLLM refuses {' '.join(argv)}: {error!r}")
        return namespace

    return accepts


@pytest.fixture
def boot_tiny_llama(tmp_path: Path) -> Callable[..., BootResult]:
    """Boot a Llama of 4 layers, 2 KV heads of 64 and 4,096 positions; ``config`` changes it."""

    def start(*args: str, config: dict[str, object] | None = None, **options: object) -> BootResult:
        return boot(write_model(tmp_path / "model", **(config or {})), *args, **options)

    return start
