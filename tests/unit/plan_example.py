"""Plans built by hand, for the tests of everything that writes plans down.

The figures are round on purpose and agree with each other; they are no model's real figures.
One GPU: total 80 GiB, requested 72 GiB = 0.9 x 80.
  chat: weights 16 + activations 2 + CUDA graphs 0.5 + non-torch 0.5 + KV cache 53 = 72 GiB.
  KV cache of 131072 bytes a token: 53 GiB / 128 KiB = 434176 tokens = 27136 blocks of 16;
  at 8192 tokens a request 434176 / 8192 = 53.0.
  docs: 2 GPUs, weights 8 a GPU, 61 GiB / 64 KiB = 999424 tokens = 62464 blocks;
  at 131072 tokens a request 999424 / 131072 = 7.625.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from vllm_advisor import __version__
from vllm_advisor.types.accelerator import Accelerator, Interconnect, Node, Price
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.engine import EngineArgs, EngineFacts, Flag
from vllm_advisor.types.plan import Alternative, Cost, Deployment, Instance, Plan, Route
from vllm_advisor.types.sizing import (
    Capacity,
    Figure,
    InstanceFigures,
    KVCacheGroup,
    MemoryBudget,
)
from vllm_advisor.types.source import Assumption, Confidence, Source

GIB = 1 << 30
MIB = 1 << 20
MODEL = "example-org/Example-8B-Instruct"

FLAGS = (
    Flag(dest="port", spellings=("--port",), kind="int", default=8000),
    Flag(dest="max_model_len", spellings=("--max-model-len",), kind="tokens"),
    Flag(
        dest="tensor_parallel_size",
        spellings=("--tensor-parallel-size", "-tp"),
        kind="int",
        default=1,
    ),
    Flag(dest="gpu_memory_utilization", spellings=("--gpu-memory-utilization",), kind="float"),
    Flag(dest="kv_cache_dtype", spellings=("--kv-cache-dtype",), kind="str", default="auto"),
    Flag(
        dest="enable_chunked_prefill",
        spellings=("--enable-chunked-prefill",),
        negations=("--disable-chunked-prefill", "--no-enable-chunked-prefill"),
        kind="bool",
    ),
    Flag(dest="disable_log_stats", spellings=("--disable-log-stats",), kind="bool", default=False),
    Flag(dest="enforce_eager", spellings=("--eager", "--enforce-eager"), kind="bool"),
    Flag(dest="hf_overrides", spellings=("--hf-overrides",), kind="json", default={}),
    Flag(dest="served_model_name", spellings=("--served-model-name",), kind="str", nargs="+"),
    Flag(dest="cudagraph_capture_sizes", spellings=("--cudagraph-capture-sizes",), nargs="+"),
    Flag(dest="lora_modules", spellings=("--lora-modules",), kind="str", nargs="+"),
    Flag(dest="allowed_origins", spellings=("--allowed-origins",), kind="json", default=["*"]),
    Flag(dest="middleware", spellings=("--middleware",), kind="str", default=[]),
    Flag(dest="hf_token", spellings=("--hf-token",), kind="str", nargs="?"),
    Flag(dest="seed", spellings=("--seed",), kind="int", default=0),
    Flag(dest="chat_template", spellings=("--chat-template",), kind="str"),
    Flag(dest="nnodes", spellings=("--nnodes", "-n"), kind="int", default=1),
    Flag(dest="node_rank", spellings=("--node-rank", "-r"), kind="int", default=0),
    Flag(dest="headless", spellings=("--headless",), negations=("--no-headless",), kind="bool"),
)
ENGINE = EngineFacts(
    version="0.33.0",
    flags={flag.dest: flag for flag in FLAGS},
    gpu_memory_utilization=0.92,
    block_size=16,
    async_scheduling=True,
    source="vllm:0.33.0:vllm/entrypoints/common/cli_args.py#make_arg_parser",
    version_used="0.33.0",
)
GPU = Accelerator(
    id="h100-80gb",
    name="NVIDIA H100 80GB HBM3",
    memory_total=80 * GIB,
    memory_total_source=Source.parse("profile:gpus/h100#memory_total"),
    compute_capability=(9, 0),
    price=Price(usd_per_gpu_hour=2.45, source=Source.parse("user:workload.yaml:30")),
)
NODE = Node(
    accelerator=GPU,
    gpu_count=4,
    interconnect=Interconnect.NVLINK,
    source=Source.parse("user:workload.yaml:4"),
)
USER = Source.parse("user:workload.yaml:12")
FORMULA = Source.parse("formula:kv-cache")
GUESS = Assumption(
    id="cuda-graphs",
    text="CUDA graphs take what was measured on another GPU",
    lowers_to=Confidence.MEDIUM,
)


def figure(id_: str, value: float, unit: str = "bytes", **changes: Any) -> Figure:
    return Figure(
        **{
            "id": id_,
            "value": value,
            "unit": unit,
            "formula": "given",
            "source": FORMULA,
            **changes,
        }
    )


def decision(id_: str, value: Any, dest: str | None = None, **changes: Any) -> Decision:
    return Decision(
        **{
            "id": id_,
            "subject": id_.partition(".")[2],
            "value": value,
            "dest": dest,
            "reason": f"Reason of {id_}.",
            "source": USER,
            **changes,
        }
    )


def budget(name: str, *, weights: int, kv_cache: int) -> MemoryBudget:
    """72 GiB requested: weights, 2 GiB, 512 MiB, 512 MiB and the KV cache, in bytes."""
    parts = {
        "total": 80 * GIB,
        "requested": 72 * GIB,
        "weights": weights,
        "activations": 2 * GIB,
        "cuda_graphs": 512 * MIB,
        "non_torch": 512 * MIB,
        "kv_cache": kv_cache,
    }
    return MemoryBudget(
        **{
            part: figure(f"{name}.memory.{part.replace('_', '-')}", value)
            for part, value in parts.items()
        }
    )


def capacity(
    *, tokens: int, max_model_len: int, bytes_per_token: int, fits: bool = True
) -> Capacity:
    return Capacity(
        available_bytes=tokens * bytes_per_token,
        max_model_len=max_model_len,
        num_gpu_blocks=tokens // 16,
        block_size=16,
        bytes_per_block=16 * bytes_per_token,
        blocks_per_request=max_model_len // 16,
        tokens=tokens,
        max_concurrency=tokens / max_model_len,
        bytes_per_token=bytes_per_token,
        request_bytes=max_model_len * bytes_per_token,
        fits=fits,
        estimated_max_model_len=tokens,
        groups=(
            KVCacheGroup(
                kind="full_attention",
                num_layers=32,
                block_size=16,
                page_size_bytes=16 * bytes_per_token // 32,
                blocks_per_request=max_model_len // 16,
            ),
        ),
    )


def instance(
    name: str,
    decisions: tuple[Decision, ...],
    *,
    model: str = MODEL,
    model_reason: str = "The workload names the model.",
    **changes: Any,
) -> Instance:
    model_decision = decision(f"{name}.model", model, reason=model_reason)
    return Instance(
        **{
            "name": name,
            "role": "general",
            "engine_args": EngineArgs.from_decisions(model_decision, decisions),
            **changes,
        }
    )


def chat_decisions(name: str = "chat") -> tuple[Decision, ...]:
    return (
        decision(f"{name}.port", 8000, "port", reason="Ports count up from 8000."),
        decision(
            f"{name}.max-model-len",
            8192,
            "max_model_len",
            reason="The longest chat has 8,192 tokens: 7,168 of prompt and 1,024 of answer.",
            because=(f"{name}.longest-request",),
            rejected=(
                Rejected(
                    option="131072",
                    why="vLLM would have to hold one request of 16 GiB that never comes",
                ),
            ),
        ),
        decision(
            f"{name}.gpu-memory-utilization",
            0.9,
            "gpu_memory_utilization",
            reason="Nothing else runs on the GPU.",
        ),
        decision(
            f"{name}.enable-chunked-prefill",
            value=True,
            dest="enable_chunked_prefill",
            reason="Long prompts may not stall running answers.",
        ),
    )


def docs_decisions(name: str = "docs") -> tuple[Decision, ...]:
    return (
        decision(f"{name}.port", 8001, "port", reason="Ports count up from 8000."),
        decision(f"{name}.max-model-len", 131072, "max_model_len", reason="Contracts are long."),
        decision(
            f"{name}.tensor-parallel-size",
            2,
            "tensor_parallel_size",
            reason="Six whole contracts at once need 96 GiB of KV cache; one GPU has 53.",
            because=(f"{name}.kv-per-request", "hf:example-org/config.json#num_key_value_heads"),
            rejected=(
                Rejected(option="1", why="holds three contracts, six are asked for"),
                Rejected(option="4", why="two GPUs are enough"),
            ),
        ),
    )


def example_plan(**changes: Any) -> Plan:
    """Two instances on three GPUs: ``chat`` (one GPU) and ``docs`` (two)."""
    chat, docs = chat_decisions(), docs_decisions()
    chat_budget = budget("chat", weights=16 * GIB, kv_cache=53 * GIB)
    docs_budget = budget("docs", weights=8 * GIB, kv_cache=61 * GIB)
    instances = (
        instance(
            "chat",
            chat,
            role="short",
            classes=("support-chat", "search"),
            figures=InstanceFigures(
                budget=chat_budget,
                capacity=capacity(tokens=434176, max_model_len=8192, bytes_per_token=131072),
                derived_max_model_len=131072,
                attention_backend="FLASH_ATTN",
                assumptions=(GUESS,),
            ),
        ),
        instance(
            "docs",
            docs,
            role="long-document",
            gpus=2,
            classes=("contracts",),
            figures=InstanceFigures(
                budget=docs_budget,
                capacity=capacity(tokens=999424, max_model_len=131072, bytes_per_token=65536),
                derived_max_model_len=131072,
                attention_backend="FLASH_ATTN",
            ),
        ),
    )
    plan = Plan(
        name="support",
        feasible=True,
        model=MODEL,
        vllm_version="0.33.0",
        node=NODE,
        deployment=Deployment(instances=instances),
        routes=(
            Route(
                request_class="support-chat",
                strategy="direct",
                instance="chat",
                reason="Chats fit in 8,192 tokens.",
            ),
            Route(
                request_class="search",
                strategy="rag-first",
                instance="chat",
                retrieve=True,
                fallback="docs",
                reason="Five passages answer a search.",
            ),
            Route(
                request_class="contracts",
                strategy="whole-document",
                instance="docs",
                reason="All of a contract has to be read.",
            ),
        ),
        decisions=(
            *chat,
            *docs,
            decision("deployment.instances", 2, reason="Long prompts stay away from chats."),
        ),
        figures=(
            *chat_budget.figures,
            *docs_budget.figures,
            figure("chat.longest-request", 8192, "tokens", formula="7168 + 1024", source=USER),
            figure("chat.concurrency.support-chat", 40, "requests", formula="as stated"),
            figure("chat.concurrency.search", 8, "requests", formula="4 a second x 2 s"),
            # 256 blocks of 16 tokens hold the 4,096 tokens of a request at p95.
            figure("chat.kv.blocks_needed", 12289, "blocks", formula="1 + (40 + 8) x 256"),
            figure(
                "chat.concurrency-at-p95",
                106,
                "requests",
                formula="27136 blocks / 256",
                inputs=("chat.memory.kv-cache", "chat.longest-request"),
            ),
            figure(
                "docs.kv-per-request",
                16 * GIB,
                formula="131072 tokens x 128 KiB",
                inputs=("hf:example-org/config.json#num_key_value_heads",),
            ),
        ),
        alternatives=(
            Alternative(
                name="one GPU with FP8 KV cache",
                subject="docs",
                feasible=True,
                gpus=1,
                kv_bytes_per_request=8 * GIB,
                max_concurrency=6.625,
                cost_usd_per_hour=2.45,
                loses="some accuracy on long prompts",
                why="the workload forbids an FP8 KV cache",
            ),
            Alternative(
                name="sliding window",
                subject="docs",
                feasible=False,
                gpus=None,
                kv_bytes_per_request=None,
                max_concurrency=None,
                cost_usd_per_hour=None,
                loses="everything before the window",
                why="exact recall is asked for",
            ),
        ),
        assumptions=(GUESS,),
        cost=Cost(gpus=3, usd_per_hour=7.35, price_source="user:workload.yaml:30"),
        notes=("The application does the retrieval.",),
        inputs={"workload": "workload.yaml"},
    )
    return dataclasses.replace(plan, **changes)


def infeasible_plan() -> Plan:
    return example_plan(
        feasible=False,
        deployment=Deployment(instances=()),
        routes=(),
        decisions=(decision("docs.weights", "bfloat16", reason="The weights take 16 GiB."),),
        figures=(),
        cost=Cost(gpus=0, usd_per_hour=None, price_source=""),
        infeasible_because=(
            "docs: one request of 131,072 tokens needs 16.00 GiB of KV cache, 5.00 GiB are left.",
        ),
        nearest="max_model_len 40,960 on one GPU, or two GPUs.",
        notes=(),
    )


def expect(path: Path, text: str) -> None:
    """Compare with a file beside the test; ``UPDATE_GOLDEN=1`` writes it anew."""
    text = text.replace(__version__, "VERSION")
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
