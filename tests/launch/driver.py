"""A penny in a process of its own: one launch of the stand-in, as the arguments say. The tests kill it."""

import importlib.util
import sys
import time
from pathlib import Path

spec = importlib.util.spec_from_file_location("bench", Path(__file__).with_name("conftest.py"))
assert spec is not None
assert spec.loader is not None
module = importlib.util.module_from_spec(spec)
sys.modules["bench"] = module
spec.loader.exec_module(module)

bench, mode, how = module.Bench(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
if how == "detach":
    print(bench.detach(mode).url, flush=True)  # noqa: T201  read by the test
else:
    with bench.run(mode, grace_s=1.0) as server:
        print(server.url, flush=True)  # noqa: T201  read by the test
        time.sleep(60)
