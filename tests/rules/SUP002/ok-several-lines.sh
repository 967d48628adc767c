#!/bin/bash
# vllm-advisor: ignore=FLG001 reason="our build has it"
# vllm-advisor: ignore=CTX001 reason="stretched with YaRN"
vllm serve Qwen/Qwen3-8B \
  --max-model-len 131072 \
  --our-flag
