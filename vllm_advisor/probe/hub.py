"""A model on the Hugging Face Hub: its config and the size of its weights, never the weights.

The local cache of the Hub is looked at first; what it lacks is asked for over the network.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.probe.hub_cache import Snapshot, cache_folder, find_snapshot, is_offline, token
from vllm_advisor.probe.local_model import (
    CONFIG,
    INDEX,
    QUANT_CONFIG,
    SINGLE,
    RawModel,
    index_total_size,
    parse_json_object,
    read_local_model,
)
from vllm_advisor.probe.safetensors_header import (
    LENGTH_BYTES,
    TensorSizes,
    header_length,
    parse_header,
    sum_tensors,
)

if TYPE_CHECKING:
    from vllm_advisor.probe.hub_http import HubClient

DEFAULT_ENDPOINT = "https://huggingface.co"
_WORD = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_MODEL_ID = re.compile(rf"{_WORD}(?:/{_WORD})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,254}")


def fetch_hub_model(model_id: str, *, revision: str = "main", timeout: float = 15.0) -> RawModel:
    """Read a model of the Hub.

    Args:
        model_id: ``org/name`` (a few old models have no ``org/``).
        revision: branch, tag or commit.
        timeout: seconds to wait for each answer.

    Raises:
        UnknownFactError: no such model, no access to it, no network, or an answer that is none.
        InputError: the cached copy is broken.
    """
    _check_names(model_id, revision)
    snapshot = find_snapshot(model_id, revision)
    if snapshot is not None and (snapshot.has_weights or is_offline()):
        return _from_cache(model_id, revision, snapshot)
    if is_offline():
        raise UnknownFactError(
            f"{model_id} is not in the local Hub cache, and the network is switched off "
            "(HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)",
            where=str(cache_folder()),
            fix="give a folder with config.json or a bundled profile, or unset the variable",
        )
    try:
        return _from_network(model_id, revision, timeout)
    except UnknownFactError as error:
        if snapshot is None:
            raise
        cached = _from_cache(model_id, revision, snapshot)
        return replace(cached, notes=(*cached.notes, f"the Hub could not be asked: {error.what}"))


def _check_names(model_id: str, revision: str) -> None:
    # The Hub's rules; they also keep ids and revisions from leaving their place in a URL or path.
    if (
        not _MODEL_ID.fullmatch(model_id)
        or any(part in model_id for part in ("--", ".."))
        or model_id.endswith(".git")
    ):
        raise UnknownFactError(
            f"{model_id!r} is no model id of the Hub",
            where="model",
            fix="write org/name, a folder with config.json, or the name of a bundled profile",
        )
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise UnknownFactError(
            f"{revision!r} is no revision", where="revision", fix="name a branch, tag or commit"
        )


def _source(model_id: str, revision: str) -> str:
    return f"hf:{model_id}" if revision == "main" else f"hf:{model_id}@{revision}"


def _from_cache(model_id: str, revision: str, snapshot: Snapshot) -> RawModel:
    model = read_local_model(snapshot.folder)
    source = _source(model_id, revision)
    return replace(
        model,
        model_id=model_id,
        source=source,
        config_uri=f"{source}/{CONFIG}",
        notes=(*model.notes, f"read from the local Hub cache, commit {snapshot.commit}"),
    )


def _endpoint() -> str:
    endpoint = (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise UnknownFactError(
            f"HF_ENDPOINT={endpoint!r} is no web address",
            where="HF_ENDPOINT",
            fix=f"unset it, or write it as {DEFAULT_ENDPOINT}",
        )
    return endpoint


def _from_network(model_id: str, revision: str, timeout: float) -> RawModel:
    from vllm_advisor.probe.hub_http import HubClient  # noqa: PLC0415 - urllib.request loads slowly

    client = HubClient(token=token(), timeout=timeout)
    base = f"{_endpoint()}/{quote(model_id)}/resolve/{quote(revision, safe='')}"
    config_url = f"{base}/{CONFIG}"
    config = _json_object(client.get(config_url), config_url)
    quant_config = _find_json(client, f"{base}/{QUANT_CONFIG}")
    source = _source(model_id, revision)
    model = RawModel(
        model_id=model_id,
        config=config,
        hf_quant_config=quant_config,
        source=source,
        config_uri=f"{source}/{CONFIG}",
    )
    try:
        return _with_weights(model, client, base)
    except (UnknownFactError, InputError) as error:
        # The config answers most questions; the size of the weights can be computed from it.
        return replace(model, notes=(f"size of the weights not known: {error.what}",))


def _with_weights(model: RawModel, client: HubClient, base: str) -> RawModel:
    index = _find_json(client, f"{base}/{INDEX}")
    if index is not None:
        total = index_total_size(index)
        if total is None:
            return replace(model, notes=("the index has no total_size: size not known",))
        return replace(model, checkpoint_bytes=total)
    sizes = _find_sizes(client, f"{base}/{SINGLE}")
    if sizes is None:
        return replace(model, notes=("no safetensors weights: their size is not known",))
    return replace(
        model,
        checkpoint_bytes=sizes.total,
        bytes_by_dtype=sizes.bytes_by_dtype,
        tensor_bytes=sizes.tensor_bytes,
    )


def _find_sizes(client: HubClient, url: str) -> TensorSizes | None:
    """Sizes from the header of a single safetensors file, without its data."""
    prefix = client.find(url, count=LENGTH_BYTES)
    if prefix is None:
        return None
    length = header_length(prefix, where=url)
    return sum_tensors(parse_header(client.get(url, first=LENGTH_BYTES, count=length), where=url))


def _find_json(client: HubClient, url: str) -> dict[str, Any] | None:
    body = client.find(url)
    return None if body is None else _json_object(body, url)


def _json_object(body: bytes, url: str) -> dict[str, Any]:
    try:
        return parse_json_object(body)
    except ValueError as error:
        raise UnknownFactError(
            f"the answer is no JSON object ({error})",
            where=url,
            fix="a proxy or login page may have answered; open the address in a browser, or give "
            "a folder with config.json",
        ) from None
