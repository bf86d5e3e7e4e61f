"""How a reader checks a report, and what no check of it can show."""

from reproducer.report.blocks import Block, Commands, Listing, Prose, Section
from reproducer.report.subject import Subject


def verifying(subject: Subject) -> Section:
    """Exact commands, from the least trust needed to none."""
    blocks: list[Block] = []
    if subject.key_id is not None:
        blocks += [
            Prose("KEY.pem is the public key that the signer gave you, not the one in the bundle."),
            Commands(
                "Signatures, files and every number, in the folder of the bundle:",
                f"penny verify . --key KEY.pem --lock-digest {subject.lock.digest}",
            ),
            Commands(
                "The id of the key, with openssl alone:",
                f"openssl pkey -pubin -in KEY.pem -outform DER | openssl dgst -sha256 -r\n# {subject.key_id}",
            ),
        ]
        digest = f"\n# {subject.bundle_digest}" if subject.bundle_digest else ""
        blocks.append(Commands("The digest of the bundle:", f"sha256sum index.json{digest}"))
    blocks.append(
        Commands("Rebuild the runtime and measure again, which trusts nobody:", "penny reproduce penny.lock.toml")
    )
    return Section("verify", "How to verify", tuple(blocks))


def limits(subject: Subject) -> Section:
    """What is not vouched for."""
    items = [
        "The numbers are those of the machine named above, as it was then, and of no other.",
        "Samples are what the signer's measuring client recorded, and a signer can invent them.",
        "Rebuilding the runtime and measuring again is the proof that does not rest on the signer.",
    ]
    if subject.key_id is not None:
        items.insert(
            0, "The signature is by a key. It proves who signed, not when: there is no log entry and no timestamp."
        )
        if subject.bundle_digest is None:
            items.append(
                "This page lies in the bundle and is signed with it, so it cannot say that its own signature holds."
            )
        else:
            items.append(
                "This page was made from the bundle afterwards and is not signed itself; make it again to check it."
            )
    if any(each.altered is not None for each in subject.launches):
        items.append(
            "Some boots were asked to differ from the lock, as a measure of its suite declares; they are marked."
        )
    if subject.claims or subject.imported:
        items.append("Claims and imported results are shown apart. Nothing about them was checked here.")
    return Section("limits", "Limits, and what is not vouched for", (Listing(tuple(items)),))
