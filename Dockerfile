# One image for every process of Maat: migrate, api, worker, simulator and beat differ only in their command.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/maat
COPY pyproject.toml README.md ./
COPY maat ./maat
COPY backend ./backend
COPY worker ./worker
COPY frontend ./frontend
RUN /opt/maat/bin/pip install ".[server]"

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 maat && install -d -o maat /var/lib/maat
COPY --from=build /opt/maat /opt/maat
WORKDIR /srv/maat
COPY alembic.ini* ./
COPY alembic ./alembic
ENV PATH=/opt/maat/bin:$PATH PYTHONUNBUFFERED=1 MAAT_DATA_DIR=/var/lib/maat OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER maat
EXPOSE 8000
CMD ["uvicorn", "frontend.app:app", "--host", "0.0.0.0", "--port", "8000", "--timeout-graceful-shutdown", "5"]
