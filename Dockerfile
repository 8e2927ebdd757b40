# One image for every process of Maat: migrate, api, worker, simulator and beat differ only in their command.
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /srv/maat
RUN python -m venv /opt/maat
COPY . .
# The versions of the lock file, without what only tests need. Editable: the migrations stand beside the packages, as in the source tree.
RUN sed -nE 's/^([A-Za-z0-9._-]+)(\[[^]]*\])?==([^ ;\\]+).*/\1==\3/p' requirements.lock > /tmp/versions.txt \
    && /opt/maat/bin/pip install --constraint /tmp/versions.txt --editable ".[server]"

FROM python:3.11-slim-bookworm
# pg_dump, pg_restore and psql of PostgreSQL 15, as in docker-compose.yml: `maat db` runs them.
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-client-15 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 10001 maat && install -d -o maat -m 0700 /var/lib/maat /var/lib/maat-reports /var/lib/maat-backups
COPY --from=build /opt/maat /opt/maat
COPY --from=build /srv/maat /srv/maat
WORKDIR /srv/maat
ENV PATH=/opt/maat/bin:$PATH PYTHONUNBUFFERED=1 MAAT_DATA_DIR=/var/lib/maat OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER maat
EXPOSE 8000
CMD ["uvicorn", "frontend.app:app", "--host", "0.0.0.0", "--port", "8000", "--http", "backend.web.slow_senders:HttpProtocol", "--no-proxy-headers", "--timeout-graceful-shutdown", "5", "--no-access-log"]
