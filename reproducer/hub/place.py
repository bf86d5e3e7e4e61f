"""Where a hub is and where its cache lies, as this user has it; the token stays with the hub's own client."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from reproducer.errors import UsageError
from reproducer.fetch.indexes import redacted
from reproducer.fetch.web import Patience


@dataclass(frozen=True)
class HubPlace:
    """One hub and one cache.

    Attributes:
        endpoint: its address; None for the user's `HF_ENDPOINT`, or the public hub.
        folder: the cache; None for the user's `HF_HUB_CACHE`, or `hub` in `HF_HOME`.
        patience: how long one goes on asking.
    """

    endpoint: str | None = None
    folder: Path | None = None
    patience: Patience = field(default_factory=Patience)

    @cached_property
    def url(self) -> str:
        """The endpoint.

        Raises:
            UsageError: it is no address of a web server.
        """
        from huggingface_hub import constants

        url = (self.endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        try:
            parts = urlsplit(url)
            plain = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
            plain = plain and parts.port != 0
        except ValueError:
            plain = False
        if not plain or not url.isprintable():
            raise UsageError(
                "the hub's endpoint is no http or https address", where=redacted(url), todo="correct HF_ENDPOINT"
            )
        return url

    @property
    def shown(self) -> str:
        """The endpoint as it may stand in a message: without a user name or a password."""
        return redacted(self.url)

    @cached_property
    def cache(self) -> Path:
        """The cache's folder."""
        from huggingface_hub import constants

        named = os.environ.get("HF_HUB_CACHE")
        return (self.folder or Path(named or constants.HF_HUB_CACHE)).expanduser().absolute()

    @property
    def offline(self) -> bool:
        """Whether the user told the hub's client to touch no network (`HF_HUB_OFFLINE`)."""
        from huggingface_hub import constants

        return bool(constants.is_offline_mode())
