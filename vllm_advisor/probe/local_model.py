"""A model on disk: its config.json, and the size of its weights from safetensors headers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.probe.safetensors_header import SafetensorsFile, read_header, sum_tensors
from vllm_advisor.units import format_bytes

CONFIG = "config.json"
QUANT_CONFIG = "hf_quant_config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_MAX_JSON_BYTES = 50_000_000
_SHARD = re.compile(r"-\d+-of-(\d+)\.safetensors$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawModel:
    """A model as its publisher wrote it, before anything is read into it.

    ``checkpoint_bytes`` is the sum of all tensors on disk; ``bytes_by_dtype`` (safetensors
    dtypes: ``BF16``, ``F8_E4M3``, ...) and ``tensor_bytes`` exist only where headers were read.
    ``source`` begins every source URI of this model: ``local:DIR`` or ``hf:org/model``;
    ``config_uri`` is the one of the config, to which ``#key`` is appended.
    """

    model_id: str
    config: dict[str, Any]
    hf_quant_config: dict[str, Any] | None = None
    checkpoint_bytes: int | None = None
    bytes_by_dtype: dict[str, int] | None = None
    tensor_bytes: dict[str, int] | None = None
    source: str
    config_uri: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """What a folder tells about the size of its weights."""

    checkpoint_bytes: int | None = None
    bytes_by_dtype: dict[str, int] | None = None
    tensor_bytes: dict[str, int] | None = None
    notes: tuple[str, ...] = ()


def read_local_model(path: Path) -> RawModel:
    """Read a model folder, or one config.json.

    A path to a ``config.json`` means its folder; a JSON file of another name is read alone.

    Raises:
        InputError: nothing there, no config.json, broken JSON, or a broken safetensors header.
    """
    if _exists(path, Path.is_dir):
        return _read_folder(path, config_named=False)
    if path.name == CONFIG and _exists(path, Path.is_file):
        return _read_folder(path.parent, config_named=True)
    return RawModel(
        model_id=str(path),
        config=read_json_object(path),
        source=f"local:{path.parent}",
        config_uri=f"local:{path}",
        notes=(f"only {path.name} was read: the size of the weights is not known",),
    )


def _exists(path: Path, kind: Callable[[Path], bool]) -> bool:
    """``Path.is_dir`` or ``is_file``, where a path that may not be looked at is none."""
    try:
        return kind(path)
    except OSError:
        return False


def _read_folder(folder: Path, *, config_named: bool) -> RawModel:
    names = _file_names(folder)
    if CONFIG not in names:
        raise _no_config(folder, names)
    config = read_json_object(folder / CONFIG)
    quant_config = read_json_object(folder / QUANT_CONFIG) if QUANT_CONFIG in names else None
    if not config_named and _only_gguf(names):
        raise _gguf(folder)
    weights = _read_weights(folder, names)
    return RawModel(
        model_id=str(folder),
        config=config,
        hf_quant_config=quant_config,
        checkpoint_bytes=weights.checkpoint_bytes,
        bytes_by_dtype=weights.bytes_by_dtype,
        tensor_bytes=weights.tensor_bytes,
        source=f"local:{folder}",
        config_uri=f"local:{folder / CONFIG}",
        notes=weights.notes,
    )


def _file_names(folder: Path) -> frozenset[str]:
    """Names in the folder; a link to nothing (a cache that was cleaned) does not count."""
    try:
        return frozenset(entry.name for entry in folder.iterdir() if entry.exists())
    except OSError as error:
        raise InputError(
            f"cannot list the model's folder ({error.strerror})",
            where=str(folder),
            fix="check that the folder may be read",
        ) from None


def read_json_object(path: Path) -> dict[str, Any]:
    """One JSON object from a file.

    Raises:
        InputError: the file cannot be read, is too large or holds no JSON object.
    """
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise InputError(
                f"the file is larger than {format_bytes(_MAX_JSON_BYTES)}: no JSON of a model",
                where=str(path),
                fix="give a model folder or its config.json",
            )
        body = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the model ({error.strerror})",
            where=str(path),
            fix="give a Hub id, a folder with config.json, or a config.json",
        ) from None
    try:
        return parse_json_object(body)
    except json.JSONDecodeError as error:
        raise InputError(
            f"broken JSON ({error.msg})",
            where=f"{path}:{error.lineno}:{error.colno}",
            fix="download the file again",
        ) from None
    except ValueError as error:
        raise InputError(str(error), where=str(path), fix="download the file again") from None


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``.

    Raises:
        ValueError: no JSON, or JSON that is no object.
    """
    try:
        value = json.loads(body.removeprefix(b"\xef\xbb\xbf"))  # some editors add a BOM
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("the file is not text, so no JSON") from None
    if not isinstance(value, dict):
        raise ValueError(f"the JSON is a {type(value).__name__}, not an object")  # noqa: TRY004
    return value


def index_total_size(index: dict[str, Any]) -> int | None:
    """``metadata.total_size`` of a safetensors index in bytes, if it is there."""
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, float) and total.is_integer():  # some exporters write 1.6e10
        total = int(total)
    return total if isinstance(total, int) and total > 0 else None


def _read_weights(folder: Path, names: frozenset[str]) -> _Weights:
    if INDEX in names:
        return _read_sharded(folder, names)
    shards, notes = _loaded_files(names)
    if not shards:
        return _Weights(notes=("no safetensors files here: the size of the weights is not known",))
    promised = max((int(m[1]) for name in shards if (m := _SHARD.search(name))), default=0)
    if promised > len(shards):
        return _Weights(
            notes=(f"only {len(shards)} of {promised} weight files are here: size not known",)
        )
    return _from_headers(folder, shards, notes)


def _read_sharded(folder: Path, names: frozenset[str]) -> _Weights:
    index = read_json_object(folder / INDEX)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(v, str) for v in weight_map.values()):
        raise InputError(
            "the index has no weight_map of tensor names to files",
            where=str(folder / INDEX),
            fix="download the file again",
        )
    total = index_total_size(index)
    shards = sorted(set(weight_map.values()))
    missing = [shard for shard in shards if shard not in names]
    if not missing:
        return _from_headers(folder, shards, [], index_total=total)
    note = f"{len(missing)} of {len(shards)} weight files are not here"
    if total is None:
        return _Weights(notes=(f"{note} and the index has no total_size: size not known",))
    return _Weights(checkpoint_bytes=total, notes=(f"{note}: size taken from the index",))


def _loaded_files(names: frozenset[str]) -> tuple[list[str], list[str]]:
    """Weight files vLLM would load, and notes about those left out."""
    files = sorted(name for name in names if name.endswith(".safetensors"))
    models = [name for name in files if not name.startswith(("adapter_model", "consolidated"))]
    # Mistral ships the same weights twice, as consolidated* in its own naming.
    kept = models or [name for name in files if name.startswith("consolidated")]
    left_out = [name for name in files if name not in kept]
    return kept, [f"not counted: {', '.join(left_out)}"] if left_out else []


def _from_headers(
    folder: Path, shards: list[str], notes: list[str], *, index_total: int | None = None
) -> _Weights:
    files: dict[str, SafetensorsFile] = {name: read_header(folder / name) for name in shards}
    sizes = sum_tensors(entry for file in files.values() for entry in file.entries)
    cut = [name for name, file in files.items() if file.missing_bytes]
    if cut:
        notes = [
            *notes,
            f"cut off, vLLM will not load it: {', '.join(cut)}; sizes are the header's",
        ]
    if index_total is not None and index_total != sizes.total:
        notes = [
            *notes,
            f"the index says {index_total} bytes, the headers {sizes.total}: the headers count",
        ]
    return _Weights(
        checkpoint_bytes=sizes.total,
        bytes_by_dtype=sizes.bytes_by_dtype,
        tensor_bytes=sizes.tensor_bytes,
        notes=tuple(notes),
    )


def _only_gguf(names: frozenset[str]) -> bool:
    return any(name.endswith(".gguf") for name in names) and not any(
        name.endswith((".safetensors", ".bin", ".pt")) for name in names
    )


def _gguf(folder: Path) -> InputError:
    return InputError(
        "the folder holds GGUF weights only, which vLLM itself no longer loads (vLLM 0.33 has no "
        "gguf among its quantization methods)",
        where=str(folder),
        fix="use the safetensors checkpoint of the same model (AWQ, GPTQ, FP8 or BF16)",
    )


def _no_config(folder: Path, names: frozenset[str]) -> InputError:
    """Why there is no config.json, from what lies there instead."""
    if _only_gguf(names):
        return _gguf(folder)
    fix = "give the folder that holds config.json"
    if "params.json" in names:
        fix = "params.json is Mistral's own format; add the config.json of the Hugging Face format"
    elif "adapter_config.json" in names:
        fix = "this is a LoRA adapter: give its base model, and the adapter under `lora:`"
    elif "model_index.json" in names:
        fix = "this is a diffusion pipeline, which this tool does not size"
    elif "snapshots" in names:
        fix = "this is a folder of the Hub cache: give one folder under snapshots/, or the Hub id"
    else:
        below = sorted(name for name in names if _exists(folder / name / CONFIG, Path.is_file))
        if below:
            fix = f"give the folder itself: {', '.join(str(folder / name) for name in below[:5])}"
    return InputError("no config.json in this folder", where=str(folder), fix=fix)
