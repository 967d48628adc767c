"""One instance as an entry of ``modelSpec``."""

from __future__ import annotations

from typing import Any

from vllm_advisor.render.argv import flag_words
from vllm_advisor.render.because import because
from vllm_advisor.render.names import dns_label
from vllm_advisor.render.pod import (
    expanded,
    image_repository,
    pod_view,
    templated,
)
from vllm_advisor.render.scaling import scaling_view
from vllm_advisor.types.engine import EngineArg, EngineFacts
from vllm_advisor.types.environment import Autoscaler, Environment, ModelCache
from vllm_advisor.types.plan import Instance, Plan

LONGEST_RELEASE = 20
PORT = 8000  # of every engine: where the chart's router looks for them
# <release>-<name>-engine-service is the longest name that has to be a DNS label.
_LONGEST_NAME = 63 - LONGEST_RELEASE - len("--engine-service")
DATA = "/data"  # where the chart mounts its claim
_CHART_WRITES = frozenset(("host", "port"))
_SETTINGS = {
    "enable_prefix_caching": "enablePrefixCaching",
    "enable_chunked_prefill": "enableChunkedPrefill",
    "max_model_len": "maxModelLen",
    "dtype": "dtype",
    "tensor_parallel_size": "tensorParallelSize",
    "max_num_seqs": "maxNumSeqs",
    "gpu_memory_utilization": "gpuMemoryUtilization",
}
_FLOAT_FROM = 1_000_000  # Helm prints integers from here on as 1e+06, which vLLM refuses
_CHART_LABELS = frozenset(
    (
        "model",
        "helm-release-name",
        "release",
        "app.kubernetes.io/name",
        "app.kubernetes.io/instance",
        "app.kubernetes.io/component",
        "app.kubernetes.io/part-of",
        "app.kubernetes.io/managed-by",
    )
)
RELEASE = "{{ .Release.Name }}"  # filled in by Helm, in extraObjects only
METRIC_LABEL = "app_kubernetes_io_name"


def engine_view(
    plan: Plan, instance: Instance, engine: EngineFacts, account: str
) -> dict[str, Any]:
    """Everything the template places for one instance.

    Raises:
        OutputError: an argument cannot be written, or no pod could see the model.
    """
    place, name = plan.environment, dns_label(instance.name, _LONGEST_NAME)
    scaling = scaling_view(plan, instance, _metric_labels(place, name))
    keda = scaling["autoscaler"] == Autoscaler.KEDA
    several = instance.replicas > 1 or (keda and scaling["max_replicas"] > 1)
    pod = pod_view(plan, instance, engine)
    claims = pod["cache"] == ModelCache.CLAIM
    # The chart has one claim for all replicas of an engine.
    shared_claim = claims and (not several or place.storage_access_mode == "ReadWriteMany")
    as_setting = {
        arg.dest: arg
        for arg in instance.engine_args
        if arg.dest in _SETTINGS and _is_setting(arg, shm=pod["resources"]["shm"] is not None)
    }
    return {
        **pod,
        **scaling,
        "name": name,
        "about": f"Instance {instance.name} ({instance.role}); serves: "
        f"{', '.join(instance.classes) or 'everything'}.",
        "account": account,
        "repository": image_repository(place),
        "tag": pod["image"].removeprefix(f"{image_repository(place)}:"),
        "labels": _labels(plan),
        "replicas": instance.replicas,
        "data": DATA,
        "cpu_cores": int(pod["resources"]["cpu"]),
        "keda": keda,
        "scaler_name": f"{RELEASE}-{name}-engine",
        "deployment_name": f"{RELEASE}-{name}-deployment-vllm",
        "scaling_query": templated(scaling["scaling_query"]),
        "several": several,
        "claim": shared_claim,
        "claim_each": claims and not shared_claim,
        "affinity": _affinity(place, pod["gpu_product"]),
        "settings": [
            *_prefix_caching(instance),
            *(
                {"entry": {_SETTINGS[dest]: _value(arg)}, "because": because(arg.origin)}
                for dest, arg in as_setting.items()
            ),
        ],
        "args": [
            {
                "because": because(arg.origin),
                "words": [expanded(word) for word in flag_words(arg, engine)],
            }
            for arg in instance.engine_args
            if arg.dest not in as_setting and arg.dest not in _CHART_WRITES
        ],
        "shm_by_chart": "tensor_parallel_size" in as_setting,
        "extra_volumes": [
            *([] if shared_claim else [_cache_volume(place, pod, claims=claims)]),
            *([_model_volume(place)] if pod["local_model"] else []),
            *(
                [_shm_volume(pod)]
                if pod["resources"]["shm"] and "tensor_parallel_size" not in as_setting
                else []
            ),
        ],
    }


def _is_setting(arg: EngineArg, *, shm: bool) -> bool:
    """The chart's own key carries this value unchanged; ``extraArgs`` carries any."""
    value = arg.value
    if arg.dest.startswith("enable_"):
        return isinstance(value, bool)
    if arg.dest == "dtype":
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if arg.dest == "gpu_memory_utilization":
        return isinstance(value, int | float)
    if arg.dest == "tensor_parallel_size" and not shm:
        return False  # with this key the chart mounts /dev/shm
    return isinstance(value, int) and 0 <= value < _FLOAT_FROM


def _value(arg: EngineArg) -> Any:
    return expanded(arg.value) if isinstance(arg.value, str) else arg.value


def _prefix_caching(instance: Instance) -> list[dict[str, Any]]:
    """Without the key the chart writes ``--no-enable-prefix-caching``."""
    if instance.engine_args.get("enable_prefix_caching") is not None:
        return []
    pooling = instance.engine_args.get("runner") == "pooling"
    return [
        {
            "entry": {"enablePrefixCaching": not pooling},
            "because": "The plan leaves it to vLLM, and the chart cannot: off suits every pooling "
            "model."
            if pooling
            else "The plan leaves it to vLLM, and the chart cannot: vLLM's own default for models "
            "that generate.",
        }
    ]


def _cache_volume(place: Environment, pod: dict[str, Any], *, claims: bool) -> dict[str, Any]:
    """What ``pvcStorage`` cannot be: a volume of each pod's own."""
    storage = pod["resources"]["claim"]
    spec = {
        "accessModes": [place.storage_access_mode],
        **({"storageClassName": place.storage_class_name} if place.storage_class_name else {}),
        "resources": {"requests": {"storage": storage}},
    }
    own = {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}} if claims else {"emptyDir": {}}
    return {
        "because": f"A claim for each pod, gone with it: {pod['because']['claim']}"
        if claims
        else f"Takes up to {pod['resources']['ephemeral_storage']} of the node's disk: "
        f"{pod['because']['ephemeral_storage']}",
        "volume": {"name": "cache", **own},
        "mount": {"name": "cache", "mountPath": DATA},
    }


def _model_volume(place: Environment) -> dict[str, Any]:
    claim = {"claimName": place.model_claim, "readOnly": True}
    return {
        "because": "The claim that holds the model's folder.",
        "volume": {"name": "model", "persistentVolumeClaim": claim},
        "mount": {"name": "model", "mountPath": place.model_mount_path, "readOnly": True},
    }


def _shm_volume(pod: dict[str, Any]) -> dict[str, Any]:
    """The chart mounts one for ``tensorParallelSize`` only."""
    memory = {"medium": "Memory", "sizeLimit": pod["resources"]["shm"]}
    return {
        "because": pod["because"]["shm"],
        "volume": {"name": "shm", "emptyDir": memory},
        "mount": {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
    }


def _labels(plan: Plan) -> dict[str, str]:
    """Labels beside the chart's own; a key twice would be no YAML that Helm reads."""
    wanted = {**plan.environment.labels, "app.kubernetes.io/version": plan.vllm_version}
    return {key: value for key, value in wanted.items() if key not in _CHART_LABELS}


def _metric_labels(place: Environment, name: str) -> dict[str, str]:
    scope = {"namespace": place.namespace} if place.namespace else {}
    return {METRIC_LABEL: name, **scope}


def _affinity(place: Environment, gpu_product: str) -> list[dict[str, Any]]:
    wanted = {"nvidia.com/gpu.product": gpu_product, **place.node_selector}
    return [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
