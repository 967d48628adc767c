# class: {name: rag, prompt_tokens: 3072, output_tokens: 5120, concurrent_requests: 1}
vllm serve some/unknown-model --max-model-len 8192
