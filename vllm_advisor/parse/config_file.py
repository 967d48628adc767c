"""The YAML file of ``vllm serve --config``: its keys are flags, as vLLM's own parser reads them.

See vllm:0.33.0:vllm/utils/argparse_utils.py#FlexibleArgumentParser.load_config_file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from vllm_advisor.parse.deployed import Deployed, ServedInstance, repeated_keys
from vllm_advisor.parse.images import EngineOf
from vllm_advisor.parse.parsed_command import parse_serve_command
from vllm_advisor.parse.shell import Token
from vllm_advisor.parse.yaml_tree import YamlDocument, YamlValue
from vllm_advisor.types.engine import EngineFacts

KIND = "config"


def read_config(documents: Sequence[YamlDocument], file: str, engine_of: EngineOf) -> Deployed:
    """The server that is started with this file; its model may be on the command line."""
    engine = engine_of(None)
    instances = []
    for document in documents[:1]:  # vLLM refuses a second one
        root = document.root
        words = [word for entry in root.entries() for word in _words(entry, engine)]
        command = parse_serve_command(words, engine, complete=False, where=root.location)
        instances.append(
            ServedInstance(command=command, kind=KIND, name="config", location=root.location)
        )
    return Deployed(
        kind=KIND,
        file=file,
        instances=tuple(instances),
        notes=tuple(repeated_keys(documents)),
    )


def _words(entry: YamlValue, engine: EngineFacts) -> Iterator[Token]:
    """The words that vLLM makes of one key."""
    place, value, flag = entry.location, entry.value, f"--{entry.key}"
    if isinstance(value, bool):
        negated = f"--no-{entry.key}"
        if value:
            yield Token(flag, place)
        elif engine.flag(negated.replace("_", "-")) is not None:
            yield Token(negated, place)
        return
    if isinstance(value, list):
        if value:
            yield Token(flag, place)
        for item in entry.items():
            yield Token(str(item.value), item.location)
        return
    yield Token(flag, place)
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    yield Token(text, entry.value_location)
