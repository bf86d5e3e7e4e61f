"""Runs a script while it is recorded, within bounds; `recording.py` starts it in the isolation, penny never imports it.

Input: one argument, the JSON file of a plan with `argv`, `folder`, `environment`, `records`, `log`, `seconds`,
`patience`, `processes`, `confined`. It ends when the script does, when launches were recorded and the script stays on
without another one, or when a bound is reached; whatever still runs then ends with the isolation.
"""

import contextlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time

NOT_CONFINED = 97
LARGEST_FILE = 64 << 20
LARGEST_MEMORY = 8 << 30
OPEN_FILES = 1024
LARGEST_RECORD = 8 << 20
STEP_S = 0.02


def confined() -> str:
    """Why this process is not kept apart; empty where it is."""
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        return "the file system could be written to"
    with open("/proc/self/net/dev", encoding="ascii") as file:  # noqa: PTH123  pathlib is slow to import
        interfaces = [line.split(":")[0].strip() for line in file if ":" in line]
    return "" if interfaces in ([], ["lo"]) else "the network could be reached"


def processes() -> int:
    """How many processes there are to see."""
    return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208  the same


def limit() -> None:
    """Bounds of every process of the script."""
    for what, most in (
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_AS, LARGEST_MEMORY),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (value, value))


def main() -> int:
    """Run the plan; 0 where the script came to an end or a launch was recorded."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123  the same
        plan = json.load(file)
    fault = confined() if plan["confined"] else ""
    if fault:
        sys.stderr.write(f"{fault}\n")
        return NOT_CONFINED
    before = processes()
    with open(plan["log"], "ab") as log:  # noqa: PTH123  the same
        script = subprocess.Popen(
            plan["argv"],
            cwd=plan["folder"],
            env=plan["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=limit,  # noqa: PLW1509  one thread
        )
    end = time.monotonic() + plan["seconds"]
    recorded_at = None
    seen: set[str] = set()
    launches: set[str] = set()
    why = ""
    while script.poll() is None and not why:
        time.sleep(STEP_S)
        now = time.monotonic()
        names = os.listdir(plan["records"])  # noqa: PTH208  the same
        known = len(launches)
        launches.update(_launch(plan["records"], each) for each in names if each not in seen and _is_record(each))
        launches.discard("")
        seen.update(filter(_is_record, names))
        if len(launches) > known:  # one that a loop starts anew is none
            recorded_at = now
        if now > end:
            why = f"it did not end within {plan['seconds']:g} s"
        elif recorded_at is not None and now > recorded_at + plan["patience"]:
            why = "it was ended after the launch was recorded"
        elif processes() - before > plan["processes"]:
            why = f"it started more than {plan['processes']} processes"
        elif len(names) > plan["processes"]:
            why = f"it called more than {plan['processes']} programs that stand in for others"
    if why:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
    result = {"status": script.poll(), "why": why}
    with open(plan["result"], "w", encoding="utf-8") as file:  # noqa: PTH123  the same
        json.dump(result, file)
    return 0


def _is_record(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _launch(folder: str, name: str) -> str:
    """What a record says of a launch, the place of its command left out; empty where it is none."""
    path = os.path.join(folder, name)  # noqa: PTH118  the same
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or os.lstat(path).st_size > LARGEST_RECORD:
            return ""
        with open(path, "rb") as file:  # noqa: PTH123  the same
            content = json.load(file)
        return json.dumps([content["argv"], content["environment"]]) if content["kind"] == "launch" else ""
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return ""


if __name__ == "__main__":
    sys.exit(main())
