"""Where a plan is deployed: facts of a cluster or host that never influence what is planned."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any


class ModelCache(StrEnum):
    """Where downloaded weights are kept."""

    CLAIM = "claim"  # a PersistentVolumeClaim: downloaded once
    EPHEMERAL = "ephemeral"  # an emptyDir: downloaded at every start


class GpuAllocation(StrEnum):
    """How a pod asks for GPUs."""

    DEVICE_PLUGIN = "device-plugin"  # the extended resource nvidia.com/gpu
    DRA = "dra"  # a ResourceClaimTemplate (resource.k8s.io/v1)


class Autoscaler(StrEnum):
    """What changes the number of replicas."""

    KEDA = "keda"  # ScaledObject (keda.sh/v1alpha1) on a Prometheus query
    HPA = "hpa"  # HorizontalPodAutoscaler (autoscaling/v2) on metrics of prometheus-adapter
    NONE = "none"


class Monitoring(StrEnum):
    """What collects vLLM's metrics."""

    POD_MONITOR = "pod-monitor"  # monitoring.coreos.com/v1
    NONE = "none"


class GatewayProvider(StrEnum):
    """What implements the Gateway, as far as llm-d's chart has resources for it."""

    ISTIO = "istio"  # a DestinationRule: the endpoint picker's certificate is its own
    NONE = "none"  # nothing beyond the Gateway API


class MultiNode(StrEnum):
    """How ranks of one instance on several nodes find each other."""

    MP = "mp"  # vLLM's own --nnodes, --node-rank and --master-addr
    RAY = "ray"


class RouterPlace(StrEnum):
    """Where a router in front of the instances runs, which decides how it reaches them."""

    HOST = "host"  # on the GPU host itself: ports of 127.0.0.1
    KUBERNETES = "kubernetes"  # a pod of the cluster: the instances' Services
    COMPOSE = "compose"  # a service of the Compose project: the other services by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Facts of the place of deployment; every one has a default that works on a plain cluster.

    Names follow Kubernetes' fields. ``None`` switches a thing off or leaves it to the cluster.
    """

    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    image_registry: str | None = None  # a mirror: in front of ``image``
    image: str = "vllm/vllm-openai"
    image_tag: str | None = None  # v<vLLM version>
    image_digest: str | None = None  # sha256:...
    image_pull_secrets: tuple[str, ...] = ()
    model_cache: ModelCache = ModelCache.CLAIM
    model_claim: str | None = None  # an existing claim that holds the model's folder, read-only
    model_mount_path: str = "/models"
    model_host_path: str | None = None  # a host's folder at model_mount_path; the model's own path
    storage_class_name: str | None = None
    storage_access_mode: str = "ReadWriteOnce"
    download_mib_per_second: int = 100  # slowest way the weights take into the pod
    hf_token_secret: str | None = "hf-token"
    hf_token_key: str = "HF_TOKEN"
    api_key_secret: str | None = "vllm-api-key"
    api_key_key: str = "VLLM_API_KEY"
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[dict[str, str], ...] = (
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    )
    runtime_class_name: str | None = None
    priority_class_name: str | None = None
    gpu_allocation: GpuAllocation = GpuAllocation.DEVICE_PLUGIN
    device_class_name: str = "gpu.nvidia.com"
    client_namespaces: tuple[str, ...] = ()  # may reach the servers, beside their own namespace
    ingress_class_name: str | None = None
    ingress_host: str | None = None
    ingress_tls_secret: str | None = None
    ingress_namespace: str = "ingress-nginx"  # of the controller: let through the NetworkPolicy
    ingress_annotations: dict[str, str] = field(default_factory=dict)
    gateway_name: str | None = "inference-gateway"
    gateway_namespace: str | None = None  # the servers' own
    gateway_provider: GatewayProvider = GatewayProvider.ISTIO
    monitoring: Monitoring = Monitoring.POD_MONITOR
    monitoring_namespace: str = "monitoring"
    prometheus_url: str = "http://prometheus-operated.monitoring.svc:9090"
    autoscaler: Autoscaler = Autoscaler.KEDA
    max_replicas: int | None = None  # as many as the planned hardware has room for
    multi_node: MultiNode = MultiNode.MP
    router_place: RouterPlace = RouterPlace.HOST
    router_host: str = "0.0.0.0"  # noqa: S104 - clients of other machines are what it is for
    router_port: int = 4000
    instance_urls: dict[str, tuple[str, ...]] = field(default_factory=dict)  # win over the place

    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name."""
        usual = Environment()
        return {
            f.name: value
            for f in fields(self)
            if (value := getattr(self, f.name)) != getattr(usual, f.name)
        }
