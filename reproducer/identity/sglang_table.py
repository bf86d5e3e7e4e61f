"""What SGLang's arguments and variables do to the bytes of a KV page: which do nothing, and why.

Written for release 0.5.10.post1. A page is keyed by the token ids before it, so what only turns text into ids, chooses
the next id or formats the answer leaves its bytes alone. What is not listed here takes part in the namespace.

Entries of class `cache-identity` change nothing, they only give a reason; some of them one might think neutral.
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
_SHAPE = "it decides what a stored page holds and how it is laid out"
_RANKS = "it decides which part of a page each rank writes"
_ROUNDING = "it shapes batches and sums, and how a sum is rounded depends on both"
_MODEL = "it changes the model that computes the pages"
_PAGE_NAME = "the engine writes it into the name of every page file, so another name finds none of the pages"
_WHERE = "where the engine looks for pages"
_PLUGIN = "a table of whatever a storage plugin takes"
_ELSEWHERE = "without it code or config might come from elsewhere"
_HOST = "who runs the server, and where, is not what is computed"

ARGUMENTS: dict[str, tuple[Consequence, str]] = {
    "admin-api-key": ("operational", _SECRET),
    "api-key": ("operational", _SECRET),
    "attention-backend": ("cache-identity", _ROUNDING),
    "bucket-inter-token-latency": ("operational", _LOG),
    "bucket-time-to-first-token": ("operational", _LOG),
    "chat-template": ("behaviour", _TEXT),
    "chunked-prefill-size": ("cache-identity", _ROUNDING),
    "collect-tokens-histogram": ("operational", _LOG),
    "completion-template": ("behaviour", _TEXT),
    "context-length": ("cache-identity", _MODEL),
    "crash-dump-folder": ("operational", _LOG),
    "decode-attention-backend": ("cache-identity", _ROUNDING),
    "decode-log-interval": ("operational", _LOG),
    "dist-timeout": ("operational", _CLOCK),
    "dp-size": ("cache-identity", _RANKS),
    "dtype": ("cache-identity", _SHAPE),
    "enable-cache-report": ("operational", _LOG),
    "enable-metrics": ("operational", _LOG),
    "enable-metrics-for-all-schedulers": ("operational", _LOG),
    "enable-request-time-stats-logging": ("operational", _LOG),
    "enable-trace": ("operational", _LOG),
    "ep-size": ("cache-identity", _RANKS),
    "export-metrics-to-file": ("operational", _LOG),
    "export-metrics-to-file-dir": ("operational", _LOG),
    "fastapi-root-path": ("operational", _NETWORK),
    "gc-warning-threshold-secs": ("operational", _LOG),
    "generation-tokens-buckets": ("operational", _LOG),
    "grammar-backend": ("behaviour", _CHOICE),
    "hf-chat-template-name": ("behaviour", _TEXT),
    "hicache-io-backend": ("cache-identity", _SHAPE),
    "hicache-mem-layout": ("cache-identity", _SHAPE),
    "hicache-ratio": ("performance", _CAPACITY),
    "hicache-size": ("performance", _CAPACITY),
    "hicache-storage-backend": ("cache-identity", _SHAPE),
    "hicache-storage-backend-extra-config": ("cache-identity", _PLUGIN),
    "hicache-storage-prefetch-policy": ("performance", _WHEN),
    "hicache-write-policy": ("performance", _WHEN),
    "host": ("operational", _NETWORK),
    "json-model-override-args": ("cache-identity", _MODEL),
    "kv-cache-dtype": ("cache-identity", _SHAPE),
    "log-level": ("operational", _LOG),
    "log-level-http": ("operational", _LOG),
    "log-requests": ("operational", _LOG),
    "log-requests-format": ("operational", _LOG),
    "log-requests-level": ("operational", _LOG),
    "log-requests-target": ("operational", _LOG),
    "lora-paths": ("cache-identity", _MODEL),
    "max-running-requests": ("cache-identity", _ROUNDING),
    "max-total-tokens": ("cache-identity", _ROUNDING),
    "model-path": ("cache-identity", _MODEL),
    "nccl-port": ("operational", _NETWORK),
    "otlp-traces-endpoint": ("operational", _LOG),
    "page-size": ("cache-identity", _SHAPE),
    "pipeline-parallel-size": ("cache-identity", _RANKS),
    "port": ("operational", _NETWORK),
    "pp-size": ("cache-identity", _RANKS),
    "preferred-sampling-params": ("behaviour", _CHOICE),
    "prefill-attention-backend": ("cache-identity", _ROUNDING),
    "prompt-tokens-buckets": ("operational", _LOG),
    "quantization": ("cache-identity", _MODEL),
    "random-seed": ("cache-identity", "dummy weights are drawn from it"),
    "reasoning-parser": ("behaviour", _TEXT),
    "sampling-backend": ("behaviour", _CHOICE),
    "sampling-defaults": ("behaviour", _CHOICE),
    "schedule-policy": ("cache-identity", _ROUNDING),
    "served-model-name": ("cache-identity", _PAGE_NAME),
    "show-time-cost": ("operational", _LOG),
    "soft-watchdog-timeout": ("operational", _CLOCK),
    "speculative-draft-model-path": ("cache-identity", _MODEL),
    "stream-interval": ("performance", _TEXT),
    "stream-response-default-include-usage": ("behaviour", _TEXT),
    "tensor-parallel-size": ("cache-identity", _RANKS),
    "tokenizer-metrics-allowed-custom-labels": ("operational", _LOG),
    "tokenizer-metrics-custom-labels-header": ("operational", _LOG),
    "tool-call-parser": ("behaviour", _TEXT),
    "tp-size": ("cache-identity", _RANKS),
    "trust-remote-code": ("cache-identity", _MODEL),
    "uvicorn-access-log-exclude-prefixes": ("operational", _LOG),
    "watchdog-timeout": ("operational", _CLOCK),
}

VARIABLES: dict[str, tuple[Consequence, str]] = {
    "DISABLE_OPENAPI_DOC": ("operational", _NETWORK),
    "HF_HUB_DISABLE_PROGRESS_BARS": ("operational", _LOG),
    "HF_HUB_DISABLE_TELEMETRY": ("operational", _LOG),
    "HF_HUB_OFFLINE": ("cache-identity", _ELSEWHERE),
    "HOME": ("operational", _CACHES),
    "HOSTNAME": ("operational", _HOST),
    "LOGNAME": ("operational", _HOST),
    "NO_COLOR": ("operational", _LOG),
    "OMP_NUM_THREADS": ("cache-identity", _ROUNDING),
    "OMP_WAIT_POLICY": ("performance", "whether idle threads spin or sleep; who sums what stays the same"),
    "PYTHONUNBUFFERED": ("operational", _LOG),
    "PYTHONWARNINGS": ("operational", _LOG),
    "SGLANG_DISABLE_REQUEST_LOGGING": ("operational", _LOG),
    "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": ("cache-identity", _WHERE),
    "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR": ("cache-identity", _WHERE),
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
    "TRANSFORMERS_OFFLINE": ("cache-identity", _ELSEWHERE),
    "USER": ("operational", _HOST),
    "XDG_CACHE_HOME": ("operational", _CACHES),
    "XDG_CONFIG_HOME": ("operational", _CACHES),
    "XDG_DATA_HOME": ("operational", _CACHES),
    "XDG_RUNTIME_DIR": ("operational", _CACHES),
    "XDG_STATE_HOME": ("operational", _CACHES),
}
