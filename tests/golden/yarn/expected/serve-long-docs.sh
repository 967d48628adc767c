#!/usr/bin/env bash
# Instance long-docs (long-document) of the plan workload.
# Serves: manuals.
#
# 1 replica of 1 GPU (NVIDIA H100 80GB HBM3). To start it:
#   CUDA_VISIBLE_DEVICES=1 ./serve-long-docs.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 407,008 tokens, Maximum concurrency for 101,376 tokens per request: 4.01x
#
# For vLLM 0.33.0; written by vllm-advisor 0.1.0. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # clients and routers ask for the role by name; the model's own name keeps working
  # [long-docs.served-model-name; formula:role-names]
  --served-model-name Qwen/Qwen3-8B long-docs
  # class manuals needs 101,000 tokens of prompt and answer; rounded up to 1,024 and no
  # further: every token of it has to fit at start-up [long-docs.max-model-len;
  # user:workload.yaml:12]
  --max-model-len 101376
  # YaRN x4 stretches Qwen/Qwen3-8B beyond its trained 40,960 tokens; it is static, so
  # short texts on this instance may get slightly worse; vLLM does not raise the limit
  # by itself, so max_position_embeddings is overridden too [long-docs.hf-overrides;
  # docs:https://huggingface.co/Qwen/Qwen3-8B#processing-long-texts]
  --hf-overrides '{"max_position_embeddings":131072,"rope_parameters":{"factor":4.0,"original_max_position_embeddings":32768,"rope_theta":1000000,"rope_type":"yarn"}}'
  # vLLM's default for this version; stated because older versions took 0.90
  # [long-docs.gpu-memory-utilization; vllm-default:0.33.0:gpu_memory_utilization]
  --gpu-memory-utilization 0.92
  # 2 requests at once over 1 replica, a quarter more, in eights; the profile run pays
  # activation memory for every sequence [long-docs.max-num-seqs; formula:sequences]
  --max-num-seqs 8
  # long prompts without a tight target between tokens: chunks of 8,192 read a document
  # with few passes over the weights [long-docs.max-num-batched-tokens;
  # docs:docs.vllm.ai/en/latest/configuration/optimization]
  --max-num-batched-tokens 8192
  # costs nothing when nothing repeats. On by default; stated so that it stays on
  # [long-docs.enable-prefix-caching; vllm-default:0.33.0:enable_prefix_caching]
  --enable-prefix-caching
  # the application uses tool calling; this is what Qwen/Qwen3-8B needs for it
  # [long-docs.enable-auto-tool-choice; docs:vllm-project/recipes@8959cf6
  # models/Qwen/Qwen3-8B.yaml (Apache-2.0)]
  --enable-auto-tool-choice
  # the application uses tool calling; this is what Qwen/Qwen3-8B needs for it
  # [long-docs.tool-call-parser; docs:vllm-project/recipes@8959cf6
  # models/Qwen/Qwen3-8B.yaml (Apache-2.0)]
  --tool-call-parser hermes
  # a server told to stop finishes its requests for up to 45 s (what llm-d waits);
  # vLLM's default of 0 aborts them [long-docs.shutdown-timeout;
  # vllm:0.33.0:vllm/config/vllm.py#VllmConfig.shutdown_timeout]
  --shutdown-timeout 45
  # instances on one host listen on ports of their own; replicas take the ports that
  # follow [long-docs.port; formula:first-free-port]
  --port 8001
)

# the model the workload names [long-docs.model; user:workload.yaml:2]
exec vllm serve Qwen/Qwen3-8B "${args[@]}" "$@"
