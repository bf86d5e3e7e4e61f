"""What SGLang's arguments and variables do to the bytes of a KV page: those that do nothing, with the reason.

Written for release 0.5.10.post1. A page is keyed by the token ids before it, so what only turns text into ids, chooses
the next id or formats the answer leaves its bytes alone. What is not listed here takes part in the namespace.

Left out on purpose, although one might think them neutral:

- `served-model-name`: the engine writes it into the name of every page file, so another name finds none of the pages.
- `random-seed`: dummy weights are drawn from it.
- `max-running-requests`, `max-total-tokens`, `chunked-prefill-size`, `schedule-policy`: they shape the batches, and how
  a sum is rounded depends on the batch.
- `OMP_NUM_THREADS`: the order of a sum depends on it.
- `hicache-storage-backend-extra-config`: a table of whatever a storage plugin takes.
- `HF_HUB_OFFLINE`, `TRANSFORMERS_OFFLINE`: without them code or config might come from elsewhere.
"""

from reproducer.identity.meaning import Consequence

_LOG = "what is logged or counted is not what is computed"
_NETWORK = "where the server is reached is not what it computes"
_SECRET = "who may ask is not what is computed"  # noqa: S105  a reason, not a secret
_CLOCK = "how long something may take is not what is computed"
_TEXT = "it works on text and token ids; a page is keyed by the ids and holds what the model computes from them"
_CHOICE = "it chooses the next token from the logits; pages are keyed by the tokens that were chosen"
_CAPACITY = "how many pages fit into a tier, not what a page holds"
_WHEN = "when pages move between tiers, whole ones only, not what a page holds"
_CACHES = "where libraries keep their own files is not what they compute"
_HOST = "who runs the server, and where, is not what is computed"

ARGUMENTS: dict[str, tuple[Consequence, str]] = {
    "admin-api-key": ("operational", _SECRET),
    "api-key": ("operational", _SECRET),
    "bucket-inter-token-latency": ("operational", _LOG),
    "bucket-time-to-first-token": ("operational", _LOG),
    "chat-template": ("behaviour", _TEXT),
    "collect-tokens-histogram": ("operational", _LOG),
    "completion-template": ("behaviour", _TEXT),
    "crash-dump-folder": ("operational", _LOG),
    "decode-log-interval": ("operational", _LOG),
    "dist-timeout": ("operational", _CLOCK),
    "enable-cache-report": ("operational", _LOG),
    "enable-metrics": ("operational", _LOG),
    "enable-metrics-for-all-schedulers": ("operational", _LOG),
    "enable-request-time-stats-logging": ("operational", _LOG),
    "enable-trace": ("operational", _LOG),
    "export-metrics-to-file": ("operational", _LOG),
    "export-metrics-to-file-dir": ("operational", _LOG),
    "fastapi-root-path": ("operational", _NETWORK),
    "gc-warning-threshold-secs": ("operational", _LOG),
    "generation-tokens-buckets": ("operational", _LOG),
    "grammar-backend": ("behaviour", _CHOICE),
    "hf-chat-template-name": ("behaviour", _TEXT),
    "hicache-ratio": ("performance", _CAPACITY),
    "hicache-size": ("performance", _CAPACITY),
    "hicache-storage-prefetch-policy": ("performance", _WHEN),
    "hicache-write-policy": ("performance", _WHEN),
    "host": ("operational", _NETWORK),
    "log-level": ("operational", _LOG),
    "log-level-http": ("operational", _LOG),
    "log-requests": ("operational", _LOG),
    "log-requests-format": ("operational", _LOG),
    "log-requests-level": ("operational", _LOG),
    "log-requests-target": ("operational", _LOG),
    "nccl-port": ("operational", _NETWORK),
    "otlp-traces-endpoint": ("operational", _LOG),
    "port": ("operational", _NETWORK),
    "preferred-sampling-params": ("behaviour", _CHOICE),
    "prompt-tokens-buckets": ("operational", _LOG),
    "reasoning-parser": ("behaviour", _TEXT),
    "sampling-backend": ("behaviour", _CHOICE),
    "sampling-defaults": ("behaviour", _CHOICE),
    "show-time-cost": ("operational", _LOG),
    "soft-watchdog-timeout": ("operational", _CLOCK),
    "stream-interval": ("performance", _TEXT),
    "stream-response-default-include-usage": ("behaviour", _TEXT),
    "tokenizer-metrics-allowed-custom-labels": ("operational", _LOG),
    "tokenizer-metrics-custom-labels-header": ("operational", _LOG),
    "tool-call-parser": ("behaviour", _TEXT),
    "uvicorn-access-log-exclude-prefixes": ("operational", _LOG),
    "watchdog-timeout": ("operational", _CLOCK),
}

VARIABLES: dict[str, tuple[Consequence, str]] = {
    "DISABLE_OPENAPI_DOC": ("operational", _NETWORK),
    "HF_HUB_DISABLE_PROGRESS_BARS": ("operational", _LOG),
    "HF_HUB_DISABLE_TELEMETRY": ("operational", _LOG),
    "HOME": ("operational", _CACHES),
    "HOSTNAME": ("operational", _HOST),
    "LOGNAME": ("operational", _HOST),
    "NO_COLOR": ("operational", _LOG),
    "OMP_WAIT_POLICY": ("performance", "whether idle threads spin or sleep; who sums what stays the same"),
    "PYTHONUNBUFFERED": ("operational", _LOG),
    "PYTHONWARNINGS": ("operational", _LOG),
    "SGLANG_DISABLE_REQUEST_LOGGING": ("operational", _LOG),
    "SGLANG_LOG_FORWARD_ITERS": ("operational", _LOG),
    "SGLANG_LOG_GC": ("operational", _LOG),
    "SGLANG_LOG_MS": ("operational", _LOG),
    "SGLANG_LOG_REQUEST_EXCEEDED_MS": ("operational", _LOG),
    "SGLANG_LOG_REQUEST_HEADERS": ("operational", _LOG),
    "SGLANG_LOG_SCHEDULER_STATUS_INTERVAL": ("operational", _LOG),
    "SGLANG_LOG_SCHEDULER_STATUS_TARGET": ("operational", _LOG),
    "SGLANG_TIMEOUT_KEEP_ALIVE": ("operational", _CLOCK),
    "SGLANG_WARMUP_TIMEOUT": ("operational", _CLOCK),
    "TMPDIR": ("operational", _CACHES),
    "TOKENIZERS_PARALLELISM": ("performance", "how many threads cut text into the same tokens"),
    "TQDM_DISABLE": ("operational", _LOG),
    "USER": ("operational", _HOST),
    "XDG_CACHE_HOME": ("operational", _CACHES),
    "XDG_CONFIG_HOME": ("operational", _CACHES),
    "XDG_DATA_HOME": ("operational", _CACHES),
    "XDG_RUNTIME_DIR": ("operational", _CACHES),
    "XDG_STATE_HOME": ("operational", _CACHES),
}
