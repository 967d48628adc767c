# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 8 --kv-cache-memory-bytes 20G
