"""Further forms of what must stay: in lists, header pairs, journals, gaps of paths, packed keys, bodies of requests."""

import json

import pytest

from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.text import Machine

MACHINE = Machine(home="/srv/people/jdoe", names=frozenset())
BODY = "a1B2" * 12
PACKED = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB"
FORMS = (
    # tokens by their form
    (f"ATATT3x{BODY}", BODY),
    ("shpat_" + "a1" * 16, "a1a1"),
    (f"sq0atp-{BODY}", BODY),
    ("PMAK-" + "a1" * 12 + "-" + "b2" * 17, "a1a1"),
    (f"dp.pt.{BODY}", BODY),
    (f"sntrys_{BODY}", BODY),
    (f"figd_{BODY}", BODY),
    (f"tskey-auth-{BODY}", BODY),
    (f"tvly-{BODY}", BODY),
    (f"fw_{BODY}", BODY),
    (f"rpa_{BODY.upper()}", BODY.upper()),
    ("ms-1a2b3c4d-1111-2222-3333-444455556666", "1a2b3c4d"),
    (PACKED, PACKED),
    (f"client-key-data: {PACKED}", PACKED),
    # secrets by their name
    ("DB_PASS=pw12345", "pw12345"),
    ("(b'x-api-key', b'pw12345abc')", "pw12345abc"),
    ('args: "--api-key","pw12345abc"', "pw12345abc"),
    ("token%22%3A%22pw12345abc", "pw12345abc"),
    ('api_key=["pw12345abc"]', "pw12345abc"),
    ("non-default args: {'api_key': ['pw12345abc', 'pw67890def'], 'port': 8000}", "pw67890def"),
    # paths
    ("/home//alice/x", "alice"),
    ("/home/./alice/x", "alice"),
    ("/home/\x1b[31malice\x1b[0m/x", "alice"),
    (r"\u002fhome\u002falice\u002fx", "alice"),
    ("/tmp/torchinductor_alice/x", "alice"),  # noqa: S108  a text
    # names
    ("Dec  3 10:00:00 tower sglang[12]: x", "tower"),
    ("2026-12-03T10:00:00.123+00:00 tower docker[12]: x", "tower"),
    ("Linux tower 6.8.0-1030-aws #1 SMP", "tower"),
    ("uid=1000(alice) gid=1000(alice)", "alice"),
    ("[alice@tower x]$ ls", "alice"),
    ("--host tower7 --port 1", "tower7"),
    ("MASTER_ADDR=tower7", "tower7"),
    ("USERDOMAIN=CORPX", "CORPX"),
    ("user_id='alice'", "alice"),
    ("ec2-54-12-33-44.compute-1.amazonaws.com", "54-12-33-44"),
    ("client_addr: 127.0.0.1:52260", "52260"),
    # ids
    ("chatcmpl-tool-0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    ("call_0123456789abcdef0123456789", "0123456789abcdef"),
    ("req_0123456789abcdef0123456789", "0123456789abcdef"),
    # bodies of requests
    ('x {"event":"request.received","rid":"a","obj":{"text":"secret words"}}', "secret words"),
    ('{"choices":[{"message":{"content":"secret words"}}]}', "secret words"),
    ('data: {"choices":[{"delta":{"content":"secret words"}}]}', "secret words"),
    ('data: {"choices":[{"text":"secret words"}]}', "secret words"),
    ('"tool_calls":[{"function":{"arguments":"{\\"q\\":\\"secret words\\"}"}}]', "secret words"),
    ('"contents":[{"parts":[{"text":"secret words"}]}]', "secret words"),
    ('"inputs":"secret words"', "secret words"),
    ("x prompt='secret words'", "secret words"),
)
KEPT = (
    '{"choices": ["auto", "fp8"], "default": {"value": "auto"}, "name": "kv_cache_dtype"}',
    "penny adds --host and --port itself",
    "pip install --user torch",
    "Linux 5.15.0-139-generic",
    "_tokens = LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUREVENDQWZXZ0F3SUJBZ0lS",
    "first_pass=12, pass: 3",
    "['token', 'eos_token', 'bos_token']",
    "Dec 03 10:00:00 started: yes",
    'Finish: obj=GenerateReqInput(), out={"meta_info": {"prompt_tokens": 4, "completion_tokens": 9}}',
)


@pytest.mark.parametrize(("text", "secret"), FORMS, ids=lambda each: each[:40])
def test_it_is_gone(text: str, secret: str) -> None:
    """Bare, in a JSON string and behind a time, and sanitising again finds nothing."""
    for planted in (text, json.dumps({"line": text}), f"[2026-12-01 02:05:14] {text}"):
        if planted is not text and text.startswith(("Dec", "2026")):
            continue  # a journal's words begin a line
        once = Scrubber(Run(MACHINE), Tally()).clean(planted)
        assert secret not in once
        assert Scrubber(Run(MACHINE), Tally()).clean(once) == once


@pytest.mark.parametrize("text", KEPT)
def test_it_stays(text: str) -> None:
    """What looks much like one of them is evidence."""
    assert Scrubber(Run(MACHINE), Tally()).clean(text) == text


def test_a_list_of_secrets_stays_a_list() -> None:
    """Its brackets are no part of what is taken out."""
    cleaned = Scrubber(Run(MACHINE), Tally()).clean("{'api_key': ['pw12345abc', 'pw67890def'], 'port': 8000}")
    assert cleaned == "{'api_key': [{secret}], 'port': 8000}"
