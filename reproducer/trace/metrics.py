"""A Prometheus metrics page of SGLang or vLLM: counters and histograms since the server started, summed over labels."""

import math
import re
from dataclasses import dataclass, field

from reproducer.documents.traces import Counter, DamageKind
from reproducer.trace.damage import Tally
from reproducer.trace.lines import Piece

MOST_NAMES = 2_000
_LARGEST = 1e15
_SAMPLE = re.compile(
    rb"([a-zA-Z_:][a-zA-Z0-9_:]{0,200})(?:\{((?:[^\"{}]|\"(?:[^\"\\]|\\.)*\"){0,8000})\})? "
    rb"(NaN|[+-]?Inf|[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?)(?: -?[0-9]{1,16})?"
)
_TYPE = re.compile(rb"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]{0,200}) (counter|gauge|histogram|summary|untyped|unknown|info)")
_ENGINES = (b"sglang:", b"sglang_", b"vllm:", b"vllm_")
_PARTS = {b"counter": (b"", b"_total"), b"histogram": (b"_sum", b"_count")}


def is_metrics(start: bytes) -> bool:
    """Whether a file that begins like this is a metrics page."""
    first = start.lstrip().split(b"\n", 1)[0]
    return first.startswith((b"# HELP ", b"# TYPE ")) or (
        first.startswith(_ENGINES) and _SAMPLE.fullmatch(first.rstrip()) is not None
    )


@dataclass
class MetricsReader:
    """Reads one metrics page.

    Attributes:
        read_lines: samples and comments.
        damaged: lines that are neither.
    """

    source: int
    tally: Tally
    read_lines: int = 0
    damaged: int = 0
    _kinds: dict[bytes, bytes] = field(default_factory=dict)
    _sums: dict[bytes, float] = field(default_factory=dict)

    def read(self, piece: Piece) -> None:
        """Read whole lines; one that no line feed ends may be cut, and gives no number."""
        for number, raw in enumerate(piece.lines(), piece.first):
            line = raw.strip()
            if piece.cut and line and not line.startswith(b"#"):
                self._damage("truncated", number, line)
            elif not line or line.startswith(b"#"):
                self._comment(line)
                self.read_lines += 1
            elif piece.long or (sample := _SAMPLE.fullmatch(line)) is None:
                self._damage("too long" if piece.long else "malformed", number, line)
            elif self._sample(sample[1], float(sample[3])):
                self.read_lines += 1
            else:
                self._damage("out of range", number, line)

    def _comment(self, line: bytes) -> None:
        said = _TYPE.fullmatch(line)
        if said is not None and said[1].startswith(_ENGINES) and len(self._kinds) < MOST_NAMES:
            self._kinds[said[1]] = said[2]

    def _sample(self, name: bytes, value: float) -> bool:
        """Take a sample that is part of a counter or a histogram of an engine; False where its value cannot be."""
        if not any(
            self._kinds.get(name[: len(name) - len(ending)]) == kind
            for kind, endings in _PARTS.items()
            for ending in endings
            if name.endswith(ending)
        ):
            return True
        if not math.isfinite(value) or not 0 <= value <= _LARGEST:
            return False
        total = self._sums.get(name, 0.0) + value
        if total > _LARGEST:
            return False
        self._sums[name] = total
        return True

    def _damage(self, kind: DamageKind, number: int, line: bytes) -> None:
        self.damaged += 1
        self.tally.add(kind, self.source, number, line)

    def counters(self) -> tuple[Counter, ...]:
        """Counters and histograms, by name."""
        found = []
        for name in sorted(self._kinds):
            kind, told = self._kinds[name], name.decode()
            if kind == b"histogram" and name + b"_sum" in self._sums:
                count = self._sums.get(name + b"_count", 0.0)
                found.append(Counter(source=self.source, name=told, total=self._sums[name + b"_sum"], count=int(count)))
            elif kind == b"counter":
                total = self._sums.get(name, self._sums.get(name + b"_total"))
                if total is not None:
                    found.append(Counter(source=self.source, name=told, total=total))
        return tuple(found)
