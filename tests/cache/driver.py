"""A penny in a process of its own that launches the stand-in over a namespace. The tests kill it."""

import sys
import time
from functools import partial
from pathlib import Path

from reproducer.cache.guard import prepare_namespace
from reproducer.identity.policy import COMMIT
from reproducer.identity.root import open_root, pages_of
from reproducer.launch.server import running, start_detached
from reproducer.progress import Silent
from tests.cache.conftest import Place
from tests.launch.conftest import Bench

place, folder, mode, how = Place(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
bench = Bench(folder)
namespace = place.namespace()
bench.root = open_root(place.kv, namespace)
bench.pages = pages_of(bench.root)
prepare = partial(prepare_namespace, place.kv, namespace, place.opened(), COMMIT, reporter=Silent())
opened = bench.opened(mode)
if how == "detach":
    print(  # noqa: T201  read by the test
        start_detached(
            opened,
            bench.runtime,
            bench.root,
            namespace,
            store=bench.store,
            log=bench.log,
            reporter=Silent(),
            accepted="--yes",
            prepare=prepare,
        ).pid,
        flush=True,
    )
else:
    with running(
        opened,
        bench.runtime,
        bench.root,
        namespace,
        log=bench.log,
        reporter=Silent(),
        accepted="--yes",
        grace_s=2.0,
        prepare=prepare,
    ) as server:
        print(server.pid, flush=True)  # noqa: T201  read by the test
        time.sleep(60)
