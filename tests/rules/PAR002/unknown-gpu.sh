vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 4
