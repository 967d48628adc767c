"""The stub NVML library, compiled once for each set of functions it lacks."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_BUILD = Path(__file__).parents[2] / "nvml_stub" / "build.py"


@pytest.fixture(scope="session")
def nvml_stub(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds the stub without the functions named, once each; gives the folder it lies in."""
    if sys.platform != "linux":
        pytest.skip("the NVML stub is a Linux library")
    spec = importlib.util.spec_from_file_location("nvml_stub_build", _BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    @functools.cache
    def folder_of(*without: str) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        try:
            module.build(folder, without=without)
        except module.CannotBuildError as error:
            pytest.skip(f"the NVML stub cannot be built: {error}")
        return folder

    return folder_of
