vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8 --speculative-config '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B-Instruct", "num_speculative_tokens": 4}'
