"""Times of arrival in traces: which forms are read, and when."""

from __future__ import annotations

import io

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.parse.trace import Trace
from vllm_advisor.parse.trace_columns import Names

TIMED = Names(required=("prompt_tokens", "output_tokens", "arrival"))


def arrivals(content: str, names: Names = TIMED) -> list[float | None]:
    return [row.arrival for row in Trace("t", stream=io.BytesIO(content.encode()), names=names)]


@pytest.mark.parametrize(
    "content",
    [
        # Azure has seven digits of a second
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5000000,3,4\n2023-11-16 18:15:48.0000000,3,4\n",
        # Mooncake has milliseconds
        '{"timestamp": 500, "input_length": 3, "output_length": 4}\n{"timestamp": 2000, "input_length": 3, "output_length": 4}\n',
        # BurstGPT has seconds
        "Timestamp,Request tokens,Response tokens\n0.5,3,4\n2,3,4\n",
        # Vidur
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,3,4\n2.0,3,4\n",
        "arrival_ms,prompt_tokens,output_tokens\n500,3,4\n2e3,3,4\n",
        "arrival,prompt_tokens,output_tokens\n2024-02-29T23:59:59.5Z,3,4\n2024-03-01T01:00:01+01:00,3,4\n",
    ],
)
def test_the_same_gap_in_many_forms(content: str) -> None:
    first, second = arrivals(content)
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(1.5, abs=1e-6)


def test_arrivals_are_not_read_unless_asked_for() -> None:
    content = "timestamp,prompt_tokens,output_tokens\nnonsense,3,4\n"
    assert arrivals(content, Names()) == [None]


def test_a_column_of_any_name() -> None:
    names = Names(required=TIMED.required, arrival_column="When")
    assert arrivals("when,prompt_tokens,output_tokens\n7.25,3,4\n", names) == [7.25]


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        (
            "prompt_tokens,output_tokens\n3,4\n",
            "there is no column with the time of arrival",
            "t:1",
        ),
        (
            "timestamp,prompt_tokens\n1,3\n",
            "there is no column with the length of the answer",
            "t:1",
        ),
        (
            "timestamp,prompt_tokens,output_tokens\nsoon,3,4\n",
            "timestamp is 'soon': this is no time",
            "t:2",
        ),
        (
            "timestamp,prompt_tokens,output_tokens\nnan,3,4\n",
            "timestamp is 'nan': this is no time",
            "t:2",
        ),
        ("timestamp,prompt_tokens,output_tokens\n1,3,4\n,3,4\n", "timestamp has no value", "t:3"),
        ("timestamp,prompt_tokens,output_tokens\n1,3,\n", "output_tokens has no value", "t:2"),
        (
            "timestamp,arrival,prompt_tokens,output_tokens\n1,1,3,4\n",
            "two columns hold arrival: timestamp, arrival",
            "t:1",
        ),
        (
            '{"timestamp": [1], "prompt_tokens": 3, "output_tokens": 4}\n',
            "timestamp is [1]: this is no time",
            "t:1",
        ),
        (
            '{"timestamp": true, "prompt_tokens": 3, "output_tokens": 4}\n',
            "timestamp is True: this is no time",
            "t:1",
        ),
    ],
)
def test_a_trace_that_does_not_say_when(content: str, what: str, where: str) -> None:
    with pytest.raises(InputError) as raised:
        arrivals(content)
    assert (raised.value.what, raised.value.where) == (what, where)
    assert raised.value.fix


def test_the_fix_names_the_option() -> None:
    with pytest.raises(InputError) as raised:
        arrivals("start,prompt_tokens,output_tokens\n1,3,4\n")
    assert "its columns are: start, prompt_tokens, output_tokens" in raised.value.fix
    assert "--arrival-column" in raised.value.fix
