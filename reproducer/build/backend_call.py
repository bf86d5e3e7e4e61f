"""Calls the PEP 517 hook `build_wheel`; runs in the build environment's interpreter with the source tree as its folder.

Nothing of penny can be imported here, and any Python that builds wheels must be able to run it.
"""

import importlib
import json
import os
import sys


def main() -> None:
    """Build one wheel as the JSON in the first argument says: `backend`, `backend_path`, `out`."""
    plan = json.loads(sys.argv[1])
    # The folder of this file is not for the backend to import from.
    sys.path[:] = [path for path in sys.path if path and path != os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH120, PTH100  no more imports than needed
    sys.path[:0] = [os.path.abspath(path) for path in plan["backend_path"]]  # noqa: PTH100  the same
    name, _, attributes = plan["backend"].partition(":")
    sys.argv = sys.argv[:1]
    backend = importlib.import_module(name)
    for attribute in attributes.split(".") if attributes else ():
        backend = getattr(backend, attribute)
    backend.build_wheel(plan["out"], {}, None)


if __name__ == "__main__":
    main()
