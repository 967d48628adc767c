"""What a release's source says beside its flags: environment variables, quantization methods."""

from __future__ import annotations

from typing import Any

from engine_source.flags import plain
from engine_source.interpreter import Interpreter
from engine_source.values import NotReadError, Unknown

_QUANTIZATION = "vllm.model_executor.layers.quantization"


def read_environment(reading: Interpreter) -> dict[str, dict[str, Any]]:
    """Variables of ``vllm/envs.py`` with what they are worth when they are not set.

    ``default`` is missing where only the machine tells (folders, ports, other packages).
    """
    found = {}
    for name, getter in sorted(reading.value("vllm.envs", "environment_variables").items()):
        default = reading.call(getter)
        if isinstance(default, Unknown):
            found[name] = {}
            continue
        found[name] = {"default": plain(default)}
    return found


def read_quantization(reading: Interpreter) -> dict[str, dict[str, Any]]:
    """Methods that ``--quantization`` knows, with the least compute capability on NVIDIA GPUs.

    ``capability`` is missing for methods of other devices, and where it is not told.
    """
    config_of = reading.value(_QUANTIZATION, "get_quantization_config")
    found: dict[str, dict[str, Any]] = {}
    for method in reading.items(reading.value(_QUANTIZATION, "QUANTIZATION_METHODS")):
        found[method] = {}
        try:
            config = reading.call(config_of, method)
            capability = reading.call(reading.attribute(config, "get_min_capability"))
        except NotReadError as error:
            reading.remarks.append(f"{method}: {error}")
            continue
        if isinstance(capability, int):
            found[method] = {"capability": capability}
    return found
