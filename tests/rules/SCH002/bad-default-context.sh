vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-batched-tokens 8192 --no-enable-chunked-prefill  # expect: SCH002
