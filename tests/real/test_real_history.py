"""What was read from sources without running them is what the installed vLLM has."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vllm_advisor.knowledge.engine_tables import recorded_table
from vllm_advisor.knowledge.engines import load_engine

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]
TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def history_tool() -> ModuleType:
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module("engine_history")
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def read(history_tool: ModuleType, snapshot_tool: ModuleType) -> dict[str, Any]:
    """The installed vLLM's own files, read like those of a release that is not installed."""
    import vllm

    return history_tool.read_release(
        snapshot_tool.vllm_version(), Path(vllm.__file__).resolve().parents[1]
    )


def test_flags_read_from_the_source_are_the_parsers(
    read: dict[str, Any], installed_snapshot: dict[str, Any]
) -> None:
    parser = {
        f["dest"]: {k: v for k, v in f.items() if k != "dest"} for f in installed_snapshot["flags"]
    }
    assert read["source"] == installed_snapshot["source"]
    assert read["flags"].keys() == parser.keys()
    differing = {d: (read["flags"][d], parser[d]) for d in parser if read["flags"][d] != parser[d]}
    assert not differing


def test_variables_are_the_installed_ones(
    read: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm import envs

    recorded, version = recorded_table("environment", read["version"])
    assert version == read["version"]
    assert recorded == read["environment"]
    assert recorded.keys() == envs.environment_variables.keys()
    for name in list(os.environ):
        if name in recorded:
            monkeypatch.delenv(name)
    differing = {
        name: (entry["default"], installed)
        for name, entry in recorded.items()
        if "default" in entry
        and (installed := _plain(envs.environment_variables[name]())) != entry["default"]
    }
    assert not differing


def test_capabilities_are_the_installed_ones(read: dict[str, Any]) -> None:
    from vllm.model_executor.layers.quantization import (
        QUANTIZATION_METHODS,
        get_quantization_config,
    )

    recorded, version = recorded_table("quantization", read["version"])
    assert version == read["version"]
    assert recorded == read["quantization"]
    installed = {m: get_quantization_config(m).get_min_capability() for m in QUANTIZATION_METHODS}
    assert {name: entry.get("capability") for name, entry in recorded.items()} == installed


def test_connectors_are_the_installed_ones(read: dict[str, Any]) -> None:
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    recorded, version = recorded_table("connectors", read["version"])
    assert version == read["version"]
    assert recorded == read["connectors"]
    assert recorded.keys() == KVConnectorFactory._registry.keys()
    assert set(load_engine(version).kv_connectors) == set(recorded)


def _plain(value: Any) -> Any:
    """A value as the history has it."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
