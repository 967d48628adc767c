# 16 ranks, 8 KV heads: each head is held twice.
# gpu: h100-sxm x 16
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 16 --decode-context-parallel-size 2
