"""What a KV connector changes of the cache: some do without groups of unlike layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm_advisor.errors import InfeasibleError, InputError, NotModelledError
from vllm_advisor.types.engine import EngineFacts

_FLAG = "--kv-transfer-config"
_MULTI = "MultiConnector"
_NATIVE = "OffloadingConnector"


def keeps_groups(engine: EngineFacts, args: dict[str, Any], *, grouped: bool) -> bool:
    """Whether the hybrid KV cache manager is on, after flags and connectors.

    Source: vllm/config/vllm.py#VllmConfig.__post_init__,
    vllm/distributed/kv_transfer/kv_connector/factory.py#supports_hma_config.

    Args:
        engine: the vLLM version.
        args: engine arguments.
        grouped: the model's layers do not all keep the same.

    Raises:
        InputError: the connector's config is no mapping.
        InfeasibleError: vLLM has no such connector, or refuses it with the manager asked for.
        NotModelledError: what the connector does to the cache is not known.
    """
    disabled = args.get("disable_hybrid_kv_cache_manager")
    names = _names(args)
    unknown = [name for name in names if name not in engine.kv_connectors]
    if unknown:
        raise InfeasibleError(f"Unsupported connector type: {unknown[0]}", where=_FLAG)
    support = [engine.kv_connectors[name] for name in names]
    odd = [name for name, says in zip(names, support, strict=True) if says == "own_cache"]
    odd += [n for n, says in zip(names, support, strict=True) if grouped and says == "unknown"]
    if odd:
        raise NotModelledError(
            f"what {odd[0]} does to the KV cache is not computed",
            where=_FLAG,
            fix="leave the connector out and allow for it",
        )
    without = [name for name, says in zip(names, support, strict=True) if says == "no"]
    if disabled is False and without:
        raise InfeasibleError(
            f"Connector {without[0]} does not support HMA but HMA is enabled.",
            where=_FLAG,
            fix="--disable-hybrid-kv-cache-manager",
        )
    return not disabled and not without


def _names(args: dict[str, Any]) -> list[str]:
    """Every connector that is used, those inside a MultiConnector among them."""
    names = []
    if args.get("kv_offloading_size"):
        lmcache = args.get("kv_offloading_backend") == "lmcache"
        names.append("LMCacheMPConnector" if lmcache else _NATIVE)
    config = args.get("kv_transfer_config")
    return names + (_connectors(config) if config else [])


def _connectors(config: Any) -> list[str]:
    if not isinstance(config, Mapping):
        raise InputError(
            f"kv_transfer_config is {type(config).__name__}, not a mapping",
            where=_FLAG,
            fix="""JSON such as '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'""",
        )
    if config.get("kv_connector_module_path"):
        raise NotModelledError(
            "a KV connector of another package is not known",
            where=_FLAG,
            fix="leave the connector out and allow for it",
        )
    name = config.get("kv_connector")
    if name is None:
        return []
    if name != _MULTI:
        return [str(name)]
    extra = config.get("kv_connector_extra_config") or {}
    return [_MULTI] + [n for child in extra.get("connectors", ()) for n in _connectors(child)]
