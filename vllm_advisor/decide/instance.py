"""From a chosen candidate to an Instance: every flag with its decision, every number a figure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.instance_figures import instance_figures
from vllm_advisor.decide.memory_flags import length_flag, memory_flags, stretch_flags
from vllm_advisor.decide.parallel_flags import parallel_flags, served_names_flag
from vllm_advisor.decide.reasons import Scope, formula, user, vllm
from vllm_advisor.decide.scheduler_flags import scheduler_flags
from vllm_advisor.decide.search import Search
from vllm_advisor.decide.service import HEADROOM
from vllm_advisor.decide.tree import Serving, Strategy, serving_of
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.engine import EngineArgs
from vllm_advisor.types.plan import Instance
from vllm_advisor.types.sizing import Figure
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.types.workload import Workload

_FIRST_PORT = 8000
_SHUTDOWN_SECONDS = 45  # llm-d's graceful-shutdown component
_LONGEST_SHUTDOWN = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An instance with the decisions and figures behind it."""

    instance: Instance
    decisions: tuple[Decision, ...]
    figures: tuple[Figure, ...]


def build_instance(
    name: str,
    role: str,
    search: Search,
    chosen: Candidate,
    *,
    workload: Workload,
    features: tuple[Decision, ...],
    served_names: tuple[str, ...],
    ports: int,
    shares_with_longer: bool = False,
) -> Built:
    """Turn a candidate into an instance.

    Args:
        name: instance name, the scope of its decisions.
        role: ``general``, ``short`` or ``long-document``.
        search: the search the candidate came from.
        chosen: the candidate.
        workload: for the places of stated values.
        features: decisions that follow from the application and the model.
        served_names: names clients may ask for, the model's own first.
        ports: ports already taken by instances before this one.
        shares_with_longer: requests somebody waits for share this instance with longer prompts.
    """
    scope = Scope(name=name)
    model, figures = search.setting.model, instance_figures(name, search, chosen)
    model_decision = scope.decide(
        "model",
        model.model_id,
        "the model the workload names",
        user(workload.origins.get("model", "model")),
        flag=False,
    )
    flags = (
        served_names_flag(scope, served_names),
        *parallel_flags(scope, search, chosen),
        length_flag(scope, search, workload),
        *stretch_flags(scope, search),
        *memory_flags(scope, search, chosen, workload),
        *scheduler_flags(scope, search, chosen, shares_with_longer=shares_with_longer),
        *features,
        *_shutdown_flag(scope, search),
        scope.decide(
            "port",
            _FIRST_PORT + ports,
            "instances on one host listen on ports of their own; "
            "replicas take the ports that follow",
            formula("first-free-port"),
        ),
    )
    decisions = (model_decision, *_unflagged(scope, search, chosen), *flags)
    instance = Instance(
        name=name,
        role=role,
        engine_args=EngineArgs.from_decisions(model_decision, flags),
        replicas=chosen.replicas,
        gpus=chosen.settings.gpus,
        classes=tuple(d.request.name for d in search.demands),
        figures=chosen.figures,
    )
    return Built(instance=instance, decisions=decisions, figures=figures)


def _shutdown_flag(scope: Scope, search: Search) -> tuple[Decision, ...]:
    """Running requests are finished when a server is told to stop; vLLM's default aborts them."""
    if "shutdown_timeout" not in search.setting.engine.flags:
        return ()
    ends = [math.ceil((d.request.slo.e2e_ms or 0) / 1000) for d in search.demands]
    seconds = min(max([_SHUTDOWN_SECONDS, *ends]), _LONGEST_SHUTDOWN)
    why = "the longest end-to-end target" if seconds > _SHUTDOWN_SECONDS else "what llm-d waits"
    return (
        scope.decide(
            "shutdown_timeout",
            seconds,
            f"a server told to stop finishes its requests for up to {seconds} s ({why}); "
            "vLLM's default of 0 aborts them",
            vllm("0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout"),
            rejected=(Rejected(option="0", why="every rollout would break running requests"),),
        ),
    )


def _unflagged(scope: Scope, search: Search, chosen: Candidate) -> list[Decision]:
    model = search.setting.model
    out = [
        scope.decide(
            "chunked-prefill",
            "on",
            "on by default for generation models: long prompts are read in chunks of "
            "max_num_batched_tokens between the decode steps of others",
            Source(
                SourceKind.VLLM_DEFAULT, f"{search.setting.engine.version}:enable_chunked_prefill"
            ),
            flag=False,
        ),
        scope.decide(
            "replicas",
            chosen.replicas,
            _REPLICAS + (f", and that meet the targets {_HEADROOM}" if chosen.load else ""),
            formula("replicas-from-load" if chosen.load else "replicas-from-concurrency"),
            flag=False,
            because=(
                f"{scope.name}.kv.blocks_needed",
                f"{scope.name}.kv.blocks",
                *((f"{scope.name}.speed.itl",) if chosen.load else ()),
            ),
        ),
    ]
    if any(d.strategy is Strategy.WHOLE_CONTEXT for d in search.demands):
        leaf = serving_of(chosen.settings)
        out.append(
            scope.decide(
                "serving",
                leaf.value,
                _SERVING[leaf],
                formula("decision-tree"),
                flag=False,
                because=(f"{scope.name}.kv.request_bytes", f"{scope.name}.memory.kv_cache"),
            )
        )
    if model.quantization is not None:
        out.append(
            scope.decide(
                "weights",
                model.quantization.method,
                "the checkpoint is quantized; vLLM reads the method from its config",
                model.source,
                flag=False,
            )
        )
    return out


_REPLICAS = (
    "the fewest replicas whose KV cache holds the requests of every class at once, each at its "
    "95th percentile of prompt and answer"
)
_HEADROOM = f"at {HEADROOM:g} times the stated rates"
_SERVING = {
    Serving.ONE_GPU: "one GPU holds weights and the whole context in 16 bits",
    Serving.ONE_GPU_FP8_KV: "one GPU is enough once the KV cache is FP8",
    Serving.TENSOR_PARALLEL: "one GPU is not enough: tensor parallelism over one node",
    Serving.CONTEXT_PARALLEL: "tensor parallelism replicates this cache, so it is split by tokens "
    "with decode context parallelism",
    Serving.DATA_PARALLEL: "tensor parallelism replicates this cache, so engines with a cache of "
    "their own share the experts",
    Serving.PIPELINE_PARALLEL: "one node is not enough: pipeline stages over several nodes",
}
