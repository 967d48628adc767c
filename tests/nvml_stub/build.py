"""Compiles nvml_stub.c to a libnvidia-ml.so.1 that pynvml loads from LD_LIBRARY_PATH."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml_stub.c")
LIBRARY = "libnvidia-ml.so.1"


class CannotBuildError(Exception):
    """What the build lacks on this machine."""


def nvml_header() -> Path:
    """NVIDIA's nvml.h, from the wheel nvidia-nvml-dev."""
    try:
        files = metadata.files("nvidia-nvml-dev") or []
    except metadata.PackageNotFoundError:
        raise CannotBuildError("nvidia-nvml-dev is not installed: no nvml.h") from None
    for file in files:
        if file.name == "nvml.h":
            return Path(str(file.locate()))
    raise CannotBuildError("the installed nvidia-nvml-dev has no nvml.h")


def build(folder: Path, *, without: Iterable[str] = ()) -> Path:
    """Compile the stub into ``folder``; ``without`` names functions an older driver lacks."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise CannotBuildError("there is no gcc")
    # Renamed in the header and the source alike, a function is gone under its own name.
    renames = [f"-D{function}=removed_{function}" for function in without]
    library = folder / LIBRARY
    include = f"-I{nvml_header().parent}"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", *renames, include, "-o", str(library), str(SOURCE)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the NVML stub does not compile:\n{done.stderr}")
    return library
