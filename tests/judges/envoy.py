"""What Envoy makes of a file: where a request goes, and what is wrong with it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from judges.programs import find_program

SIZE_HEADER = "x-vllm-body-bytes"


def manager_of(config: dict[str, Any]) -> dict[str, Any]:
    """The one connection manager."""
    (listener,) = config["static_resources"]["listeners"]
    (chain,) = listener["filter_chains"]
    (found,) = chain["filters"]
    manager: dict[str, Any] = found["typed_config"]
    return manager


def routes_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """All routes, in their order."""
    (host,) = manager_of(config)["route_config"]["virtual_hosts"]
    found: list[dict[str, Any]] = host["routes"]
    return found


def clusters_of(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The clusters by name."""
    return {cluster["name"]: cluster for cluster in config["static_resources"]["clusters"]}


def route_for(config: dict[str, Any], headers: dict[str, str], path: str = "/v1/x") -> Any:
    """The route of a request; ``None`` where none matches."""
    return next((r for r in routes_of(config) if _matches(r["match"], headers, path)), None)


def instances_of(cluster: dict[str, Any]) -> list[tuple[str, list[tuple[str, int]]]]:
    """The instances of a cluster by priority, with the addresses of their servers."""
    found = []
    for number, priority in enumerate(cluster["load_assignment"]["endpoints"]):
        assert priority["priority"] == number
        servers = priority["lb_endpoints"]
        (name,) = {s["metadata"]["filter_metadata"]["vllm-advisor"]["instance"] for s in servers}
        places = [s["endpoint"]["address"]["socket_address"] for s in servers]
        found.append((name, [(p["address"], p["port_value"]) for p in places]))
    return found


def envoy_problems(text: str) -> list[str]:
    """Everything wrong; the real Envoy is asked as well where there is one."""
    config = yaml.safe_load(text)
    routes, clusters = routes_of(config), clusters_of(config)
    used = [route["route"]["cluster"] for route in routes if "route" in route]
    found = [f"no cluster {name}" for name in used if name not in clusters]
    found += [f"nobody asks cluster {name}" for name in clusters if name not in used]
    for path in ("/", "/metrics", "/v1", "/tokenize"):
        if route_for(config, {}, path):
            found.append(f"{path} is passed on")
    if config["admin"]["address"]["socket_address"]["address"] != "127.0.0.1":
        found.append("strangers reach the admin interface")
    if routes[-1]["match"] != {"prefix": "/v1/"}:
        found.append("a request may match nothing")
    for name, cluster in clusters.items():
        for _, servers in instances_of(cluster):
            if not servers or len(set(servers)) != len(servers):
                found.append(f"servers of {name}: {servers}")
    return found + _asked(text)


def _matches(match: dict[str, Any], headers: dict[str, str], path: str) -> bool:
    if match.get("path", path) != path or not path.startswith(match.get("prefix", "")):
        return False
    for wanted in match.get("headers", []):
        value = headers.get(wanted["name"])
        if value is None:
            return False
        if "string_match" in wanted and value != wanted["string_match"]["exact"]:
            return False
        ends = wanted.get("range_match")
        if ends and not ends["start"] <= int(value) < ends["end"]:
            return False
    return True


def _asked(text: str) -> list[str]:
    program = find_program("envoy")
    if program is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "envoy.yaml"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, "--mode", "validate", "-c", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    return [] if done.returncode == 0 else done.stderr.splitlines()[-1:]
