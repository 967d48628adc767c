# Twice the default of an A100.
# gpu: a100-sxm4-80 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 4096 --performance-mode throughput
