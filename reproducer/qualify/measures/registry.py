"""Every method by the id of its measure."""

from collections.abc import Mapping
from types import MappingProxyType

from reproducer.qualify.measures.capability import capabilities
from reproducer.qualify.measures.chat import ChatSmoke
from reproducer.qualify.measures.context import ContextAdmission
from reproducer.qualify.measures.decode import DecodeConcurrent, DecodeSingle, DecodeSingleMakespan, DecodeTogether
from reproducer.qualify.measures.determinism import Determinism
from reproducer.qualify.measures.fidelity import Fidelity
from reproducer.qualify.measures.method import Method
from reproducer.qualify.measures.needle import Needle, NeedleShort
from reproducer.qualify.measures.prefill import PrefillCold
from reproducer.qualify.measures.prefix import PrefixReuse, RestoreRestart
from reproducer.qualify.measures.restoring import NamespaceFlip, RestoreConcurrent
from reproducer.qualify.measures.soak import Soak
from reproducer.qualify.measures.speculation import Speculation

_ALL: tuple[Method, ...] = (
    DecodeSingle(),
    DecodeConcurrent(),
    PrefillCold(),
    PrefixReuse(),
    RestoreRestart(),
    RestoreConcurrent(),
    NamespaceFlip(),
    Determinism(),
    Speculation(),
    Soak(),
    Fidelity(),
    NeedleShort(),
    ChatSmoke(),
    DecodeSingleMakespan(),
    DecodeTogether(),
    Needle(),
    ContextAdmission(),
    *capabilities(),
)
METHODS: Mapping[str, Method] = MappingProxyType({each.id: each for each in _ALL})
