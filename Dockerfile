# One image for every role, so that Ray and Python are of the same patch everywhere.
# Newer digest: docker buildx imagetools inspect python:3.11-slim
FROM python:3.11.17-slim@sha256:45037981b62b34b44602584fccbc4d884d5f7dc92c7ee86bb38a698a79fe1e51
# KubeRay's health checks call wget
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements requirements
RUN python -m venv /opt/comet \
 && pip install --no-cache-dir --no-deps --require-hashes -r requirements/app.lock -r requirements/torch.lock \
 && /opt/comet/bin/pip install --no-cache-dir --no-deps --require-hashes \
    -r requirements/comet.lock -r requirements/torch.lock
COPY pyproject.toml hatch_build.py mkdocs.yml README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md ./
COPY docs docs
COPY platform platform
COPY workers workers
COPY webapp webapp
COPY migrations migrations
COPY studies studies
RUN pip install --no-cache-dir --no-deps . \
 && useradd --uid 10001 --create-home creamtea \
 && mkdir -p /artefacts /home/creamtea/data && chown -R creamtea /artefacts /home/creamtea
ENV CREAMTEA_COMET_PYTHON=/opt/comet/bin/python RAY_USAGE_STATS_ENABLED=0
USER creamtea
CMD ["creamtea", "--help"]
