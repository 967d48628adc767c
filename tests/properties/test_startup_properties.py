"""No log makes the report fail: random bytes, logs cut anywhere, lines changed anywhere."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_advisor import size
from vllm_advisor.api import report_startup
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse import startup_log
from vllm_advisor.parse.startup_lines import FACT_LINES
from vllm_advisor.parse.startup_log import read_startup_log
from vllm_advisor.parse.startup_messages import clean_line
from vllm_advisor.report.structured import to_json
from vllm_advisor.units import GIB

LOGS = Path(__file__).parents[1] / "data" / "startup_logs"
TEXTS = {path.name: path.read_text("utf-8") for path in sorted(LOGS.glob("*.log"))}
WORDS = [form.hint for form in FACT_LINES] + [
    "non-default args: {",
    "args: Namespace(",
    "To serve at least one request with the models's max seq len (1), (",
    "Free memory on device (",
    " GiB",
    "\x1b[",
    "(Worker pid=",
    '{"log":',
]


def read(text: str) -> None:
    """A log, or an error for the person who gave it."""
    with contextlib.suppress(InputError):
        read_startup_log(text.split("\n"), "-")


@given(st.binary(max_size=2000))
@settings(max_examples=200, deadline=None)
def test_random_bytes(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for line in text.split("\n"):
        clean_line(line)
    read(text)


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=40))
@settings(max_examples=200, deadline=None)
def test_pieces_of_known_lines(parts: list[str]) -> None:
    read("".join(parts))


@given(
    name=st.sampled_from(sorted(TEXTS)),
    cut=st.floats(0, 1),
    place=st.floats(0, 1),
    junk=st.text(max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_logs_cut_and_changed(name: str, cut: float, place: float, junk: str) -> None:
    text = TEXTS[name][: int(cut * len(TEXTS[name]))]
    at = int(place * len(text))
    read(text[:at] + junk + text[at:])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(load_engine("0.32.0").flags)), _VALUES, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_arguments_are_reported(arguments: dict[str, object]) -> None:
    arguments["model"] = "meta-llama/Llama-3.1-8B-Instruct"
    lines = [
        "vLLM API server version 0.32.0",
        f"non-default args: {arguments!r}",
        "Available KV cache memory: 10.0 GiB",
        "ValueError: No available memory for the cache blocks.",
    ]
    report = report_startup("-", lines=lines, gpu="h100-sxm").to_dict()
    assert report["outcome"] == "refused"
    to_json(report)


def same_without_the_filter(text: str) -> None:
    lines = text.split("\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup_log, "may_say", lambda _: True)
        try:
            whole = read_startup_log(lines, "-")
        except InputError:
            whole = None
    try:
        found = read_startup_log(lines, "-")
    except InputError:
        found = None
    assert found == whole


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_lines_that_are_passed_over_say_nothing(name: str) -> None:
    same_without_the_filter(TEXTS[name])


@given(
    lines=st.lists(
        st.sampled_from([line for text in TEXTS.values() for line in text.split("\n")]), max_size=6
    ),
    cut=st.integers(0, 400),
    junk=st.text(max_size=6) | st.sampled_from(["\x1b[1m", " ", "\u00a0", "\\u0020", "\x85"]),
    wrapped=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_no_changed_line_is_passed_over(
    lines: list[str], cut: int, junk: str, wrapped: bool
) -> None:
    changed = [line[:cut] + junk + line[cut:] for line in lines]
    if wrapped:
        changed = [json.dumps({"log": line}) for line in changed]
    same_without_the_filter("\n".join(changed))


def test_long_lines_are_read_in_time() -> None:
    lines = [
        "non-default args: {" + "'a': 1, " * 20_000,
        "Actual usage is " + "1.0 GiB for weight, " * 20_000,
        "[pod/a/b] " * 20_000,
        "(Worker pid=1) " * 20_000,
        "\x1b[" * 100_000,
        "Free memory on device " * 10_000,
        "a.B" * 50_000 + "Error: x",
        "A" * 200_000,
    ]
    begun = time.monotonic()
    for line in lines:
        log = read_startup_log(["vLLM API server version 0.11.0", line], "-")
        assert log.lines == 2
    assert time.monotonic() - begun < 10


_GIB = st.integers(1, 400).map(lambda hundredths: hundredths / 100)


@given(
    sizes=st.tuples(_GIB, _GIB, _GIB),
    weights=st.integers(-40, 40),
    said=st.sets(st.sampled_from(["activations", "graphs", "weights"])),
    tokens=st.sampled_from([1024, 2048, 8192]),
)
@settings(max_examples=60, deadline=None)
def test_a_start_is_predicted_as_logged_by_its_own_calibration(
    sizes: tuple[float, float, float], weights: int, said: set[str], tokens: int
) -> None:
    """Whatever a log states of its terms, its KV cache comes out."""
    activations, graphs, non_torch = sizes
    args = {"max_model_len": 8192, "gpu_memory_utilization": 0.9, "max_num_batched_tokens": tokens}
    loaded = (1527 + (weights if "weights" in said else 0)) / 100
    share = 79.18 * 0.9
    cache = round(share - loaded - activations - graphs - non_torch, 2)
    lines = [
        "vLLM API server version 0.26.0",
        f"non-default args: { ({'model': 'Qwen/Qwen3-8B'} | args)!r}",
        f"Available KV cache memory: {cache} GiB",
    ]
    if "weights" in said:
        lines.append(f"Model loading took {loaded} GiB memory and 5 seconds")
    if "graphs" in said:
        lines.append(f"Estimated CUDA graph memory: {graphs} GiB total")
    if "activations" in said:
        lines.append(
            f"Free memory on device (78.6/79.18 GiB) on startup. Desired GPU memory utilization is "
            f"(0.9, {share:.2f} GiB). Actual usage is {loaded} GiB for weight, {activations} GiB "
            f"for peak activation, {non_torch} GiB for non-torch memory, and 1 GiB for CUDAGraph "
            "memory."
        )
    report = report_startup("startup.log", lines=lines, gpu="h100-sxm")
    made = report.calibration()
    sized = size(
        "qwen3-8b",
        gpu="h100-sxm",
        vllm_version="0.26.0",
        calibration=made,
        **args,
    )
    budget = sized.figures.budget
    assert budget is not None
    assert abs(budget.kv_cache.value / GIB - cache) < 0.03
    assert min(f.value for f in budget.parts[:-1]) >= 0
