"""Traces: which forms are read, and what is said of a row that cannot be."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.parse import trace_lines as lines_module
from vllm_advisor.parse import trace_rows as rows_module
from vllm_advisor.parse.trace import Trace
from vllm_advisor.parse.trace_columns import Names, read_tokens
from vllm_advisor.types.trace import TracedRequest
from vllm_advisor.types.workload import Needs

DATA = Path(__file__).parents[2] / "data" / "traces"
KNOWN = Names(classes=("chat", "lookups"), routes=("short", "long"))


def read(content: str | bytes, names: Names = KNOWN, **kwargs: int) -> list[TracedRequest]:
    raw = content if isinstance(content, bytes) else content.encode()
    return list(Trace("t", stream=io.BytesIO(raw), names=names, **kwargs))


def lengths(content: str | bytes, names: Names = KNOWN) -> list[tuple[int, int | None]]:
    return [(row.prompt_tokens, row.output_tokens) for row in read(content, names)]


@pytest.mark.parametrize(
    "content",
    [
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023,396,109\n",
        (
            '{"timestamp": 0, "input_length": 374, "output_length": 44, "hash_ids": [0]}\n'
            '{"timestamp": 1, "input_length": 396, "output_length": 109, "hash_ids": [0]}\n'
        ),
        (
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,374,44,418,API log\n9,GPT-4,396,109,505,API log\n"
        ),
        "input_tokens,completion_tokens\n374,44\n396,109\n",
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n1,396,109\n",
        "PROMPT_TOKENS,Output_Tokens\n374,44\n396,109\n",
        'prompt_tokens,output_tokens\n"374","44"\n\n396.0,109.0\n',
        "prompt_tokens, output_tokens\r\n374, 44\r\n\r\n396, 109\r\n",
        "\ufeffprompt_tokens,output_tokens\n374,44\n396,109",
        '\n{"prompt_tokens": 374, "output_tokens": 44}\n\n  {"output_tokens": 109, "prompt_tokens": 396.0}',
        '[{"prompt_tokens": 374, "output_tokens": 44},\n {"prompt_tokens": 396, "output_tokens": 109}]\n',
        (
            '\ufeff \n[\n{\n"prompt_tokens": 374, "output_tokens": 44\n}\n,\n'
            '{"prompt_tokens": 396, "output_tokens": 109}\n]\n\n'
        ),
    ],
)
def test_the_same_two_requests_in_many_forms(content: str) -> None:
    expected = [(374, 44), (396, 109)]
    assert lengths(content) == expected
    assert lengths(gzip.compress(content.encode(), mtime=0)) == expected


def test_every_field() -> None:
    (row,) = read(
        "prompt_tokens,output_tokens,class,needs,route,retrieved_tokens,history_tokens,max_tokens,"
        'hash_ids,user\n9000,10,lookups,recent_only,long,0,700,256,"[1, ""b""]",somebody\n',
        block_tokens=8192,
    )
    assert row == TracedRequest(
        prompt_tokens=9000,
        output_tokens=10,
        needs=Needs.RECENT_ONLY,
        request_class="lookups",
        route="long",
        retrieved_tokens=0,
        history_tokens=700,
        max_tokens=256,
        hash_ids=(1, "b"),
    )


def test_what_is_empty_is_not_said() -> None:
    csv = "prompt_tokens,output_tokens,needs,class,route,max_tokens,hash_ids\n7,,,,,,\n"
    assert read(csv) == [TracedRequest(prompt_tokens=7)]
    nothing = {"output_tokens": None, "needs": None, "route": None, "hash_ids": None}
    assert read(json.dumps({"prompt_tokens": 7, **nothing})) == [TracedRequest(prompt_tokens=7)]


def test_columns_by_name() -> None:
    content = "in,out,prompt_tokens\n7,8,9\n"
    names = Names(prompt_column="IN", output_column="out")
    trace = Trace("t", stream=io.BytesIO(content.encode()), names=names)
    assert [(row.prompt_tokens, row.output_tokens) for row in trace] == [(7, 8)]
    assert trace.columns == {"prompt_tokens": "in", "output_tokens": "out"}
    assert tuple(trace.ignored) == ("prompt_tokens",)


def test_rows_of_json_may_have_other_keys_each() -> None:
    content = '{"prompt_tokens": 1, "a": 2}\n{"input_length": 3}\n{"b": 0, "prompt_tokens": 4}\n'
    trace = Trace("t", stream=io.BytesIO(content.encode()))
    assert [row.prompt_tokens for row in trace] == [1, 3, 4]
    assert tuple(trace.ignored) == ("a", "b")


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        ("", "no request in it", "t"),
        ("\n \n", "no request in it", "t"),
        ("prompt_tokens\n", "no request in it", "t"),
        ("[]", "no request in it", "t"),
        ("374,44\n396,109\n", "no column with the length of the prompt", "t:1"),
        ("\nprompt,output\n\n1,2\n", "no column with the length of the prompt", "t:2"),
        ("prompt_tokens,input_tokens\n1,2\n", "two columns hold prompt_tokens", "t:1"),
        ("prompt_tokens\n374\n-5\n", "prompt_tokens is '-5': a number of tokens is not neg", "t:3"),
        ("ContextTokens\n3.7\n", "ContextTokens is '3.7': a number of tokens is whole", "t:2"),
        ("prompt_tokens\nmany\n", "'many': this is no number of tokens", "t:2"),
        ("prompt_tokens\n1_000\n", "'1_000': this is no number of tokens", "t:2"),
        ("prompt_tokens\nnan\n", "'nan': this is no number of tokens", "t:2"),
        ("prompt_tokens\n1e99\n", "more than 1,000,000,000,000 tokens", "t:2"),
        ("prompt_tokens,a\n\n,1\n", "prompt_tokens has no value", "t:3"),
        ("prompt_tokens,output_tokens\n1,2\n3\n", "the row has 1 values for 2 columns", "t:3"),
        ("prompt_tokens\n1,2\n", "the row has 2 values for 1 columns", "t:2"),
        ('prompt_tokens\n1\n"2\n3\n', "this is no CSV", "t:3"),
        ('a,prompt_tokens\n"x\ny",1\nz,-1\n', "prompt_tokens is '-1'", "t:4"),
        ("prompt_tokens,max_tokens\n1,0\n", "max_tokens is '0': an answer has at least", "t:2"),
        ("prompt_tokens,needs\n1,magic\n", "needs is 'magic': an answer needs one of", "t:2"),
        ("prompt_tokens,class\n1,x\n", "class is 'x': the policy has no such class; it", "t:2"),
        ("prompt_tokens,route\n1,chat\n", "the policy has no such route; it has: short", "t:2"),
        ("prompt_tokens,hash_ids\n1,[1\n", "this is no list of block ids", "t:2"),
        ('{"prompt_tokens": 1}\n{"prompt_tokens": 2\n', "this is no JSON: ", "t:2:20"),
        ('  {"prompt_tokens": 1} {"prompt_tokens": 2}\n', "something follows", "t:1:23"),
        ('{"prompt_tokens": 1}\n[2]\n', "the row is no JSON object", "t:2"),
        ('{"prompt_tokens": 1}\n{"output_tokens": 2}\n', "no column with the length", "t:2"),
        ('{"prompt_tokens": true}\n', "prompt_tokens is True: this is no number", "t:1"),
        ('{"prompt_tokens": NaN}\n', "prompt_tokens is nan: this is no number", "t:1"),
        ('{"prompt_tokens": Infinity}\n', "more than 1,000,000,000,000 tokens", "t:1"),
        ('{"prompt_tokens": [1]}\n', "prompt_tokens is [1]: this is no number", "t:1"),
        ('{"prompt_tokens": null}\n', "prompt_tokens has no value", "t:1"),
        ('{"prompt_tokens": 1, "route": 5}\n', "the name of a route is text", "t:1"),
        ('{"prompt_tokens": 1, "needs": [1]}\n', "an answer needs one of", "t:1"),
        ('{"prompt_tokens": 1, "hash_ids": [1.5]}\n', "this is no list of block ids", "t:1"),
        ('{"prompt_tokens": 1, "hash_ids": {}}\n', "this is no list of block ids", "t:1"),
        (
            '{"prompt_tokens": 513, "hash_ids": [1, 2, 3]}\n',
            "3 ids; 513 tokens are 2 blocks",
            "t:1",
        ),
        ("{" + '"a":{' * 100_000 + "\n", "this is no JSON", "t:1"),
        ('{"prompt_tokens": ' + "9" * 5000 + "}\n", "this is no JSON", "t:1"),
        ('[{"prompt_tokens": 1},\n{"prompt_tokens": -1}]', "prompt_tokens is -1", "t:2"),
        ('[{"prompt_tokens": 1},\n{"prompt_tokens": 2}\n', "the array does not end", "t:3"),
        ('[{"prompt_tokens": 1}\n{"prompt_tokens": 2}]', "one comma stands between", "t:2"),
        ('[{"prompt_tokens": 1},\n]', "one comma stands between", "t:2"),
        ('[,{"prompt_tokens": 1}]', "one comma stands between", "t:1"),
        ('[{"prompt_tokens": 1},\n{"prompt_tokens":\n x}]', "this is no JSON: Expecting", "t:3"),
        ('[{"prompt_tokens": 1},\n7]', "the row is no JSON object", "t:2"),
        ('[{"prompt_tokens": 1}] x', "something follows the array", "t:1"),
        (b"prompt_tokens\n1\n\xff\n", "this is no UTF-8: byte 0xff at 1", "t:3"),
        (b"\xff\xfep\x00r\x00", "this is no UTF-8: byte 0xff at 1", "t:1"),
        (b"\x1f\x8b\x08nonsense", "the gzip data is damaged", "t"),
        (
            gzip.compress(b"prompt_tokens\n" + b"1\n" * 99, mtime=0)[:-9],
            "the gzip data is damaged",
            "t",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: str | bytes, what: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        read(content)
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.fix


def test_a_class_that_no_policy_knows() -> None:
    with pytest.raises(InputError, match="no such class; it has none"):
        read("prompt_tokens,class\n1,x\n", Names(classes=()))
    assert read("prompt_tokens,class\n1,x\n", Names())[0].request_class == "x"


def test_a_column_that_is_asked_for_and_not_there() -> None:
    with pytest.raises(InputError, match="there is no column 'tokens'") as caught:
        read("a,b\n1,2\n", Names(prompt_column="tokens"))
    assert "its columns are: a, b" in caught.value.fix
    with pytest.raises(InputError, match="there is no column 'answer'"):
        read("prompt_tokens\n1\n", Names(output_column="answer"))


def test_fewer_ids_than_blocks_are_taken_as_they_are() -> None:
    """A prompt of 1,600 tokens is 3.125 blocks of 512: 3 whole ones, 4 with the started one."""
    for ids in ([1], [1, 2, 3], [1, 2, 3, 4]):
        (row,) = read(json.dumps({"prompt_tokens": 1600, "hash_ids": ids}))
        assert row.hash_ids == tuple(ids)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(Trace(str(tmp_path / "absent.csv")))
    with pytest.raises(InputError, match="cannot be read"):
        list(Trace(str(tmp_path)))


def test_the_name_of_a_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(b"prompt_tokens\n5\n", mtime=0))
    assert [row.prompt_tokens for row in Trace(str(path))] == [5]


def test_a_pipe_that_gives_a_byte_at_a_time() -> None:
    class Slow(io.RawIOBase):
        data = gzip.compress(b"prompt_tokens\n5\n6\n", mtime=0)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            taken, self.data = self.data[:1], self.data[1:]
            buffer[: len(taken)] = taken
            return len(taken)

    pipe = io.BufferedReader(Slow(), 1)
    assert [row.prompt_tokens for row in Trace("-", stream=pipe)] == [5, 6]


def test_endless_lines_and_arrays_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 64)
    with pytest.raises(InputError, match="longer than 64 bytes"):
        read("prompt_tokens\n" + "1" * 100)
    assert len(read("prompt_tokens\n" + "1\n" * 100)) == 100
    monkeypatch.setattr(rows_module, "_MOST_ARRAY_CHARACTERS", 50)
    with pytest.raises(InputError, match="more than 50 characters"):
        read("[\n" + '{"prompt_tokens": 1},\n' * 3 + '{"prompt_tokens": 1}]')


def test_rows_come_before_the_end_is_read() -> None:
    """A million rows are never held at once."""

    def endless() -> io.BufferedReader:
        class Endless(io.RawIOBase):
            first = True

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:
                text = b"prompt_tokens\n" if self.first else b"7\n" * (len(buffer) // 2)
                self.first = False
                buffer[: len(text)] = text
                return len(text)

        return io.BufferedReader(Endless())

    rows = iter(Trace("-", stream=endless()))
    assert [next(rows).prompt_tokens for _ in range(1000)] == [7] * 1000


@pytest.mark.parametrize(
    ("value", "tokens"), [("007", 7), (" 12 ", 12), ("1.", 1), ("1.2e3", 1200), (0, 0), ("", None)]
)
def test_forms_of_a_number(value: str | int, tokens: int | None) -> None:
    assert read_tokens(value) == tokens


def test_the_public_heads() -> None:
    azure = list(Trace(str(DATA / "azure_llm_2023_conv_head.csv")))
    assert (len(azure), azure[0].prompt_tokens, azure[0].output_tokens) == (200, 374, 44)
    mooncake = list(Trace(str(DATA / "mooncake_conversation_head.jsonl")))
    assert len(mooncake) == 200
    assert mooncake[0].prompt_tokens == 6758
    assert mooncake[0].hash_ids == tuple(range(14))  # 6,758 / 512 = 13.2: 14 blocks
