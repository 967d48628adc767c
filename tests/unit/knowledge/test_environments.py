"""Environment facts: where they come from, which win, and what is refused."""

import dataclasses

import pytest

from vllm_advisor.api.planning import plan, resolve_environment
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.environment_file import EnvironmentKeys
from vllm_advisor.knowledge.environments import make_environment, read_settings
from vllm_advisor.types.environment import Autoscaler, Environment, GatewayProvider

WORKLOAD = """
model: meta-llama/Llama-3.1-8B-Instruct
hardware: {gpu: h100-sxm, count: 1}
classes:
  - {name: chat, prompt_tokens: 1000, output_tokens: 100, concurrent_requests: 10}
environment: {namespace: from-workload, image_registry: registry.example.com/mirror}
"""


def test_the_file_and_the_type_have_the_same_keys():
    assert {*EnvironmentKeys.model_fields} == {f.name for f in dataclasses.fields(Environment)}


def test_words_win_over_the_file_which_wins_over_the_workload(tmp_path):
    path = tmp_path / "environment.yaml"
    path.write_text("namespace: from-file\nstorage_class_name: fast\n")
    given = {"namespace": "from-workload", "image_registry": "mirror"}
    place = resolve_environment(given, path, ("namespace=from-words",))
    assert place.namespace == "from-words"
    assert place.storage_class_name == "fast"
    assert place.image_registry == "mirror"
    assert resolve_environment(given, path, ()).namespace == "from-file"


@pytest.mark.parametrize(
    ("word", "given"),
    [
        ("namespace=llm", {"namespace": "llm"}),
        ("image_tag=1.0", {"image_tag": "1.0"}),  # text, though YAML reads a number
        ("max_replicas=4", {"max_replicas": 4}),
        ("autoscaler=hpa", {"autoscaler": Autoscaler.HPA}),
        ("api-key-secret=null", {"api_key_secret": None}),
        ("node_selector={disk: fast}", {"node_selector": {"disk": "fast"}}),
        ("gateway_provider=none", {"gateway_provider": GatewayProvider.NONE}),
        ("gateway_name=null", {"gateway_name": None}),
        ("client_namespaces=[web, jobs]", {"client_namespaces": ("web", "jobs")}),
    ],
)
def test_a_word_is_text_or_yaml_as_its_key_asks(word, given):
    assert make_environment(read_settings((word,))).given() == given


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("namespace", "'namespace' is no KEY=VALUE"),
        ("api_key_secret=", "--set api_key_secret= says nothing"),
        ("namespace=Not_A_Label", "namespace: 'Not_A_Label' is not allowed"),
        ("namespace=a\nb: c", "namespace: "),
        ("name_space=llm", "name_space: is an unknown key"),
        ("image_digest=sha256:abc", "image_digest: 'sha256:abc' is not allowed"),
        ("image_registry=host/$(id)", "image_registry: "),
        ("labels={team: a b}", "labels.team: 'a b' is not allowed"),
        ("max_replicas=many", "max_replicas: 'many' is text, not a whole number"),
        ("tolerations=[{keys: a}]", "tolerations[0]"),
        ("prometheus_url=javascript:x", "prometheus_url: "),
    ],
)
def test_what_is_not_allowed_is_told(word, what):
    with pytest.raises(InputError) as caught:
        read_settings((word,))
    assert caught.value.what.startswith(what)
    assert caught.value.where.startswith("--set")
    assert caught.value.fix


def test_a_certificate_needs_a_host():
    with pytest.raises(InputError, match="no ingress_host"):
        make_environment({"ingress_tls_secret": "cert"})


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        resolve_environment({}, tmp_path / "none.yaml", ())


def test_the_environment_never_changes_what_is_planned():
    plain = plan("w.yaml", text=WORKLOAD[: WORKLOAD.index("environment")])
    placed = plan("w.yaml", text=WORKLOAD, environment=("gpu_allocation=dra", "max_replicas=9"))
    assert placed.plan.environment.namespace == "from-workload"
    assert dataclasses.replace(placed.plan, environment=Environment()) == plain.plan


def test_only_what_differs_from_the_defaults_is_kept_in_the_plan():
    report = plan("w.yaml", text=WORKLOAD, environment=("monitoring=pod-monitor",))
    assert report.to_dict()["environment"] == {
        "namespace": "from-workload",
        "image_registry": "registry.example.com/mirror",
    }
