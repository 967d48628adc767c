"""Model folders as people have them: whole, sharded, half downloaded, broken, of other formats."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.errors import InputError
from vllm_advisor.probe.local_model import read_local_model
from vllm_advisor.probe.safetensors_header import header_length, parse_header

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "torch_dtype": "bfloat16"}


def framed(header: bytes) -> bytes:
    """The header behind its length, as it stands at the beginning of a file."""
    return struct.pack("<Q", len(header)) + header


def safetensors(
    tensors: dict[str, tuple[str, list[int], int]], *, data: int | None = None
) -> bytes:
    """A file with tensors ``name: (dtype, shape, bytes)``; ``data`` cuts the data short."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return framed(json.dumps(header).encode()) + bytes(end if data is None else data)


# embed: 32 x 64 BF16 = 4,096 bytes; q: 64 x 64 F8 = 4,096; scale: 1 x F32 = 4
FIRST = safetensors({"embed": ("BF16", [32, 64], 4096), "q": ("F8_E4M3", [64, 64], 4096)})
SECOND = safetensors({"q_scale": ("F32", [], 4), "norm": ("BF16", [64], 128)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return tmp_path


def write_shards(folder: Path, *, total_size: Any = 4096 + 4096 + 4 + 128) -> None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(FIRST)
    (folder / "model-00002-of-00002.safetensors").write_bytes(SECOND)
    index = {
        "metadata": {"total_size": total_size},
        "weight_map": {
            "embed": "model-00001-of-00002.safetensors",
            "q": "model-00001-of-00002.safetensors",
            "q_scale": "model-00002-of-00002.safetensors",
            "norm": "model-00002-of-00002.safetensors",
        },
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def test_sharded_checkpoint(folder: Path) -> None:
    write_shards(folder)
    (folder / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    model = read_local_model(folder)
    assert model.config == CONFIG
    assert model.hf_quant_config == {"quantization": {"quant_algo": "FP8"}}
    assert model.checkpoint_bytes == 4096 + 4096 + 4 + 128
    assert model.bytes_by_dtype == {"BF16": 4096 + 128, "F8_E4M3": 4096, "F32": 4}
    assert model.tensor_bytes == {"embed": 4096, "q": 4096, "q_scale": 4, "norm": 128}
    assert model.model_id == str(folder)
    assert model.source == f"local:{folder}"
    assert model.config_uri == f"local:{folder}/config.json"
    assert model.notes == ()


def test_single_file_and_path_to_config(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(FIRST)
    model = read_local_model(folder / "config.json")
    assert model == read_local_model(folder)
    assert model.checkpoint_bytes == 8192


def test_config_alone_has_no_checkpoint_size(folder: Path) -> None:
    model = read_local_model(folder)
    assert model.checkpoint_bytes is None
    assert model.tensor_bytes is None
    assert model.hf_quant_config is None
    assert model.notes == ("no safetensors files here: the size of the weights is not known",)


def test_config_of_another_name_is_read_alone(folder: Path) -> None:
    write_shards(folder)
    (folder / "config.json").rename(folder / "llama.json")
    model = read_local_model(folder / "llama.json")
    assert model.config == CONFIG
    assert model.checkpoint_bytes is None
    assert model.config_uri == f"local:{folder}/llama.json"


def test_missing_shard_takes_the_size_from_the_index(folder: Path) -> None:
    write_shards(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    model = read_local_model(folder)
    assert model.checkpoint_bytes == 8324
    assert model.bytes_by_dtype is None
    assert model.notes == ("1 of 2 weight files are not here: size taken from the index",)


def test_missing_shard_without_an_index(folder: Path) -> None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(FIRST)
    model = read_local_model(folder)
    assert model.checkpoint_bytes is None
    assert model.notes == ("only 1 of 2 weight files are here: size not known",)


def test_headers_win_over_a_wrong_index(folder: Path) -> None:
    write_shards(folder, total_size=16648)
    model = read_local_model(folder)
    assert model.checkpoint_bytes == 8324
    assert model.notes == ("the index says 16648 bytes, the headers 8324: the headers count",)


def test_index_may_write_its_size_as_a_float(folder: Path) -> None:
    write_shards(folder, total_size=8324.0)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert read_local_model(folder).checkpoint_bytes == 8324


def test_weights_shipped_twice_and_adapters_count_once(folder: Path) -> None:
    for name in ("model.safetensors", "consolidated.safetensors", "adapter_model.safetensors"):
        (folder / name).write_bytes(FIRST)
    model = read_local_model(folder)
    assert model.checkpoint_bytes == 8192
    assert model.notes == ("not counted: adapter_model.safetensors, consolidated.safetensors",)


def test_cut_off_data_is_noted_and_sized_by_the_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(
        safetensors({"embed": ("BF16", [32, 64], 4096)}, data=100)
    )
    model = read_local_model(folder)
    assert model.checkpoint_bytes == 4096
    assert model.notes == (
        "cut off, vLLM will not load it: model.safetensors; sizes are the header's",
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file ends after 0 bytes: no safetensors header"),
        (b"\x10\x00\x00", "the file ends after 3 bytes: no safetensors header"),
        # 2^62 bytes
        (struct.pack("<Q", 1 << 62) + b"{}", f"{1 << 62} bytes is no length"),
        (struct.pack("<Q", 0), "0 bytes is no length"),
        # within the format's 100 MB and beyond the file
        (struct.pack("<Q", 5000) + b"{}", "should be 5000 bytes long and the file has only 10"),
        (framed(b"[]"), "is no JSON object"),
        (framed(b'{"a"'), "is no JSON ("),
        (framed(b"\xff\xfe\xfd\xfc"), "is no JSON ("),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a git-lfs pointer"),
        (safetensors({"embed": ("BF16", [32, 64], 4095)}), "does not take 4095 bytes"),
        (safetensors({"embed": ("BF16", [-32, 64], 4096)}), "impossible offsets or shape"),
        (framed(b'{"a": {"b": 1}}'), "lacks dtype, shape or data_offsets"),
    ],
)
def test_broken_header(folder: Path, content: bytes, what: str) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_local_model(folder)
    assert what in caught.value.what
    assert caught.value.where == str(file)
    assert caught.value.fix


def test_dtype_newer_than_this_tool_is_believed() -> None:
    header = b'{"a": {"dtype": "F3_NEW", "shape": [8], "data_offsets": [0, 3]}}'
    (entry,) = parse_header(header, where="x")
    assert entry.size == 3


def test_sub_byte_dtype() -> None:
    # 64 x 32 values of 4 bits: 1,024 bytes
    header = b'{"a": {"dtype": "F4", "shape": [64, 32], "data_offsets": [0, 1024]}}'
    (entry,) = parse_header(header, where="x")
    assert entry.size == 1024


def test_header_length_is_little_endian() -> None:
    assert header_length(b"\x00\x01\x00\x00\x00\x00\x00\x00", where="x") == 256


@pytest.mark.parametrize(
    ("files", "what", "fix"),
    [
        ({}, "no config.json", "give the folder that holds config.json"),
        ({"params.json": "{}"}, "no config.json", "Mistral's own format"),
        ({"adapter_config.json": "{}"}, "no config.json", "LoRA adapter"),
        ({"model_index.json": "{}"}, "no config.json", "diffusion pipeline"),
        ({"snapshots/abc/config.json": "{}"}, "no config.json", "under snapshots/"),
        ({"llama/config.json": "{}"}, "no config.json", "/llama"),
        ({"model-Q4_K_M.gguf": ""}, "GGUF weights only", "safetensors checkpoint"),
        ({"model-Q4_K_M.gguf": "", "config.json": "{}"}, "GGUF weights only", "safetensors"),
    ],
)
def test_folder_that_is_no_model(
    tmp_path: Path, files: dict[str, str], what: str, fix: str
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_local_model(tmp_path)
    assert what in caught.value.what
    assert caught.value.where == str(tmp_path)
    assert fix in caught.value.fix


def test_config_beside_gguf_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    assert read_local_model(tmp_path / "config.json").config == CONFIG


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ('{\n  "hidden_size": 64,\n  oops\n}', "broken JSON (Expecting", ":3:3"),
        ("[1, 2]", "the JSON is a list, not an object", ""),
        ("", "broken JSON (Expecting value)", ":1:1"),
        ("[" * 100_000, "nested too deeply", ""),
    ],
)
def test_broken_config(tmp_path: Path, text: str, what: str, place: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(text, encoding="utf-8")
    for path in (tmp_path, config):
        with pytest.raises(InputError) as caught:
            read_local_model(path)
        assert what in caught.value.what
        assert caught.value.where == f"{config}{place}"


def test_config_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b'{"a": "\xff\xff"}')
    with pytest.raises(InputError, match="not text"):
        read_local_model(tmp_path)


def test_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    assert read_local_model(tmp_path).config == CONFIG


def test_broken_index(folder: Path) -> None:
    write_shards(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text('{"metadata": {}}', encoding="utf-8")
    with pytest.raises(InputError, match="no weight_map") as caught:
        read_local_model(folder)
    assert caught.value.where == str(index)


def test_nothing_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path / "config.json"):
        with pytest.raises(InputError, match="cannot read the model") as caught:
            read_local_model(path)
        assert caught.value.where == str(path)
        assert "Hub id" in caught.value.fix


def test_link_to_nothing_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(tmp_path / "blobs" / "gone")
    with pytest.raises(InputError, match=r"no config\.json"):
        read_local_model(tmp_path)


def test_folder_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # chmod does not keep root out
    with pytest.raises(InputError, match="Permission denied") as caught:
        read_local_model(folder)
    assert caught.value.where == str(folder)
