import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest
from plan_example import (
    ENGINE,
    NODE,
    chat_decisions,
    decision,
    docs_decisions,
    example_plan,
    expect,
    instance,
)

from vllm_advisor.render.serve import render_serve, script_names, serve_argv
from vllm_advisor.types.plan import Deployment

EXPECTED = Path(__file__).parent / "expected"
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a\ntouch pwned\n",
    "a\r\ntouch pwned",
    ")\ntouch pwned",
    "x \\",
    "${IFS}*?~!#",
    "[bold]|pipe|{{ 7 }}{% raw %}",
    "caf\u00e9 \u4f60\u597d \u202etxt",
]


def plan_of(*instances, **changes):
    return example_plan(deployment=Deployment(instances=instances), **changes)


@pytest.fixture
def run(tmp_path):
    """Runs a script where ``vllm`` prints its arguments; the folder may hold nothing else after."""

    def run_script(text, *arguments):
        folder = tmp_path / "here"
        bin_ = tmp_path / "bin"
        for path in (folder, bin_):
            path.mkdir(exist_ok=True)
        fake = bin_ / "vllm"
        fake.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
        fake.chmod(0o755)
        (folder / "s.sh").write_text(text, encoding="utf-8")
        subprocess.run(["bash", "-n", "s.sh"], cwd=folder, check=True)
        done = subprocess.run(
            ["bash", "s.sh", *arguments],
            cwd=folder,
            env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"},
            capture_output=True,
            check=True,
        )
        assert [p.name for p in folder.iterdir()] == ["s.sh"]
        assert not done.stderr
        return done.stdout.decode().split("\0")[:-1]

    return run_script


def test_scripts_of_the_example():
    artifacts = render_serve(example_plan(), ENGINE)
    assert [(a.path, a.executable) for a in artifacts] == [
        ("serve-chat.sh", True),
        ("serve-docs.sh", True),
    ]
    for artifact in artifacts:
        expect(EXPECTED / artifact.path, artifact.text)


def test_the_script_starts_vllm_with_the_arguments_and_adds_its_own_at_the_end(run):
    plan = example_plan()
    for artifact, made in zip(render_serve(plan, ENGINE), plan.deployment.instances, strict=True):
        assert run(artifact.text, "--port", "9000") == [
            "serve",
            *serve_argv(made, ENGINE),
            "--port",
            "9000",
        ]


def test_an_instance_without_flags_runs(run):
    text = render_serve(plan_of(instance("bare", ())), ENGINE)[0].text
    assert run(text) == ["serve", "example-org/Example-8B-Instruct"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_can_break_a_script(run, text):
    made = instance(
        text,
        (
            decision(f"{text}.a", text, "chat_template", reason=text),
            decision("b", [text, text], "served_model_name", reason=text),
            decision("c", {text: text}, "hf_overrides", reason=text),
        ),
        model=text,
        model_reason=text,
        role=text,
        classes=(text,),
    )
    artifact = render_serve(plan_of(made, name=text, vllm_version=text), ENGINE)[0]
    assert re.fullmatch(r"serve-[A-Za-z0-9._-]+\.sh", artifact.path)
    assert run(artifact.text) == ["serve", *serve_argv(made, ENGINE)]


def test_only_flags_that_are_arguments_appear():
    for artifact in render_serve(example_plan(), ENGINE):
        code = [line for line in artifact.text.splitlines() if not line.lstrip().startswith("#")]
        flags = re.findall(r"--[a-z-]+", "\n".join(code))
        args = next(
            i.engine_args
            for i in example_plan().deployment.instances
            if artifact.path == f"serve-{i.name}.sh"
        )
        assert flags == ["--" + arg.dest.replace("_", "-") for arg in args]


def test_every_flag_has_its_reason_above_it():
    text = render_serve(example_plan(), ENGINE)[0].text
    assert (
        "  # Nothing else runs on the GPU. [chat.gpu-memory-utilization; user:workload.yaml:12]\n"
        "  --gpu-memory-utilization 0.9\n"
    ) in text


def starts(plan, index=0):
    """The commented lines that say how to start each replica."""
    return re.findall(
        r"^# +((?:CUDA|\./|and ).*)$", render_serve(plan, ENGINE)[index].text, re.MULTILINE
    )


def test_replicas_count_up_gpus_and_ports_and_leave_other_instances_ports_alone():
    # chat has port 8000 and three replicas, docs has 8001: chat goes on with 8002 and 8003.
    chat = instance("chat", chat_decisions(), replicas=3)
    docs = instance("docs", docs_decisions(), gpus=2)
    plan = plan_of(chat, docs, node=dataclasses.replace(NODE, gpu_count=8))
    assert starts(plan) == [
        "CUDA_VISIBLE_DEVICES=0 ./serve-chat.sh",
        "CUDA_VISIBLE_DEVICES=1 ./serve-chat.sh --port 8002",
        "CUDA_VISIBLE_DEVICES=2 ./serve-chat.sh --port 8003",
    ]
    assert starts(plan, 1) == ["CUDA_VISIBLE_DEVICES=3,4 ./serve-docs.sh"]


def test_a_replica_never_straddles_two_nodes_and_gaps_are_used():
    # 4 GPUs a node: chat takes GPU 0; docs (2 each) 1,2 and 0,1 of the next node; the last GPU of
    # the first node is free for nobody, a second docs pair fits node 2.
    chat = instance("chat", chat_decisions())
    docs = instance("docs", docs_decisions(), gpus=2, replicas=3)
    plan = plan_of(chat, docs, node=dataclasses.replace(NODE, node_count=2))
    assert starts(plan, 1) == [
        "CUDA_VISIBLE_DEVICES=1,2 ./serve-docs.sh  # node 1",
        "CUDA_VISIBLE_DEVICES=0,1 ./serve-docs.sh --port 8002  # node 2",
        "CUDA_VISIBLE_DEVICES=2,3 ./serve-docs.sh --port 8003  # node 2",
    ]


def test_at_most_eight_replicas_are_listed():
    many = plan_of(
        instance("chat", chat_decisions(), replicas=11),
        node=dataclasses.replace(NODE, gpu_count=16),
    )
    lines = starts(many)
    assert len(lines) == 9
    assert lines[7:] == [
        "CUDA_VISIBLE_DEVICES=7 ./serve-chat.sh --port 8007",
        "and 3 more in the same way",
    ]


def test_an_instance_over_two_nodes_says_how_each_node_starts():
    big = instance("big", (decision("big.nnodes", 2, "nnodes"),), gpus=8)
    plan = plan_of(big, node=dataclasses.replace(NODE, node_count=2))
    assert starts(plan) == [
        "./serve-big.sh",
        "./serve-big.sh --node-rank 1 --headless  # second node; then 2, 3, ...",
    ]
    assert "one replica takes all GPUs of 2 nodes" in render_serve(plan, ENGINE)[0].text


def test_script_names_are_unique_and_stay_in_their_folder():
    plan = plan_of(*(instance(name, ()) for name in ("a b", "a/b", "../../etc", "\u4f60", "A b")))
    assert script_names(plan) == {
        "a b": "serve-a-b.sh",
        "a/b": "serve-a-b-2.sh",
        "../../etc": "serve-etc.sh",
        "\u4f60": "serve-instance.sh",
        "A b": "serve-A-b-3.sh",
    }


def test_the_same_plan_gives_the_same_bytes():
    assert render_serve(example_plan(), ENGINE) == render_serve(example_plan(), ENGINE)
