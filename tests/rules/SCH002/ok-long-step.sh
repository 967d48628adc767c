vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-chunked-prefill --max-num-batched-tokens 131072
vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-chunked-prefill
