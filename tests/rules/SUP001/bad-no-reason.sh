#!/bin/bash
# vllm-advisor: ignore=CTX001  # expect: SUP001
vllm serve Qwen/Qwen3-8B \
  --max-model-len 131072
