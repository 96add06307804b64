# One image for every role, so that Ray and Python are of the same patch everywhere.
FROM python:3.11-slim
# KubeRay's health checks call wget
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements requirements
RUN pip install --no-cache-dir -r requirements/app.lock \
 && python -m venv /opt/comet && /opt/comet/bin/pip install --no-cache-dir -r requirements/comet.lock
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
