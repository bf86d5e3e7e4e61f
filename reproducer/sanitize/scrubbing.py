"""A text without what must stay on the machine: every finder in turn, until none finds anything."""

from dataclasses import dataclass, field

from reproducer.sanitize.addresses import without_addresses
from reproducer.sanitize.emails import without_emails
from reproducer.sanitize.homes import without_homes
from reproducer.sanitize.identifiers import Pseudonyms, without_identifiers
from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.named import without_named
from reproducer.sanitize.names import Learned, Machine, without_names
from reproducer.sanitize.requests import without_texts
from reproducer.sanitize.routine import routine
from reproducer.sanitize.tokens import Blocks, without_tokens

_ROUNDS = 16


@dataclass
class Run:
    """What one run of the sanitizer shares over all its files: pseudonyms, names, and how much was taken out."""

    machine: Machine
    learned: Learned = field(default_factory=Learned)
    pseudonyms: Pseudonyms = field(default_factory=Pseudonyms)


class Scrubber:
    """Sanitises one text after another of one file; private keys may go over from one to the next.

    Args:
        run: what is shared.
        tally: counts what is taken out.
    """

    def __init__(self, run: Run, tally: Tally) -> None:
        self._run = run
        self._tally = tally
        self._blocks = Blocks()

    def clean(self, text: str) -> str:
        """The text without what must stay; sanitising it again changes nothing."""
        text = self._blocks.without_keys(text, self._tally)
        return "\n".join([self._line(line) for line in text.split("\n")])

    def _line(self, line: str) -> str:
        if not line:
            return line
        done = routine(line, self._run.pseudonyms, self._tally)
        if done is not None:
            return done
        for _ in range(_ROUNDS):
            cleaned = self._once(line)
            if cleaned == line:
                return line
            line = cleaned
        return line

    def _once(self, text: str) -> str:
        run, tally = self._run, self._tally
        lowered = text.lower()
        text = without_texts(text, lowered, run.pseudonyms, tally)
        text = without_named(text, lowered, tally)
        text = without_tokens(text, lowered, tally)
        text = without_emails(text, tally)
        text = without_homes(text, lowered, tally, run.machine.home)
        text = without_addresses(text, tally)
        text = without_identifiers(text, lowered, run.pseudonyms, tally)
        return without_names(text, run.machine, run.learned, tally)
