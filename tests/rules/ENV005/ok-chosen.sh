pip install vllm-bnb-plugin vllm-flash-attn ./vllm-local https://example.com/vllm-metal.whl
VLLM_PLUGINS=lora_resolver vllm serve Qwen/Qwen3-0.6B
