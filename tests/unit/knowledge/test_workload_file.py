"""Every mistake in a workload file: where it is, what it is, what to do about it."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor.errors import AdvisorError, InputError
from vllm_advisor.knowledge.workload_file import WorkloadKeys
from vllm_advisor.knowledge.workload_problems import WorkloadError, _places
from vllm_advisor.knowledge.workloads import load_workload

GOOD = """\
model: meta-llama/Llama-3.1-8B-Instruct
hardware: {gpu: h100-sxm, count: 8}
classes:
  - name: chat
    prompt_tokens: {p50: 600, p95: 2000, max: 6000}
    output_tokens: {p50: 200, p95: 500, max: 1000}
    concurrent_requests: 40
"""
PROMPT = "prompt_tokens: {p50: 600, p95: 2000, max: 6000}"
RATE = "concurrent_requests: 40"


JARGON = re.compile(r"pydantic|http|type=|input should|input_value|<\w", re.IGNORECASE)


def problems_of(text, file="w.yaml"):
    """(where, what, fix) of every problem, in the order in which they are reported."""
    with pytest.raises(WorkloadError) as caught:
        load_workload(text, file=file)
    error = caught.value
    return [(e.where, e.what, e.fix) for e in (error, *error.others)]


def test_the_base_of_these_tests_is_right():
    assert load_workload(GOOD, file="w.yaml").classes[0].name == "chat"


# The text replaced in GOOD, its replacement, line:column of the fault, words of what and of fix.
MISTAKES = {
    "unknown key": ("hardware", "hardwear: 1\nhardware", "2:1", "hardwear: is an unknown key", "`hardware`"),
    "unknown key, misspelt": ("classes:", "constraints: {max_gpu: 3}\nclasses:", "3:15", "constraints.max_gpu: is an unknown key", "did you mean `max_gpus`?"),
    "unknown key, other tool's name": (RATE, "concurrency: 40\n    " + RATE, "7:5", "unknown key", "`concurrent_requests`"),
    "unknown key, nothing near": (RATE, RATE + "\n    zzz: 1", "8:5", "classes[0].zzz", "known keys: batch, concurrent"),
    "key in the wrong section": ("classes:", "max_gpus: 3\nclasses:", "3:1", "max_gpus: stands in the wrong place", "move it to constraints"),
    "key of a class at the top": ("classes:", "needs: lookup\nclasses:", "3:1", "stands in the wrong place", "move it to classes[]"),
    "key of a section at the top": ("classes:", "top_k: 3\nclasses:", "3:1", "stands in the wrong place", "move it to rag"),
    "surroundings is no key": ("classes:", "surroundings: {}\nclasses:", "3:1", "surroundings: is an unknown key", ""),
    "model missing": ("model: meta-llama/Llama-3.1-8B-Instruct\n", "", "1:1", "model: is missing", "add `model:`"),
    "model like a flag": ("meta-llama/Llama-3.1-8B-Instruct", "--help", "1:1", "starts with a hyphen", "Hugging Face id"),
    "model with a line break": ("meta-llama/Llama-3.1-8B-Instruct", '"a\\nb"', "1:1", "'a\\nb' is not allowed", ""),
    "model that reads backwards": ("meta-llama/Llama-3.1-8B-Instruct", '"a\\u202eb"', "1:1", "is not allowed", ""),
    "key like a form of ours": (RATE, RATE + "\n    <spread>: 1", "8:5", "classes[0].<spread>: is an unknown key", ""),
    "form inside its own form": ("p95: 2000", "p95: 2000, <spread>: 1", "5:42", "prompt_tokens.<spread>: is an unknown key", ""),
    "number as YAML 1.1 reads it": (RATE, "requests_per_second: 1e3", "7:5", "'1e3' is text, not a number", "YAML reads 1e3 as text"),
    "model empty": ("meta-llama/Llama-3.1-8B-Instruct", "", "1:1", "model: is empty", "Hugging Face id"),
    "model a number": ("meta-llama/Llama-3.1-8B-Instruct", "7", "1:1", "7 is a number, not text", "in quotes"),
    "version without quotes": ("classes:", "vllm_version: 0.33\nclasses:", "3:1", "0.33 is a fraction, not text", "in quotes"),
    "version no version": ("classes:", "vllm_version: latest\nclasses:", "3:1", "'latest' is no version", '"0.33.0"'),
    "plan name": ("classes:", "name: My Plan\nclasses:", "3:1", "'My Plan' is not allowed", "lower-case"),
    "hardware a word": ("{gpu: h100-sxm, count: 8}", "h100-sxm", "2:1", "hardware is `local` or a mapping", ""),
    "hardware empty": ("{gpu: h100-sxm, count: 8}", "", "2:1", "hardware: is empty", "local"),
    "hardware without gpu": ("{gpu: h100-sxm, count: 8}", "{count: 8}", "2:1", "hardware.gpu: is missing", "profiles"),
    "hardware gpus": ("count: 8", "gpus: 8", "2:27", "hardware.gpus: is an unknown key", "`count`"),
    "hardware no GPU": ("count: 8", "count: 0", "2:27", "hardware.count: 0 has to be at least 1", ""),
    "hardware negative nodes": ("count: 8", "nodes: -1", "2:27", "-1 has to be at least 1", ""),
    "hardware half a GPU": ("count: 8", "count: 0.5", "2:27", "0.5 is a fraction, not a whole number", ""),
    "hardware yes GPUs": ("count: 8", "count: yes", "2:27", "true is a yes or no, not a whole number", ""),
    "hardware in two ways": ("count: 8", "node_labels: n.json", "2:12", "hardware.gpu: cannot stand beside", "one of the ways"),
    "no classes": (GOOD[GOOD.index("classes"):], "classes: []\n", "3:1", "classes: is empty", ""),
    "classes not a list": (GOOD[GOOD.index("classes"):], "classes: {name: a}\n", "3:1", "is a mapping, not a list", ""),
    "class not a mapping": (GOOD[GOOD.index("classes"):], "classes:\n  - chat\n", "4:5", "classes[0]: 'chat' is text, not a mapping", ""),
    "class name with underscore": ("name: chat", "name: chat_bot", "4:5", "'chat_bot' is not allowed", "hyphens, at most 40"),
    "class name with capital": ("name: chat", "name: Chat", "4:5", "'Chat' is not allowed", "Lower-case"),
    "class name of 41": ("name: chat", f"name: {'a' * 41}", "4:5", "is not allowed", "at most 40"),
    "class name with last hyphen": ("name: chat", "name: chat-", "4:5", "is not allowed", "inner hyphens"),
    "p95 below p50": ("p95: 2000", "p95: 500", "5:31", "classes[0].prompt_tokens.p95: 500 is below p50, which is 600", "p50 <= p95 <= max"),
    "max below p95": ("max: 6000", "max: 1999", "5:42", "prompt_tokens.max: 1,999 is below p95, which is 2,000", "p50 <= p95"),
    "p95 not guessed": (", p95: 2000", "", "5:5", "classes[0].prompt_tokens.p95: is missing", "never guessed"),
    "max not guessed": (", max: 6000", "", "5:5", "classes[0].prompt_tokens.max: is missing", "--max-model-len"),
    "no prompt": ("p50: 600, p95: 2000, max: 6000", "p50: 0, p95: 2000, max: 6000", "5:21", "0 has to be at least 1", "Median"),
    "tokens no number": (PROMPT, "prompt_tokens: long", "5:5", "'long' is no token count", "{p50, p95, max}"),
    "tokens a list": (PROMPT, "prompt_tokens: [600]", "5:5", "neither a number of tokens nor a mapping", ""),
    "tokens a boolean": (PROMPT, "prompt_tokens: on", "5:5", "neither a number of tokens nor a mapping", ""),
    "tokens empty": (PROMPT, "prompt_tokens:", "5:5", "classes[0].prompt_tokens: is empty", ""),
    "tokens absurd": (PROMPT, "prompt_tokens: 99999999999999999999", "5:5", "has to be at most 10,485,760", ""),
    "tokens overflow": (PROMPT, f"prompt_tokens: '{'9' * 400}'", "5:5", "classes[0].prompt_tokens", ""),
    # 10M = 10 x 1,048,576 = 10,485,760 alone is allowed; with 1,000 of output it is not
    "beyond any model": (PROMPT, "prompt_tokens: 10M", "5:5", "up to 10,486,760 tokens; no model reads more than 10,485,760", "split"),
    "no rate": ("    " + RATE + "\n", "", "4:5", "classes[0]: no rate is given", "concurrent_requests, requests_per_second, batch"),
    "two rates": (RATE, RATE + "\n    requests_per_second: 4", "8:5", "requests_per_second: concurrent_requests and requests_per_second are both given", "give one"),
    "rate and batch": (RATE, RATE + "\n    batch: {requests: 5, within_hours: 1}", "8:5", "are both given", "give one"),
    "no concurrency": (RATE, "concurrent_requests: 0", "7:5", "0 has to be at least 1", "in flight"),
    "negative concurrency": (RATE, "concurrent_requests: -4", "7:5", "-4 has to be at least 1", ""),
    "zero rate": (RATE, "requests_per_second: 0", "7:5", "0 has to be above 0", "arriving"),
    "negative rate": (RATE, "requests_per_second: -0.5", "7:5", "-0.5 has to be above 0", ""),
    "infinite rate": (RATE, "requests_per_second: .inf", "7:5", "inf is not finite", ""),
    "rate that is no number": (RATE, "requests_per_second: .nan", "7:5", "nan is not finite", ""),
    "rate as text": (RATE, "requests_per_second: '4'", "7:5", "'4' is text, not a number", ""),
    "batch of nothing": (RATE, "batch: {requests: 0, within_hours: 8}", "7:13", "batch.requests: 0 has to be at least 1", ""),
    "batch in no time": (RATE, "batch: {requests: 9, within_hours: 0}", "7:26", "within_hours: 0 has to be above 0", ""),
    "batch without a deadline": (RATE, "batch: {requests: 9}", "7:5", "batch.within_hours: is missing", "Hours"),
    "batch for latency": (RATE, "batch: {requests: 9, within_hours: 1}\n    objective: latency", "8:5", "latency contradicts batch", "remove objective"),
    "prefix above the median": (RATE, RATE + "\n    shared_prefix_tokens: 601", "8:5", "601 is more than the median prompt, whose 600 tokens", "lower it"),
    "negative prefix": (RATE, RATE + "\n    shared_prefix_tokens: -1", "8:5", "-1 has to be at least 0", ""),
    "half a request per document": (RATE, RATE + "\n    requests_per_document: 0.5", "8:5", "0.5 has to be at least 1", "1 or more"),
    "unknown need": (RATE, RATE + "\n    needs: whole_docment", "8:5", "'whole_docment' is unknown", "did you mean whole_document?"),
    "unknown objective": (RATE, RATE + "\n    objective: speed", "8:5", "'speed' is unknown", "latency, throughput"),
    "recall as text": (RATE, RATE + "\n    exact_recall: 'true'", "8:5", "'true' is text, not true or false", ""),
    "slo of nothing": (RATE, RATE + "\n    slo: {ttft_ms: 0}", "8:11", "slo.ttft_ms: 0 has to be above 0", "first token"),
    "slo by another name": (RATE, RATE + "\n    slo: {tpot_ms: 50}", "8:11", "unknown key", "`itl_ms`"),
    "unknown feature": ("classes:", "uses: [tool_caling]\nclasses:", "3:8", "uses[0]: 'tool_caling' is unknown", "did you mean tool_calling?"),
    "features as text": ("classes:", "uses: vision\nclasses:", "3:1", "'vision' is text, not a list", ""),
    "lora section alone": ("classes:", "lora: {max_loras: 4}\nclasses:", "3:1", "`uses` does not list lora", "add lora to `uses`"),
    "lora feature alone": ("classes:", "uses: [lora]\nclasses:", "3:1", "there is no `lora` section", "max_lora_rank"),
    "lora rank": ("classes:", "uses: [lora]\nlora: {max_lora_rank: 17}\nclasses:", "4:8", "17 is unknown", "1, 8, 16, 32, 64, 128, 256, 320 or 512"),
    "no loras": ("classes:", "uses: [lora]\nlora: {max_loras: 0}\nclasses:", "4:8", "0 has to be at least 1", ""),
    "images without vision": ("classes:", "images_per_prompt: 2\nclasses:", "3:1", "`uses` does not list vision", "add vision"),
    "no images": ("classes:", "uses: [vision]\nimages_per_prompt: 0\nclasses:", "4:1", "0 has to be at least 1", ""),
    "rag says nothing": ("classes:", "rag: {top_k: 5}\nclasses:", "3:1", "rag.available: is missing", "can retrieve"),
    "rag of no passages": ("classes:", "rag: {available: true, top_k: 0}\nclasses:", "3:24", "rag.top_k: 0 has to be at least 1", ""),
    "rag of empty passages": ("classes:", "rag: {available: true, chunk_tokens: 0}\nclasses:", "3:24", "0 has to be at least 1", ""),
    "unknown KV dtype": ("classes:", "constraints: {kv_cache_dtypes: [auto, int8]}\nclasses:", "3:39", "kv_cache_dtypes[1]: 'int8' is unknown", "did you mean int8_per_token_head?"),
    "no KV dtype": ("classes:", "constraints: {kv_cache_dtypes: []}\nclasses:", "3:15", "is empty", "--kv-cache-dtype"),
    "unknown quantization": ("classes:", "constraints: {weight_quantization: [fp88]}\nclasses:", "3:37", "'fp88' is unknown", "did you mean fp8"),
    "quantization of a plugin": ("classes:", "constraints: {weight_quantization: [bitsandbytes]}\nclasses:", "3:37", "unknown", "plugin"),
    "quantization of a checkpoint": ("classes:", "constraints: {weight_quantization: [awq]}\nclasses:", "3:37", "unknown", "AWQ checkpoint as `model`"),
    "quantization as a word": ("classes:", "constraints: {weight_quantization: fp8}\nclasses:", "3:15", "`forbidden` or a list such as [fp8]", ""),
    "quantization empty": ("classes:", "constraints: {weight_quantization: []}\nclasses:", "3:15", "is empty", "`forbidden`"),
    "no memory": ("classes:", "constraints: {gpu_memory_utilization: 0}\nclasses:", "3:15", "0 has to be above 0", "at most 1"),
    "too much memory": ("classes:", "constraints: {gpu_memory_utilization: 1.01}\nclasses:", "3:15", "1.01 has to be at most 1", ""),
    "memory in percent": ("classes:", "constraints: {gpu_memory_utilization: 90}\nclasses:", "3:15", "90 has to be at most 1", "Share"),
    "no GPUs allowed": ("classes:", "constraints: {max_gpus: 0}\nclasses:", "3:15", "0 has to be at least 1", ""),
    "no budget": ("classes:", "constraints: {budget_usd_per_hour: 0}\nclasses:", "3:15", "0 has to be above 0", ""),
    "negative price": ("classes:", "prices: {gpu_hour_usd: -1}\nclasses:", "3:10", "-1 has to be at least 0", ""),
    "date": ("count: 8", "count: 2024-01-01", "2:27", "2024-01-01 is a date, not a whole number", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_at_its_place_with_a_remedy(case):
    old, new, place, what, fix = MISTAKES[case]
    assert old in GOOD
    found = problems_of(GOOD.replace(old, new, 1))
    assert any(
        where == f"w.yaml:{place}" and what in said and fix in remedy
        for where, said, remedy in found
    ), found
    for _, said, remedy in found:
        assert not JARGON.search(said.replace("<spread>", ""))
        assert not JARGON.search(remedy)
        assert len(said) < 300


DESCRIBED = """\
model: m
hardware:
  described: {name: X, gpu_memory: 80GiB, compute_capability: "9.0"}
classes: [{name: a, prompt_tokens: 1, output_tokens: 1, concurrent_requests: 1}]
"""


@pytest.mark.parametrize(
    ("old", "new", "place", "what"),
    [
        ("gpu_memory: 80GiB, ", "", "3:3", "the memory of the GPU is not given"),
        ("gpu_memory: 80GiB", "gpu_memory: 80GiB, gpu_memory_bytes: 5", "3:43", "both are given"),
        ("gpu_memory: 80GiB", "gpu_memory: 80 parsecs", "3:24", "'80 parsecs' is no size"),
        ("gpu_memory: 80GiB", "gpu_memory: 0", "3:24", "0 has to be at least 1"),
        ("name: X", "memory_used: 80GiB, name: X", "3:15", "leave nothing of"),
        ('"9.0"', '"nine"', "3:43", "'nine' is not allowed"),
        ('"9.0"', "9", "3:43", "9 is a number, not text"),
        ("name: X", "interconnect: infiniband, name: X", "3:15", "'infiniband' is unknown"),
        ("name: X, ", "", "3:3", "hardware.described.name: is missing"),
        ("name: X", "gpu: X, name: X", "3:15", "stands in the wrong place"),
        ("{name: X", "{bandwidth: 1, name: X", "3:15", "is an unknown key"),
    ],
)
def test_mistakes_in_described_hardware(old, new, place, what):
    found = problems_of(DESCRIBED.replace(old, new, 1))
    assert any(where == f"w.yaml:{place}" and what in said for where, said, _ in found), found


def test_a_name_used_twice_names_the_first_line():
    second = GOOD[GOOD.index("  - name") :]
    where, what, fix = problems_of(GOOD + second)[0]
    assert (where, what) == ("w.yaml:8:5", "classes[1].name: 'chat' is already the class on line 4")
    assert fix == "give every class its own name"


def test_all_problems_are_reported_together_in_the_order_of_the_file():
    text = """\
model: 7
hardware: {gpu: h100-sxm, cuont: 8}
uses: [lora]
images_per_prompt: 2
classes:
  - name: chat
    prompt_tokens: {p50: 9, p95: 8, max: 7}
    output_tokens: 1
  - name: chat
    prompt_tokens: 1
    output_tokens: 1
constraints: {max_gpu: 1}
"""
    found = [(where.removeprefix("w.yaml:"), what) for where, what, _ in problems_of(text)]
    assert found == [
        ("1:1", "model: 7 is a number, not text"),
        ("2:27", "hardware.cuont: is an unknown key"),
        ("3:1", "uses: lists lora, but there is no `lora` section"),
        ("4:1", "images_per_prompt: given, but `uses` does not list vision"),
        # classes[0] has no rate either, which is said once its lengths are right
        ("7:29", "classes[0].prompt_tokens.p95: 8 is below p50, which is 9"),
        ("7:37", "classes[0].prompt_tokens.max: 7 is below p95, which is 8"),
        ("9:5", "classes[1]: no rate is given"),
        ("9:5", "classes[1].name: 'chat' is already the class on line 6"),
        ("12:15", "constraints.max_gpu: is an unknown key"),
    ]


def test_the_error_is_an_input_error_whose_first_problem_is_its_own():
    with pytest.raises(InputError) as caught:
        load_workload(GOOD.replace("chat", "Chat").replace("count: 8", "count: 0"), file="w.yaml")
    error = caught.value
    assert error.exit_code == 2
    assert error.where == "w.yaml:2:27"
    assert [other.where for other in error.others] == ["w.yaml:4:5"]


def test_every_key_has_a_description():
    for place, keys in _places(WorkloadKeys).items():
        for key, description in keys.items():
            assert description.endswith("."), (place, key)


def test_places_lead_into_lists_and_into_every_form_of_a_value():
    places = _places(WorkloadKeys)
    assert set(places[("classes", "*", "prompt_tokens")]) == {"p50", "p95", "max"}
    forms = {"gpu", "count", "nodes", "node_labels", "described", "any_of", "usd_per_gpu_hour"}
    assert set(places[("hardware",)]) == forms
    assert "compute_capability" in places[("hardware", "described")]
    assert set(places[()]) == set(WorkloadKeys.model_fields)


WORDS = st.sampled_from([
    *(key for keys in _places(WorkloadKeys).values() for key in keys),
    "local", "chat", "h100-sxm", "fp8", "forbidden", "32k", "80GiB", "9.0", "lookup", "lora",
])  # fmt: skip
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(-2, 10**7) | st.floats() | st.text(max_size=4)
    | st.integers() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5),
    max_leaves=15,
)  # fmt: skip


def _mutated():
    """The good file's data with some values replaced by anything."""
    keys = ["model", "hardware", "vllm_version", "name", "uses", "lora", "images_per_prompt"]
    keys += ["classes", "rag", "constraints", "prices"]
    request = st.dictionaries(
        st.sampled_from([*_places(WorkloadKeys)[("classes", "*")]]), VALUES, max_size=9
    )
    section = st.one_of(VALUES, st.lists(request, max_size=3), *(
        st.dictionaries(st.sampled_from([*inner]), VALUES, max_size=6) for inner in _places(WorkloadKeys).values()
    ))  # fmt: skip
    return st.dictionaries(st.sampled_from(keys), section, max_size=11)


@settings(max_examples=40)
@given(_mutated())
def test_no_data_raises_anything_but_an_advisor_error(data):
    _reads_or_explains(yaml.safe_dump(data))


@settings(max_examples=60)
@given(st.text(max_size=60), st.integers(0, len(GOOD)), st.integers(0, 30))
def test_no_text_raises_anything_but_an_advisor_error(text, at, cut):
    _reads_or_explains(text)
    _reads_or_explains(GOOD[:at] + text + GOOD[at + cut :])


def _reads_or_explains(text):
    try:
        load_workload(text, file="w.yaml")
    except AdvisorError as error:
        for problem in (error, *getattr(error, "others", ())):
            assert problem.what, text
            assert problem.where.startswith("w.yaml"), text
            assert "input should" not in problem.what.lower(), text
