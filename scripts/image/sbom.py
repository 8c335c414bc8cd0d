"""Writes the bill of materials: `python -m image.sbom OUTPUT --name N --version V --status FOLDER --site FOLDER…`.

Purpose: one CycloneDX document in the image that names every Python distribution and Debian package in it. Invariant:
the same contents give the same bytes; its serial number is derived from them, and it carries no time.
"""

import argparse
import json
import platform
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

NAMESPACE = uuid.UUID("6f6b3f0e-6d0c-5d7e-9a35-0d4f1a4c9a10")
SPEC = "1.6"


def main() -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(prog="python -m image.sbom", description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--status", type=Path, required=True, help="folder of dpkg's entries, one file a package")
    parser.add_argument("--site", type=Path, action="append", default=[], help="folder of installed distributions")
    options = parser.parse_args()
    found = document(options.name, options.version, options.status, options.site)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


def document(name: str, version: str, status: Path, sites: list[Path]) -> dict[str, Any]:
    """Return the document as JSON: the image as its subject, and every part once, sorted."""
    parts = [_interpreter(), *map(_distribution, distributions(path=[str(site) for site in sites])), *_packages(status)]
    components = sorted({part["purl"]: part for part in parts}.values(), key=lambda part: str(part["purl"]))
    serial = uuid.uuid5(NAMESPACE, json.dumps([name, version, components], sort_keys=True))
    subject = {"type": "container", "name": name, "version": version, "bom-ref": f"{name}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def _interpreter() -> dict[str, Any]:
    version = platform.python_version()
    return _component("application", "cpython", version, f"pkg:generic/cpython@{version}", "PSF-2.0")


def _distribution(found: Distribution) -> dict[str, Any]:
    name = found.metadata["Name"].lower().replace("_", "-").replace(".", "-")
    licence = found.metadata.json.get("license_expression")
    return _component("library", name, found.version, f"pkg:pypi/{name}@{found.version}", licence)


def _packages(status: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(status.iterdir()):
        fields = dict(line.split(": ", 1) for line in path.read_text("utf-8").splitlines() if _is_field(line))
        version, architecture = fields["Version"], fields["Architecture"]
        purl = f"pkg:deb/debian/{fields['Package']}@{version}?arch={architecture}"
        yield _component("library", fields["Package"], version, purl, None)


def _is_field(line: str) -> bool:
    return not line.startswith(" ") and ": " in line


def _component(kind: str, name: str, version: str, purl: str, licence: object) -> dict[str, Any]:
    component: dict[str, Any] = {"type": kind, "name": name, "version": version, "purl": purl, "bom-ref": purl}
    return component | ({"licenses": [{"expression": licence}]} if licence else {})


if __name__ == "__main__":
    main()
