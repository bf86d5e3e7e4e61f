"""Environments: requirements to exact versions by uv, versions to every wheel that may serve, wheels to PEP 751."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reproducer.build.environment import installer
from reproducer.documents.base import shown
from reproducer.documents.manifest import EnvironmentRequest
from reproducer.documents.sources import Artefact
from reproducer.errors import InvalidDocumentError, NotCheckedError
from reproducer.fetch.indexes import Indexes, redacted
from reproducer.locking.coverage import told, uncovered
from reproducer.locking.refusals import check_requirement
from reproducer.locking.releases import Releases

EVERYTHING = "ALL"
_GLIBC = "2.28"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.!+_-]*)$")
_UNREACHED = re.compile(
    r"error sending request|Failed to fetch|Could not connect|timed out|dns error"
    r"|network (was|connectivity is) disabled",
    re.IGNORECASE,
)
_KEPT = ("UV_CACHE_DIR", "UV_HTTP_RETRIES", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS")
_DEADLINE = 900
_LONGEST_WHY = 1200


@dataclass(frozen=True)
class Resolver:
    """What every environment of one manifest is resolved with.

    Attributes:
        releases: what the user's indexes offer.
        indexes: the user's own, which uv asks.
        python: minor version, such as `3.11`.
        platform: the lock's platform.
        glibc: the oldest C library that packages must have wheels for; None for 2.28.
        upgrade: projects whose newest allowed version is wanted, `ALL` for every one.
        work: a private folder.
        offline: touch no network.
        where: the manifest, for errors.
    """

    releases: Releases
    indexes: Indexes
    python: str
    platform: str
    glibc: str | None
    upgrade: frozenset[str]
    work: Path
    offline: bool
    where: str

    def resolve(
        self, request: EnvironmentRequest, previous: Mapping[str, Sequence[Artefact]]
    ) -> dict[str, tuple[Artefact, ...]]:
        """Every package of an environment with every wheel that may serve.

        Args:
            request: the environment.
            previous: the packages of the lock that is there, whose versions and wheels are kept where they still do.

        Raises:
            InvalidDocumentError: requirements that cannot be met, or that make no sense.
            NotCheckedError: an index cannot be reached, or uv does not run.
        """
        kept = {name: wheels[0].version for name, wheels in previous.items() if wheels}
        versions = self._versions(request, kept, dependencies=True)
        for name, version in self._versions(request, kept, dependencies=False).items():
            if versions.setdefault(name, version) != version:
                raise InvalidDocumentError(
                    f"environment {request.name}: {name} is asked for in two versions, {versions[name]} and {version}",
                    where=self.where,
                )

        def wheels(name: str) -> tuple[Artefact, ...]:
            there = tuple(previous.get(name, ()))
            if there and there[0].version == versions[name] and not self._upgraded(name):
                return there
            return self.releases.wheels(name, versions[name], hints=request.indexes)

        self.releases.prepare(request.indexes)
        names = sorted(versions)
        with ThreadPoolExecutor(max_workers=8) as pool:
            return dict(zip(names, pool.map(wheels, names), strict=True))

    def _upgraded(self, name: str) -> bool:
        return EVERYTHING in self.upgrade or name in {canonicalize_name(each) for each in self.upgrade}

    def _versions(self, request: EnvironmentRequest, kept: Mapping[str, str], *, dependencies: bool) -> dict[str, str]:
        """Project to version; an index that the manifest hints at is asked only where the user's own do not do."""
        requirements = request.requirements if dependencies else request.without_dependencies
        if not requirements:
            return {}
        for text in requirements:
            check_requirement(text, where=f"{self.where}: environment {request.name}")
        own, hinted = self.indexes, self.indexes.with_hints(request.indexes)
        if kept and not self.upgrade and not self.offline:
            for indexes in dict.fromkeys((own, hinted)):
                still = self._still(requirements, kept, indexes, dependencies=dependencies)
                if still is not None:
                    return still
        status, output, faults = self._compile(requirements, kept, own, dependencies=dependencies)
        if status and hinted != own and not self.offline and not _UNREACHED.search(faults):
            status, output, faults = self._compile(requirements, kept, hinted, dependencies=dependencies)
        if status:
            raise self._fault(request, faults)
        return _pins(output, where=f"environment {request.name}")

    def _still(
        self, requirements: Sequence[str], kept: Mapping[str, str], indexes: Indexes, *, dependencies: bool
    ) -> dict[str, str] | None:
        """The versions that the lock has, where what uv has in its cache says that they still do; else None.

        What a release asks for does not change, so nobody need be asked again; a release that is new matters to none.
        """
        status, output, _ = self._compile(requirements, kept, indexes, dependencies=dependencies, cached=True)
        pins = _pins(output, where="the cache of uv") if not status else {}
        return pins if pins and all(kept.get(name) == version for name, version in pins.items()) else None

    def _compile(
        self,
        requirements: Sequence[str],
        kept: Mapping[str, str],
        indexes: Indexes,
        *,
        dependencies: bool,
        cached: bool = False,
    ) -> tuple[int, str, str]:
        """Run `uv pip compile`; its output file's old content is what it prefers."""
        uv, _ = installer()
        asked, output = self.work / "requirements.in", self.work / "requirements.txt"
        asked.write_text("".join(f"{text}\n" for text in requirements), "utf-8")
        output.write_text("".join(f"{name}=={version}\n" for name, version in sorted(kept.items())), "utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--no-color"]
        command += ["--no-progress", "--python-version", self.python, "--python-platform", self._baseline()]
        # Without it uv asks every interpreter of the host, which takes longer than the rest.
        command += ["--python", sys.executable]
        command += ["--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
        command += [] if dependencies else ["--no-deps"]
        command += ["--offline"] if self.offline or cached else []
        command += ["--upgrade"] if EVERYTHING in self.upgrade else []
        for name in sorted(self.upgrade - {EVERYTHING}):
            command += ["--upgrade-package", str(canonicalize_name(name))]
        command += ["--output-file", str(output), str(asked)]
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=self.work,
                env=_environment(indexes),
                timeout=_DEADLINE,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NotCheckedError("uv cannot resolve the requirements", why=type(error).__name__) from error
        return ran.returncode, output.read_text("utf-8"), ran.stderr

    def _baseline(self) -> str:
        """The platform as uv names it."""
        machine = self.platform.removeprefix("linux-")
        return f"{machine}-manylinux_{(self.glibc or _GLIBC).replace('.', '_')}"

    def _fault(self, request: EnvironmentRequest, faults: str) -> Exception:
        why = " ".join(_hidden(faults, self.indexes).split())[:_LONGEST_WHY]
        what = f"environment {request.name} cannot be resolved"
        if self.offline or _UNREACHED.search(faults):
            todo = "run without --offline" if self.offline else "make the package index reachable"
            return NotCheckedError(what, where=self.where, why=why, todo=todo)
        if faulty := self._uncovered(request):
            return InvalidDocumentError(
                what,
                where=self.where,
                why=told(faulty, python=self.python, platform=self.platform),
                todo="name a version or an index that has a wheel for this platform",
            )
        return InvalidDocumentError(what, where=self.where, why=why)

    def _uncovered(self, request: EnvironmentRequest) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Packages that are asked for by name and have wheels for other platforms only."""
        found = []
        for text in (*request.requirements, *request.without_dependencies):
            there = self.releases.offered(Requirement(text).name, hints=request.indexes)
            found.append(uncovered(text, there, python=self.python, platform=self.platform))
        return tuple(each for each in found if each is not None)


def _pins(output: str, *, where: str) -> dict[str, str]:
    found = {}
    for line in output.splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _PIN.match(text)
        if match is None:
            raise InvalidDocumentError(f"{shown(text)} is no exact version", where=where)
        found[str(canonicalize_name(match[1]))] = match[2]
    return found


def _environment(indexes: Indexes) -> dict[str, str]:
    """The process's own variables with exactly these indexes; URLs may carry passwords, so they are no arguments."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_")) or name in _KEPT}
    if indexes.index_urls:
        env["UV_DEFAULT_INDEX"] = indexes.index_urls[0]
        env["UV_INDEX"] = " ".join(indexes.index_urls[1:])
    else:
        env["UV_NO_INDEX"] = "1"
    env["UV_FIND_LINKS"] = ",".join(indexes.find_links)
    env["UV_HTTP_TIMEOUT"] = str(max(int(indexes.timeout), 1))
    if indexes.cert is not None:
        env["SSL_CERT_DIR" if indexes.cert.is_dir() else "SSL_CERT_FILE"] = str(indexes.cert)
    if indexes.proxy:
        env["HTTPS_PROXY"] = env["HTTP_PROXY"] = indexes.proxy
    return {name: value for name, value in env.items() if value}


def _hidden(text: str, indexes: Indexes) -> str:
    """What uv says, without what only this user may see."""
    for url in (*indexes.index_urls, *indexes.find_links):
        text = text.replace(url, redacted(url))
    return text


def versions_of(packages: Iterable[tuple[Artefact, ...]]) -> dict[str, str]:
    """Project to version."""
    return {wheels[0].project: wheels[0].version for wheels in packages if wheels}
