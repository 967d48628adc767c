# Underscores, short flags, abbreviations and dotted keys are all vLLM's own.
# gpu: h100-sxm x 2
vllm serve Qwen/Qwen3-8B --max_model_len 8192 -tp 2 --kv-cache-memory=8G -O3 \
  --compilation-config.cudagraph_mode PIECEWISE
