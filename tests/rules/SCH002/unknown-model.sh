vllm serve org/not-known --max-num-batched-tokens 8192 --no-enable-chunked-prefill
