# The image of operator, workers and migrations. It starts from nothing and holds Python, what it loads, and the product:
# no shell, no package manager, nothing set-uid. Everything below / may be read-only; only /tmp is written to.
#   docker build --build-arg REVISION="$(git rev-parse HEAD)" --build-arg CREATED="$(git show -s --format=%cI HEAD)" .
# An image digest in PYTHON_IMAGE pins the base to the byte. e2e/images builds this same file where no Docker runs.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS tools
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY scripts/image/ image/

FROM tools AS dependencies
COPY requirements/runtime.txt requirements/
RUN python -m venv --without-pip /opt/partita \
 && python -m pip --python /opt/partita/bin/python install --no-compile --require-hashes --only-binary :all: --requirement requirements/runtime.txt \
 && rm -rf /opt/partita/lib/python3.11/site-packages/kubernetes/aio \
 && rm -f /opt/partita/bin/activate* /opt/partita/bin/Activate.ps1 \
 && python -m image.compiled /opt/partita/lib

FROM dependencies AS runtime
RUN python -m image.rootfs /rootfs --python --loads /opt/partita/lib --user partita:65532:/tmp

FROM tools AS wheel
COPY requirements/build.txt requirements/
RUN python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --require-hashes --only-binary :all: --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY crds/ crds/
COPY migrations/ migrations/
COPY operator/ operator/
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM dependencies AS product
ARG VERSION=0.1.0
COPY --from=wheel /wheels/ /wheels/
RUN python -m pip --python /opt/partita/bin/python install --no-compile --no-deps --no-index --root /product /wheels/*.whl \
 && python -m image.compiled /product/opt/partita/lib /product
COPY --from=runtime /rootfs/var/lib/dpkg/status.d/ /status/
RUN python -m image.sbom /product/usr/share/sbom/partita.cdx.json --name partita --version ${VERSION} --status /status \
    --site /opt/partita/lib/python3.11/site-packages --site /product/opt/partita/lib/python3.11/site-packages

FROM scratch
COPY --from=runtime /rootfs/ /
COPY --from=dependencies /opt/partita/ /opt/partita/
COPY --from=product /product/ /
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1980-01-01T00:00:00Z
ENV PATH=/opt/partita/bin HOME=/tmp LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
LABEL org.opencontainers.image.title="Partita" \
      org.opencontainers.image.description="Durable workflows for Kubernetes with PostgreSQL as the only state store." \
      org.opencontainers.image.source="https://github.com/partita/partita" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.partita.sbom.path="/usr/share/sbom/partita.cdx.json" \
      io.partita.sbom.format="CycloneDX-1.6"
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["partita"]
