"""The lines in which vLLM reports its engine every ten seconds: no line of it reports a request."""

import re

_ITEM = rb"[A-Za-z][^\[\],:]{0,48}: [^\[\]:]{1,80}?"
STATS = re.compile(
    rb"(?:Engine [0-9]{1,4}: |[0-9]{1,4} Engines Aggregated: )?"
    rb"Avg prompt throughput: ([0-9]{1,12})\.([0-9]) tokens/s, "
    rb"Avg generation throughput: ([0-9]{1,12})\.([0-9]) tokens/s, "
    rb"Running: ([0-9]{1,9}) reqs, (?:Swapped: [0-9]{1,9} reqs, )?(?:Waiting|Pending): ([0-9]{1,9}) reqs"
    rb"(?:, " + _ITEM + rb"){0,12}\.?"
)
ACCEPTED = re.compile(
    rb"SpecDecoding metrics: .{0,2000}?Mean acceptance length: ([0-9]{1,6})\.([0-9]{2}), .{0,2000}?"
    rb"Avg Draft acceptance rate: ([0-9]{1,3})\.([0-9])%.{0,2000}"
)
