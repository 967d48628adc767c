"""Templates place values: they compute nothing, and every value passes a filter of its format."""

import pytest
from jinja2 import nodes

from vllm_advisor.render.jinja import environment
from vllm_advisor.resources import templates

NAMES = sorted(p.relative_to(templates()).as_posix() for p in templates().rglob("*.j2"))
ARITHMETIC = (
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Pow,
    nodes.Neg,
)
FILTERS = {
    "sh": {"sh_word", "comment"},
    "md": {"md", "code", "fence", "bytes", "tokens", "number"},
    "yaml": {"to_yaml", "yaml_str", "yaml_block", "yaml_item", "comment"},
    "example": {"comment"},
    "svg": {"xml"},
    "conf": {"nginx_word", "comment"},
}
COMPUTING_FILTERS = {"sum", "round", "abs", "int", "float", "length", "count", "min", "max", "safe"}


def tree(name):
    source = (templates() / name).read_text(encoding="utf-8")
    return environment().parse(source)


def test_there_are_templates():
    assert {"serve/serve.sh.j2", "plan/PLAN.md.j2"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_templates_do_not_compute(name):
    parsed = tree(name)
    assert not list(parsed.find_all(ARITHMETIC))
    assert not {f.name for f in parsed.find_all(nodes.Filter)} & COMPUTING_FILTERS


@pytest.mark.parametrize("name", NAMES)
def test_templates_do_not_test_versions(name):
    tests = [*tree(name).find_all((nodes.If, nodes.CondExpr))]
    names = {n.name for t in tests for n in t.test.find_all(nodes.Name)}
    names |= {n.attr for t in tests for n in t.test.find_all(nodes.Getattr)}
    assert not [name for name in names if "version" in name]


def last_filters(expression):
    """The filters a value leaves through; a constant needs none."""
    if isinstance(expression, nodes.Filter):
        if expression.name == "join" and isinstance(expression.node, nodes.Filter):
            inner = expression.node
            if inner.name == "map":
                return {inner.args[0].value}
        return {expression.name}
    if isinstance(expression, nodes.CondExpr):
        return last_filters(expression.expr1) | last_filters(expression.expr2)
    return set() if isinstance(expression, nodes.Const) else {type(expression).__name__}


@pytest.mark.parametrize("name", NAMES)
def test_every_value_passes_a_filter_of_its_format(name):
    allowed = FILTERS[name.removesuffix(".j2").rpartition(".")[2]]
    placed = [
        part
        for output in tree(name).find_all(nodes.Output)
        for part in output.nodes
        if not isinstance(part, nodes.TemplateData)
    ]
    assert {f for part in placed for f in last_filters(part)} <= allowed
