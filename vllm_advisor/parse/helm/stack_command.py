"""The ``vllm serve`` that production-stack's chart makes of one ``modelSpec``.

Read of chart vllm-stack 0.1.12 (templates/deployment-vllm-multi.yaml), its traps included: prefix
caching is off unless asked for, and numbers go through Go's floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.parse.images import EngineOf, Image
from vllm_advisor.parse.kubernetes.commands import expanded
from vllm_advisor.parse.parsed_command import ParsedCommand, parse_serve_command
from vllm_advisor.parse.placed import PlacedText
from vllm_advisor.parse.shell import Token
from vllm_advisor.parse.yaml_tree import YamlValue
from vllm_advisor.types.decision import Location

_PORT = "8000"
_FLOAT_FROM = 1_000_000  # Helm prints whole numbers from here on as 1e+06
_SETTINGS = (
    ("maxModelLen", "--max-model-len"),
    ("dtype", "--dtype"),
    ("tensorParallelSize", "--tensor-parallel-size"),
    ("maxNumSeqs", "--max-num-seqs"),
    ("gpuMemoryUtilization", "--gpu-memory-utilization"),
    ("maxLoras", "--max-loras"),
    ("runner", "--runner"),
    ("convert", "--convert"),
)


def stack_command(
    spec: YamlValue,
    engine_spec: YamlValue,
    *,
    env: Mapping[str, Token],
    image: Image | None,
    engine_of: EngineOf,
) -> ParsedCommand:
    """The command of one engine.

    Args:
        spec: the item of ``modelSpec``.
        engine_spec: ``servingEngineSpec``, around it.
        env: variables of the engine's container.
        image: its image.
        engine_of: facts of the version that an image states.
    """
    model, port = spec.at("modelURL"), engine_spec.at("containerPort")
    words = [_word("vllm", spec.location), _word("serve", spec.location)]
    if model:
        words.append(_word(model.string(), model.location))
    words += _pair("--host", "0.0.0.0", spec.location)  # noqa: S104 - what the chart writes
    words += _pair("--port", port.string() or _PORT, port.location if port else spec.location)
    config = spec.at("vllmConfig")
    if config.mapping():
        words += _settings(config)
    for item in config.at("extraArgs").items():
        if (text := item.placed_text()) is not None:
            words.append(PlacedText(printed(item.value, text.text), text.file, text.spans))
    return parse_serve_command(
        [expanded(word, env).token() for word in words],
        engine_of(image),
        env=dict(env),
        image=image.text if image else "",
    )


def printed(value: Any, text: str) -> str:
    """A value as Helm prints it where a template quotes it.

    Args:
        value: what YAML reads.
        text: the scalar as written.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, int | float):
        return text
    if value != int(value) or abs(value) < _FLOAT_FROM:
        return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)
    sign, digits = "-" if value < 0 else "", str(abs(int(value)))
    head = digits.rstrip("0")
    fraction = f".{head[1:]}" if len(head) > 1 else ""
    return f"{sign}{head[0]}{fraction}e+{len(digits) - 1:02d}"


def _settings(config: YamlValue) -> list[PlacedText]:
    chunked, caching = config.at("enableChunkedPrefill"), config.at("enablePrefixCaching")
    words = []
    if chunked:
        flag = "--enable-chunked-prefill" if chunked.value else "--no-enable-chunked-prefill"
        words.append(_word(flag, chunked.location))
    # Left out is off: the chart says so to vLLM, whose own default is on.
    flag = "--enable-prefix-caching" if caching.value else "--no-enable-prefix-caching"
    words.append(_word(flag, caching.location))
    for key, name in _SETTINGS:
        setting = config.at(key)
        if setting:
            words += _pair(name, printed(setting.value, setting.string()), setting.location)
    return words


def _word(text: str, place: Location) -> PlacedText:
    return PlacedText.at_place(text, place)


def _pair(flag: str, value: str, place: Location) -> list[PlacedText]:
    return [_word(flag, place), _word(value, place)]
