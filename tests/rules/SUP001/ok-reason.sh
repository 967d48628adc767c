#!/bin/bash
# vllm-advisor: ignore=CTX reason="the image's config.json is stretched with YaRN"
vllm serve Qwen/Qwen3-8B \
  --max-model-len 131072
