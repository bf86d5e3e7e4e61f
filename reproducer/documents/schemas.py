"""JSON Schemas of every document: `python -m reproducer.documents.schemas [FOLDER]` writes them to `docs/schemas`."""

import json
import sys
from pathlib import Path
from typing import Any

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import Document
from reproducer.documents.claims import Claim
from reproducer.documents.environment import AdoptedEnvironment, Observation
from reproducer.documents.imported import ImportedResult
from reproducer.documents.lock import Lock
from reproducer.documents.manifest import Manifest
from reproducer.documents.receipts import BuildReceipt, BundleIndex, FidelityReference, LaunchReceipt, MeasureReceipt
from reproducer.documents.site import Site
from reproducer.documents.toml import write_atomically
from reproducer.documents.traces import Trace
from reproducer.documents.verdict import Verdict

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS: dict[str, type[Document]] = {
    "manifest-1": Manifest,
    "lock-1": Lock,
    "arguments-1": ArgumentSchema,
    "environment-1": AdoptedEnvironment,
    "observation-1": Observation,
    "build-receipt-1": BuildReceipt,
    "launch-receipt-1": LaunchReceipt,
    "measure-receipt-1": MeasureReceipt,
    "reference-1": FidelityReference,
    "bundle-1": BundleIndex,
    "claim-1": Claim,
    "imported-1": ImportedResult,
    "site-1": Site,
    "trace-1": Trace,
    "verdict-1": Verdict,
}


def schema(document: type[Document]) -> dict[str, Any]:
    """The JSON Schema of one kind of document."""
    return {"$schema": DIALECT, **document.model_json_schema()}


def rendered() -> dict[str, bytes]:
    """Every schema as a file: name and bytes."""
    return {
        f"{name}.json": (json.dumps(schema(document), indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
        for name, document in DOCUMENTS.items()
    }


def main(arguments: list[str]) -> None:
    """Write the schemas."""
    folder = Path(arguments[0]) if arguments else Path("docs/schemas")
    for name, data in rendered().items():
        write_atomically(folder / name, data)
        sys.stdout.write(f"{folder / name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
