"""The keys of an ``environment:`` section or file: cluster facts beside a workload."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from vllm_advisor.knowledge.workload_values import Count, Keys, Line, Name
from vllm_advisor.types.environment import (
    Autoscaler,
    GatewayProvider,
    GpuAllocation,
    ModelCache,
    Monitoring,
    MultiNode,
    RouterPlace,
)

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PATH_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"  # of an image repository

DnsLabel = Annotated[str, Field(pattern=rf"^{_LABEL}$")]
DnsName = Annotated[str, Field(pattern=rf"^{_LABEL}(\.{_LABEL})*$", max_length=253)]
LabelKey = Annotated[str, Field(pattern=rf"^({_LABEL}(\.{_LABEL})*/)?{_NAME_PART}$")]
LabelValue = Annotated[str, Field(pattern=rf"^({_NAME_PART})?$")]
SecretKey = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]
Registry = Annotated[
    str, Field(pattern=rf"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?(/{_PATH_PART})*$")
]
Repository = Annotated[str, Field(pattern=rf"^{_PATH_PART}(/{_PATH_PART})*$", max_length=255)]
Tag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
MountPath = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._-]+)+$", max_length=255)]
Url = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9._~:/?#@!&*+,;=%-]+$", max_length=400)]
# What routers are told: no path, no user, nothing but where a server listens.
_HOST = rf"({_LABEL}(\.{_LABEL})*|\[[0-9a-f:.]+\])"
BaseUrl = Annotated[str, Field(pattern=rf"^https?://{_HOST}(:[0-9]{{1,5}})?$", max_length=300)]
ListenHost = Annotated[
    str, Field(pattern=rf"^({_LABEL}(\.{_LABEL})*|([0-9a-f]*:){{2}}[0-9a-f:.]*)$", max_length=253)
]
Port = Annotated[int, Field(ge=1, le=65_535)]
Toleration = dict[
    Literal["key", "operator", "value", "effect"], Annotated[str, Field(min_length=1)]
]


class EnvironmentKeys(Keys):
    """Where the plan is deployed. Nothing here changes what is planned."""

    model_config = ConfigDict(title="vllm-advisor environment")

    namespace: DnsLabel | None = Field(
        None, description="Namespace of all objects; that of the kubectl context unless given."
    )
    labels: dict[LabelKey, LabelValue] | None = Field(
        None, description="Labels added to every object, such as {team: search}."
    )
    image_registry: Registry | None = Field(
        None, description="Registry in front of the image, such as registry.example.com/mirror."
    )
    image: Repository | None = Field(
        None, description="Image without its tag; vllm/vllm-openai unless given."
    )
    image_tag: Tag | None = Field(
        None, description="Tag of the image; v and the planned vLLM version unless given."
    )
    image_digest: Digest | None = Field(
        None, description="Digest of the image, sha256:...; pins what the tag only names."
    )
    image_pull_secrets: list[DnsName] | None = Field(
        None, description="Names of image pull Secrets."
    )
    model_cache: Annotated[ModelCache, Field(strict=False)] | None = Field(
        None, description="claim (downloaded once into a claim) or ephemeral (at every start)."
    )
    model_claim: DnsName | None = Field(
        None, description="An existing claim that holds the model's folder; mounted read-only."
    )
    model_mount_path: MountPath | None = Field(
        None, description="Where model_claim or model_host_path is mounted; /models unless given."
    )
    model_host_path: MountPath | None = Field(
        None, description="Folder of the host with the model, for Compose; its own unless given."
    )
    storage_class_name: DnsName | None = Field(
        None, description="StorageClass of the claims; the cluster's default unless given."
    )
    storage_access_mode: Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"] | None = (
        Field(None, description="Access mode of the claims: ReadWriteMany shares one claim.")
    )
    download_mib_per_second: Count | None = Field(
        None, description="MiB per second at which weights arrive; sizes the startup probe."
    )
    hf_token_secret: DnsName | None = Field(
        None, description="Secret with the Hugging Face token; null for none."
    )
    hf_token_key: SecretKey | None = Field(None, description="Key in hf_token_secret.")
    api_key_secret: DnsName | None = Field(
        None, description="Secret with the API key clients have to send; null for none."
    )
    api_key_key: SecretKey | None = Field(None, description="Key in api_key_secret.")
    node_selector: dict[LabelKey, LabelValue] | None = Field(
        None, description="nodeSelector of the pods, beside the GPU they were planned for."
    )
    tolerations: list[Toleration] | None = Field(
        None, description="Tolerations of the pods; nvidia.com/gpu:NoSchedule unless given."
    )
    runtime_class_name: DnsName | None = Field(
        None, description="runtimeClassName of the pods, such as nvidia."
    )
    priority_class_name: DnsName | None = Field(None, description="priorityClassName of the pods.")
    gpu_allocation: Annotated[GpuAllocation, Field(strict=False)] | None = Field(
        None, description="device-plugin (nvidia.com/gpu) or dra (a ResourceClaimTemplate)."
    )
    device_class_name: DnsName | None = Field(
        None, description="DeviceClass for dra; gpu.nvidia.com unless given."
    )
    client_namespaces: list[DnsLabel] | None = Field(
        None, description="Namespaces whose pods may reach the servers, beside their own."
    )
    ingress_class_name: DnsName | None = Field(None, description="ingressClassName.")
    ingress_host: DnsName | None = Field(
        None, description="Host of the Ingress; every instance gets <instance>.<host>."
    )
    ingress_tls_secret: DnsName | None = Field(
        None, description="Secret with the certificate of the Ingress."
    )
    ingress_namespace: DnsLabel | None = Field(
        None, description="Namespace of the ingress controller; ingress-nginx unless given."
    )
    ingress_annotations: dict[LabelKey, Line] | None = Field(
        None, description="Annotations of the Ingress, beside those for long answers."
    )
    gateway_name: DnsName | None = Field(
        None, description="Gateway of the target llm-d; null for a route of your own."
    )
    gateway_namespace: DnsLabel | None = Field(
        None, description="Namespace of the Gateway; let through the NetworkPolicy of llm-d."
    )
    gateway_provider: Annotated[GatewayProvider, Field(strict=False)] | None = Field(
        None, description="istio or none: what llm-d's chart writes for the Gateway."
    )
    monitoring: Annotated[Monitoring, Field(strict=False)] | None = Field(
        None, description="pod-monitor (prometheus-operator) or none."
    )
    monitoring_namespace: DnsLabel | None = Field(
        None, description="Namespace that scrapes metrics; let through the NetworkPolicy."
    )
    prometheus_url: Url | None = Field(None, description="Prometheus that KEDA asks.")
    autoscaler: Annotated[Autoscaler, Field(strict=False)] | None = Field(
        None, description="keda, hpa or none."
    )
    max_replicas: Count | None = Field(
        None, description="Most replicas of an instance; as the planned hardware unless given."
    )
    multi_node: Annotated[MultiNode, Field(strict=False)] | None = Field(
        None, description="mp (vLLM's own) or ray, for instances that span nodes."
    )
    router_place: Annotated[RouterPlace, Field(strict=False)] = Field(
        RouterPlace.HOST,
        description="Where the router runs: host, kubernetes or compose; how it finds instances.",
    )
    router_host: ListenHost = Field(
        "0.0.0.0",  # noqa: S104 - as in Environment
        description="Address the router listens on: an IP, or a host name where a router can.",
    )
    router_port: Port = Field(4000, description="Port the router listens on.")
    instance_urls: dict[Name, Annotated[list[BaseUrl], Field(min_length=1)]] = Field(
        {},
        description="Base URLs of the replicas by instance, such as "
        "{chat: [http://10.0.0.5:8000]}; they win over router_place.",
    )
