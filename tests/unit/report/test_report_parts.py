import io
import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plan_example import ENGINE, decision, example_plan, figure
from report_examples import plan

from vllm_advisor.errors import InputError
from vllm_advisor.render.plan_file import plan_dict
from vllm_advisor.report.console import Page
from vllm_advisor.report.explain import print_explanation
from vllm_advisor.report.memory import bar_cells
from vllm_advisor.report.structured import to_json, to_yaml
from vllm_advisor.report.values import cell, price, print_command, size


def test_a_bar_shares_its_cells_in_proportion():
    # 10 cells over 100: 55 -> 5.5, 30 -> 3, 15 -> 1.5; floors 5 + 3 + 1, and the one cell that is
    # left goes to the first of the two largest remainders.
    assert bar_cells([55, 30, 15], 10) == [6, 3, 1]
    # A sliver keeps one cell, taken from the largest.
    assert bar_cells([9990, 5, 5], 10) == [8, 1, 1]
    assert bar_cells([0, 7, 0], 4) == [0, 4, 0]
    assert bar_cells([0, 0], 4) == [0, 0]


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=6))
def test_a_bar_has_its_width_and_hides_nothing(amounts):
    cells = bar_cells(amounts, 64)
    assert sum(cells) == (64 if any(amounts) else 0)
    assert [c > 0 for c in cells] == [a > 0 for a in amounts]


def test_cells():
    assert cell(None) == "-"
    assert cell(value=True) == "yes"
    assert cell(1234567) == "1,234,567"
    assert cell(1 << 30, "kv_bytes") == "1.00 GiB"
    assert cell(1 << 20, "memory_used") == "1.00 MiB"
    assert cell([9, 0], "compute_capability") == "9.0"
    assert cell([{"pid": 1, "memory_used": 1 << 20}, "x"]) == "pid 1, memory_used 1.00 MiB, x"
    assert price(None) == "price unknown"
    assert price(7.35) == "$7.35/h"
    assert size(None) == "-"


def test_a_command_breaks_between_arguments_only():
    stream = io.StringIO()
    words = "vllm serve m --a 'x y' --served-model-name one two " + "--flag value " * 8
    print_command(Page(stream), words)
    text = stream.getvalue()
    assert text.startswith("  vllm serve m --a 'x y' --served-model-name one two --flag value ")
    lines = text.splitlines()
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert all(len(line) <= 100 for line in lines)
    assert text.replace("\\\n", "").split() == words.split()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab_", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text("ab_", min_size=1), VALUES, max_size=3))
@example({"a": "\x85"})
def test_structured_reports_load_back_the_same(report):
    assert json.loads(to_json(report)) == report
    assert yaml.safe_load(to_yaml(report)) == report
    assert to_json(report).isascii()


def test_structured_reports_keep_their_order_and_repeat_what_is_shared():
    shared = ["x"]
    assert to_yaml({"b": shared, "a": shared}) == "b:\n- x\na:\n- x\n"
    assert to_json({"b": 1, "a": 2}) == '{\n  "b": 1,\n  "a": 2\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        to_json({"a": float("inf")})


def explained(asked=None, report=None):
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        patch.delenv("COLUMNS", raising=False)
        print_explanation(report or plan(), asked)
    return stream.getvalue()


def test_all_decisions_are_listed_with_their_flags():
    assert explained() == (
        "chat.port = 8000  (--port)\n"
        "chat.max-model-len = 8192  (--max-model-len)\n"
        "chat.gpu-memory-utilization = 0.9  (--gpu-memory-utilization)\n"
        "chat.enable-chunked-prefill = true  (--enable-chunked-prefill)\n"
        "docs.port = 8001  (--port)\n"
        "docs.max-model-len = 131072  (--max-model-len)\n"
        "docs.tensor-parallel-size = 2  (--tensor-parallel-size)\n"
        "deployment.instances = 2\n"
    )


def test_a_decision_is_explained_down_to_its_facts():
    assert explained("docs.tensor-parallel-size") == (
        "docs.tensor-parallel-size = 2  (--tensor-parallel-size)\n"
        "  Six whole contracts at once need 96 GiB of KV cache; one GPU has 53.\n"
        "  source: user:workload.yaml:12\n"
        "  not 1: holds three contracts, six are asked for\n"
        "  not 4: two GPUs are enough\n"
        "  docs.kv-per-request = 17,179,869,184 bytes (16.00 GiB)\n"
        "    = 131072 tokens x 128 KiB  [formula:kv-cache]\n"
        "    hf:example-org/config.json#num_key_value_heads\n"
        "  hf:example-org/config.json#num_key_value_heads\n"
    )


@pytest.mark.parametrize("asked", ["--max-model-len", "--max_model_len"])
def test_a_flag_is_explained_for_every_instance_that_has_it(asked):
    text = explained(asked)
    assert "chat.max-model-len = 8192" in text
    assert "\n\ndocs.max-model-len = 131072" in text


def test_figures_and_assumptions_can_be_asked_about():
    assert explained("chat.longest-request") == (
        "chat.longest-request = 8,192 tokens\n  = 7168 + 1024  [user:workload.yaml:12]\n"
    )
    assert explained("cuda-graphs") == (
        "cuda-graphs (assumed): CUDA graphs take what was measured on another GPU\n"
    )


def test_a_figure_used_twice_is_explained_once():
    made = example_plan(
        figures=(
            figure("a", 1, "x", inputs=("b",)),
            figure("b", 2, "x", inputs=("user:w.yaml:1",)),
        ),
        decisions=(decision("c.d", 1, because=("b", "a")),),
    )
    assert explained("c.d", plan_dict(made, ENGINE)).endswith(
        "  b = 2 x\n    = given  [formula:kv-cache]\n    user:w.yaml:1\n"
        "  a = 1 x\n    = given  [formula:kv-cache]\n    b: see above\n"
    )


def test_figures_in_a_circle_end():
    made = example_plan(
        figures=(
            figure("a", 1, "x", inputs=("b",)),
            figure("b", 2, "x", inputs=("a",)),
        ),
        decisions=(decision("c.d", 1, because=("a",)),),
    )
    assert explained("c.d", plan_dict(made, ENGINE)).endswith("      a: see above\n")


def test_an_unknown_id_names_close_ones():
    with pytest.raises(InputError, match="chat") as caught:
        explained("chat.max-modellen")
    assert "chat.max-model-len" in caught.value.fix
    with pytest.raises(InputError) as caught:
        explained("zzzz")
    assert "leave the id out" in caught.value.fix


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"decisions": "x"},
        {"decisions": [{"id": "a"}], "figures": [], "assumptions": []},
        {"decisions": [1]},
    ],
)
def test_what_is_no_plan_is_refused(report):
    with pytest.raises(InputError, match="this is no plan"):
        explained(None, report or {"a": 1})
