"""`python -m tests.verify.make_old_bundle FOLDER`: a bundle of this format to keep, its signing key thrown away.

Run once for each format of bundles, receipts, statements or reports, before its first release. What is kept is never
made again: `test_old_bundles.py` checks that every later penny still accepts it.
"""

import sys
import tempfile
from pathlib import Path

from reproducer.attest.keys import signing_key
from tests.verify.factory import good_evidence, signed_bundle


def main(folder: Path) -> None:
    """Write `bundle/` and the signer's public key `signer.pem` into a new folder."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        key = signing_key(Path(work) / "keys")
        signed_bundle(good_evidence(Path(work) / "lock"), folder / "bundle", key)
        (folder / "signer.pem").write_bytes(key.public.pem)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
