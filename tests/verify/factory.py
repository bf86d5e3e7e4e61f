"""A small lock with everything it names, and receipts that hold against it; no engine ran to make them."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from reproducer import __version__
from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import SigningKey
from reproducer.canonical import content_digest
from reproducer.documents.built import BuiltOutput, HostFacts, InstalledPackage, Isolation, TreeDigest
from reproducer.documents.lock import Measure, Scalar
from reproducer.documents.measured import Candidate, Conditions, Derived, RequestRecord, Sample
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import (
    RECEIPT_KINDS,
    Boot,
    BuildReceipt,
    EffectiveValue,
    FidelityReference,
    LaunchReceipt,
    MeasureReceipt,
    ReferencePrompt,
)
from reproducer.identity.namespace import derive as derive_namespace
from reproducer.ledger import AnyReceipt
from reproducer.measures.checks import definition, resolved
from reproducer.qualify.baselines import differences
from reproducer.qualify.booted import booted, in_order
from reproducer.qualify.derive import derive, judge
from reproducer.qualify.methods.rules import prompt_seed
from reproducer.qualify.prompts import QUESTION, ids_sha256, text_sha256, token_prompt
from reproducer.verify.receipts import verify_receipts

PENNY = __version__
HOST = HostFacts(
    platform="linux-x86_64",
    kernel="6.1.0",
    cpu="Example Processor 3000 @ 2.50GHz",
    cpu_count=2,
    cpu_flags=("avx2", "sse4_2"),
    memory_bytes=24 << 30,
    filesystem="ext4",
)
_RATES = (40_000_000, 41_000_000, 39_500_000, 40_600_000)


def sha256(text: str) -> str:
    """A digest that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Evidence:
    """A lock on disk and the receipts of one good run."""

    opened: OpenedLock
    build: BuildReceipt
    launches: tuple[LaunchReceipt, ...]
    measures: tuple[MeasureReceipt, ...]

    @property
    def receipts(self) -> tuple[AnyReceipt, ...]:
        """All of them."""
        return (self.build, *self.launches, *self.measures)

    def measure(self, name: str) -> MeasureReceipt:
        """The receipt of one measure."""
        return next(receipt for receipt in self.measures if receipt.measure.startswith(f"{name}/"))

    def replacing(self, old: AnyReceipt, new: AnyReceipt) -> tuple[AnyReceipt, ...]:
        """All receipts with one replaced, and those that name it following it, as a careful forger would."""
        changed = {old.digest: new}
        found: list[AnyReceipt] = []
        for receipt in self.receipts:
            data = receipt.content()
            text = json.dumps(data)
            for digest, replacement in changed.items():
                text = text.replace(digest, replacement.digest)
            follower = type(receipt).from_json(text, where="factory")
            if isinstance(follower, MeasureReceipt):
                launches = [each for each in found if isinstance(each, LaunchReceipt)]
                boots = in_order(follower.launch_receipts, [booted(each) for each in launches])
                follower = follower.model_copy(update={"boots": boots})
            current = changed.get(receipt.digest, follower)
            changed[receipt.digest] = current
            found.append(current)
        return tuple(found)


def edited(receipt: AnyReceipt, edit: Callable[[dict[str, Any]], object]) -> Any:
    """A receipt with its plain data changed by `edit`."""
    data = receipt.content()
    edit(data)
    return RECEIPT_KINDS[receipt.kind].from_data(data, where="edited")


def good_evidence(folder: Path, *, name: str = "small") -> Evidence:
    """A lock in `folder` and the receipts of a run in two boots that passes."""
    opened = small_lock(folder, name=name)
    build = build_receipt(opened)
    launches = tuple(launch_receipt(opened, build, number) for number in (1, 2))
    reference = FidelityReference.from_json(opened.read(_reference(opened)), where="reference")
    measures = tuple(
        measure_receipt(opened, measure, build, launches, reference) for measure in opened.lock.qualification.measures
    )
    return Evidence(opened, build, launches, measures)


def signed_bundle(evidence: Evidence, folder: Path, key: SigningKey, receipts: Iterable[AnyReceipt] = ()) -> Path:
    """A bundle of the evidence (or of other receipts for its lock) in `folder`."""
    chosen = tuple(receipts) or evidence.receipts
    write_bundle(folder, evidence.opened, chosen, key, verify_receipts(evidence.opened, chosen))
    return folder


def small_lock(folder: Path, *, name: str = "small") -> OpenedLock:
    """Write a lock and the files it names."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "runtime/patches/0001-one.patch": b"--- a/one\n+++ b/one\n",
        "runtime/members/engine.json": b'{"engine/__init__.py":"00"}\n',
        "runtime/convert.py": b"print('convert')\n",
        "penny.build.pylock.toml": _pylock("hatchling", "1.27.0"),
        "penny.runtime.pylock.toml": _pylock("torch", "2.13.0"),
        "reference.json": _small_reference().canonical() + b"\n",
    }
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    lock = _lock_data(name, {path: _file(path, data) for path, data in files.items()})
    (folder / "penny.lock.toml").write_text(tomlkit.dumps(lock))
    return open_lock(folder / "penny.lock.toml")


def build_receipt(opened: OpenedLock) -> BuildReceipt:
    """A build that gave the bytes of the lock."""
    component = opened.lock.components[0]
    outputs = tuple(
        BuiltOutput(
            component=component.name,
            filename=output.filename,
            sha256=output.sha256,
            size=output.size,
            content_sha256=output.content_sha256,
            level="bytes-identical",
        )
        for output in component.outputs
    )
    checkpoint = opened.lock.target
    tree = TreeDigest(
        files=len(checkpoint.listed),
        bytes=sum(file.size for file in checkpoint.listed),
        sha256=content_digest({file.path: file.sha256 for file in checkpoint.listed}),
    )
    return BuildReceipt(
        lock_digest=opened.digest,
        penny_version=PENNY,
        created="2026-01-02T03:04:05Z",
        level="bytes-identical",
        outputs=outputs,
        packages=(
            InstalledPackage(
                project="torch",
                version="2.13.0",
                filename="torch-2.13.0-py3-none-any.whl",
                sha256=sha256("torch wheel"),
            ),
            InstalledPackage(project="engine", version="1.0", filename=outputs[0].filename, sha256=outputs[0].sha256),
        ),
        runtime=TreeDigest(files=3, bytes=300, sha256=sha256("runtime")),
        checkpoints={checkpoint.name: tree},
        python="3.11.7",
        installer="uv 0.9.13",
        isolation=Isolation(network="none", umask="022", locale="C.UTF-8", source_date_epoch=1704067200),
        host=HOST,
        accepted="--yes",
    )


def launch_receipt(opened: OpenedLock, build: BuildReceipt, number: int) -> LaunchReceipt:
    """One boot in which every effective value was as the lock says."""
    namespace = derive_namespace(opened.lock)
    return LaunchReceipt(
        lock_digest=opened.digest,
        penny_version=PENNY,
        created=f"2026-01-02T03:1{number}:00Z",
        build_receipt=build.digest,
        boot=Boot(id=sha256(f"boot {number}"), pid=100 + number, started=f"2026-01-02T03:1{number}:00Z", start_ticks=7),
        namespace=namespace.name,
        namespace_digest=namespace.digest,
        arguments=("--device", "cpu", "--model-path", "{checkpoint.target}", "--page-size", "16"),
        environment=dict(opened.lock.launch.environment),
        effective=tuple(
            EffectiveValue(name=name, expected=value, got=value, source="server_info", agrees=True)
            for name, value in sorted(opened.lock.launch.effective.items())
        ),
        ready_ns=12_500_000_000 + number,
        log_sha256=sha256(f"log {number}"),
        accepted="--yes",
    )


def measure_receipt(
    opened: OpenedLock,
    measure: Measure,
    build: BuildReceipt,
    launches: tuple[LaunchReceipt, ...],
    reference: FidelityReference,
) -> MeasureReceipt:
    """One measure with two good samples in each boot."""
    parameters = resolved(measure.id, measure.parameters)
    samples = tuple(
        _sample(measure.id, parameters, index, launches[index % len(launches)].boot.id, reference)
        for index in range(measure.warmup + 2 * len(launches))
    )
    samples = tuple(sample.model_copy(update={"warmup": sample.index < measure.warmup}) for sample in samples)
    needed = definition(measure.id).needs_reference
    derived = derive(measure.id, parameters, samples, reference, statistics="penny-statistics/1")
    judgement = judge(measure, samples, derived, differences(opened, measure, samples, derived, reference))
    return MeasureReceipt(
        lock_digest=opened.digest,
        penny_version=PENNY,
        created="2026-01-02T03:20:00Z",
        build_receipt=build.digest,
        launch_receipts=tuple(launch.digest for launch in launches),
        boots=tuple(booted(launch) for launch in launches),
        measure=measure.id,
        parameters=parameters,
        warmup=measure.warmup,
        conditions=Conditions(
            host=HOST,
            load_average=(0.25, 1.5),
            other_cpu_percent=3.25,
            cache_state=definition(measure.id).cache_state,
        ),
        reference_sha256=_reference(opened).sha256 if needed else None,
        samples=samples,
        statistics="penny-statistics/1",
        derived=derived,
        thresholds=judgement.thresholds,
        status=judgement.status,
        reason=judgement.reason,
    )


def derived_value(receipt: MeasureReceipt, name: str) -> Derived:
    """One derived value of a receipt."""
    return next(value for value in receipt.derived if value.name == name)


def _sample(measure: str, parameters: dict[str, Scalar], index: int, boot: str, reference: FidelityReference) -> Sample:
    nonce = f"{index:032x}"
    if measure == "decode.single/1":
        length, output = int(parameters["prompt_tokens"]), int(parameters["output_tokens"])
        prompt = ids_sha256(token_prompt(prompt_seed(nonce, measure), length))
        requests: tuple[RequestRecord, ...] = (_request(prompt, length, output, _RATES[index % len(_RATES)]),)
    elif measure == "chat.smoke/1":
        request = _request(text_sha256(QUESTION), 36, 8, _RATES[index % len(_RATES)])
        requests = (request.model_copy(update={"output_text": "The capital of France is Paris."}),)
        return Sample(
            index=index,
            boot=boot,
            warmup=False,
            requests=requests,
            facts={"nonce": nonce, "usage_total": 44, "answer_tokens": 8},
        )
    else:
        requests = tuple(_greedy(prompt, index) for prompt in reference.prompts)
    return Sample(index=index, boot=boot, warmup=False, requests=requests, facts={"nonce": nonce})


def _request(prompt: str, prompt_tokens: int, output_tokens: int, step_ns: int) -> RequestRecord:
    events = tuple((90_000_000 + step_ns * index, index + 1) for index in range(output_tokens))
    return RequestRecord(
        sent_ns=1_000,
        finished_ns=events[-1][0] + 50_000,
        events=events,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cached_tokens=0,
        prompt_sha256=prompt,
        finish_reason="length" if output_tokens == 4 else "stop",
    )


def _greedy(prompt: ReferencePrompt, index: int) -> RequestRecord:
    request = _request(
        ids_sha256(prompt.prompt_ids), len(prompt.prompt_ids), len(prompt.output_ids), _RATES[index % len(_RATES)]
    )
    moved = tuple(
        tuple(
            Candidate(token=each.token, logprob=each.logprob - 0.001 * (place + index))
            for place, each in enumerate(row)
        )
        for row in prompt.top_logprobs
    )
    return request.model_copy(update={"output_ids": prompt.output_ids, "top_logprobs": moved})


def _small_reference() -> FidelityReference:
    row = (Candidate(token=11, logprob=-0.25), Candidate(token=12, logprob=-1.75))
    prompts = (
        ReferencePrompt(prompt="One", prompt_ids=(5, 6), output_ids=(11, 11), top_logprobs=(row, row)),
        ReferencePrompt(prompt="Two", prompt_ids=(5, 7), output_ids=(11, 12), top_logprobs=(row, row[::-1])),
    )
    return FidelityReference(format="penny-reference/1", checkpoint="small-model", top=2, prompts=prompts)


def _reference(opened: OpenedLock) -> Any:
    return opened.lock.qualification.reference


def _pylock(project: str, version: str) -> bytes:
    filename = f"{project}-{version}-py3-none-any.whl"
    return (
        'lock-version = "1.0"\ncreated-by = "penny"\n\n'
        f'[[packages]]\nname = "{project}"\nversion = "{version}"\n'
        f'wheels = [{{ name = "{filename}", hashes = {{ sha256 = "{sha256(f"{project} wheel")}" }} }}]\n'
    ).encode()


def _file(path: str, data: bytes) -> dict[str, Any]:
    return {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _lock_data(name: str, files: dict[str, dict[str, Any]]) -> dict[str, Any]:
    wheel = "engine-1.0-py3-none-any.whl"
    return {
        "format": "penny-lock/1",
        "name": name,
        "manifest": f"manifests/{name}.toml",
        "platform": "linux-x86_64",
        "toolchain": {"python": "3.11", "compiler": "none"},
        "engine": {"kind": "sglang", "component": "engine"},
        "build": {"source_date_epoch": 1704067200, "umask": "022", "locale": "C.UTF-8", "network": "none"},
        "components": [
            {
                "name": "engine",
                "kind": "wheel",
                "source": {
                    "kind": "sdist",
                    "project": "engine",
                    "version": "1.0",
                    "filename": "engine-1.0.tar.gz",
                    "sha256": sha256("sdist"),
                    "size": 1000,
                },
                "patches": [files["runtime/patches/0001-one.patch"]],
                "build_environment": "build",
                "outputs": [
                    {
                        "filename": wheel,
                        "sha256": sha256("engine wheel"),
                        "size": 2000,
                        "content_sha256": sha256("engine content"),
                        "members": files["runtime/members/engine.json"],
                    }
                ],
            }
        ],
        "environments": [
            {"name": "build", "pylock": files["penny.build.pylock.toml"], "packages": 1},
            {"name": "runtime", "pylock": files["penny.runtime.pylock.toml"], "packages": 1},
        ],
        "checkpoints": [
            {
                "name": "small-model",
                "role": "target",
                "source": {
                    "kind": "wheel-member",
                    "project": "small-model",
                    "version": "0.1",
                    "filename": "small_model-0.1-py3-none-any.whl",
                    "sha256": sha256("model wheel"),
                    "size": 5000,
                    "member": "small_model/weights.gguf",
                    "member_sha256": sha256("gguf"),
                    "member_size": 4000,
                },
                "conversion": {
                    "script": files["runtime/convert.py"],
                    "arguments": ["{source}", "{output}"],
                    "environment": "build",
                },
                "trust_remote_code": False,
                "files": [
                    {"path": "config.json", "sha256": sha256("config"), "size": 100},
                    {"path": "model.safetensors", "sha256": sha256("weights"), "size": 9000},
                ],
            }
        ],
        "launch": {
            "module": "sglang.launch_server",
            "arguments": {"model-path": "{checkpoint.target}", "device": "cpu", "page-size": 16},
            "environment": {"HF_HUB_OFFLINE": "1"},
            "effective": {"device": "cpu", "page_size": 16, "disable_overlap": True},
            "readiness": {"endpoint": "/health_generate", "deadline_s": 300},
        },
        "qualification": {
            "suite": "small",
            "boots": 2,
            "reference": files["reference.json"],
            "measures": [
                {
                    "id": "decode.single/1",
                    "repeats": 4,
                    "warmup": 1,
                    "parameters": {"prompt_tokens": 8, "output_tokens": 4},
                    "thresholds": [{"value": "decode_rate", "comparator": ">=", "bound": 10, "unit": "tok/s"}],
                },
                {
                    "id": "fidelity/1",
                    "repeats": 2,
                    "warmup": 0,
                    "thresholds": [
                        {"value": "agreement", "comparator": "==", "bound": 1.0, "unit": "ratio"},
                        {"value": "kl_mean", "comparator": "<=", "bound": 0.01, "unit": "nats"},
                    ],
                },
                {
                    "id": "chat.smoke/1",
                    "repeats": 2,
                    "warmup": 0,
                    "thresholds": [{"value": "sensible", "comparator": "==", "bound": True, "unit": "bool"}],
                },
            ],
        },
    }
