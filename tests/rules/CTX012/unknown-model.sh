# class: {name: books, prompt_tokens: 60000, output_tokens: 1000, concurrent_requests: 1}
vllm serve some/unknown-model --max-model-len 65536
