"""Files and folders from the command line: what is written, what is said, and what proves the numbers."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproducer.errors import NotCheckedError
from reproducer.progress import Silent
from reproducer.sanitize.forms import cleaned
from reproducer.sanitize.jsontext import JsonText
from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.measured import Numbers
from reproducer.sanitize.names import Machine
from reproducer.sanitize.sanitizing import sanitize
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.sources import Source

MACHINE = Machine(home="/srv/people/jdoe", names=frozenset({"jdoe"}))
RID = "0123456789abcdef0123456789abcdef"
LOG = f"""\
[2026-12-01 02:05:10] server_args=ServerArgs(model_path='/home/mbrown/models/q', host='node-a17', port=30000, \
api_key='x9y8z7')
[2026-12-01 02:05:11] INFO:     10.1.2.3:52260 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[2026-12-01 02:05:11] Receive: obj=GenerateReqInput(rid='{RID}', text='the plan of mbrown', input_ids=[1, 2, 3], \
stream=False)
[2026-12-01 02:05:12] Prefill batch, #new-seq: 1, #new-token: 472, #cached-token: 192, token usage: 0.00, \
#running-req: 0, #queue-req: 0, input throughput (token/s): 3.45
[2026-12-01 02:05:14] Decode batch, #running-req: 1, #token: 168, token usage: 0.00, cuda graph: True, \
gen throughput (token/s): 467.29, #queue-req: 0
[2026-12-01 02:05:15] ReqTimeStats(rid={RID}, input_len=472, cached_input_len=192, output_len=364, attempts=0, \
type=unified): queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=2270.33ms, \
forward_duration=2355.41ms, entry_time=1787601371.304
[2026-12-01 02:05:15] Finish: obj=GenerateReqInput(rid='{RID}', text='the plan of mbrown'), \
out={{'text': 'It is 7 o\\'clock.', \
'output_ids': [5, 6], 'meta_info': {{'id': '{RID}', 'finish_reason': {{'type': 'stop'}}, 'prompt_tokens': 472, \
'completion_tokens': 364, 'cached_tokens': 192, 'e2e_latency': 2.36}}}}
[2026-12-01 02:05:16] ReqTimeStats(rid=the job of a client, really, input_len=7, cached_input_len=0, output_len=3, \
attempts=0, type=unified): queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=270.33ms, \
forward_duration=355.41ms, entry_time=1787601372.304
[2026-12-01 02:05:17] ReqTimeStats(rid=HEALTH_CHECK_1787601371.3, input_len=1, cached_input_len=0, output_len=1, \
attempts=0, type=unified): queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=270.33ms, \
forward_duration=355.41ms, entry_time=1787601373.304
"""
GONE = (
    "mbrown",
    "node-a17",
    "x9y8z7",
    "10.1.2.3",
    "52260",
    RID,
    "the plan",
    "clock",
    "job of a client",
    "[1, 2, 3]",
    "[5, 6]",
)


def _penny(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, "-m", "reproducer", *map(str, arguments)], capture_output=True, check=False, env=environment
    )


def _run(*paths: Path, output: Path) -> dict[str, Any]:
    result = sanitize(paths, Run(MACHINE), output=output, reporter=Silent())
    return {each.path.name: each for each in result.files}


def test_a_log_goes_to_stdout_and_the_count_to_stderr(tmp_path: Path) -> None:
    """One file without --output: the sanitised text is the result, and what was taken out is a message."""
    log = tmp_path / "server.log"
    log.write_text(LOG)

    done = _penny("sanitize", log)

    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert not [each for each in GONE if each in text]
    assert text.count("\n") == LOG.count("\n")
    assert "gen throughput (token/s): 467.29" in text
    assert "rid=HEALTH_CHECK_1787601371.3," in text
    assert b"equal before and after: 2 requests, 2 windows, " in done.stderr


def test_what_was_removed_is_said_by_kind_and_the_trace_is_the_same(tmp_path: Path) -> None:
    """--json names every kind with its count, and the trace of both files is one."""
    log, output = tmp_path / "server.log", tmp_path / "clean.log"
    log.write_text(LOG)

    done = _penny("sanitize", log, "--output", output, "--json")
    before, after = (json.loads(_penny("trace", each, "--json").stdout) for each in (log, output))

    said = json.loads(done.stdout)
    (file,) = said["files"]
    assert said["removed"] == {"address": 1, "home": 1, "name": 1, "request": 5, "secret": 1, "text": 5}
    assert (file["form"], file["requests"], file["windows"], file["changed"]) == ("log", 2, 2, True)
    assert said["numbers_equal"] is True
    assert before["requests"] == after["requests"]
    assert before["windows"] == after["windows"]
    assert before["bands"] == after["bands"]


def test_one_id_has_one_pseudonym_across_files_of_a_run(tmp_path: Path) -> None:
    """A request can be followed from a log to a table; a name that one file gives away is gone from the other."""
    log, table = tmp_path / "server.log", tmp_path / "requests.csv"
    log.write_text(LOG)
    table.write_text(f"rid,input_len,output_len,note\n{RID},472,364,by mbrown\nother,1,2,\n")

    files = _run(log, table, output=tmp_path / "out")

    row = files["requests.csv"].output.read_text().splitlines()[1].split(",")
    assert row[1:] == ["472", "364", "by {name}"]
    assert f"rid={row[0]}, input_len=472" in files["server.log"].output.read_text()


def test_tables_keep_their_rows(tmp_path: Path) -> None:
    """Secrets and texts go by the name of their column; rows without any keep their bytes, whatever their quoting."""
    table = tmp_path / "t.csv"
    lines = [
        "prompt,token,input_len,password,host,client\r\n",
        '"hello, ""you""\r\nthere",hf_abc,472,12345,gpu77,10.0.0.9\r\n',
        ',7,"1,5",,,\r\n',
    ]
    table.write_bytes("".join(lines).encode())

    files = _run(table, output=tmp_path / "out.csv")

    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[1] == ["{text}", "{secret}", "472", "{secret}", "{name}", "{address}"]
    assert (tmp_path / "out.csv").read_bytes().endswith(lines[2].encode())
    assert files["t.csv"].removed == {"address": 1, "name": 1, "secret": 2, "text": 1}


def test_documents_are_changed_in_place(tmp_path: Path) -> None:
    """Layout and the spelling of numbers stay; what a field is called says what becomes of its value."""
    document = tmp_path / "server_info.json"
    document.write_text(
        '{ "model_path": "/home/mbrown/m",\n  "api_key": "x9", "mem": 0.850, "big": 1E+5, "port": 30000,\n'
        '  "rids": ["a b", "c"], "messages": [{"role": "user", "content": "hi", "n": 3}], "input_ids": [[1, 2], [3]],\n'
        '  "password": 12345, "argv": ["--api-key", "zzz", "--port", "1"], "host": "127.0.0.1", "node_name": "gpu77",\n'
        '  "packages": [{"name": "x", "version": "12.8.4.1"}], "eos_token": "</s>", "api_key_b": null,\n'
        '  "log": "\\u002fhome\\u002fzed9\\u002fx by mbrown",\n'
        '  "out": {"meta_info": {"id": "my job", "prompt_tokens": 7}} }\n'
    )

    _run(document, output=tmp_path / "out.json")

    text = (tmp_path / "out.json").read_text()
    data = json.loads(text)
    assert text.startswith(
        '{ "model_path": "{home}/m",\n  "api_key": "{secret}", "mem": 0.850, "big": 1E+5, "port": 30000,\n'
    )
    assert data["messages"] == [{"role": "user", "content": "{text}", "n": 3}]
    assert data["input_ids"] == ["{text}"]
    assert data["password"] == "{secret}"  # noqa: S105  what stands in its place
    assert data["argv"] == ["--api-key", "{secret}", "--port", "1"]
    assert (data["host"], data["node_name"]) == ("127.0.0.1", "{name}")
    assert data["packages"] == [{"name": "x", "version": "12.8.4.1"}]
    assert data["log"] == "{home}/x by {name}"
    assert [each[:8] for each in (*data["rids"], data["out"]["meta_info"]["id"])] == ["request_"] * 3
    assert data["out"]["meta_info"]["prompt_tokens"] == 7
    assert data["eos_token"] == "</s>"  # noqa: S105  a token of a model


def test_documents_of_penny_keep_what_models_wrote(tmp_path: Path) -> None:
    """The texts of receipts are those of fixed prompts and cases, and evidence."""
    document = tmp_path / "receipt.json"
    document.write_text(
        '{"format": "penny-receipt/1", "samples": [{"output_text": "Paris", "text": "x"}], "note": "/home/mbrown/x"}'
    )

    _run(document, output=tmp_path / "out.json")

    assert json.loads((tmp_path / "out.json").read_text()) == {
        "format": "penny-receipt/1",
        "samples": [{"output_text": "Paris", "text": "x"}],
        "note": "{home}/x",
    }


def test_lines_of_json_are_documents(tmp_path: Path) -> None:
    """SGLang's request log as JSON: a document a line, and a line of another kind is one of a log."""
    log = tmp_path / "requests.jsonl"
    event = {"timestamp": "t", "event": "request.finished", "rid": RID, "obj": {"text": "secret plan"}}
    event["out"] = {"text": "ok", "meta_info": {"id": RID, "prompt_tokens": 3, "completion_tokens": 4}}
    log.write_text(json.dumps(event) + "\nby 10.0.0.7\n")

    files = _run(log, output=tmp_path / "out.jsonl")

    first, second = (tmp_path / "out.jsonl").read_text().splitlines()
    assert files["requests.jsonl"].form == "documents"
    assert json.loads(first)["rid"] == json.loads(first)["out"]["meta_info"]["id"] != RID
    assert json.loads(first)["obj"] == {"text": "{text}"}
    assert second == "by {address}"


def test_vllm_lines(tmp_path: Path) -> None:
    """Prompts, outputs and ids of vLLM's request logger, and the numbers of its engine line."""
    log = tmp_path / "vllm.log"
    log.write_text(
        f"INFO 12-01 02:05:14 [logger.py:40] Received request chatcmpl-{RID}: params: "
        "SamplingParams(n=1, stop=['zz stop']), lora_request: None.\n"
        "DEBUG 12-01 02:05:14 [logger.py:40] Request a job, mine details: prompt: 'the plan\\n', "
        "prompt_token_ids: [1, 2], prompt_embeds shape: None.\n"
        f"INFO 12-01 02:05:15 [logger.py:60] Generated response chatcmpl-{RID} (streaming complete): "
        'output: "it\'s", output_token_ids: [7, 8], finish_reason: stop\n'
        "INFO 12-01 02:05:20 [loggers.py:248] Engine 000: Avg prompt throughput: 12.3 tokens/s, "
        "Avg generation throughput: 45.6 tokens/s, Running: 1 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%\n"
    )

    files = _run(log, output=tmp_path / "out.log")

    text = (tmp_path / "out.log").read_text()
    assert not [each for each in (RID, "zz stop", "the plan", "a job", "it's", "[1, 2]", "[7, 8]") if each in text]
    assert text.endswith(log.read_text().splitlines()[-1] + "\n")
    assert files["vllm.log"].proven.windows == 1


def test_a_folder_comes_out_whole_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    """Links, pipes, packed and binary files are named with the reason and the exit code; names of files count too."""
    folder = tmp_path / "logs"
    (folder / "of mbrown").mkdir(parents=True)
    (folder / "of mbrown" / "a.log").write_text("/home/mbrown/x\n")
    (folder / "b.log").write_bytes(b"caf\xe9 \xff at 10.0.0.7\r\n")
    (folder / "link").symlink_to("/nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "packed.gz").write_bytes(b"\x1f\x8b\x08")
    (folder / "binary").write_bytes(b"\0\1")

    done = _penny("sanitize", folder, "-o", tmp_path / "out", "--json")

    said = json.loads(done.stdout)
    assert done.returncode == 96
    assert {Path(each["path"]).name: each["reason"] for each in said["left_out"]} == {
        "link": "is a link",
        "pipe": "is no regular file",
        "packed.gz": "is packed (gzip): unpack it first",
        "binary": "is no text",
    }
    assert (tmp_path / "out" / "logs" / "of {name}" / "a.log").read_text() == "{home}/x\n"
    assert (tmp_path / "out" / "logs" / "b.log").read_bytes() == b"caf\xe9 \xff at {address}\r\n"
    assert sorted(each.name for each in (tmp_path / "out").rglob("*") if each.is_file()) == ["a.log", "b.log"]


def test_sanitising_a_file_twice_changes_nothing(tmp_path: Path) -> None:
    """The second time nothing is found and the bytes are the same."""
    log = tmp_path / "server.log"
    log.write_text(LOG)
    _run(log, output=tmp_path / "once.log")

    files = _run(tmp_path / "once.log", output=tmp_path / "twice.log")

    assert (tmp_path / "twice.log").read_bytes() == (tmp_path / "once.log").read_bytes()
    assert files["once.log"].removed == {}
    assert not files["once.log"].changed


def test_a_changed_number_is_refused_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof reads both files: a sanitizer that touched a number would be caught, in a log and in a document."""
    log, document = tmp_path / "server.log", tmp_path / "d.json"
    log.write_text(LOG)
    document.write_text('{"tok_s": 467.29}')
    clean = Scrubber.clean
    monkeypatch.setattr(Scrubber, "clean", lambda self, text: clean(self, text).replace("467.29", "567.29"))
    monkeypatch.setattr(JsonText, "clean", lambda _self, text, own: text.replace("467.29", "567.29"))  # noqa: ARG005

    for path in (log, document):
        with pytest.raises(NotCheckedError, match="numbers would not be the same"):
            _run(path, output=tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d.json", "server.log"]


def test_a_lost_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that is missing afterwards is a difference of the trace."""
    log = tmp_path / "server.log"
    log.write_text(LOG)
    clean = Scrubber.clean
    monkeypatch.setattr(
        Scrubber,
        "clean",
        lambda self, text: "".join(
            each for each in clean(self, text).splitlines(keepends=True) if "Finish" not in each
        ),
    )

    with pytest.raises(NotCheckedError, match="its trace differs in: lines"):
        _run(log, output=tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.log"], 2, "there is no such file"),
        (["a.log", "b.log"], 2, "several files cannot go to stdout"),
        (["a.log", "-o", "a.log"], 2, "is there already, and nothing is overwritten"),
        (["a.log", "--name", "e"], 2, "cannot be taken out as a name"),
        (["pipe"], 2, "is no regular file"),
    ],
)
def test_what_makes_no_sense_is_an_error(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    """One clear line, and nothing is written."""
    (tmp_path / "a.log").write_text("a\n")
    (tmp_path / "b.log").write_text("b\n")
    os.mkfifo(tmp_path / "pipe")

    done = subprocess.run(
        [sys.executable, "-m", "reproducer", "sanitize", *arguments], capture_output=True, check=False, cwd=tmp_path
    )

    assert done.returncode == code
    assert said in done.stderr.decode()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.log", "b.log", "pipe"]


def test_a_name_that_was_told_is_taken_out(tmp_path: Path) -> None:
    """--name is for machines that penny does not run on."""
    (tmp_path / "a.log").write_text("made on Tower Nine by someone\n")

    done = _penny("sanitize", tmp_path / "a.log", "--name", "Tower Nine")

    assert done.stdout == b"made on {name} by someone\n"


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with a hostile line."""
    monkeypatch.setattr("reproducer.sanitize.sources.LONGEST_LINE", 1000)
    (tmp_path / "a.log").write_text("a" * 2000)

    with pytest.raises(NotCheckedError, match="a line is longer than 1000 characters"):
        _run(tmp_path / "a.log", output=tmp_path / "out")


def test_memory_does_not_grow_with_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is read in blocks of lines; nothing but names and counts is kept of them."""
    import tracemalloc

    monkeypatch.setattr("reproducer.sanitize.sources.BLOCK", 1 << 12)
    run, peaks = Run(MACHINE), []
    for times in (0, 1, 4):  # the first fills what is kept for good, such as patterns
        log = tmp_path / f"{times}.log"
        log.write_text("by 10.0.0.7 at noon\n" * 500 * (times or 1))
        tracemalloc.start()
        for _ in cleaned(Source(log, ""), "log", run, Tally(), Numbers()):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[2] < 1.2 * peaks[1]
