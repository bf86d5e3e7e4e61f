#!/usr/bin/env bash
# The public launch of 2026-08-21, written as the shell script that it would be.
set -euo pipefail

export CUDA_DEVICE_ORDER=PCI_BUS_ID
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1
export SGLANG_PREP_IN_CUDA_GRAPH=1
export SGLANG_NUMA_BIND_V2=false
export SGLANG_MAMBA_CONV_DTYPE=bfloat16
export OMP_NUM_THREADS=4
export MKL_NUM_THREADS=4
export TOKENIZERS_PARALLELISM=false

HUB=${HF_HUB_CACHE:-/srv/hub}
TARGET=$HUB/models--orcarouter--Qwen3.8-27B-Uncensored-FP8/snapshots/9228df5c6c9c509e1019f83b4e085cf643118bac
DRAFT=$HUB/models--incoai--Qwen3.8-27B-DFlash2/snapshots/adde41d8fde3a75dc905a7df0bd5088d2a44b5a1

exec python3.12 -m sglang.launch_server \
  --host 127.0.0.1 \
  --port "${PORT:-30000}" \
  --model-path "$TARGET" \
  --speculative-draft-model-path "$DRAFT" \
  --load-format safetensors \
  --tp 1 \
  --dtype bfloat16 \
  --kv-cache-dtype fp8_e4m3 \
  --context-length 524288 \
  --page-size 64 \
  --max-running-requests 4 \
  --sleep-on-idle \
  --max-mamba-cache-size 16 \
  --mamba-ssm-dtype float32 \
  --mamba-radix-cache-strategy extra_buffer_lazy \
  --mamba-max-states-per-path 3 \
  --mem-fraction-static 0.94 \
  --chunked-prefill-size 2048 \
  --max-prefill-tokens 2048 \
  --attention-backend flashinfer \
  --decode-attention-backend trtllm_mha \
  --trust-remote-code \
  --reasoning-parser qwen3 \
  --tool-call-parser qwen3_coder \
  --enable-request-time-stats-logging \
  --enable-metrics \
  --enable-hierarchical-cache \
  --hicache-size 96 \
  --hicache-host-memory-mode cache \
  --hicache-write-policy write_through \
  --hicache-io-backend kernel \
  --hicache-mem-layout page_first \
  --hicache-storage-backend nixl \
  --hicache-storage-prefetch-policy timeout \
  --speculative-algorithm DFLASH \
  --speculative-draft-load-format safetensors \
  --speculative-draft-model-quantization unquant \
  --speculative-num-draft-tokens 8 \
  --speculative-draft-window-size 2048 \
  --speculative-attention-mode decode \
  --speculative-draft-attention-backend flashinfer \
  --speculative-draft-kv-cache-dtype fp8_e4m3 \
  --watchdog-timeout 1800 \
  --chat-template "$TARGET/chat_template.jinja" \
  --default-chat-template-kwargs '{"enable_thinking": true, "preserve_thinking": true, "reasoning_effort": "medium"}' \
  --json-model-override-args '{"text_config": {"max_position_embeddings": 524288, "rope_parameters": {"mrope_interleaved": true, "mrope_section": [11, 11, 10], "rope_type": "yarn", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "factor": 2.0, "original_max_position_embeddings": 262144}}}' \
  --speculative-draft-model-override-args '{"max_position_embeddings": 524288, "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000000, "factor": 2.0, "original_max_position_embeddings": 262144}}' \
  --hicache-storage-backend-extra-config '{"use_direct_io": true, "l3_cleaner_enabled": true, "l3_cleaner_high_watermark": 68.0, "l3_cleaner_low_watermark": 65.0, "plugin": {"posix": {"active": true, "use_uring": "true"}}}'
