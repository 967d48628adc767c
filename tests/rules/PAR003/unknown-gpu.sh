vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8 -pp 2
