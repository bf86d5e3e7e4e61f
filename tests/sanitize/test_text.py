"""What must not leave the machine is found by kind and place, and harmless look-alikes are let through."""

import base64
import json
from pathlib import Path

import pytest

from reproducer.errors import UnsafeInputError
from reproducer.sanitize.text import Machine, leaks, page, refuse_leaks

EVIDENCE = Path(__file__).parents[2] / "evidence"
MACHINE = Machine(home="/srv/people/jdoe", names=frozenset({"jdoe", "tower42"}))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/home/alice/models", "a home path"),
        ("--model-path=/root/m", "a home path"),
        ("/root", "a home path"),
        ("/Users/alice/x", "a home path"),
        ("/srv/people/jdoe/m", "a home path"),
        ("made by jdoe.", "a host or user name"),
        ("TOWER42:8000", "a host or user name"),
        ("http://10.1.2.3:30000", "an address"),
        ("bound to 192.168.0.7", "an address"),
        ("[2001:db8::1]:8000", "an address"),
        ("fe80::1ff:fe23:4567:890a", "an address"),
        ("hf_abcdefghijklmnopqrstuvwx", "a token"),
        ("ghp_0123456789abcdef0123456789abcdef0123", "a token"),
        ("Authorization: Bearer abcdefghijklmnop", "a token"),
        ("https://user:pass@host.example/simple", "a token"),
        ("sk-0123456789abcdefghij", "a token"),
        ("AKIAABCDEFGHIJKLMNOP", "a token"),
        ("-----BEGIN EC PRIVATE KEY-----", "a token"),
    ],
)
def test_leaks_are_found(text: str, kind: str) -> None:
    """Home paths, names, addresses and tokens are found wherever they stand in a text."""
    found = leaks({"a": [{"b": text}]}, where="receipts/x.json", machine=MACHINE)

    assert ("receipts/x.json: a[0].b", kind) in [(leak.where, leak.what) for leak in found]


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:30000",
        "::1",
        "0.0.0.0",  # noqa: S104  a text that is looked at
        "2026-01-02T03:04:05Z",
        "std::vector<int>",
        "0.5.10.post1",
        "--mem-fraction-static 0.85",
        "a:b:c",
        "my-jdoe-component",
        "/rootless",
        "chroot/root_cause",
        "sha256:0123456789abcdef",
        "Intel(R) Xeon(R) Processor @ 2.90GHz",
        "{checkpoint.target}",
        "999.1.1.1",
        "pkg:pypi/sglang@0.5.10.post1",
        "pkg:pypi/sglang@0.5.10.rc2.dev",
        "pkg:pypi/vllm@0.26.0%2Bcpu.release",
        "pkg:huggingface/org/model@0123abc.def",
        "git@github.com:org/name.git",
    ],
)
def test_harmless_text_passes(text: str) -> None:
    """Loopback, times, versions, code and placeholders are no leaks."""
    assert leaks({"a": text}, where="it", machine=MACHINE) == ()


@pytest.mark.parametrize("text", ["pkg:pypi/by alice@163.com", "alice@example.org", "pkg:alice@example.org"])
def test_an_e_mail_address_beside_a_package_url_is_one(text: str) -> None:
    """Only what stands where a package URL's version stands is let through."""
    assert [leak.what for leak in leaks(text, where="x", machine=MACHINE)] == ["an e-mail address"]


def test_statements_that_were_published_hold_no_leak() -> None:
    """Every payload that is signed in the bundles of this repository passes the search that refuses."""
    payloads = [
        json.loads(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["dsseEnvelope"]["payload"]))
        for path in sorted(EVIDENCE.glob("*/*/**/*.sigstore.json"))
    ]
    assert len(payloads) > 2
    assert [leak for payload in payloads for leak in leaks(payload, where="x", machine=MACHINE)] == []


def test_versions_of_four_numbers_are_no_addresses() -> None:
    """A package version of four numbers looks like an address and is none; elsewhere it is one."""
    assert leaks({"packages": [{"version": "12.8.4.1"}]}, where="it", machine=MACHINE) == ()
    assert leaks({"note": "12.8.4.1"}, where="it", machine=MACHINE) != ()


def test_keys_and_secret_names_are_looked_at() -> None:
    """A key can leak as a value can, and what is called a secret is one."""
    found = leaks({"environment": {"HF_TOKEN": "abc", "/home/alice": "1", "API_KEY": ""}}, where="it", machine=MACHINE)

    assert [(leak.where, leak.what) for leak in found] == [
        ("it: environment.HF_TOKEN", "a secret by its name"),
        ("it: environment./home/alice", "a home path"),
    ]


def test_model_output_may_hold_a_word_that_is_a_name() -> None:
    """What a model wrote for fixed prompts is not searched for names, and still for tokens and homes."""
    assert leaks({"output_text": "said jdoe"}, where="it", machine=MACHINE) == ()
    assert leaks({"output_text": "/home/jdoe"}, where="it", machine=MACHINE) != ()


def test_page_is_searched_for_homes_and_tokens() -> None:
    """A report is searched for what its receipts could not have hidden; a kernel's version in it is no address."""
    assert leaks(page("kernel 5.15.90.1, made by jdoe"), where="it", machine=MACHINE) == ()
    (found,) = leaks(page("first\n/home/jdoe"), where="report.md", machine=MACHINE)
    assert (found.where, found.what) == ("report.md: page[1]", "a home path")


def test_common_names_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine called localhost with a user called root has no names to protect."""
    monkeypatch.setattr("socket.gethostname", lambda: "localhost")
    monkeypatch.setattr("getpass.getuser", lambda: "root")

    assert Machine.here().names == frozenset()


def test_refusal_names_every_place_and_never_the_thing() -> None:
    """The error says where and what kind, and does not repeat the secret."""
    with pytest.raises(UnsafeInputError) as caught:
        refuse_leaks({"a.json": {"x": "hf_abcdefghijklmnopqrstuvwx"}, "b.json": {"y": ["at 10.0.0.7"]}})

    assert "a.json: x" in str(caught.value)
    assert "b.json: y[0] holds an address" in str(caught.value)
    assert "hf_abc" not in str(caught.value)
    assert caught.value.exit_code == 2
