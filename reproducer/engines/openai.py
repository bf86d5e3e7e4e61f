"""The adapter for any server that speaks the OpenAI protocol, such as llama.cpp's, KTransformers' or a fork of either.

What it was told is in its arguments, and what it made of them is only known as far as `/v1/models` shows it, and
`/props` where there is one (llama.cpp). No table says which of its arguments leave pages alone: all are factors.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from reproducer.documents.lock import ArgumentValue, Launch, Scalar
from reproducer.engines.interface import Engine, Need, Observed, StoreFolder
from reproducer.engines.seen import Seen, scalar

_PROPS = "/props"
_NAMESPACE = "{namespace}"
# Flags that name what is served, the one that counts first.
_NAMES = ("served-model-name", "alias", "model-name", "model", "model-path")
# Flags that keep pages beyond the server's end.
_STORES = ("slot-save-path", "prompt-cache")
_FACTS = ("model_path", "build_info", "total_slots")
_PHASES = (
    ("loading model", "loading weights"),
    ("load_tensors", "loading weights"),
    ("model loaded", "weights loaded"),
    ("server is listening", "ready"),
    ("Application startup complete", "ready"),
    ("Uvicorn running on", "ready"),
)


class OpenAI(Engine):
    """Any program or module that listens on `--host` and `--port`."""

    kind = "openai"
    info_endpoint = "/v1/models"
    more_endpoints = (_PROPS,)
    ready_endpoint = "/v1/models"
    speech = "openai"
    # Seen on the first launch and the same on every later one: a lock cannot know them.
    machine_resolved = frozenset({"build_info", "chat_template_sha256", "context_length", "model_path", "total_slots"})

    def expected_effective(
        self,
        arguments: Mapping[str, ArgumentValue],
        checkpoint_config: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Scalar]:
        """The name of what is served; what an unknown engine makes of anything else cannot be known."""
        del checkpoint_config, environment
        named = [scalar(arguments[flag]) for flag in _NAMES if isinstance(arguments.get(flag), str | tuple)]
        return {"served_model_name": named[0]} if named and named[0] else {}

    def observed_effective(
        self,
        server_info: Mapping[str, Any],
        log_text: str,
        checkpoint_config: Mapping[str, Any],
        values: Mapping[str, str] | None = None,
    ) -> dict[str, Observed]:
        """The models that it offers, and what it says of itself."""
        del log_text, checkpoint_config
        seen = Seen(values or {})
        offered = server_info.get("data")
        models = [each for each in offered if isinstance(each, dict)] if isinstance(offered, list) else []
        seen.put("served_model_name", [each["id"] for each in models if isinstance(each.get("id"), str)], "server_info")
        for each in models[:1]:
            seen.put("context_length", each.get("max_model_len"), "server_info")
        if isinstance(props := server_info.get(_PROPS), dict):
            for name in _FACTS:
                if not isinstance(value := props.get(name), dict | list):
                    seen.put(name, value, "server_info")
            settings = props.get("default_generation_settings")
            seen.put("context_length", settings.get("n_ctx") if isinstance(settings, dict) else None, "server_info")
            if isinstance(template := props.get("chat_template"), str):
                digest = hashlib.sha256(template.encode(errors="replace")).hexdigest()
                seen.put("chat_template_sha256", digest, "server_info")
        return seen.found

    def persistent_store(self, launch: Launch) -> tuple[StoreFolder, ...]:
        """The folders that the launch places in the namespace; a flag that is known to keep pages needs one."""
        found = [
            StoreFolder(f"--{flag}", f"launch.arguments.{flag}", text)
            for flag, value in sorted(launch.arguments.items())
            for text in (value if isinstance(value, tuple) else (value,))
            if isinstance(text, str) and (flag in _STORES or _is_place(text))
        ]
        found += [
            StoreFolder(name, f"launch.environment.{name}", text)
            for name, text in sorted(launch.environment.items())
            if _is_place(text)
        ]
        return tuple(found)

    def lacks(self, need: Need, launch: Launch) -> str:
        """The protocol has no word for where cached tokens came from."""
        if need == "storage tokens":
            return "the protocol does not tell how many tokens came from storage"
        return super().lacks(need, launch)

    def phase(self, line: str) -> str | None:
        """What a line of the start-up log says about how far the start is."""
        return next((told for mark, told in _PHASES if mark in line[:400]), None)

    def is_noise(self, line: str) -> bool:
        """No line of an unknown engine is known to say nothing."""
        del line
        return False


def _is_place(text: str) -> bool:
    """Whether a text names the namespace, or a folder beside it once the placeholder is filled."""
    return _NAMESPACE in text or text.startswith("/")


OPENAI_ENGINE = OpenAI()
