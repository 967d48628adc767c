# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 64 --speculative-config '{"method": "draft_model", "model": "meta-llama/Llama-3.2-3B-Instruct", "num_speculative_tokens": 4}'  # expect: SPD002
