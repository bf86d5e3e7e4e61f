"""Lines in which servers log requests: SGLang's `--log-requests` as text and as JSON, vLLM's, bodies of requests.

Such a line is closed: numbers stay, and of its texts only those that a list of fields allows. A client decides what a
line holds, so the line is read token by token, and nothing inside a quoted text is taken for a field.
"""

import re

from reproducer.sanitize.identifiers import Pseudonyms, is_identifier_name, pseudonym
from reproducer.sanitize.kinds import Tally, is_placeholder

# what a client or a model writes, by the names of the fields that hold it
TEXT_FIELDS = frozenset(
    {"prompt", "prompts", "messages", "completion", "completions", "content", "input_text", "output_text"}
    | {"generated_text", "generated_texts", "reasoning_content", "reasoning", "input_ids", "output_ids", "token_ids"}
    | {"prompt_token_ids", "output_token_ids", "text", "texts", "output", "outputs", "input", "inputs", "response"}
    | {"responses", "resps", "filtered_resps", "doc", "question", "answer", "instruction", "arguments", "tool_calls"}
    | {"image_data", "video_data", "audio_data", "input_embeds", "embedding", "embeddings", "output_texts", "query"}
    | {"documents", "system_prompt", "user_prompt", "suffix", "prompt_embeds", "decoded_text", "tool_text"}
    | {"completion_text", "generation", "generations", "refusal", "thinking", "transcript", "request_body"}
)
_MARK = re.compile(
    r"(?:Receive(?: OpenAI)?|Finish): obj=|Received request |Request [^\n]{1,1024}? details: |Generated response "
    r"|(?=\\{0,4}[\"']event\\{0,4}[\"']: ?\\{0,4}[\"']request\.)"
    r"|(?=\\{0,8}[\"'](?:messages|prompts?|completion|input_ids|output_ids|prompt_token_ids|output_token_ids"
    r"|generated_texts?|reasoning_content|output_text|tool_calls|content|contents|system_?[iI]nstruction"
    r"|inputs|instances|system_prompt|user_prompt)\\{0,8}[\"'][ \t]{0,4}:)"
    r"|(?=\\{0,8}[\"'](?:choices|delta)\\{0,8}[\"'][ \t]{0,4}:[ \t]{0,4}\[?[ \t]{0,4}\{)"
    r"|(?=(?<![\w.-])(?:prompt|system_prompt|user_prompt|input_text|output_text|generated_text|completion)"
    r" ?= ?\\{0,8}[\"'])"
)
_TOKEN = re.compile(
    r"(?P<key>(?<![\w\"'\\])(?:'[\w.-]{1,64}'|\"[\w.-]{1,64}\"|\\{1,8}[\"'][\w.-]{1,64}\\{1,8}[\"']|[A-Za-z_][\w-]{0,63})"
    r"[ \t]?[:=][ \t]?)"
    r"|(?P<escaped>(?P<quote>\\{1,8}[\"']))"
    r"|(?P<text>'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?)"
    r"|(?P<numbers>\[[ \t]*[-0-9][-0-9.,eE+ \t]*+\]?)"
)
_KEPT_LISTS = frozenset(
    {"stop_token_ids", "allowed_token_ids", "bs", "spec_accept_histogram", "accept_lengths", "shape"}
)
_KEPT_TEXTS = frozenset(
    {"type", "role", "model", "dtype", "event", "timestamp", "object", "weight_version", "finish_reason", "reason"}
    | {
        "kv_cache_dtype",
        "tool_choice",
        "stream",
        "quantization",
        "device",
        "level",
        "response_format",
        "cls",
        "name_of_class",
    }
)
_PLAIN = re.compile(r"[\w./:+ @-]{0,128}\Z")
_HINTS = (
    "obj=",
    "request",
    "response",
    "messages",
    "prompt",
    "completion",
    "_ids",
    "generated_text",
    "output_text",
    "reasoning_content",
    "choices",
    "delta",
    "tool_calls",
    "content",
    "instruction",
    "inputs",
    "input_text",
    "instances",
)


def is_kept_text(field: str, value: str) -> bool:
    """Whether a text among those of a client is one that a list of fields allows."""
    return field.lower() in _KEPT_TEXTS and _PLAIN.match(value) is not None


def without_texts(text: str, lowered: str, pseudonyms: Pseudonyms, tally: Tally) -> str:
    """A text without the prompts and completions that servers logged."""
    if not any(hint in lowered for hint in _HINTS):
        return text
    kept: list[str] = []
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        start = mark.end()
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        kept += [text[at:start], _line(text[start:stop], pseudonyms, tally)]
        at = stop
    return "".join(kept) + text[at:] if kept else text


def _line(line: str, pseudonyms: Pseudonyms, tally: Tally) -> str:
    """The rest of a line after its mark."""
    kept: list[str] = []
    at = 0
    key = ""
    while (token := _TOKEN.search(line, at)) is not None:
        kept.append(line[at : token.start()])
        at = token.end()
        if token["key"] is not None:
            key = token["key"].strip(" \t:=\\\"'").lower()
            kept.append(token[0])
        elif token["escaped"] is not None:
            at = _escaped_end(line, token)
            kept.append(_text(line[token.start() : at], token["quote"], key, pseudonyms, tally))
        elif token["text"] is not None:
            kept.append(_text(token[0], token[0][0], key, pseudonyms, tally))
        elif key in _KEPT_LISTS or (key not in TEXT_FIELDS and "," not in token[0]):
            kept.append(token[0])
        else:
            kept.append(f"[{tally.take('text')}]")
    return "".join(kept) + line[at:]


def _escaped_end(line: str, token: re.Match[str]) -> int:
    """Where a text ends whose quotes are escaped: after the same quote with as many backslashes."""
    quote = token["quote"]
    at = line.find(quote, token.end())
    while at > 0 and line[at - 1] == "\\":
        at = line.find(quote, at + 1)
    return len(line) if at < 0 else at + len(quote)


def _text(shown: str, quote: str, key: str, pseudonyms: Pseudonyms, tally: Tally) -> str:
    closed = len(shown) >= 2 * len(quote) and shown.endswith(quote)
    inner = shown[len(quote) : len(shown) - len(quote) if closed else len(shown)]
    end = quote if closed else ""
    if not inner or is_placeholder(inner):
        return shown
    if is_identifier_name(key) or key == "id":
        return quote + pseudonym(inner, pseudonyms, tally) + end
    if is_kept_text(key, inner):
        return shown
    return quote + tally.take("text") + end
