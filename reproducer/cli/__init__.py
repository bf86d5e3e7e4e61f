"""The command line: parses, calls one library function, prints."""

from reproducer.cli.app import app
from reproducer.cli.front import run


def main() -> None:
    """Entry point of the `penny` command."""
    run(app)
