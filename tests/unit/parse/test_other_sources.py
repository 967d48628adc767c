"""Compose files, Helm values, units, config files, plans, Dockerfiles and docker run."""

from __future__ import annotations

import pytest
from read_sources_here import codes, only, place, read

from vllm_advisor.parse.helm.stack_command import printed
from vllm_advisor.units import GIB, MIB

COMPOSE = """\
x-common: &common
  image: "vllm/vllm-openai:${TAG:-v0.32.0}"
  shm_size: 8gb
services:
  chat:
    <<: *common
    command: >
      --model ${MODEL:-org/m} --max-model-len ${LEN}
      --served-model-name "a b"
    environment: {HF_TOKEN: "${HF_TOKEN}", A: $$x, B: null}
    env_file: .env
    deploy:
      replicas: 2
      resources:
        limits: {cpus: "1.5", memory: 2g}
        reservations:
          devices: [{driver: nvidia, device_ids: ["0", "3"], capabilities: [gpu]}]
    healthcheck: {test: [CMD, curl, -f, "http://x/health"], start_period: 1m30s, retries: 5}
    volumes: ["./models:/models:ro", "cache:/data/cache", {type: bind, source: /a, target: /b}]
    stop_grace_period: 2m
    user: "2000:0"
  raw:
    image: vllm/vllm-openai
    entrypoint: [bash, -c]
    command: ["vllm serve org/m --port 1"]
    ipc: host
    network_mode: host
    environment: [CUDA_VISIBLE_DEVICES=1, X]
    gpus: all
  web: {image: nginx, command: --model x}
"""


def test_a_compose_file() -> None:
    deployed = read(COMPOSE, name="compose.yaml")
    chat, raw = deployed.instances
    assert [o.name for o in deployed.objects] == ["chat", "raw", "web"]
    assert [str(n.location) for n in deployed.notes] == ["compose.yaml:11:5"]
    assert chat.command.model == "org/m"
    assert chat.command.engine_args.as_dict() == {"served_model_name": ["a b"]}
    assert [(u.dest, u.text) for u in chat.command.unresolved] == [("max_model_len", "${LEN}")]
    assert place(chat, "served_model_name") == "9:28"  # behind the quote
    assert chat.vllm_version is not None
    assert chat.vllm_version.value == "0.32.0"
    assert chat.gpus is not None
    assert (chat.gpus.value, [d.value for d in chat.devices]) == (2, ["0", "3"])
    assert raw.command.engine_args.get("port") == 1
    assert (raw.gpus, [d.value for d in raw.devices]) == (None, ["1"])


def test_the_container_of_a_compose_service() -> None:
    """1m30s and 5 x 30 s; 2g and 8gb in powers of 1024."""
    chat, raw = read(COMPOSE, name="compose.yaml").instances
    container, pod = chat.container, chat.pod
    assert container is not None
    assert pod is not None
    assert [(e.name, e.value, e.source) for e in container.env] == [
        ("HF_TOKEN", None, "unresolved"),
        ("A", "$x", "value"),
        ("B", None, "host"),
    ]
    assert [e.value for e in container.env_from] == [".env"]
    assert container.healthcheck is not None
    assert container.healthcheck.budget == 90 + 5 * 30
    assert container.resources.limits["memory"].value == 2 * GIB
    assert float(container.resources.limits["cpu"].value) == 1.5
    assert container.shared_memory is not None
    assert (container.shared_memory.kind, container.shared_memory.size) == ("shm_size", 8 * GIB)
    assert [(m.kind, m.source, m.path, m.read_only) for m in container.mounts] == [
        ("bind", "./models", "/models", True),
        ("volume", "cache", "/data/cache", False),
        ("bind", "/a", "/b", False),
    ]
    assert container.security.run_as_user is not None
    assert container.security.run_as_user.value == 2000
    assert pod.replicas is not None
    assert pod.termination_grace is not None
    assert (pod.replicas.value, pod.termination_grace.value) == (2, 120)
    assert raw.container is not None
    assert raw.container.shared_memory is not None
    assert raw.container.shared_memory.kind == "host"
    assert raw.pod is not None
    assert raw.pod.host_network is not None
    assert raw.pod.host_network.value is True


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("${M:-a}", "a"),
        ("${M-a}", "a"),
        ("${M:-${N:-b}}", "b"),
        ("$$M", "$M"),
        ("${M:?say it}", "${M:?say it}"),
        ("$M", "$M"),
    ],
)
def test_variables_of_a_compose_file(written: str, model: str) -> None:
    server = only(f"services: {{a: {{image: vllm/vllm-openai, command: ['{written}']}}}}\n")
    assert server.command.model == model
    known = "M" not in model or "$$" in written
    assert [u.dest for u in server.command.unresolved] == ([] if known else ["model"])


def test_a_service_that_a_shell_runs_is_read_inside_its_quotes() -> None:
    server = only('command: bash -c "vllm serve org/m --port 80"\n', "compose")
    assert server.command.model == "org/m"
    assert place(server, "port") == "1:43"


VALUES = """\
servingEngineSpec:
  containerPort: 9000
  strategy: {rollingUpdate: {maxSurge: 0}}
  vllmApiKey: {secretName: s, secretKey: k}
  modelSpec:
    - name: chat
      repository: vllm/vllm-openai
      tag: v0.33.0
      modelURL: org/m
      replicaCount: 2
      requestGPU: 4
      requestMemory: 8Gi
      pvcStorage: 50Gi
      hf_token: hf_written_out
      nodeSelectorTerms:
        - matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-L4]}]
      vllmConfig:
        enableChunkedPrefill: false
        maxModelLen: 1048576
        tensorParallelSize: 4
        gpuMemoryUtilization: 0.90
        extraArgs: ["--max-num-seqs", 16, "--served-model-name", "$(POD)"]
    - {name: plain, repository: vllm/vllm-openai, tag: latest, modelURL: org/n}
    - {name: short, repository: r, tag: t, modelURL: org/o, vllmConfig: {maxModelLen: 999999}}
routerSpec: {resources: {limits: {memory: 500Mi}}}
extraObjects:
  - {kind: ScaledObject, spec: {scaleTargetRef: {name: "{{ .Release.Name }}-chat-deployment-vllm"}}}
"""


def test_production_stack_s_values() -> None:
    deployed = read(VALUES, name="values.yaml")
    chat, plain, short = deployed.instances
    assert [o.kind for o in deployed.objects] == [
        "servingEngineSpec", "routerSpec", "ScaledObject", "modelSpec", "modelSpec", "modelSpec",
    ]  # fmt: skip
    args = chat.command.engine_args
    assert args.as_dict() == {
        "host": "0.0.0.0",  # noqa: S104 - what the chart writes
        "port": 9000,
        "enable_chunked_prefill": False,
        "enable_prefix_caching": False,
        "tensor_parallel_size": 4,
        "gpu_memory_utilization": 0.9,
        "max_num_seqs": 16,
    }
    # Helm prints 1048576 as 1.048576e+06, which vLLM refuses; at the key that is to be changed.
    assert codes(chat) == ["invalid-value"]
    (problem,) = chat.command.problems
    assert "1.048576e+06" in problem.message
    assert problem.location.line == 19
    assert place(chat, "enable_prefix_caching") == "17:7"  # left out: the whole vllmConfig
    assert plain.command.engine_args.get("enable_prefix_caching") is None  # no vllmConfig, no flag
    assert short.command.engine_args.get("max_model_len") == 999_999
    assert (chat.vllm_version and chat.vllm_version.value, plain.vllm_version) == ("0.33.0", None)


def test_the_container_and_pod_of_production_stack() -> None:
    """shmSize is 20Gi where tensorParallelSize is given, and nothing is mounted without it."""
    chat, plain, _ = read(VALUES, name="values.yaml").instances
    assert chat.container is not None
    assert chat.pod is not None
    assert plain.container is not None
    assert chat.gpus is not None
    assert (chat.gpus.value, [n.value for n in chat.gpu_names]) == (4, ["NVIDIA-L4"])
    assert chat.container.shared_memory is not None
    assert chat.container.shared_memory.size == 20 * GIB
    assert plain.container.shared_memory is None
    assert [(e.name, e.source, e.value or e.reference) for e in chat.container.env] == [
        ("HF_HOME", "value", "/data"),
        ("HF_TOKEN", "value", "hf_written_out"),
        ("VLLM_API_KEY", "secret", "s/k"),
    ]
    (mount,) = chat.container.mounts
    assert (mount.path, mount.size, mount.access_modes) == ("/data", 50 * GIB, ("ReadWriteOnce",))
    assert chat.pod.rollout is not None
    assert chat.pod.rollout.max_surge is not None
    assert chat.pod.rollout.max_surge.value == "0"
    assert [o.kind for o in chat.pod.autoscalers] == ["ScaledObject"]
    assert plain.pod is not None
    assert plain.pod.autoscalers == ()


@pytest.mark.parametrize(
    ("value", "text", "as_printed"),
    [
        (999_999, "999999", "999999"),
        (1_000_000, "1000000", "1e+06"),
        (1_048_576, "1048576", "1.048576e+06"),
        (-2_500_000, "-2500000", "-2.5e+06"),
        (0.90, "0.90", "0.9"),
        (2.0, "2.0", "2"),
        (True, "true", "true"),
        ("1048576", "1048576", "1048576"),
    ],
)
def test_how_helm_prints_a_value(value: object, text: str, as_printed: str) -> None:
    assert printed(value, text) == as_printed


UNIT = """\
[Service]
Environment=MODEL=org/m "EXTRA=--port 8001 --max-num-seqs 4"
Environment=VLLM_LOGGING_LEVEL=DEBUG
EnvironmentFile=-/etc/vllm.env
# ExecStart=/usr/bin/vllm serve other/m
ExecStart=-/usr/bin/vllm serve ${MODEL} \\
    --max-model-len 8192 \\
    # a comment does not end it
    $EXTRA --chat-template %%x --seed $SEED
"""


def test_a_unit() -> None:
    deployed = read(UNIT, name="vllm.service")
    (server,) = deployed.instances
    assert server.command.model == "org/m"
    assert server.command.engine_args.as_dict() == {
        "max_model_len": 8192,
        "port": 8001,
        "max_num_seqs": 4,
        "chat_template": "%x",
    }
    assert place(server, "max_model_len") == "7:21"
    assert [u.dest for u in server.command.unresolved] == ["seed"]
    assert server.command.env["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert [n.location.line for n in deployed.notes] == [4]


def test_a_unit_that_runs_docker() -> None:
    server = only("""\
        ExecStart=/usr/bin/docker run --gpus '"device=0,1"' --shm-size=1g -e HF_TOKEN=hf_x \\
          -v /srv/models:/models:ro --ipc host --memory 8g --name chat \\
          vllm/vllm-openai:v0.33.0 --model /models/m
        """)
    assert server.kind == "systemd"
    assert server.name == "chat"
    assert server.command.model == "/models/m"
    assert server.command.image == "vllm/vllm-openai:v0.33.0"
    assert server.gpus is not None
    assert (server.gpus.value, [d.value for d in server.devices]) == (2, ["0", "1"])
    container = server.container
    assert container is not None
    assert container.shared_memory is not None
    assert container.shared_memory.kind == "host"
    assert container.resources.limits["memory"].value == 8 * GIB
    assert [(m.kind, m.path, m.read_only) for m in container.mounts] == [("bind", "/models", True)]
    assert [(e.name, e.value) for e in container.env] == [("HF_TOKEN", "hf_x")]


def test_docker_run_in_a_script_states_the_version() -> None:
    server = only(
        "docker run --gpus all --shm-size 64m vllm/vllm-openai:v0.32.0 --model org/m\n", "shell"
    )
    assert server.vllm_version is not None
    assert (server.vllm_version.value, server.gpus) == ("0.32.0", None)
    assert server.container is not None
    assert server.container.shared_memory is not None
    assert server.container.shared_memory.size == 64 * MIB
    bare = only("CUDA_VISIBLE_DEVICES=2 vllm serve org/m\n", "shell")
    assert (bare.container, [d.value for d in bare.devices]) == (None, ["2"])


def test_a_config_file() -> None:
    server = only("""\
        model: org/m
        max_model_len: 8k
        tensor-parallel-size: 2
        enable-prefix-caching: false
        enforce-eager: true
        async-engine: true
        served-model-name: [a, b]
        hf-overrides: {rope_parameters: {factor: 4.0}}
        cudagraph-capture-sizes: [1, 2]
        """)
    assert server.kind == "config"
    assert server.command.model == "org/m"
    assert server.command.engine_args.as_dict() == {
        "max_model_len": 8000,
        "tensor_parallel_size": 2,
        "enable_prefix_caching": False,
        "enforce_eager": True,
        "served_model_name": ["a", "b"],
        "hf_overrides": {"rope_parameters": {"factor": 4.0}},
        "cudagraph_capture_sizes": [1, 2],
    }
    assert [u.token for u in server.command.unknown] == ["--async-engine"]
    assert place(server, "max_model_len") == "2:16"


def test_our_own_plan() -> None:
    server = only("""\
        schema_version: "1"
        model: org/m
        vllm_version: 0.33.0
        hardware: {gpu: h100-sxm, gpu_count: 8}
        instances:
          - name: long
            gpus: 16
            engine_args: {tensor_parallel_size: 8, no_such: 1}
        decisions: []
        """)
    assert (server.kind, server.name, server.command.model) == ("plan", "long", "org/m")
    assert server.command.engine_args.as_dict() == {"tensor_parallel_size": 8}
    assert [u.token for u in server.command.unknown] == ["--no-such"]
    assert server.gpus is not None
    assert server.nodes is not None
    assert (server.gpus.value, server.nodes.value) == (8, 2)
    assert place(server, "tensor_parallel_size") == "8:19"


@pytest.mark.parametrize(
    ("last", "where"),
    [
        ('CMD ["--model", "org/m", "--port", "81"]', "5:37"),
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["org/m", "--port", "81"]', "6:26"),
        ("ENTRYPOINT vllm serve $MODEL \\\n    --port 81", "6:12"),
    ],
)
def test_a_dockerfile(last: str, where: str) -> None:
    text = f"# syntax\nFROM vllm/vllm-openai:v0.33.0\nENV MODEL=org/m\nRUN true\n{last}\n"
    server = only(text, name="Dockerfile")
    assert server.kind == "dockerfile"
    assert server.command.model == "org/m"
    assert place(server, "port") == where
    assert server.vllm_version is not None
    assert server.vllm_version.value == "0.33.0"


def test_a_dockerfile_of_something_else() -> None:
    assert read('FROM python:3.11\nCMD ["x"]\n', name="Dockerfile").instances == ()
