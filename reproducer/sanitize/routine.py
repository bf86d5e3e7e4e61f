"""Lines that engines write by the thousand: their grammar is closed, so that they need no search.

A line is routine if every word of it is one of the engine's. Any other goes the long way.
"""

import re

from reproducer.sanitize.addresses import is_loopback_name, names_machine
from reproducer.sanitize.identifiers import Pseudonyms, pseudonym
from reproducer.sanitize.kinds import Tally

_TIME = (
    r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,6})?(?: (?:TP|DP|PP|EP)[0-9]{1,4}){0,4}\] "
)
_WORD = (
    r"#?(?:full |mamba |swa )?(?:new|running|queue|cached|pending|prealloc|transfer|retracted|inflight|seq|req|token"
    r"|num|bootstrap|usage|full|mamba|swa)(?:[- ](?:seq|token|req|batch|num|usage)){0,2}"
    r"|(?:gen|input|output) throughput \(token/s\)|cuda graph|accept (?:len|rate)|cpu graph|npu graph"
)
_NUMBER = r"(?:[0-9]{1,20}(?:\.[0-9]{1,20})?|True|False)"
_BATCH = re.compile(rf"(?:{_TIME})?(?:Decode|Prefill) batch(?:, (?:{_WORD}): {_NUMBER}){{1,24}}\r?\Z")
_FINISHED = re.compile(
    rf"(?P<before>(?:{_TIME})?Req ?Time ?Stats\(rid=)(?P<id>[0-9a-f]{{32}})"
    r"(?P<after>(?:, (?:bootstrap_room|(?:cached_)?(?:input|output)[_ ]len|attempts|type)"
    r"=(?:[0-9]{1,12}|unified|None)){1,8}\):"
    r"(?:,? (?:[a-z]{1,20}_){1,4}(?:duration|elapsed|time|ts)=[0-9]{1,20}(?:\.[0-9]{1,20})?(?:ms|s)?){1,16}\r?)\Z"
)
_ACCESS = re.compile(
    rf"(?P<before>(?:{_TIME})?INFO: {{1,8}})(?P<host>[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}):[0-9]{{1,5}}"
    r"(?P<after> - \"(?:GET|POST) /(?:v1/)?(?:health(?:_generate)?|generate|chat/completions|completions|models|metrics"
    r"|server_info|get_server_info|model_info|get_model_info|flush_cache|embeddings|responses|tokenize|ping|version)"
    r" HTTP/1\.1\" [0-9]{3}(?: [A-Z][A-Za-z ]{1,30})?\r?)\Z"
)


def routine(line: str, pseudonyms: Pseudonyms, tally: Tally) -> str | None:
    """A routine line, sanitised; None of any other line."""
    if "batch, " in line:
        return line if _BATCH.match(line) else None
    if (found := _FINISHED.match(line)) is not None:
        return found["before"] + pseudonym(found["id"], pseudonyms, tally) + found["after"]
    if 'HTTP/1.1"' not in line or (found := _ACCESS.match(line)) is None:
        return None
    if is_loopback_name(found["host"]):
        return f"{found['before']}{found['host']}:{tally.take('client')}{found['after']}"
    return found["before"] + tally.take("address") + found["after"] if names_machine(found["host"]) else None


def gives_no_name(line: str) -> bool:
    """Whether a line is a routine one, in which nobody is named."""
    return ("batch, " in line and _BATCH.match(line) is not None) or _FINISHED.match(line) is not None
