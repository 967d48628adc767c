"""The bundled model profiles, and how a model is found by name."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from packaging.version import Version

from vllm_advisor import resources
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge import model_profiles
from vllm_advisor.knowledge.model_profiles import (
    ProfileWeights,
    close_model_names,
    find_model_profile,
    model_profile_names,
)

ALL = {slug: find_model_profile(slug) for slug in model_profile_names()}

# The names registered in vllm/tool_parsers/__init__.py and vllm/reasoning/__init__.py of vLLM
# 0.32.0, as far as the profiles use them.
TOOL_PARSERS = """
    deepseek_v3 deepseek_v32 deepseek_v4 gemma4 glm47 hermes kimi_k2 kimi_k3 llama3_json
    llama4_pythonic minimax_m2 minimax_m3 mistral olmo3 openai pythonic qwen3_coder qwen3_xml
    step3p5
"""
REASONING_PARSERS = """
    deepseek_r1 deepseek_v3 deepseek_v4 gemma4 glm45 kimi_k2 kimi_k3 minimax_m2 minimax_m3
    nemotron_v3 qwen3 step3p5
"""
FAMILIES = """
    llama-2 llama-3.1 llama-3.2 llama-3.3 llama-4 qwen2- qwen2.5 qwen3- qwen3-coder qwen3-vl
    qwen3.5 qwen3.6 mistral mixtral gemma-2 gemma-3 gemma-4 deepseek-v2 deepseek-v3 deepseek-r1
    deepseek-v3.2 deepseek-v4 kimi-k2 kimi-k2.5 glm-5 gpt-oss phi-3.5 olmo-3 starcoder2 minimax
    nvidia-nemotron step aya mimo
"""


@pytest.fixture
def own_profiles(tmp_path, monkeypatch):
    """An empty folder of profiles, and a function that writes one into it."""
    monkeypatch.setattr(resources, "profiles", lambda kind: tmp_path / kind)
    folder = tmp_path / "models"
    folder.mkdir()

    def write(slug, text):
        (folder / f"{slug}.yaml").write_text(text)

    caches = (model_profiles._heads, model_profiles._slugs_by_name)
    for cached in caches:
        cached.cache_clear()
    yield write
    for cached in caches:
        cached.cache_clear()


# -- the data


def test_slug_is_the_last_part_of_the_id():
    for slug, profile in ALL.items():
        assert slug == profile.slug == profile.model_id.split("/")[1].lower()


def test_no_two_profiles_answer_to_one_name():
    names = Counter(
        name
        for profile in ALL.values()
        for name in {
            part
            for model_id in (profile.model_id, *profile.aliases)
            for part in (model_id.lower(), model_id.lower().split("/")[1])
        }
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_every_part_has_a_source():
    for slug, profile in ALL.items():
        assert len(profile.source) > 20, slug
        assert profile.weights is None or "counted from" in profile.weights.source, slug
        facts = profile.serving
        if facts.features or facts.base_args or facts.variants or facts.min_vllm_version:
            assert str(facts.source).startswith("docs:"), slug
        assert (facts.yarn_factor is None) == (facts.context_source is None), slug


def test_config_keeps_what_sizing_needs():
    for slug, profile in ALL.items():
        text = profile.config.get("text_config", profile.config)
        for key in (
            "num_hidden_layers",
            "hidden_size",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
            "max_position_embeddings",
        ):
            assert isinstance(text[key], int), (slug, key)
            assert text[key] > 0, (slug, key)
        for key in ("layer_types", "layers_block_type", "mlp_layer_types", "indexer_types"):
            assert len(text.get(key, "x" * text["num_hidden_layers"])) == text["num_hidden_layers"]
        # Only those that say which modalities there are.
        ids = [k for k in (*profile.config, *text) if k.endswith("_token_id")]
        assert all(k.startswith(("video", "audio")) for k in ids), slug


def test_weights_agree_with_their_dtypes():
    for slug, weights in ((slug, profile.weights) for slug, profile in ALL.items()):
        if weights is None:
            continue
        assert sum(weights.bytes_by_dtype.values()) == weights.bytes, slug
        if set(weights.bytes_by_dtype) <= {"bfloat16", "float16"}:
            assert weights.bytes == 2 * weights.parameters, slug
        else:
            assert weights.parameters < weights.bytes < 4 * weights.parameters, slug


def test_data_names_no_path_of_a_machine():
    for path in resources.profiles("models").glob("*.yaml"):
        found = re.search(r"(?:^|[\s'\"(])/\w", path.read_text())
        assert found is None, path


def test_the_well_known_families_are_there():
    assert len(ALL) >= 45
    for start in FAMILIES.split():
        assert any(slug.startswith(start) for slug in ALL), start


def test_llama_3_1_8b_weighs_what_its_config_says():
    profile = ALL["llama-3.1-8b-instruct"]
    c = profile.config
    assert (c["hidden_size"], c["intermediate_size"], c["vocab_size"]) == (4096, 14336, 128256)
    # embedding and untied head: 2 x 128256 x 4096                           = 1,050,673,152
    # a layer: q and o 2 x 4096 x 4096, k and v 2 x 4096 x 1024                =    41,943,040
    #          gate, up and down 3 x 4096 x 14336                              =   176,160,768
    #          two norms 2 x 4096                                              =         8,192
    # 32 layers x 218,112,000 = 6,979,584,000; last norm 4,096
    assert profile.weights.parameters == 1_050_673_152 + 6_979_584_000 + 4_096 == 8_030_261_248
    assert profile.weights.bytes == 16_060_522_496


def test_deepseek_v2_lite_has_no_low_rank_query():
    profile = ALL["deepseek-v2-lite"]
    assert "q_lora_rank" in profile.config
    assert profile.config["q_lora_rank"] is None
    # With the default rank of 1536 there would be 27 x (2048 x 1536 + 1536 + 1536 x 3072
    # - 2048 x 3072) = 27 x 1,574,400 = 42,508,800 parameters more: 15,748,993,024
    assert profile.weights.parameters == 15_748_993_024 - 42_508_800


@pytest.mark.parametrize(
    ("slug", "positions"),
    [
        ("llama-2-7b-hf", 4096),
        ("gemma-3-27b-it", 131072),
        ("olmo-3-7b-think", 65536),
        ("qwen2.5-7b-instruct", 32768),
        ("qwen3-235b-a22b-instruct-2507", 262144),
    ],
)
def test_positions_are_the_hubs(slug, positions):
    config = ALL[slug].config
    assert config.get("text_config", config)["max_position_embeddings"] == positions


# -- serving


def test_serving_flags_are_flags_of_vllm():
    engine = json.loads((resources.profiles("engines") / "0.33.0.yaml").read_text())
    flags = {flag["dest"]: flag for flag in engine["flags"]}
    kinds = {"bool": bool, "int": int, "json": (dict, list)}
    for slug, facts in ((slug, profile.serving) for slug, profile in ALL.items()):
        if facts.min_vllm_version:
            assert Version("0.6") < Version(facts.min_vllm_version) <= Version("0.33.0"), slug
        assert all(facts.features.values()), slug
        for part in (facts.base_args, *facts.features.values()):
            for dest, value in part.items():
                flag = flags[dest]
                assert isinstance(value, kinds.get(flag["kind"], object)), (slug, dest)
                if flag["kind"] != "json" and flag.get("choices"):
                    assert value in flag["choices"], (slug, dest)
            assert part.get("tool_call_parser", "hermes") in TOOL_PARSERS.split(), slug
            assert part.get("reasoning_parser", "qwen3") in REASONING_PARSERS.split(), slug
            assert ("tool_call_parser" in part) == ("enable_auto_tool_choice" in part), slug


def test_serving_facts_of_qwen3_8b():
    serving = find_model_profile("Qwen/Qwen3-8B").serving
    assert serving.min_vllm_version == "0.8.5"
    assert serving.features == {
        "tool_calling": {"enable_auto_tool_choice": True, "tool_call_parser": "hermes"},
        "reasoning": {"reasoning_parser": "qwen3"},
    }
    assert (
        str(serving.source) == "docs:vllm-project/recipes@8959cf6 "
        "models/Qwen/Qwen3-8B.yaml (Apache-2.0)"
    )
    assert (serving.yarn_factor, serving.yarn_original) == (4.0, 32768)
    assert (
        str(serving.context_source)
        == "docs:https://huggingface.co/Qwen/Qwen3-8B#processing-long-texts"
    )


def test_json_flags_are_mappings_and_variants_are_other_checkpoints():
    profile = find_model_profile("deepseek-ai/DeepSeek-V4-Flash")
    assert profile.serving.features["spec_decoding"] == {
        "speculative_config": {"method": "mtp", "num_speculative_tokens": 2}
    }
    assert profile.serving.base_args["trust_remote_code"] is True
    assert [(v.name, v.precision) for v in profile.serving.variants] == [
        ("default", "fp8"),
        ("nvfp4", "nvfp4"),
        ("dspark", "fp8"),
    ]
    for other in ALL.values():
        assert other.model_id not in {v.model_id for v in other.serving.variants}


def test_yarn_is_known_for_those_qwen_models_only_whose_publisher_documents_it():
    with_yarn = {slug for slug, profile in ALL.items() if profile.serving.yarn_factor}
    assert {"qwen2.5-7b-instruct", "qwen3-8b", "qwen3-30b-a3b", "qwen3-235b-a22b"} <= with_yarn
    assert all(slug.startswith(("qwen2", "qwen3-")) for slug in with_yarn)
    assert not {"qwen3-0.6b", "qwen3-1.7b", "qwen3-235b-a22b-instruct-2507"} & with_yarn


def test_a_model_without_serving_facts_has_none():
    serving = ALL["aya-23-8b"].serving
    assert (serving.source, serving.features, serving.variants) == (None, {}, ())


# -- finding


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),  # alias
        ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),  # last part of an alias
        ("QWEN/qwen3-8b", "Qwen/Qwen3-8B"),
        (" deepseek-ai/DeepSeek-V3-0324 ", "deepseek-ai/DeepSeek-V3"),
        ("CohereForAI/aya-23-8B", "CohereLabs/aya-23-8B"),
    ],
)
def test_found_by(name, model_id):
    assert find_model_profile(name).model_id == model_id


def test_every_profile_is_found_by_each_of_its_names():
    for slug, profile in ALL.items():
        for name in (profile.model_id, *profile.aliases):
            assert find_model_profile(name).slug == slug
            assert find_model_profile(name.split("/")[1].upper()).slug == slug


@pytest.mark.parametrize(
    "name",
    ["", "nobody/nothing", "someone-else/Llama-3.1-8B-Instruct", "../models/qwen3-8b", "qwen3"],
)
def test_not_found(name):
    assert find_model_profile(name) is None


def test_close_names():
    assert close_model_names("Qwen/Qwen3-9B")[0] == "Qwen/Qwen3-8B"
    assert "meta-llama/Llama-3.1-8B-Instruct" in close_model_names("llama-3.1-8b-instrukt")
    assert len(close_model_names("meta-llama/Llama")) <= 5
    assert close_model_names("zzzzzzzzzzzz") == []


def test_what_is_returned_is_the_callers_own():
    find_model_profile("qwen3-8b").config["hidden_size"] = 1
    assert find_model_profile("qwen3-8b").config["hidden_size"] == 4096


# -- reading

_GOOD = """\
model_id: org/Small
aliases: [org/Small-Chat]
source: written for this test
config:
  architectures: [LlamaForCausalLM]
"""


def test_a_profile_is_its_file_alone(own_profiles):
    own_profiles("small", _GOOD)
    assert model_profile_names() == ("small",)
    profile = find_model_profile("org/small-chat")
    assert (profile.model_id, profile.notes, profile.weights) == ("org/Small", "", None)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("wieghts: 1\n", "wieghts"),
        ("yarn: {factor: 4, original_max_position_embeddings: 32768}\n", "yarn.source"),
        ("serving: {features: {}}\n", "serving.source"),
    ],
)
def test_broken_profile_is_an_input_error(own_profiles, more, key):
    own_profiles("small", _GOOD + more)
    with pytest.raises(InputError) as caught:
        find_model_profile("small")
    assert key in caught.value.what
    assert caught.value.where.endswith("small.yaml")


def test_profile_without_an_id_is_an_input_error(own_profiles):
    own_profiles("small", _GOOD.replace("model_id", "model"))
    with pytest.raises(InputError, match="model_id"):
        find_model_profile("small")


def test_bytes_that_do_not_sum_are_refused():
    with pytest.raises(ValueError, match="sums to 8, not to bytes"):
        ProfileWeights(parameters=5, bytes=10, bytes_by_dtype={"bfloat16": 8}, source="test")


def test_names_read_alone_are_those_of_the_whole_file():
    heads = model_profiles._heads()
    assert {slug: (head.model_id, head.aliases) for slug, head in heads.items()} == {
        slug: (profile.model_id, profile.aliases) for slug, profile in ALL.items()
    }
