"""Needles against a server on this machine, whose model reads what it is sent."""

from __future__ import annotations

import pytest
from fake_openai import Fake, completion, error, finds, forgets_the_middle, serving, words

from vllm_advisor.api import verify_needle
from vllm_advisor.errors import InputError, UnknownFactError


def run(fake, document, **options):
    return verify_needle(fake.url, options.pop("model", "tiny"), document, **options).to_dict()


def outcomes(result):
    return {(c["length"], c["depth"]): c["outcome"] for c in result["cells"]}


def test_every_needle_is_found_in_quarters_of_the_limit(document):
    with serving(Fake(max_model_len=4064)) as fake:
        result = run(fake, document)
    # 4,064 - 64 for the answer = 4,000; its quarters, at three depths.
    assert list(outcomes(result)) == [
        (length, depth) for length in (1000, 2000, 3000, 4000) for depth in (10, 50, 90)
    ]
    assert set(outcomes(result).values()) == {"hit"}
    assert result["hit_rate"] == 1.0
    assert result["passed"] is True
    assert result["assumptions"] == []
    for cell in result["cells"]:
        # 16 tokens of slack for the needle, 8 for the search.
        assert cell["length"] - 24 <= cell["prompt_tokens"] <= cell["length"]
        assert cell["expect"] in cell["answer"]
    assert len({cell["expect"] for cell in result["cells"]}) == 12


def test_needles_stand_at_their_depths(document):
    with serving(Fake()) as fake:
        run(fake, document, lengths=["2k"], depths=[0, 25, 100])
    for asked, depth in zip(fake.chats, (0, 25, 100), strict=True):
        prompt = asked["messages"][0]["content"]
        haystack = prompt.split("<document>\n")[1].split("\n</document>")[0]
        before = haystack.index("The reference number")
        assert abs(before / len(haystack) * 100 - depth) < 3
        assert words(prompt) <= 2000


def test_a_model_that_forgets_the_middle(document):
    with serving(Fake(model=forgets_the_middle)) as fake:
        result = run(fake, document, lengths=[2000], depths=[90, 10, 50, 50.0])
    assert outcomes(result) == {(2000, 10): "hit", (2000, 50): "miss", (2000, 90): "hit"}
    assert result["hits"] == 2
    assert result["hit_rate"] == 0.6667  # 2 / 3
    assert result["passed"] is False
    missed = result["cells"][1]
    assert missed["hit"] is False
    assert missed["answer"] == "The document does not say."


def test_the_hit_rate_that_is_enough(document):
    with serving(Fake(model=forgets_the_middle)) as fake:
        assert run(fake, document, lengths=[2000], min_hit_rate=0.66)["passed"] is True
        assert run(fake, document, lengths=[2000], min_hit_rate=0.67)["passed"] is False


def test_a_short_document_is_repeated(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("One two three four five six seven eight nine ten.\n" * 10)
    with serving(Fake()) as fake:
        result = run(fake, path, lengths=[1000], depths=[50])
    cell = result["cells"][0]
    # 1,000 - 16 tokens, less 5 of the template, 9 of the needle, 25 around it: 945 words at most,
    # of which a copy has 100.
    assert cell["copies"] == 10
    assert 976 <= cell["prompt_tokens"] <= 1000
    (note,) = result["notes"]
    assert note.startswith("1,000 tokens are longer than the document: it stands there 10 times")


def test_without_tokenize_a_sample_tells_the_length(document):
    with serving(Fake(tokenize=False, max_model_len=8000)) as fake:
        result = run(fake, document, lengths=[4000], depths=[50])
    assert fake.chats[0]["max_tokens"] == 1
    sample = fake.chats[0]["messages"][0]["content"]
    assert len(sample) == 4000  # as many characters as the shortest prompt has tokens
    ratio = 4000 / (words(sample) + 5)
    (assumption,) = result["assumptions"]
    assert f"lengths are made at {ratio:.2f} bytes per token" in assumption
    assert "a sample of 4,000 bytes" in assumption
    assert 3700 <= result["cells"][0]["prompt_tokens"] <= 4000
    assert result["cells"][0]["hit"] is True


def test_without_any_count_english_is_assumed(document):
    with serving(Fake(tokenize=False, usage=False)) as fake:
        result = run(fake, document, lengths=[1000], depths=[50])
    assert "4 bytes per token" in result["assumptions"][0]
    assert result["cells"][0]["prompt_tokens"] is None
    assert "without usage" in result["notes"][0]
    # 1,000 x 0.97 x 4 bytes
    assert 3600 <= len(fake.chats[1]["messages"][0]["content"].encode()) <= 3900


def test_too_long_is_the_outcome_of_a_cell(document):
    with serving(Fake(max_model_len=2000)) as fake:
        result = run(fake, document, lengths=[1000, 3000], depths=[50])
    assert outcomes(result) == {(1000, 50): "hit", (3000, 50): "refused"}
    refused = result["cells"][1]
    assert refused["refusal"].startswith("This model's maximum context length is 2000 tokens.")
    assert refused["answer"] is None
    assert result["passed"] is False


def test_reasoning_without_an_answer_is_no_hit(document):
    def thinks(asked, _headers):
        prompt = asked["messages"][0]["content"]
        return 200, completion("", words(prompt), reasoning=finds(prompt)), {}

    with serving(Fake(reply=thinks)) as fake:
        result = run(fake, document, lengths=[1000], depths=[50])
    cell = result["cells"][0]
    assert cell["outcome"] == "miss"
    assert cell["expect"] in cell["reasoning"]
    assert "reasoning and no answer" in result["notes"][0]


def test_answers_that_are_cut_off_and_prompts_that_are(document):
    def cuts(_asked, _headers):
        body = completion("The reference", 300)
        body["choices"][0]["finish_reason"] = "length"
        return 200, body, {}

    with serving(Fake(reply=cuts)) as fake:
        result = run(fake, document, lengths=[1000], depths=[10, 50])
    missed, short = result["notes"]
    assert missed == "2 cells missed with an answer cut off at --max-tokens"
    assert short.startswith("2 cells had less than 80% of the tokens asked for")


def test_texts_of_ones_own(document):
    with serving(Fake(model=lambda _: "On a Monday, it says.")) as fake:
        result = run(
            fake,
            document,
            lengths=[1000],
            depths=[50],
            needle="The fair opens on Monday.",
            question="When does the fair open?",
            expect="monday",
        )
    assert result["passed"] is True
    prompt = fake.chats[0]["messages"][0]["content"]
    assert "The fair opens on Monday." in prompt
    assert prompt.endswith("When does the fair open?")


def test_progress_is_told(document):
    told = []
    with serving(Fake()) as fake:
        run(fake, document, lengths=["1K"], depths=[50, 12.5], progress=told.append)
    assert told == [
        "cell 1 of 2: 1,024 tokens, depth 12.5 %",
        "cell 2 of 2: 1,024 tokens, depth 50 %",
    ]


@pytest.mark.parametrize(
    ("fake", "options", "what", "fix"),
    [
        (Fake(), {"model": "other"}, "no model 'other'", "it has: tiny"),
        (Fake(), {"model": "other", "lengths": [500]}, "`other` does not exist", "it has: tiny"),
        (Fake(models=[]), {"model": "other", "lengths": [500]}, "does not exist", "it serves"),
        (Fake(max_model_len=None), {}, "does not say how long", "--lengths"),
        (Fake(max_model_len=64), {}, "leaves no room", "less"),
        (Fake(), {"lengths": [30]}, "30 tokens are too few", "longer"),
        (Fake(), {"lengths": ["many"]}, "is no token count", "--lengths"),
        (Fake(), {"lengths": ["1g"]}, "1,000,000,000 tokens are more than", "less"),
        (Fake(), {"lengths": [0]}, "at least 1", ""),
        (Fake(), {"depths": [101]}, "101 is no depth", "0 to 100"),
        (Fake(), {"depths": ["nan"]}, "is no depth", "0 to 100"),
        (Fake(), {"depths": []}, "no depth", "--depths"),
        (Fake(), {"needle": "a mill {code}", "question": "?", "expect": "RIVER"}, "already", ""),
        (Fake(), {"min_hit_rate": float("nan")}, "nan is no share", "0 to 1"),
        (Fake(), {"max_tokens": 0}, "0 is no answer", "at least 1"),
        (Fake(), {"timeout": 0}, "is no time", "seconds"),
        (Fake(), {"model": "\x1b"}, "is no name", "--model"),
    ],
)
def test_what_cannot_be_tried(fake, options, what, fix, document):
    with serving(fake), pytest.raises(InputError) as caught:
        run(fake, document, **options)
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"caf\xe9", "is not UTF-8 (byte 3)"),
        (None, "cannot read the document: No such file"),
    ],
)
def test_documents_that_cannot_be_used(content, what, tmp_path):
    path = tmp_path / "document.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        verify_needle("http://127.0.0.1:1", "tiny", path)
    assert what in caught.value.what
    assert caught.value.where == str(path)


def test_a_folder_is_no_document(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        verify_needle("http://127.0.0.1:1", "tiny", tmp_path)


@pytest.mark.parametrize(
    ("fake", "what"),
    [
        (Fake(key="secret"), "wants an API key"),
        (Fake(hang_up_at=2), "connection was lost"),
        (Fake(reply=lambda *_: (503, "no healthy upstream", {})), "no healthy upstream"),
        (Fake(reply=lambda *_: (400, error("no chat template"), {})), "no chat template"),
        (Fake(reply=lambda *_: (200, "hello", {})), "no chat completion: hello"),
    ],
)
def test_what_cannot_be_found_out(fake, what, document):
    with serving(fake), pytest.raises(UnknownFactError) as caught:
        run(fake, document)
    assert what in caught.value.what
    assert caught.value.exit_code == 3


def test_a_byte_order_mark_and_windows_lines_are_no_text(document, tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbf" + document.read_bytes().replace(b"\n", b"\r\n"))
    with serving(Fake()) as fake:
        run(fake, path, lengths=[1000], depths=[50])
    prompt = fake.chats[0]["messages"][0]["content"]
    assert "<document>\nChapter 0 tells" in prompt
    assert "\r" not in prompt
