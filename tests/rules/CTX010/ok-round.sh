vllm serve some/unknown-model --max-model-len 8000
vllm serve some/unknown-model --max-model-len 32500
vllm serve some/unknown-model --max-model-len 65536
vllm serve some/unknown-model --max-model-len 4095
vllm serve some/unknown-model --max-model-len 16512
vllm serve some/unknown-model --max-model-len auto
