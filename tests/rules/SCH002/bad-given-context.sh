vllm serve org/not-known --max-model-len 32K --max-num-batched-tokens 8192 --no-enable-chunked-prefill  # expect: SCH002
