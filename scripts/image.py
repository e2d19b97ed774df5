#!/usr/bin/env python3
"""image.py CERTIFICATES VERSION ARCHIVE PROGRAM ARCH [PROGRAM ARCH]: packs a static dyno as a container image (an OCI archive).

The image has one layer: the program, the certificates of authorities, /tmp, and /work, where runs are left. With two programs it
is an index of two images, of which each node takes its own. No registry and no container engine is asked. The archive also has the
manifest of `docker save`, of the first program, for engines that load nothing else. Times are SOURCE_DATE_EPOCH, so equal input
gives equal bytes.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 10001


def add(archive, name, epoch, data=None, mode=0o755):
    """Adds a file, or a folder where there are no data."""
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = epoch, mode
    if data is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = len(data)
    archive.addfile(entry, None if data is None else io.BytesIO(data))


def layer(program, certificates, epoch):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in ("etc", "etc/ssl", "etc/ssl/certs"):
            add(archive, folder, epoch)
        add(archive, "etc/ssl/certs/ca-certificates.crt", epoch, certificates, 0o644)
        add(archive, "tmp", epoch, mode=0o1777)
        add(archive, "usr", epoch)
        add(archive, "usr/bin", epoch)
        add(archive, "usr/bin/dyno", epoch, program)
        add(archive, "work", epoch, mode=0o1777)
    return raw.getvalue()


def main(certificates, version, archive, *programs):
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = f"localhost/dyno:{version}"
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": name}
    labels = {
        "org.opencontainers.image.title": "dyno",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    with open(certificates, "rb") as trusted:
        trusted = trusted.read()
    blobs = {}

    def blob(data, media_type, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(data), **more}

    def document(content):
        return json.dumps(content, indent=1).encode()

    def image(program, arch):
        """The image of one architecture: its manifest, its configuration and its layer."""
        with open(program, "rb") as file:
            plain = layer(file.read(), trusted, epoch)
        packed = blob(gzip.compress(plain, mtime=0), "layer.v1.tar+gzip")
        platform = {"architecture": ARCHITECTURES[arch], "os": "linux"}
        config = {
            "created": created,
            **platform,
            "config": {
                "User": str(USER),
                "Env": ["PATH=/usr/bin", "HOME=/work"],
                "Entrypoint": ["dyno"],
                "WorkingDir": "/work",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
            "history": [{"created": created, "created_by": "scripts/image.py"}],
        }
        config = blob(document(config), "config.v1+json")
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [packed],
            "annotations": labels,
        }
        return blob(document(manifest), "manifest.v1+json", platform=platform), config, packed

    def index_of(manifests):
        return {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}

    images = [image(*pair) for pair in zip(programs[::2], programs[1::2])]
    manifests = [manifest for manifest, _, _ in images]
    named = manifests[0] if len(manifests) == 1 else blob(document(index_of(manifests)), "index.v1+json")
    named["annotations"] = names
    _, config, packed = images[0]
    path = {entry["digest"]: "blobs/" + entry["digest"].replace(":", "/") for entry in (config, packed)}
    saved = {"Config": path[config["digest"]], "RepoTags": [name], "Layers": [path[packed["digest"]]]}
    with tarfile.open(archive, mode="w", format=tarfile.USTAR_FORMAT) as whole:
        add(whole, "oci-layout", epoch, document({"imageLayoutVersion": "1.0.0"}), 0o644)
        add(whole, "index.json", epoch, document(index_of([named])), 0o644)
        add(whole, "manifest.json", epoch, document([saved]), 0o644)
        for folder in ("blobs", "blobs/sha256"):
            add(whole, folder, epoch)
        for entry in sorted(blobs):
            add(whole, entry, epoch, blobs[entry], 0o644)


if __name__ == "__main__":
    if len(sys.argv) not in (6, 8) or any(arch not in ARCHITECTURES for arch in sys.argv[5::2]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
