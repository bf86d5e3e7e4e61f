"""How to cite a bundle: `CITATION.cff` and BibTeX, with the digests that say which one it is."""

from datetime import date

from reproducer.report.html import visible
from reproducer.report.sections import engine, model
from reproducer.report.subject import Subject

_BIBTEX = {
    "\\": r"\textbackslash{}",
    # BibTeX counts braces that a backslash stands before, so that none of a text may stand in an entry
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "%": r"\%",
    "#": r"\#",
    "&": r"\&",
    "_": r"\_",
    "$": r"\$",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}
_UNNAMED = "The holder of key"
_NOBODY = "unknown"


def title(subject: Subject) -> str:
    """What is cited."""
    return f"Evidence bundle of {subject.lock.name}"


def digests(subject: Subject) -> tuple[tuple[str, str], ...]:
    """The digests that name a bundle."""
    found = [("lock", subject.lock.digest)]
    if subject.bundle_digest is not None:
        found.append(("bundle", subject.bundle_digest))
    if subject.key_id is not None:
        found.append(("key", subject.key_id))
    return tuple(found)


def cff(subject: Subject, authors: tuple[str, ...] = ()) -> str:
    """`CITATION.cff`, format 1.2.0.

    Args:
        subject: what is cited.
        authors: names as they should stand; without any, whoever holds the key.
    """
    import yaml

    said = {
        "lock": "penny lock digest (sha256 over the RFC 8785 JSON of the lock)",
        "bundle": "penny bundle digest (sha256 over index.json)",
        "key": "id of the signing key (sha256 over its SubjectPublicKeyInfo in DER)",
    }
    data: dict[str, object] = {
        "cff-version": "1.2.0",
        "message": "If you use these measurements, cite the bundle by its digests.",
        "type": "dataset",
        "title": visible(title(subject)),
        "abstract": visible(f"{model(subject)}; {engine(subject)}; verdict {subject.verdict.word}."),
        "authors": [{"name": visible(each)} for each in _authors(subject, authors)],
        "version": subject.lock.digest[:12],
        "identifiers": [
            {"type": "other", "value": f"sha256:{digest}", "description": said[name]}
            for name, digest in digests(subject)
        ],
    }
    if subject.days:
        data["date-released"] = date.fromisoformat(subject.days[-1])
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100))


def bibtex(subject: Subject, authors: tuple[str, ...] = ()) -> str:
    """A BibTeX entry."""
    fields = [
        ("title", "{" + _escaped(title(subject)) + "}"),
        ("author", " and ".join("{" + _escaped(each) + "}" for each in _authors(subject, authors))),
    ]
    if subject.days:
        fields += [("year", subject.days[-1][:4]), ("month", subject.days[-1][5:7])]
    fields.append(("howpublished", "Signed evidence bundle, penny-bundle/1"))
    fields.append(("note", ", ".join(f"{name} sha256:{digest}" for name, digest in digests(subject))))
    lines = [f"  {name:<12} = {{{value}}}," for name, value in fields]
    return "\n".join([f"@misc{{penny-{subject.lock.digest[:12]},", *lines, "}", ""])


def _authors(subject: Subject, authors: tuple[str, ...]) -> tuple[str, ...]:
    return authors or (_NOBODY if subject.key_id is None else f"{_UNNAMED} {subject.key_id[:16]}",)


def _escaped(text: str) -> str:
    return "".join(_BIBTEX.get(each, each) for each in visible(text))
