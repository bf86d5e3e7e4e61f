"""A small server that speaks SGLang's native streaming protocol and the chat protocol, with a known token schedule.

Run as a process of its own: `python stand_in.py PORT_FILE --storage DIR --gap-ms 5 ...`. It keeps pages of 16 tokens in
memory, and in a folder that outlives it, and counts cached tokens by tier as the engine does. `--fault NAME` makes it
misbehave from request number `--after` on.
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

PAGE = 16
TOO_LONG = {"confused": "500 Internal Server Error"}


class StandIn:
    """The state of one process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.requests = 0
        self.answering = 0
        self.leaked: list[Any] = []
        self.device: set[str] = set()
        self.storage = Path(options.storage)
        self.storage.mkdir(parents=True, exist_ok=True)

    def cached(self, ids: list[int]) -> dict[str, int]:
        """Cached tokens by tier; the last token is always computed."""
        tiers = {"device": 0, "host": 0, "storage": 0}
        for end in range(PAGE, len(ids), PAGE):
            page = page_name(ids[:end])
            if page in self.device:
                tiers["device"] += PAGE
            elif (self.storage / page).exists():
                tiers["storage"] += PAGE
            else:
                break
        for end in range(PAGE, len(ids) + 1, PAGE):
            page = page_name(ids[:end])
            self.device.add(page)
            (self.storage / page).touch()
        return tiers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                length = 0
                while (header := await reader.readline()).strip():
                    name, _, value = header.decode().partition(":")
                    if name.lower() == "content-length":
                        length = int(value)
                body = json.loads(await reader.readexactly(length)) if length else {}
                await self.answer(writer, f"{method} {path}", body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, writer: asyncio.StreamWriter, what: str, body: dict[str, Any]) -> None:
        """Answer one request."""
        if what == "GET /v1/models":
            stated = {"max_model_len": self.options.context} if self.options.context else {}
            reply(writer, {"data": [{"id": "stand-in", **stated}]})
        elif what == "GET /model_info":
            reply(writer, {"model_path": "stand-in"})
        elif what == "POST /tokenize":
            reply(writer, {"tokens": tokens(body["prompt"])})
        elif what == "GET /server_info":
            reply(writer, server_info(self.options.draft))
        elif what == "POST /generate":
            self.requests += 1
            self.answering += 1
            await self.generate(writer, body)
            self.answering -= 1
        elif what == "POST /v1/chat/completions":
            self.requests += 1
            await self.chat(writer, body)
        else:
            reply(writer, {"error": "not here"}, "404 Not Found")

    def fault(self) -> str:
        """How to misbehave now."""
        return self.options.fault if self.requests > self.options.after else ""

    def room(self, sent: int, count: int) -> int:
        """How many tokens of a prompt fit into the context beside so many of output."""
        room = self.options.context - self.options.reserved - count if self.options.context else sent
        if self.fault() == "die-of-length" and room < sent:
            os._exit(9)
        return sent if self.fault() == "boundless" else min(room, sent)

    def output(self, ids: list[int], count: int, *, cached: int) -> list[int]:
        """The tokens that follow a prompt, or not quite those."""
        output, fault = greedy(ids, count), self.fault()
        if fault == "other-output":
            output[-1] += 1
        if (fault == "batch-differs" and self.answering > 1) or (fault == "cache-differs" and cached):
            output[2] += 1
        return output

    async def generate(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        """Greedy tokens that follow from the prompt, on the schedule of the options."""
        begun, fault = time.monotonic(), self.fault()
        if fault == "refuse":
            return reply(writer, {"error": {"message": "no"}}, "400 Bad Request")
        ids, count = body["input_ids"], body["sampling_params"]["max_new_tokens"]
        room = self.room(len(ids), count)
        if room < len(ids) and fault != "truncate":
            return reply(
                writer, {"error": {"message": "the input is too long"}}, TOO_LONG.get(fault, "400 Bad Request")
            )
        ids = ids[:room]
        tiers = self.cached(ids)
        if fault == "warm":
            tiers["device"] = PAGE
        output = self.output(ids, count, cached=tiers["device"])
        if fault == "leak":
            self.leaked.append(self.storage.joinpath("leak").open("w"))
        if fault == "fail-some" and self.requests % 5 == 0:
            return reply(writer, {"error": {"message": "no"}}, "500 Internal Server Error")
        if fault == "slower":
            await asyncio.sleep(self.requests * 0.002)
        prompt_tokens = len(ids) + (fault == "wrong-prompt-count")
        meta: dict[str, Any] = {"prompt_tokens": prompt_tokens, "cached_tokens": sum(tiers.values())}
        meta["cached_tokens_details"] = tiers | {"storage_backend": "StandIn"} if meta["cached_tokens"] else None
        meta |= speculated(count, self.options.draft, fault)
        first = self.options.first_ms / 1000
        if not body.get("stream"):
            await asyncio.sleep(first)
            if "top_logprobs_num" in body:
                meta["output_top_logprobs"] = [
                    [[-0.5 - rank, token + rank, None] for rank in range(body["top_logprobs_num"])] for token in output
                ]
            meta |= {"completion_tokens": count, "finish_reason": {"type": "length"}}
            return reply(writer, {"text": "x", "output_ids": output, "meta_info": meta})
        return await self.stream(writer, output, meta, begun + first)

    async def stream(self, writer: asyncio.StreamWriter, output: list[int], meta: dict[str, Any], first: float) -> None:
        """Write the first token at the time `first`, the others a gap apart."""
        count, fault = len(output), self.fault()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(1, count + 1):
            await sleep_until(first + (number - 1) * self.options.gap_ms / 1000)
            reason = {"type": "length"} if number == count else None
            made = output[: number - 1] if fault == "wrong-count" else output[:number]
            chunk = {"output_ids": made, "meta_info": meta | {"completion_tokens": number, "finish_reason": reason}}
            if fault == "malformed" and number == count:
                write_chunk(writer, b"data: {broken\n\n")
            else:
                write_chunk(writer, b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await writer.drain()
            if fault == "die":
                os._exit(9)
            if fault == "hang":
                await asyncio.sleep(3600)
            if fault == "short" and number == count - 1:
                break
        write_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")

    async def chat(self, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        """The capital, or the codes that stand in the text."""
        text, fault = body["messages"][0]["content"], self.fault()
        sent, kept = len(tokens(text)) + self.options.template, text
        if fault in ("lose-the-middle", "drop-the-middle"):
            kept = text[: len(text) // 3] + text[-len(text) // 3 :]
        if fault == "drop-the-middle":
            sent = len(tokens(kept)) + self.options.template
        codes = re.findall(r"secret code (?:of the \w+ )?is (\d+)", kept)
        words = f"The secret code is {', '.join(codes)}." if codes else "The capital is Paris."
        if fault == "silly":
            words = "I do not know."
        made = len(tokens(words)) + 1
        usage: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
        usage["prompt_tokens_details"] = {"cached_tokens": PAGE + self.options.template if fault == "warm" else 0}
        if fault == "count-one-more":
            usage["prompt_tokens"] += 1
        if body.get("stream"):
            return await self.chat_stream(writer, words.split(), usage)
        choice = {"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
        return reply(writer, {"choices": [choice], "usage": usage})

    async def chat_stream(self, writer: asyncio.StreamWriter, words: list[str], usage: dict[str, Any]) -> None:
        """A word a piece on the schedule of the options; the token that ends the answer has no piece of its own."""
        first = time.monotonic() + self.options.first_ms / 1000
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        events: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
        for number, word in enumerate(words, start=1):
            counted = {"usage": {"prompt_tokens": usage["prompt_tokens"], "completion_tokens": number}}
            events.append({"choices": [{"delta": {"content": f"{word} "}}], **counted})
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        events.append({"choices": [], "usage": usage})
        lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
        if self.fault() == "at-once":
            lines = [b"".join(lines)]
        for number, line in enumerate(lines):
            await sleep_until(first + max(number - 1, 0) * self.options.gap_ms / 1000)
            write_chunk(writer, line)
        write_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")


def server_info(draft: int) -> dict[str, Any]:
    """What it says of itself: how many tokens it drafts, the target's own first one included."""
    if not draft:
        return {"speculative_algorithm": None}
    told = {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": draft, "speculative_num_steps": None}
    return told | {"internal_states": [{"avg_spec_accept_length": 1.25}]}


def speculated(count: int, draft: int, fault: str) -> dict[str, Any]:
    """The counts of drafted tokens under the engine's names: steps accept 0, 1, 2 ... tokens in turn."""
    if not draft or fault == "draft-untold":
        return {}
    rows, made = [0] * draft, 1
    while made < count:
        right = min(sum(rows) % draft, count - made - 1)
        rows[right] += 1
        made += right + 1
    steps, accepted = sum(rows), sum(right * times for right, times in enumerate(rows))
    drafted = steps * (draft - (2 if fault == "draft-fewer" else 1))
    if fault == "draft-boast":  # as if half the steps had given all of it
        steps, drafted = steps // 2, drafted // 2
    return {
        "spec_accept_rate": accepted / drafted,
        "spec_accept_length": count / steps,
        "spec_accept_token_num": accepted,
        "spec_draft_token_num": drafted,
        "spec_verify_ct": steps,
        "spec_accept_histogram": rows,
    }


def greedy(ids: list[int], count: int) -> list[int]:
    """The tokens that follow a prompt."""
    return [int(hashlib.sha256(f"{ids}{n}".encode()).hexdigest()[:6], 16) % 30000 for n in range(count)]


def page_name(ids: list[int]) -> str:
    """The name of the page that ends a prefix."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:32]


def tokens(text: str) -> list[int]:
    """One token a word."""
    return [int(hashlib.sha256(word.encode()).hexdigest()[:4], 16) for word in text.split()]


def reply(writer: asyncio.StreamWriter, body: dict[str, Any], status: str = "200 OK") -> None:
    """A whole JSON answer."""
    data = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)


def write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """One piece of a chunked answer."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def sleep_until(at: float) -> None:
    """Sleep to a time of the monotonic clock, the last of it without sleeping."""
    if (left := at - time.monotonic()) > 0.003:
        await asyncio.sleep(left - 0.002)
    while time.monotonic() < at:  # noqa: ASYNC110  a clock sets no event
        await asyncio.sleep(0)


def say(path: Path, port: int) -> None:
    """Write the port where the test waits for it."""
    temporary = path.with_suffix(".new")
    temporary.write_text(str(port))
    temporary.replace(path)


async def main() -> None:
    """Listen, say where, serve until killed or until the parent is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port_file")
    parser.add_argument("--storage", required=True)
    parser.add_argument("--first-ms", type=float, default=4)
    parser.add_argument("--gap-ms", type=float, default=2)
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--reserved", type=int, default=0)
    parser.add_argument("--template", type=int, default=0)
    parser.add_argument("--fault", default="")
    parser.add_argument("--draft", type=int, default=0)
    parser.add_argument("--after", type=int, default=0)
    options = parser.parse_args()
    server = await asyncio.start_server(StandIn(options).serve, "127.0.0.1", 0, limit=16 << 20)
    say(Path(options.port_file), server.sockets[0].getsockname()[1])
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110  the death of a parent sets no event
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
