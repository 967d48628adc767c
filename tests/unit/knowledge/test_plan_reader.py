"""plan.yaml read back: what a person changed in it is told, not rendered."""

import copy

import pytest

from vllm_advisor.api.planning import plan
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.plan_reader import read_plan

DATA = plan("contract-review").to_dict()


def changed(**values):
    data = copy.deepcopy(DATA)
    data["instances"][0] |= values
    return data


def test_an_unchanged_plan_is_read():
    assert read_plan(DATA, load_engine("0.33.0"), file="plan.yaml").name == "contract-review"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (changed(gpus=3), "its flags make 1 ranks"),
        (changed(replicas="two"), "its flags make 1 ranks"),
        (changed(replicas=0), "its flags make 1 ranks"),
        (changed(engine_args={"max_model_len": 4096}), "max_model_len=4096 of instance chat"),
        (changed(engine_args={"seed": 1}), "seed=1 of instance chat"),
        ({**DATA, "hardware": {}}, "cannot be read"),
        ({**DATA, "environment": {"namespace": "Not A Label"}}, "namespace: "),
    ],
)
def test_what_was_changed_is_told(data, what):
    with pytest.raises(InputError) as caught:
        read_plan(data, load_engine("0.33.0"), file="plan.yaml")
    assert what in caught.value.what
    assert caught.value.where.startswith("plan.yaml")
