"""What a lock says of its engine: the list of what it takes, and the values it must resolve the launch to."""

from dataclasses import dataclass

from packaging.utils import parse_wheel_filename

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Checkpoint, Component, Launch, Scalar
from reproducer.engines import engine_of
from reproducer.engines.source.reading import READABLE, from_wheel
from reproducer.locking.checkpoints import Checkpoints
from reproducer.locking.components import Components
from reproducer.locking.files import reference
from reproducer.locking.making import EXPECTED, Making


@dataclass(frozen=True)
class EngineFacts:
    """The engine of one manifest."""

    making: Making
    components: Components
    checkpoints: Checkpoints

    def arguments(
        self, engine: Component, files: dict[str, bytes]
    ) -> tuple[FileReference | None, ArgumentSchema | None]:
        """The list of what the engine takes, which goes to `files`: kept where the engine is the same, else read anew.

        Neither of them for an engine whose source penny cannot read, or where only a build would tell and nothing is
        to be built.
        """
        making = self.making
        kind, before = making.manifest.engine.kind, making.previous.lock
        if kind not in READABLE:
            return None, None
        kept = before.engine.arguments if before is not None and before.engine.kind == kind else None
        data = making.previous.bytes_of(kept) if kept is not None else None
        if kept is not None and data is not None and self._same(engine):
            files[kept.path] = data
            return kept, ArgumentSchema.from_json(data, where=kept.path)
        if making.check:
            making.pending.append("engine.arguments: to be read again, for the engine changed")
            return kept, None
        making.accept(f"building {engine.name}")
        _, built = making.workshop.component(engine, self.components.tools(engine))
        schema = from_wheel(kind, str(parse_wheel_filename(built.path.name)[1]), built.path)
        path = f"{EXPECTED}/{built.path.name}.arguments.json"
        files[path] = schema.rendered()
        return reference(path, files[path]), schema

    def _same(self, engine: Component) -> bool:
        return not self.making.everything and self.making.previous.component(engine.name) == engine

    def effective(self, target: Checkpoint, launch: Launch) -> dict[str, Scalar]:
        """What the engine must resolve the launch to."""
        making = self.making
        kept = self._kept_effective(target, launch)
        if kept is None and making.check:
            making.pending.append("launch.effective: to be derived again, for the launch or its checkpoint changed")
            return making.previous.lock.launch.effective if making.previous.lock else {}
        if kept is None:
            engine = engine_of(making.manifest.engine.kind)
            config = self.checkpoints.config_of(target)
            if config is None:  # the values depend on files that nobody knows yet
                return {}
            kept = engine.expected_effective(launch.arguments, config, launch.environment)
        return dict(sorted(kept.items()))

    def _kept_effective(self, target: Checkpoint, launch: Launch) -> dict[str, Scalar] | None:
        """The effective values of the lock that is there, where neither launch nor checkpoint changed."""
        before = self.making.previous.lock
        if before is None or self.making.everything or before.engine.kind != self.making.manifest.engine.kind:
            return None
        same = before.launch.model_copy(update={"effective": {}, "readiness": launch.readiness}) == launch
        return before.launch.effective if same and before.target.files == target.files else None
