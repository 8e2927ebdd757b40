# One image for every process of Maat: migrate, api, worker, simulator, forecaster and beat differ only in their command.
ARG PYTHON=python:3.11.17-slim-bookworm@sha256:2333bd330d12de02514770b3585cad313644316047cdee24a7acfdece6de6efb

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /srv/maat
RUN python -m venv /opt/maat
COPY requirements-server.lock .
RUN /opt/maat/bin/pip install --require-hashes -r requirements-server.lock
COPY . .
# Editable: the migrations stand beside the packages, as in the source tree. Compiled here, since no process may write there.
RUN /opt/maat/bin/pip install --no-deps --no-build-isolation --editable . \
    && /opt/maat/bin/python -m compileall -q --invalidation-mode unchecked-hash maat backend worker frontend alembic

FROM ${PYTHON}
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
