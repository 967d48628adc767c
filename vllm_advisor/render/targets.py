"""All files of a plan. Targets are found by scanning this package; nobody keeps a list."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

from vllm_advisor import render as package
from vllm_advisor.errors import InputError
from vllm_advisor.render import routing
from vllm_advisor.render.markdown import render_markdown
from vllm_advisor.render.plan_file import render_plan_file
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.plan import Artifact, Plan

RenderTarget = Callable[[Plan, EngineFacts], tuple[Artifact, ...]]


def collect_targets(modules: Iterable[ModuleType]) -> dict[str, RenderTarget]:
    """The targets among the modules: those with a ``TARGET`` id and a ``render`` function.

    Raises:
        ValueError: two modules define one id.
    """
    found: dict[str, RenderTarget] = {}
    for module in modules:
        target = getattr(module, "TARGET", None)
        if target is None:
            continue
        if target in found:
            raise ValueError(f"two render targets are called {target!r}: see {module.__name__}")
        found[target] = module.render
    return dict(sorted(found.items()))


def _scan() -> Iterable[ModuleType]:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name != __name__:
            yield importlib.import_module(module.name)


TARGETS: Mapping[str, RenderTarget] = collect_targets(_scan())


def render_targets(
    plan: Plan, engine: EngineFacts, targets: tuple[str, ...]
) -> tuple[Artifact, ...]:
    """The files of the targets alone; none where the plan is not feasible.

    Raises:
        InputError: there is no such target.
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    for target in targets:
        if target not in TARGETS:
            raise InputError(
                f"there is no render target {target!r}", fix=f"use one of: {', '.join(TARGETS)}"
            )
    if not plan.feasible:
        return ()
    return tuple(a for target in dict.fromkeys(targets) for a in TARGETS[target](plan, engine))


def render_plan(
    plan: Plan, engine: EngineFacts, targets: tuple[str, ...] = ("serve",)
) -> tuple[Artifact, ...]:
    """Every file of a plan: the targets asked for, then what is written with every plan.

    That is ``routing.yaml``, ``plan.yaml`` and ``PLAN.md``. A plan that is not feasible has only
    the latter two: nothing that would start and fail.

    Raises:
        InputError: there is no such target.
        OutputError: this vLLM has no way to write an argument on its command line.
    """
    artifacts = list(render_targets(plan, engine, targets))
    if plan.routing is not None and routing.TARGET not in targets:
        artifacts.append(routing.render_policy(plan.routing))
    artifacts += [render_plan_file(plan, engine), render_markdown(plan, engine)]
    paths = [artifact.path for artifact in artifacts]
    if len(set(paths)) != len(paths):
        raise ValueError(f"two artifacts share a path: {sorted(paths)}")
    return tuple(artifacts)
