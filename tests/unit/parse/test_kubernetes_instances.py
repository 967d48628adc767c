"""Manifests into servers: the pods of any workload, fragments, and the objects around them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from read_sources_here import only, read

from vllm_advisor.units import GIB

ARGS = 'image: vllm/vllm-openai:v0.33.0, args: ["org/m"]'
TEMPLATE = f"template: {{spec: {{containers: [{{name: c, {ARGS}}}]}}}}"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Pod", f"containers: [{{name: c, {ARGS}}}]"),
        ("Deployment", TEMPLATE),
        ("StatefulSet", TEMPLATE),
        ("DaemonSet", TEMPLATE),
        ("ReplicaSet", TEMPLATE),
        ("Job", TEMPLATE),
        ("CronJob", f"jobTemplate: {{spec: {{{TEMPLATE}}}}}"),
        ("LeaderWorkerSet", f"leaderWorkerTemplate: {{worker{TEMPLATE[0].upper()}{TEMPLATE[1:]}}}"),
        ("RayCluster", f"workerGroupSpecs: [{{{TEMPLATE}}}]"),
        ("RayService", f"rayClusterConfig: {{headGroupSpec: {{{TEMPLATE}}}}}"),
        ("InferenceService", f"predictor: {{containers: [{{name: c, {ARGS}}}]}}"),
        ("Rollout", TEMPLATE),
    ],
)
def test_the_pods_of_any_workload(kind: str, spec: str) -> None:
    text = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: n}}\nspec: {{{spec}}}\n"
    server = only(text)
    assert server.command.model == "org/m"
    assert server.name.startswith(f"{kind}/n")
    assert server.pod is not None
    assert server.pod.owner.identity == f"{kind}/n"


def test_the_items_of_a_list_and_several_documents() -> None:
    pod = f"{{kind: Pod, metadata: {{name: N}}, spec: {{containers: [{{{ARGS}}}]}}}}"
    text = f"kind: List\nitems: [{pod.replace('N', 'a')}, {pod.replace('N', 'b')}]\n---\n{pod}\n"
    deployed = read(text)
    assert [i.name for i in deployed.instances] == ["Pod/a", "Pod/b", "Pod/N"]
    assert [o.identity for o in deployed.objects] == ["Pod/a", "Pod/b", "Pod/N"]


@pytest.mark.parametrize(
    "text",
    [
        'args: ["--model", "org/m"]',
        '- "--model"\n- org/m\n',
        "- --model\n- org/m\n",
        '{image: vllm/vllm-openai, args: ["--model", "org/m"]}',
        '- name: c\n  image: vllm/vllm-openai\n  args: ["--model", "org/m"]\n',
        'containers:\n- image: vllm/vllm-openai\n  args: ["--model", "org/m"]\n',
        "command: [vllm, serve, org/m]",
        'spec: {containers: [{args: ["--model", "org/m"]}]}\nmetadata: {name: x}\n',
    ],
)
def test_a_fragment(text: str) -> None:
    assert only(text, "kubernetes").command.model == "org/m"
    assert only(text, name="-").command.model == "org/m"


def test_a_fragment_without_a_command_is_a_server_of_unknown_arguments() -> None:
    server = only("startupProbe: {periodSeconds: 5, failureThreshold: 30}\n")
    assert server.command.model == ""
    assert str(server.command.location) == "f.yaml:1:1"
    assert server.container is not None
    assert server.container.startup is not None
    assert server.container.startup.budget == 150


WHOLE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: llm}
spec:
  replicas: 3
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      enableServiceLinks: false
      hostNetwork: true
      automountServiceAccountToken: "false"
      terminationGracePeriodSeconds: 75
      runtimeClassName: nvidia
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}
      securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 7}
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 1
              preference:
                matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [x]}]
      initContainers: [{name: download, image: busybox}]
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.33.0-cu129@sha256:abc
          args: [org/m]
          env:
            - {name: HF_TOKEN, value: hf_written_out}
            - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          envFrom: [{secretRef: {name: more}}, {configMapRef: {name: settings}}]
          ports: [{containerPort: 8000}]
          resources:
            requests: {cpu: 500m, memory: 16Gi, nvidia.com/gpu: 2}
            limits: {memory: 32G, nvidia.com/gpu: "2", ephemeral-storage: 10Gi}
          startupProbe: {httpGet: {path: /health, port: 8000}, failureThreshold: 60}
          readinessProbe: {tcpSocket: {port: http}, periodSeconds: 5}
          livenessProbe:
            {exec: {command: [curl, -f, x]}, initialDelaySeconds: 120, failureThreshold: 1}
          lifecycle: {preStop: {exec: {command: [sleep, "15"]}}}
          securityContext: {runAsUser: 2000, capabilities: {drop: [ALL]}}
          volumeMounts:
            - {name: shm, mountPath: /dev/shm}
            - {name: cache, mountPath: /data/cache, subPath: hub}
            - {name: host, mountPath: /models, readOnly: true}
            - {name: gone, mountPath: /x}
        - {name: proxy, image: envoy}
      volumes:
        - {name: shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}
        - {name: cache, persistentVolumeClaim: {claimName: weights}}
        - {name: host, hostPath: {path: /srv/models}}
---
kind: PersistentVolumeClaim
metadata: {name: weights, namespace: llm}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Gi}}}
---
kind: Service
metadata: {name: vllm, namespace: llm}
spec: {selector: {app: chat}, ports: [{port: 80}]}
---
kind: Service
metadata: {name: elsewhere}
spec: {selector: {app: chat}}
---
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: llm}
spec: {scaleTargetRef: {kind: Deployment, name: chat}}
---
kind: PodDisruptionBudget
metadata: {name: b, namespace: llm}
spec: {selector: {matchLabels: {app: chat}}}
---
kind: NetworkPolicy
metadata: {name: all, namespace: llm}
spec: {podSelector: {}}
"""


def test_the_pod_around_a_server() -> None:
    server = only(WHOLE)
    assert server.name == "Deployment/llm/chat/vllm"  # of two containers
    assert server.vllm_version is not None
    assert server.vllm_version.value == "0.33.0"
    assert [n.value for n in server.gpu_names] == ["NVIDIA-L4"]
    assert server.gpus is not None
    assert (server.gpus.value, server.gpus.location.line) == (2, 35)
    pod = server.pod
    assert pod is not None
    assert pod.rollout is not None
    assert pod.rollout.max_surge is not None
    assert (pod.replicas and pod.replicas.value, pod.rollout.max_surge.value) == (3, "25%")
    assert pod.service_links is not None
    assert (pod.service_links.value, pod.service_links.location.line) == (False, 10)
    assert pod.host_network is not None
    assert pod.service_account_token is not None
    assert (pod.host_network.value, pod.service_account_token.value) == (True, False)
    assert pod.termination_grace is not None
    assert pod.termination_grace.value == 75
    assert pod.runtime_class is not None
    assert pod.runtime_class.value == "nvidia"
    assert [(s.values, s.required) for s in pod.selections] == [
        (("NVIDIA-L4",), True),
        (("x",), False),
    ]
    assert [c.name for c in (*pod.init_containers, *pod.sidecars)] == ["download", "proxy"]
    about = (*pod.services, *pod.autoscalers, *pod.budgets, *pod.policies)
    assert [o.identity for o in about] == [
        "Service/llm/vllm",
        "HorizontalPodAutoscaler/llm/h",
        "PodDisruptionBudget/llm/b",
        "NetworkPolicy/llm/all",
    ]


def test_the_container_of_a_server() -> None:
    container = only(WHOLE).container
    assert container is not None
    assert container.image is not None
    assert (container.image.repository, container.image.tag, container.image.digest) == (
        "vllm/vllm-openai",
        "v0.33.0-cu129",
        "sha256:abc",
    )
    assert [(e.name, e.value, e.source, e.reference) for e in container.env] == [
        ("HF_TOKEN", "hf_written_out", "value", ""),
        ("POD_IP", None, "field", "status.podIP"),
    ]
    assert [e.value for e in container.env_from] == ["Secret/more", "ConfigMap/settings"]
    resources = container.resources
    assert resources.requests["cpu"].value == Fraction(1, 2)
    assert resources.requests["memory"].value == 16 * GIB
    assert resources.limits["memory"].value == 32 * 10**9
    assert resources.gpu_resource == "nvidia.com/gpu"
    memory = container.shared_memory
    assert memory is not None
    assert (memory.kind, memory.size) == ("emptyDir", 2 * GIB)
    assert [(m.path, m.kind, m.source, m.size, m.access_modes) for m in container.mounts] == [
        ("/dev/shm", "emptyDir", "", 2 * GIB, ()),
        ("/data/cache", "persistentVolumeClaim", "weights", 100 * GIB, ("ReadWriteOnce",)),
        ("/models", "hostPath", "/srv/models", None, ()),
        ("/x", "", "", None, ()),
    ]
    assert (container.mounts[1].sub_path, container.mounts[2].read_only) == ("hub", True)
    assert container.pre_stop is not None
    assert container.pre_stop.value == "sleep 15"
    security = container.security
    assert security.run_as_user is not None
    assert security.run_as_non_root is not None
    assert security.fs_group is not None
    assert (security.run_as_user.value, security.run_as_non_root.value) == (2000, True)
    assert security.fs_group.value == 7
    assert [c.value for c in security.capabilities_dropped] == ["ALL"]


def test_probes_and_their_budgets() -> None:
    """10 s x 60; 5 s x 3 by default; 120 s and once 10 s."""
    container = only(WHOLE).container
    assert container is not None
    assert container.startup is not None
    assert container.readiness is not None
    assert container.liveness is not None
    probes = (container.startup, container.readiness, container.liveness)
    assert [p.budget for p in probes] == [600, 15, 130]
    assert [p.handler for p in probes] == [
        "httpGet /health:8000",
        "tcpSocket :http",
        "exec curl -f x",
    ]
    assert container.liveness.failures is not None
    assert container.liveness.failures.location.line == 39


GROUP = """\
kind: LeaderWorkerSet
metadata: {name: g}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: SIZE
    LEADER
    workerTemplate:
      spec:
        containers:
          - image: vllm/vllm-openai:v0.33.0
            args: [m, --nnodes, $(LWS_GROUP_SIZE), --node-rank, $(LWS_WORKER_INDEX), --headless]
            resources: {limits: {nvidia.com/gpu: 8}}
"""
LEADER = "leaderTemplate: {spec: {containers: [{image: vllm/vllm-openai, args: [m]}]}}"


def test_the_pods_of_a_group_know_their_place_in_it() -> None:
    leader, worker = read(
        GROUP.replace("size: SIZE", "size: 2").replace("LEADER\n", f"{LEADER}\n")
    ).instances
    assert (leader.name, worker.name) == (
        "LeaderWorkerSet/g/leader",
        "LeaderWorkerSet/g/worker",
    )
    assert worker.command.engine_args.get("nnodes") == 2
    assert worker.command.engine_args.get("node_rank") == 1
    assert worker.nodes is not None
    assert worker.nodes.value == 2
    _, one_of_two = read(
        GROUP.replace("size: SIZE", "size: 3").replace("LEADER\n", f"{LEADER}\n")
    ).instances
    assert [u.dest for u in one_of_two.command.unresolved] == ["node_rank"]
    alone = only(GROUP.replace("size: SIZE", "size: 1").replace("LEADER\n", "\n"))
    assert alone.pod is not None
    assert (alone.pod.group_role, alone.command.engine_args.get("node_rank")) == ("leader", 0)


def test_the_devices_behind_a_claim() -> None:
    server = only("""\
        kind: Pod
        metadata: {name: p}
        spec:
          resourceClaims: [{name: gpu, resourceClaimTemplateName: two}]
          containers:
            - image: vllm/vllm-openai:v0.33.0
              args: [m]
              resources: {claims: [{name: gpu}]}
        ---
        kind: ResourceClaimTemplate
        metadata: {name: two}
        spec:
          spec:
            devices:
              requests:
                - name: gpu
                  exactly:
                    count: 2
                    selectors:
                      - cel: {expression: "device.x.productName == 'NVIDIA L4'"}
        """)
    assert server.gpus is not None
    assert server.gpus.value == 2
    assert [n.value for n in server.gpu_names] == ["NVIDIA L4"]


def test_kserve_runs_its_preset_with_what_the_object_says() -> None:
    """Words go through KServe's templates, Kubernetes and a shell."""
    server = only("""\
        kind: LLMInferenceService
        metadata: {name: chat, namespace: llm}
        spec:
          model: {uri: "hf://org/m:v2", name: chat}
          parallelism: {tensor: 2}
          template:
            containers:
              - name: main
                image: vllm/vllm-openai:v0.33.0
                env: [{name: LEN, value: "64"}]
                args:
                  - --max-model-len
                  - $(LEN)
                  - --hf-overrides
                  - '''{"a": "{{`{{`}}x"}'''
                  - "--chat-template '{{ .Spec.Model.Name }} a'"
        """)
    command = server.command
    assert command.model == "org/m"
    assert command.engine_args.as_dict() == {
        "revision": "v2",
        "served_model_name": ["chat"],
        "port": 8000,
        "tensor_parallel_size": 2,
        "max_model_len": 64,
        "hf_overrides": {"a": "{{x"},
        "chat_template": "chat a",
    }


def test_kserve_without_a_container_has_the_preset_s() -> None:
    text = "kind: LLMInferenceService\nspec: {model: {uri: hf://o/m}, parallelism: {tensor: 2}}\n"
    server = only(text)
    assert server.command.model == "o/m"
    assert server.command.engine_args.get("tensor_parallel_size") == 2


def test_the_model_of_an_inference_service() -> None:
    server = only("""\
        kind: InferenceService
        metadata: {name: llama}
        spec:
          predictor:
            minReplicas: 2
            model:
              modelFormat: {name: huggingface}
              args: [--model_name=llama, --backend, vllm, --max-model-len=2048]
              storageUri: hf://org/m
              resources: {limits: {nvidia.com/gpu: 1}}
        """)
    assert server.command.model == "org/m"
    assert server.command.engine_args.as_dict() == {"max_model_len": 2048}
    assert server.command.unknown == ()
    assert server.pod is not None
    assert server.pod.replicas is not None
    assert server.pod.replicas.value == 2


def test_objects_without_a_server_are_kept() -> None:
    deployed = read("kind: Service\nmetadata: {name: vllm}\nspec: {ports: [{port: 1}]}\n")
    assert deployed.instances == ()
    (service,) = deployed.of_kind("Service")
    assert str(service.where_path("spec.ports[0].port")) == "f.yaml:3:17"
    assert str(service.where_path("spec.absent[x/y.z]")) == "f.yaml:3:1"


def test_repeated_keys_are_noted() -> None:
    deployed = read("args: [--model, a]\nargs: [--model, b]\n")
    assert [str(n.location) for n in deployed.notes] == ["f.yaml:2:1"]
    assert deployed.instances[0].command.model == "b"
