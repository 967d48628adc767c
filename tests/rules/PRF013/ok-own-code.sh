vllm serve some/unknown-model --trust-remote-code --enforce-eager
