"""What is asked: a model's config on a GPU, with engine arguments and bytes for the KV cache."""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

# The table holds these under a name only.
ENVIRONMENT_OF_TAG = {
    "neg:hybrid-env": {"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"},
    "neg:nofi-fp8kv": {"VLLM_HAS_FLASHINFER_CUBIN": "0"},
    "neg:len200k-allow": {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"},
}
GIB = 2**30
# What the table asks where a model does not start, so that a row can become an answer.
DEFAULT_AVAILABLE = (8 * GIB, 40 * GIB, 100 * GIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One job.

    Attributes:
        model: name in the table.
        config: content of its config.json.
        hf_quant_config: content of its hf_quant_config.json, if it has one.
        gpu: a name of ``gpus.GPUS``.
        tag: what the row is about.
        engine_args: fields of vLLM's EngineArgs.
        env: environment variables of the server.
        available: bytes per GPU for the KV cache, each a run of its own.
        verbose: also answer with layer specs, groups, parameters by name and logs.
        draft: the table's entry of the model that speculative_config names, if it has one.
    """

    model: str
    config: dict[str, Any]
    gpu: str
    hf_quant_config: dict[str, Any] | None = None
    tag: str = ""
    engine_args: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    available: tuple[int, ...] = DEFAULT_AVAILABLE
    verbose: bool = False
    draft: dict[str, Any] | None = None

    def row(self) -> dict[str, Any]:
        """The part of a row that repeats the question."""
        arguments = self.engine_args
        key = {
            "tp": arguments.get("tensor_parallel_size", 1),
            "pp": arguments.get("pipeline_parallel_size", 1),
            "dcp": arguments.get("decode_context_parallel_size", 1),
            "pcp": arguments.get("prefill_context_parallel_size", 1),
            "dp": arguments.get("data_parallel_size", 1),
            "ep": arguments.get("enable_expert_parallel", False),
            "kv_cache_dtype": arguments.get("kv_cache_dtype", "auto"),
            "block_size": arguments.get("block_size"),
            "max_model_len": arguments.get("max_model_len"),
        }
        row = {"model": self.model, "gpu": self.gpu, "tag": self.tag, "key": key}
        return row | {"engine_args": arguments} | ({"env": self.env} if self.env else {})

    def write_model(self, folder: Path) -> Path:
        """Write the files vLLM reads and return their folder."""
        return _write(folder / self.model, self.config, self.hf_quant_config)

    def write_draft(self, folder: Path) -> dict[str, Any]:
        """The arguments with the draft's name replaced by a folder that has its files."""
        name = draft_name(self.engine_args)
        if self.draft is None or name is None:
            return self.engine_args
        path = str(_write(folder / name, self.draft["config"], self.draft.get("hf_quant_config")))
        if self.engine_args.get("spec_model") is not None:
            return self.engine_args | {"spec_model": path}
        speculative = self.engine_args["speculative_config"] | {"model": path}
        return self.engine_args | {"speculative_config": speculative}


def draft_name(engine_args: dict[str, Any]) -> str | None:
    """The model that is to draft, as it is named."""
    named = engine_args.get("spec_model")
    return named or (engine_args.get("speculative_config") or {}).get("model")


def _write(folder: Path, config: dict[str, Any], quantization: dict[str, Any] | None) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if quantization is not None:
        text = json.dumps(quantization)
        (folder / "hf_quant_config.json").write_text(text, encoding="utf-8")
    return folder


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def read_configs(path: Path) -> dict[str, Any]:
    """The models of a table, by name; each with ``config`` and maybe ``hf_quant_config``."""
    content = path.read_bytes()
    return json.loads(lzma.decompress(content) if path.suffix == ".xz" else content)


def questions_of(
    rows: Iterable[dict[str, Any]], configs: dict[str, Any], *, verbose: bool = False
) -> list[Question]:
    """The questions that a table's rows answer.

    Args:
        rows: rows of oracle.jsonl.
        configs: what ``read_configs`` gives.
        verbose: for every question.
    """
    return [
        Question(
            model=row["model"],
            config=configs[row["model"]]["config"],
            hf_quant_config=configs[row["model"]].get("hf_quant_config"),
            gpu=row["gpu"],
            tag=row["tag"],
            engine_args=row["engine_args"],
            env=row.get("env") or ENVIRONMENT_OF_TAG.get(row["tag"], {}),
            available=tuple(run["available"] for run in row.get("runs", ())) or DEFAULT_AVAILABLE,
            verbose=verbose,
            draft=configs.get(draft_name(row["engine_args"]) or ""),
        )
        for row in rows
    ]


def sample(numbers: list[int], kinds: list[str], size: int) -> list[int]:
    """At most ``size`` of ``numbers``, as evenly over the kinds as their count allows.

    Args:
        numbers: row numbers.
        kinds: the kind of each row of the table.
        size: how many.
    """
    of_kind: dict[str, list[int]] = {}
    for number in sorted(numbers, key=lambda number: zlib.crc32(str(number).encode())):
        of_kind.setdefault(kinds[number], []).append(number)
    rounds = zip_longest(*of_kind.values())
    return sorted([n for turn in rounds for n in turn if n is not None][:size])


def question_about(
    folder: Path,
    *,
    gpu: str,
    engine_args: dict[str, Any],
    available: tuple[int, ...],
    verbose: bool,
) -> Question:
    """A question about a model folder.

    Raises:
        FileNotFoundError: it has no config.json.
    """
    quantization = folder / "hf_quant_config.json"
    return Question(
        model=folder.resolve().name,
        config=json.loads((folder / "config.json").read_text(encoding="utf-8")),
        hf_quant_config=(
            json.loads(quantization.read_text(encoding="utf-8")) if quantization.exists() else None
        ),
        gpu=gpu,
        engine_args=engine_args,
        available=available,
        verbose=verbose,
    )
