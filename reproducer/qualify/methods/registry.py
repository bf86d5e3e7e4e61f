"""Every method by the id of its measure."""

from collections.abc import Mapping
from types import MappingProxyType

from reproducer.qualify.methods.capability import capabilities
from reproducer.qualify.methods.chat import ChatSmoke
from reproducer.qualify.methods.context import ContextAdmission
from reproducer.qualify.methods.decode import DecodeConcurrent, DecodeSingle, DecodeSingleMakespan, DecodeTogether
from reproducer.qualify.methods.determinism import Determinism
from reproducer.qualify.methods.fidelity import Fidelity
from reproducer.qualify.methods.method import Method
from reproducer.qualify.methods.needle import Needle, NeedleShort
from reproducer.qualify.methods.prefill import PrefillCold
from reproducer.qualify.methods.prefix import PrefixReuse, RestoreRestart
from reproducer.qualify.methods.restoring import NamespaceFlip, RestoreConcurrent
from reproducer.qualify.methods.soak import Soak
from reproducer.qualify.methods.speculation import Speculation

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
