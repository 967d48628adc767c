# Meant to limit the KV cache, which it does not (modal-labs/modal-examples#843).
# gpu: a100-sxm4-40 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8096  # expect: CTX009, CTX010
