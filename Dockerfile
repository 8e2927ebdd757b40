# One image for every process of Maat: migrate, api, worker, simulator and beat differ only in their command.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /srv/maat
RUN python -m venv /opt/maat
COPY . .
# The versions of the lock file, without what only tests need. Editable: the migrations stand beside the packages, as in the source tree.
RUN sed -nE 's/^([A-Za-z0-9._-]+)(\[[^]]*\])?==([^ ;\\]+).*/\1==\3/p' requirements.lock > /tmp/versions.txt \
    && /opt/maat/bin/pip install --constraint /tmp/versions.txt --editable ".[server]"

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 maat && install -d -o maat /var/lib/maat
COPY --from=build /opt/maat /opt/maat
COPY --from=build /srv/maat /srv/maat
WORKDIR /srv/maat
ENV PATH=/opt/maat/bin:$PATH PYTHONUNBUFFERED=1 MAAT_DATA_DIR=/var/lib/maat OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER maat
EXPOSE 8000
CMD ["uvicorn", "frontend.app:app", "--host", "0.0.0.0", "--port", "8000", "--http", "backend.web.slow_senders:HttpProtocol", "--timeout-graceful-shutdown", "5", "--no-access-log"]
