"""A plugin of vLLM is installed that nothing needs, or in whatever version there is.

## What it checks
Packages with plugins of vLLM that a script or a Dockerfile installs beside a server, where
`VLLM_PLUGINS` does not say which to load: a plugin for a quantization method that no server uses,
and a plugin for a platform, unless the versions of both it and vLLM are fixed.

## Why it matters
Every process of vLLM calls each general plugin that is installed, and one that raises stops the
server, also for models it has nothing to do with. A platform plugin that does not fit was ignored
up to vLLM 0.24, and the server ran on the CPU without a word.

## Bad
```bash
pip install vllm-gguf-plugin
vllm serve Qwen/Qwen3-8B
```

## Good
```bash
pip install vllm==0.33.0
vllm serve Qwen/Qwen3-8B
```

## Fix
Leave the package out, fix both versions, or name the plugins to load in `VLLM_PLUGINS`.

## References
- vllm:0.33.0:vllm/plugins/__init__.py#load_general_plugins
- https://github.com/gpustack/runner/pull/225
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement

from vllm_advisor.knowledge.plugin_packages import PluginPackage, plugin_package
from vllm_advisor.rules.protocol import Fault, SourceSubject, Subject, source_rule
from vllm_advisor.types.finding import Severity

_CHOICE = "VLLM_PLUGINS"


@source_rule(id="ENV005", name="plugin-not-needed-or-pinned", severity=Severity.WARNING)
def check(subject: SourceSubject) -> Iterator[Fault]:
    """Ask of each plugin that is installed who needs it, and in which version."""
    servers = subject.subjects
    if not servers or any(_CHOICE in one.command.env for one in servers):
        return
    stated = any(one.instance and one.instance.vllm_version for one in servers)
    packages = subject.deployed.packages
    pinned = stated or any(p.value.name == "vllm" and _pin(p.value) for p in packages)
    for package in packages:
        name = package.value.name
        plugin = plugin_package(name)
        if plugin is None:
            continue
        if plugin.methods:
            if any(_uses(one, plugin) for one in servers):
                continue
            message = f"{name} is loaded by every process, and no server here uses {_list(plugin)}"
            fix = f"leave it out, or {_CHOICE} with the names of the plugins to load"
        elif pinned and _pin(package.value):
            continue
        else:
            message = f"{name} fits certain releases of vLLM, and which two meet here is not fixed"
            fix = f"pip install vllm==X {name}==Y, with versions made for each other"
        yield Fault(
            message=message, location=package.location, fix=fix, evidence=(("package", name),)
        )


def _pin(requirement: Requirement) -> bool:
    return any(part.operator in ("==", "===") for part in requirement.specifier)


def _list(plugin: PluginPackage) -> str:
    return " or ".join(plugin.methods)


def _uses(server: Subject, plugin: PluginPackage) -> bool:
    """Whether a server has one of the methods, or may have."""
    given = server.args.get("quantization") or server.args.get("load_format")
    declared = server.model.quantization if server.model else None
    named = (str(given), declared.method if declared else "", server.command.model.lower())
    return any(method in text for method in plugin.methods for text in named)
