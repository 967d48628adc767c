vllm serve org/not-known --trust-remote-code
