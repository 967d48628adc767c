"""What is deployed, and the plan that explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vllm_advisor.types.accelerator import Node
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineArgs
from vllm_advisor.types.environment import Environment
from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.types.sizing import Figure, InstanceFigures
from vllm_advisor.types.source import Assumption, Confidence, confidence_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One kind of server in the deployment.

    ``gpus`` is what one replica takes (TP x PP x PCP x DP); ``figures`` are one replica's.
    """

    name: str
    role: str  # "general", "short" or "long-document"
    engine_args: EngineArgs
    replicas: int = 1
    gpus: int = 1
    classes: tuple[str, ...] = field(default=(), compare=False)
    figures: InstanceFigures | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where the requests of one class go.

    ``retrieve`` sends the passages that retrieval finds instead of the whole prompt; ``fallback``
    is the instance that takes the whole prompt where they do not answer it.
    """

    request_class: str
    strategy: str
    instance: str
    retrieve: bool = False
    fallback: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The instances; equality ignores figures and where arguments come from.

    Reading the commands of a rendered plan gives the same deployment again.
    """

    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A candidate that was computed and not taken, with its numbers."""

    name: str
    subject: str  # instance or "deployment"
    feasible: bool
    gpus: int | None
    kv_bytes_per_request: int | None
    max_concurrency: float | None
    cost_usd_per_hour: float | None
    loses: str  # what is lost
    why: str  # why it was not taken
    ttft_p95_ms: float | None = None  # of its slowest class; None where speed is not modelled
    itl_p95_ms: float | None = None
    pareto: bool = False  # none of the same subject is both cheaper and faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """GPUs and what they cost; ``None`` where no price is known, or no speed.

    Per token and per request at the load that is stated, not at the most there is.
    """

    gpus: int
    usd_per_hour: float | None
    price_source: str
    usd_per_million_output_tokens: float | None = None
    usd_per_request: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deployment, why it is what it is, and what else was tried."""

    name: str
    feasible: bool
    model: str
    vllm_version: str
    node: Node
    deployment: Deployment
    routes: tuple[Route, ...]
    decisions: tuple[Decision, ...]
    figures: tuple[Figure, ...]
    alternatives: tuple[Alternative, ...]
    assumptions: tuple[Assumption, ...]
    cost: Cost
    infeasible_because: tuple[str, ...] = ()
    nearest: str = ""
    notes: tuple[str, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    routing: RoutingPolicy | None = None  # None where nothing is deployed

    @property
    def confidence(self) -> Confidence:
        """Lowest confidence any assumption allows."""
        return confidence_of(self.assumptions)

    def figure(self, figure_id: str) -> Figure:
        """The figure with an id.

        Raises:
            KeyError: the plan has none.
        """
        found = next((f for f in self.figures if f.id == figure_id), None)
        if found is None:
            raise KeyError(figure_id)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file to write: path inside the output directory, and its text."""

    path: str
    text: str
    executable: bool = False
