#!/usr/bin/env python3
"""Prints what a program consists of, as SPDX 2.3 in JSON.

usage: sbom.py NAME VERSION PROGRAM TRACE... < HEADERS

PROGRAM is the file itself: its shared libraries and its hash are read from it. TRACE is what the linker said with
--trace when it made that program: each archive that it took something from. HEADERS are paths of headers that Muster's
own sources include, for libraries that consist of nothing else. Each file is looked up in dpkg's database, which knows
its package and version. The date is SOURCE_DATE_EPOCH's.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys


def names_of(path):
    """What dpkg may know a file by: packages of a merged /usr may still have it in /lib."""
    real = os.path.realpath(path)
    return [path, real, path.removeprefix("/usr"), real.removeprefix("/usr")]


def packages_of(paths):
    """The Debian package that each file belongs to; those that belong to none are missing."""
    wanted = sorted({name for path in paths for name in names_of(path)})
    # It fails if one of them is not found, and prints the others all the same.
    text = subprocess.run(["dpkg", "-S", *wanted], capture_output=True, text=True).stdout
    owners = {}
    for line in text.splitlines():
        package, found, name = line.partition(": ")
        if found and not package.startswith("diversion "):
            owners[name] = package.split(",")[0]
    return {path: owners[name] for path in paths for name in reversed(names_of(path)) if name in owners}


def facts_of(package):
    form = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}"
    text = subprocess.run(["dpkg-query", "-W", "-f", form, package], capture_output=True, text=True, check=True).stdout
    return text.split("\t")


def shared_libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(/\S+) \(0x", text))


def main():
    name, version, program = sys.argv[1:4]
    archives = set()
    for trace in sys.argv[4:]:
        with open(trace, encoding="utf-8") as lines:
            # Absolute paths: Muster's own objects have relative ones. "/usr/lib/x86_64-linux-gnu/libz.a(crc32.o)",
            # or "(/usr/lib/x86_64-linux-gnu/libz.a)crc32.o".
            archives |= {path for line in lines for path in re.findall(r"^\(?(/[^\s()]+\.(?:a|o))", line)}
    hows = {}
    for how, files in (
        ("STATIC_LINK", archives),
        ("DYNAMIC_LINK", shared_libraries(program)),
        ("HEADERS", {line.strip() for line in sys.stdin if line.strip()}),
    ):
        paths = sorted({os.path.normpath(path) for path in files})
        packages_by_path = packages_of(paths)
        for path in paths:
            package = packages_by_path.get(path)
            if package is None:
                sys.exit(f"sbom: {path} belongs to no Debian package, so its version is not known")
            # Whoever has the archive has the headers as well.
            hows.setdefault(package, how)

    with open(program, "rb") as binary:
        digest = hashlib.sha256(binary.read()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    me = f"SPDXRef-{name}"
    packages = [{
        "SPDXID": me,
        "name": name,
        "versionInfo": version,
        "primaryPackagePurpose": "APPLICATION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseDeclared": "Apache-2.0",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
    }]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": me}]
    for key, how in sorted(hows.items()):
        package, its_version, source, source_version, architecture = facts_of(key)
        reference = "SPDXRef-deb-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        packages.append({
            "SPDXID": reference,
            "name": package,
            "versionInfo": its_version,
            "primaryPackagePurpose": "LIBRARY",
            "supplier": "Organization: Debian",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "sourceInfo": f"built from Debian's source package {source} {source_version}",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{package.replace('+', '%2B')}@{its_version.replace('+', '%2B')}"
                                    f"?arch={architecture}",
            }],
        })
        relation = {"spdxElementId": me, "relationshipType": "STATIC_LINK" if how == "HEADERS" else how,
                    "relatedSpdxElement": reference}
        if how == "HEADERS":
            relation["comment"] = "compiled in from its headers"
        relations.append(relation)
    json.dump({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{digest[:16]}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: packaging/sbom.py"]},
        "packages": packages,
        "relationships": relations,
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
