# Weights only: it saves memory.
# gpu: t4 x 1
vllm serve Qwen/Qwen3-8B --quantization fp8 --max-model-len 4096 --max-num-seqs 16
