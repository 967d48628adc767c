"""What a source says beside its flags: environment variables, quantization, KV connectors."""

from __future__ import annotations

import ast
from typing import Any

from engine_source.flags import plain
from engine_source.interpreter import Interpreter
from engine_source.values import NotReadError, SourceClassMeta, Unknown

_CONNECTORS = "vllm.distributed.kv_transfer.kv_connector.factory"
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


def read_connectors(reading: Interpreter) -> dict[str, dict[str, Any]]:
    """KV connectors by name; ``grouped``: they take layers that do not all keep the same.

    Versions before ``SupportsHMA`` switch the grouping off beside every connector. It is missing
    for a connector whose class is another package's.
    """
    factory = reading.tree.module(_CONNECTORS)
    if factory is None:
        raise NotReadError(f"there is no module {_CONNECTORS}")
    found = {}
    for statement in factory.tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith(
            ".register_connector"
        ):
            continue
        name, module, cls = (ast.literal_eval(argument) for argument in call.args)
        try:
            connector = reading.value(module, cls)
        except NotReadError as error:
            connector = Unknown(str(error))
        if not isinstance(connector, SourceClassMeta):  # the class is another package's
            found[name] = {}
            continue
        names = [c.__name__ for c in reading.classes.lineage(connector)]
        found[name] = {"grouped": "SupportsHMA" in names}
    return found
