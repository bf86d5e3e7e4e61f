"""Canonical bytes: RFC 8785, whichever way they are made."""

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from reproducer.canonical import canonical_bytes

PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126))
ANY = st.text(st.characters(codec="utf-8"))


@given(st.one_of(st.dictionaries(PLAIN, PLAIN), st.dictionaries(ANY, ANY), st.dictionaries(PLAIN, ANY)))
def test_an_object_of_text_has_the_bytes_of_the_standard(content: dict[str, str]) -> None:
    """The short way for lists of files gives what the RFC 8785 library gives, quotes, backslashes and all."""
    assert canonical_bytes(content) == rfc8785.dumps(content)
