"""From workload.yaml to the types: values, sources, the schema, and the bundled workloads."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from vllm_advisor import resources
from vllm_advisor.api.planning import plan
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.bundled_workloads import (
    bundled_workload_path,
    bundled_workloads,
    starter_text,
)
from vllm_advisor.knowledge.workload_file import WorkloadKeys
from vllm_advisor.knowledge.workload_problems import _places
from vllm_advisor.knowledge.workloads import (
    MAX_BYTES,
    load_workload,
    read_workload,
    workload_json_schema,
)
from vllm_advisor.types.accelerator import Accelerator, Interconnect, Node, Price
from vllm_advisor.types.source import Source
from vllm_advisor.types.workload import (
    SLO,
    Constraints,
    Feature,
    Hardware,
    Lora,
    Needs,
    Objective,
    Prices,
    Rag,
    TokenDistribution,
    Workload,
)

FULL = """\
model: meta-llama/Llama-3.1-8B-Instruct
hardware: {gpu: h100-sxm, count: 8, nodes: 2}
vllm_version: "0.33.0"
name: contract-review
uses: [tool_calling, lora, vision, lora]
lora: {max_loras: 4, max_lora_rank: 32}
images_per_prompt: 2
classes:
  - name: chat
    prompt_tokens: {p50: 600, p95: 2k, max: 6K}
    output_tokens: 300
    concurrent_requests: 40
    shared_prefix_tokens: 400
    requests_per_document: 2.5
    needs: recent_only
    exact_recall: true
    objective: latency
    slo: {ttft_ms: 1000, itl_ms: 50.5}
  - name: night
    prompt_tokens: {max: 32K}
    output_tokens: {p50: 1, p95: 1, max: 1}
    batch: {requests: 50000, within_hours: 8}
  - name: stream
    prompt_tokens: 1
    output_tokens: 1
    requests_per_second: 4
    objective: throughput
rag: {available: true, top_k: 3, chunk_tokens: 1k, question_tokens: 300}
constraints:
  weight_quantization: forbidden
  kv_cache_dtypes: [auto, fp8, auto]
  max_gpus: 8
  budget_usd_per_hour: 20
  trust_remote_code: true
  gpu_memory_utilization: 1
  short_context_tokens: 4K
prices: {gpu_hour_usd: 2.5, input_usd_per_million_tokens: 3.0, output_usd_per_million_tokens: 15}
"""
SMALL = """\
model: m
hardware: local
classes: [{name: a, prompt_tokens: 5, output_tokens: 1, concurrent_requests: 1}]
"""


def test_every_key_arrives_in_its_type():
    workload = load_workload(FULL, file="w.yaml")
    chat, night, stream = workload.classes
    assert workload.name == "contract-review"
    assert workload.model == "meta-llama/Llama-3.1-8B-Instruct"
    assert workload.vllm_version == "0.33.0"
    assert workload.hardware == Hardware(
        kind="profile", gpu="h100-sxm", gpu_count=8, node_count=2, where="w.yaml:2"
    )
    assert workload.features == (Feature.TOOL_CALLING, Feature.LORA, Feature.VISION)
    assert workload.lora == Lora(max_loras=4, max_lora_rank=32)
    assert workload.images_per_prompt == 2
    # 2k = 2,000; 6K = 6 x 1,024
    assert chat.prompt_tokens == TokenDistribution(p50=600, p95=2000, max=6144)
    assert chat.output_tokens == TokenDistribution(p50=300, p95=300, max=300)
    assert (chat.concurrent_requests, chat.requests_per_second) == (40, None)
    assert (chat.shared_prefix_tokens, chat.requests_per_document) == (400, 2.5)
    assert (chat.needs, chat.exact_recall, chat.objective) == (
        Needs.RECENT_ONLY,
        True,
        Objective.LATENCY,
    )
    assert chat.slo == SLO(ttft_ms=1000, itl_ms=50.5, e2e_ms=None)
    assert [c.where for c in workload.classes] == ["w.yaml:9", "w.yaml:19", "w.yaml:23"]
    assert night.prompt_tokens == TokenDistribution(p50=32768, p95=32768, max=32768)
    # 50,000 requests in 8 x 3,600 = 28,800 s
    assert night.requests_per_second == pytest.approx(50_000 / 28_800)
    assert (night.concurrent_requests, night.objective) == (None, Objective.THROUGHPUT)
    assert (stream.requests_per_second, stream.objective) == (4.0, Objective.THROUGHPUT)
    assert workload.rag == Rag(available=True, top_k=3, chunk_tokens=1000, question_tokens=300)
    assert workload.constraints == Constraints(
        weight_quantization=(),
        kv_cache_dtypes=("auto", "fp8"),
        max_gpus=8,
        budget_usd_per_hour=20.0,
        trust_remote_code=True,
        gpu_memory_utilization=1.0,
        short_context_tokens=4096,
    )
    assert workload.prices == Prices(
        gpu_hour_usd=2.5, input_usd_per_million_tokens=3.0, output_usd_per_million_tokens=15.0
    )


def test_what_is_not_given_is_what_the_types_and_the_page_say():
    workload = load_workload(SMALL, file="some/My Workload_2.yaml")
    (only,) = workload.classes
    assert workload == Workload(
        name="my-workload-2",
        model="m",
        hardware=Hardware(kind="local", where="My Workload_2.yaml:2"),
        vllm_version=None,
        classes=(only,),
        origins=workload.origins,
    )
    assert (only.needs, only.exact_recall, only.objective) == (
        Needs.WHOLE_DOCUMENT,
        False,
        Objective.LATENCY,
    )
    assert (only.shared_prefix_tokens, only.requests_per_document, only.slo) == (0, 1.0, SLO())


def test_sections_that_are_left_empty_are_as_if_not_given():
    empty = SMALL + "rag:\nconstraints:\nprices:\nlora:\nvllm_version:\n"
    ours, theirs = load_workload(empty, file="w"), load_workload(SMALL, file="w")
    assert (ours.rag, ours.constraints, ours.prices, ours.lora, ours.vllm_version) == (
        theirs.rag,
        theirs.constraints,
        theirs.prices,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [("-", "workload"), ("a/b/x.y.yaml", "x-y"), ("é.yaml", "workload"), ("A" * 60, "a" * 40)],
)
def test_the_name_is_the_files_own(file, name):
    assert load_workload(SMALL, file=file).name == name


def test_exact_recall_among_the_constraints_holds_for_every_class():
    text = FULL.replace("constraints:\n", "constraints:\n  exact_recall: true\n")
    assert [c.exact_recall for c in load_workload(text, file="w").classes] == [True, True, True]
    assert [c.exact_recall for c in load_workload(FULL, file="w").classes] == [True, False, False]


def test_lookup_without_retrieval_is_allowed():
    text = SMALL.replace("name: a", "name: a, needs: lookup") + "rag: {available: false}\n"
    assert load_workload(text, file="w").classes[0].needs is Needs.LOOKUP


def test_origins_name_the_line_of_every_key():
    origins = load_workload(FULL, file="w.yaml").origins
    assert origins["model"] == "w.yaml:1"
    assert origins["classes.0.prompt_tokens"] == "w.yaml:10"
    assert origins["classes.0.slo.itl_ms"] == "w.yaml:18"
    assert origins["classes.1.batch.requests"] == "w.yaml:22"
    assert origins["constraints.max_gpus"] == "w.yaml:32"


def test_the_largest_request_that_is_allowed():
    # 10,485,760 - 1 of prompt and 1 of output are exactly the largest context
    text = SMALL.replace("prompt_tokens: 5", "prompt_tokens: 10485759")
    assert load_workload(text, file="w").classes[0].max_total_tokens == 10_485_760


def test_a_prefix_as_long_as_the_median_is_allowed():
    text = SMALL.replace("name: a", "name: a, shared_prefix_tokens: 5")
    assert load_workload(text, file="w").classes[0].shared_prefix_tokens == 5


def test_node_labels_are_relative_to_the_workload_file(tmp_path):
    text = SMALL.replace("local", "{node_labels: nodes/a.json, nodes: 3}")
    expected = Hardware(
        kind="labels", labels_file="dir/nodes/a.json", node_count=3, where="w.yaml:2"
    )
    assert load_workload(text, file="dir/w.yaml").hardware == expected
    assert load_workload(text, file="-").hardware.labels_file == "nodes/a.json"
    absolute = SMALL.replace("local", f"{{node_labels: {tmp_path}/a.json}}")
    assert load_workload(absolute, file="dir/w.yaml").hardware.labels_file == f"{tmp_path}/a.json"


DESCRIBED = """\
model: m
hardware:
  described:
    name: NVIDIA H100 80GB HBM3
    gpu_memory: 79.19GiB
    compute_capability: 9.0
    count: 4
    nodes: 2
    interconnect: nvlink
    memory_used: 512MiB
    memory_bandwidth: 3350GB
    nvlink_bandwidth: 450GB
    bf16_tflops: 989.4
    fp8_tflops: 1979
    usd_per_gpu_hour: 2.5
classes: [{name: a, prompt_tokens: 1, output_tokens: 1, concurrent_requests: 1}]
"""


def test_described_hardware_becomes_a_node_whose_figures_are_the_users():
    hardware = load_workload(DESCRIBED, file="w.yaml").hardware
    node = Node(
        accelerator=Accelerator(
            id="described",
            name="NVIDIA H100 80GB HBM3",
            memory_total=85_029_615_043,  # 79.19 x 1,073,741,824 = 85,029,615,042.56
            memory_total_source=Source.parse("user:w.yaml:5"),
            compute_capability=(9, 0),
            memory_bandwidth=3_350_000_000_000,
            bf16_flops=989_400_000_000_000,
            fp8_flops=1_979_000_000_000_000,
            nvlink_bandwidth=450_000_000_000,
            price=Price(usd_per_gpu_hour=2.5, source=Source.parse("user:w.yaml:15")),
        ),
        gpu_count=4,
        node_count=2,
        interconnect=Interconnect.NVLINK,
        memory_used=536_870_912,
        source=Source.parse("user:w.yaml:3"),
    )
    assert hardware == Hardware(
        kind="described",
        gpu="NVIDIA H100 80GB HBM3",
        gpu_count=4,
        node_count=2,
        node=node,
        where="w.yaml:2",
    )


def test_described_hardware_with_only_what_is_needed():
    text = re.sub(r"    (count|nodes|inter|memory_|nvlink|bf16|fp8|usd).*\n", "", DESCRIBED)
    text = text.replace("gpu_memory: 79.19GiB", "gpu_memory_bytes: 1000").replace("9.0", '"12.1"')
    node = load_workload(text, file="w.yaml").hardware.node
    assert node is not None
    assert node.accelerator.memory_total == 1000
    assert str(node.accelerator.memory_total_source) == "user:w.yaml:5"
    assert node.accelerator.capability == 121
    assert (node.accelerator.memory_bandwidth, node.accelerator.bf16_flops) == (None, None)
    assert (node.accelerator.price, node.memory_used) == (None, 0)
    assert (node.gpu_count, node.node_count) == (1, 1)


# ---- reading from disk


def test_a_file_and_its_text_read_the_same(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text(FULL, encoding="utf-8-sig")  # with the byte order mark that editors leave
    assert read_workload(path) == load_workload(FULL, file=str(path))
    assert read_workload(str(path)) == load_workload(path, file=str(path))


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("model: m\nname: größe\n".encode("latin-1"))
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (MAX_BYTES + 1))
    cases = [
        (tmp_path / "none.yaml", "no such file", str(tmp_path / "none.yaml"), "init"),
        (tmp_path, "a folder", str(tmp_path), "workload file"),
        (latin, "0xF6 is not UTF-8", f"{latin}:2", "UTF-8"),
        (huge, "larger than", str(huge), "meant"),
        ("a\0b", "cannot be read", "a\0b", ""),
        ("x" * 5000, "cannot be read", "x" * 5000, ""),
    ]
    for path, what, where, fix in cases:
        with pytest.raises(InputError) as caught:
            read_workload(path)
        assert what in caught.value.what
        assert caught.value.where == where
        assert fix in caught.value.fix


def test_faults_in_a_file_name_the_file(tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text(SMALL.replace("model: m", "model: 1"), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    assert caught.value.where == f"{path}:1:1"


# ---- the bundled workloads


BUNDLED = (
    "batch-summarisation",
    "coding-agents",
    "contract-review",
    "interactive-chat",
    "rag-assistant",
)


def test_the_bundled_workloads_are_listed_and_found():
    assert bundled_workloads() == BUNDLED
    path = bundled_workload_path("contract-review")
    assert path == resources.profiles("workloads") / "contract-review.yaml"
    assert starter_text("contract-review") == path.read_text(encoding="utf-8")


def test_an_unknown_bundled_workload_names_the_known_ones():
    for name in ("rag", "", "../models/x", "contract-review.yaml"):
        with pytest.raises(InputError) as caught:
            starter_text(name)
        assert all(known in caught.value.fix for known in BUNDLED)
    with pytest.raises(InputError) as caught:
        starter_text("contract-reviews")
    assert caught.value.fix.startswith("did you mean contract-review?")


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_workload_is_valid_commented_and_named_after_its_file(name):
    text = starter_text(name)
    workload = read_workload(bundled_workload_path(name))
    assert workload.name == name
    assert text.startswith("# ")
    assert text.count("#") >= 5
    assert len(text.splitlines()) <= 50


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_workload_asks_no_more_than_its_model_or_yarn_reads(name):
    # context of the models as published; Qwen2.5-7B documents YaRN with factor 4 = 131,072
    contexts = {
        "meta-llama/Llama-3.1-8B-Instruct": 131_072,
        "meta-llama/Llama-3.3-70B-Instruct": 131_072,
        "Qwen/Qwen2.5-7B-Instruct": 4 * 32_768,
        "Qwen/Qwen3-Coder-480B-A35B-Instruct": 262_144,
    }
    workload = read_workload(bundled_workload_path(name))
    longest = max(c.max_total_tokens for c in workload.classes)
    assert longest <= contexts[workload.model]


def test_what_the_bundled_workloads_stand_for():
    by_name = {name: read_workload(bundled_workload_path(name)) for name in BUNDLED}
    chat = by_name["interactive-chat"].classes[0]
    assert chat.slo.ttft_ms
    assert chat.slo.itl_ms
    assert chat.max_total_tokens <= 8192
    rag = by_name["rag-assistant"]
    lookup = next(c for c in rag.classes if c.needs is Needs.LOOKUP)
    assert rag.rag.available
    assert lookup.prompt_tokens.p50 >= 60_000
    review = by_name["contract-review"]
    assert {c.needs for c in review.classes} >= {Needs.LOOKUP, Needs.WHOLE_DOCUMENT}
    assert any(c.exact_recall and c.prompt_tokens.p50 >= 100_000 for c in review.classes)
    assert min(c.max_total_tokens for c in review.classes) <= 8192
    # 100,000 tokens at 3 USD per million are 0.30 USD, as its comment says
    assert 100_000 * review.prices.input_usd_per_million_tokens / 10**6 == pytest.approx(0.30)
    assert all(c.shared_prefix_tokens >= 10_000 for c in by_name["coding-agents"].classes)
    batch = by_name["batch-summarisation"].classes[0]
    assert (batch.objective, batch.slo) == (Objective.THROUGHPUT, SLO())
    assert f"{batch.requests_per_second:.2f}" == "1.74"  # as its comment says


# ---- the JSON Schema


@pytest.fixture(scope="module")
def schema():
    return jsonschema.Draft202012Validator(workload_json_schema())


def test_the_schema_is_one_and_accepts_what_the_reader_accepts(schema):
    schema.check_schema(schema.schema)
    assert schema.schema["title"] == "vllm-advisor workload"
    assert "$id" not in schema.schema
    for text in (FULL, SMALL, DESCRIBED.replace("9.0", '"9.0"'), *map(starter_text, BUNDLED)):
        schema.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model",), None),
        (("hardware", "count"), 0),
        (("hardware", "gpus"), 8),
        (("hardware",), "h100-sxm"),
        (("uses",), ["tools"]),
        (("classes", 0, "name"), "Chat"),
        (("classes", 0, "prompt_tokens"), {"p50": 5}),
        (("classes", 0, "prompt_tokens"), "long"),
        (("classes", 0, "requests_per_second"), 3),  # beside concurrent_requests
        (("classes", 0, "needs"), "some"),
        (("classes",), []),
        (("constraints", "max_gpu"), 3),
        (("constraints", "kv_cache_dtypes"), ["int8"]),
        (("constraints", "gpu_memory_utilization"), 1.2),
        (("constraints", "weight_quantization"), "fp8"),
        (("lora", "max_lora_rank"), 17),
        (("surroundings",), {}),
        (("environment",), {"namespace": "Not_a_label"}),
        (("environment",), {"labels": {"team": "a b"}}),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(schema, path, value):
    data = copy.deepcopy(yaml.safe_load(FULL))
    target = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    assert not schema.is_valid(data)
    with pytest.raises(InputError):
        load_workload(yaml.safe_dump(data), file="w")


def test_the_schema_describes_every_key(schema):
    for name, definition in schema.schema["$defs"].items():
        for key, value in definition.get("properties", {}).items():
            assert value.get("description"), (name, key)


def test_the_reference_page_names_every_key_and_only_bundled_starters():
    page = (Path(__file__).resolve().parents[3] / "docs" / "workload.md").read_text("utf-8")
    for place, keys in _places(WorkloadKeys).items():
        for key in keys:
            assert re.search(rf"\b{key}\b", page), (place, key)
    starters = re.findall(
        r"^\| `([a-z-]+)` \| an? |^\| `([a-z-]+)` \| (?:long|short|50)", page, re.MULTILINE
    )
    assert sorted("".join(pair) for pair in starters) == list(BUNDLED)
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    assert load_workload(example[1], file="page").classes[0].concurrent_requests == 40


def test_positions_alone_do_not_load_pydantic():
    code = "import sys, vllm_advisor.knowledge.yaml_marks as m; sys.exit('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0


def test_a_plan_is_the_same_from_every_folder(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workload.yaml").write_text(starter_text("interactive-chat"))
    first, second = (plan(tmp_path / name / "workload.yaml") for name in ("one", "two"))
    assert first.artifacts() == second.artifacts()
    assert str(tmp_path) not in "".join(a.text for a in first.artifacts())
