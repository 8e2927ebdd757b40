"""Tests of docker-compose.yml, Dockerfile and .env.example, which they read without Docker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name

from backend.queue import QUEUES
from backend.settings import Settings
from worker.app import create_app

ROOT = Path(__file__).resolve().parents[2]
ENDS = {"migrate"}  # a service that ends has no health, only an exit code


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def test_the_deployment_has_its_parts(services: dict[str, dict[str, Any]]) -> None:
    assert set(services) == {
        "postgres",
        "redis",
        "migrate",
        "api",
        "worker",
        "simulator",
        "forecaster",
        "beat",
    }


def test_every_service_that_stays_up_says_whether_it_is_healthy(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in set(services) - ENDS:
        check = services[name]["healthcheck"]
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert {"interval", "timeout", "retries"} <= set(check), name


def test_every_service_waits_until_what_it_needs_is_healthy_or_has_ended_well(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in set(services) - {"postgres", "redis"}:
        needs = services[name]["depends_on"]
        assert "postgres" in needs
        for other, how in needs.items():
            assert how["condition"] == (
                "service_completed_successfully" if other in ENDS else "service_healthy"
            )
    for name in ("api", "worker", "simulator", "forecaster", "beat"):
        assert set(services[name]["depends_on"]) == {"postgres", "redis", "migrate"}


def test_only_the_services_without_a_name_or_port_of_their_own_are_scaled(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in ("worker", "simulator"):
        assert not {"container_name", "ports"} & set(services[name])


def test_together_the_workers_serve_every_queue(services: dict[str, dict[str, Any]]) -> None:
    served = {
        services[name]["command"][services[name]["command"].index("-Q") + 1]
        for name in ("worker", "simulator", "forecaster")
    }
    assert served == set(QUEUES)


def test_one_beat_and_no_worker_that_beats_too(services: dict[str, dict[str, Any]]) -> None:
    assert "beat" in services["beat"]["command"]
    assert all(
        "-B" not in services[name]["command"] for name in ("worker", "simulator", "forecaster")
    )


def test_forecasts_take_one_core_at_most(services: dict[str, dict[str, Any]]) -> None:
    assert "--concurrency=1" in services["forecaster"]["command"]


def test_periodic_messages_outlive_a_minute_between_the_clocks_of_two_machines() -> None:
    schedule = create_app(Settings(_env_file=None, demo_jobs=True)).conf.beat_schedule

    assert set(schedule) == {"rounds", "operations", "housekeeping", "demo"}
    assert {name for name, entry in schedule.items() if entry["options"]["expires"] < 60} == set()


def test_every_setting_that_is_given_exists(services: dict[str, dict[str, Any]]) -> None:
    known = {f"MAAT_{name.upper()}" for name in Settings.model_fields}
    for service in services.values():
        given = {name for name in service.get("environment", {}) if name.startswith("MAAT_")}
        assert given <= known
    named = set(re.findall(r"MAAT_\w+", (ROOT / ".env.example").read_text())) - {
        "MAAT_PUBLISHED_PORT"
    }
    assert named <= known


def test_a_setting_in_env_reaches_every_process_of_maat(
    services: dict[str, dict[str, Any]],
) -> None:
    """Compose itself reads .env only for what the compose file names."""
    fixed = {"MAAT_DATA_DIR", "MAAT_DATABASE_URL", "MAAT_BROKER_URL"}
    for name in ("migrate", "api", "worker", "simulator", "forecaster", "beat"):
        assert services[name]["env_file"] == ".env"
        for setting, value in services[name]["environment"].items():
            if setting.startswith("MAAT_") and setting not in fixed:
                assert value.startswith(f"${{{setting}:-")


def test_every_setting_is_listed_with_its_default() -> None:
    listed = dict(
        re.findall(r"^# MAAT_(\w+)=(.*)$", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
    )
    assert {name.lower() for name in listed} == set(Settings.model_fields)
    shown_only = {
        "DATA_DIR",
        "DATABASE_URL",
        "BROKER_URL",
        "SECRET_KEY",
        "OIDC_CLIENT_SECRET_FILE",
        "DATA",
        "TRUSTED_PROXIES",
        "OWN_POLICIES",
    }  # a path as people write it, and examples of what is empty
    given = {name.lower(): value for name, value in listed.items() if name not in shown_only}
    defaults = {
        name: str(Settings.model_fields[name].default).lower().removesuffix(".0") for name in given
    }
    assert {name: value.lower() for name, value in given.items()} == defaults


def test_no_password_stands_in_the_files(services: dict[str, dict[str, Any]]) -> None:
    given = services["postgres"]["environment"]
    assert given["ROLE_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert given["POSTGRES_PASSWORD"].startswith("${POSTGRES_ADMIN_PASSWORD:?")
    example = (ROOT / ".env.example").read_text()
    assert "\nPOSTGRES_PASSWORD=\n" in example
    assert "\nPOSTGRES_ADMIN_PASSWORD=\n" in example
    assert "\nREDIS_PASSWORD=\n" in example


def test_redis_has_a_password_and_its_health_asks_with_it(
    services: dict[str, dict[str, Any]],
) -> None:
    password = "${REDIS_PASSWORD:?set it in .env}"
    assert password not in " ".join(services["redis"]["command"])  # which all processes see
    assert services["redis"]["environment"]["REDISCLI_AUTH"] == password
    for name in ("migrate", "api", "worker", "simulator", "forecaster", "beat"):
        assert services[name]["environment"]["MAAT_BROKER_URL"].startswith(f"redis://:{password}@")


def test_every_service_has_limits_and_logs_that_do_not_grow_for_ever(
    services: dict[str, dict[str, Any]],
) -> None:
    for name, service in services.items():
        assert service["mem_limit"], name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert "/tmp" in service["tmpfs"], name


def test_what_must_outlive_a_container_is_on_a_volume_that_belongs_to_maat(
    services: dict[str, dict[str, Any]],
) -> None:
    declared = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["volumes"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    for name in ("migrate", "api", "worker", "simulator", "forecaster", "beat"):
        mounts = dict(volume.split(":") for volume in services[name]["volumes"])
        assert set(mounts) == {"data", "reports", "backups"} <= set(declared)
        assert services[name]["environment"]["MAAT_REPORTS_FOLDER"].endswith(
            f"{mounts['reports']}}}"
        )
        for folder in mounts.values():
            assert re.search(rf"install -d -o maat .*{folder}( |$)", dockerfile, re.MULTILINE)


def test_the_image_has_the_programs_of_the_databases_version(
    services: dict[str, dict[str, Any]],
) -> None:
    (version,) = re.findall(r"postgres:(\d+)", services["postgres"]["image"])
    assert f"postgresql-client-{version}" in (ROOT / "Dockerfile").read_text()


def test_every_image_that_is_pulled_is_pinned_by_version_and_digest(
    services: dict[str, dict[str, Any]],
) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    given = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.MULTILINE))
    bases = re.findall(r"^FROM (?:--\S+ )*(\S+)", dockerfile, re.MULTILINE)
    stages = re.findall(r"^FROM .+ AS (\w+)$", dockerfile, re.MULTILINE)
    copied = re.findall(r"--from=(\S+)", dockerfile)
    pulled = {one["image"] for one in services.values() if "build" not in one}
    pulled |= {re.sub(r"\$\{(\w+)\}", lambda name: given[name[1]], base) for base in bases}
    assert {image.split(":")[0] for image in pulled} == {"postgres", "redis", "python"}
    assert set(copied) <= set(stages)
    for image in pulled:
        assert re.fullmatch(r"\w+:\d+(\.\d+)+-[\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_the_image_takes_packages_by_their_hashes_and_the_versions_that_tests_run_with() -> None:
    tested, shipped = (_locked(f"requirements{of}.lock") for of in ("", "-server"))
    assert {"fastapi", "psycopg", "celery", "setuptools"} <= set(shipped)
    assert not {"pytest", "playwright", "mypy"} & set(shipped)
    for name, pinned in shipped.items():
        assert tested[name] == pinned
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pinned), name
    installs = re.findall(r"pip install (.+?)(?: \\)?$", (ROOT / "Dockerfile").read_text(), re.M)
    assert installs == [
        "--require-hashes -r requirements-server.lock",
        "--no-deps --no-build-isolation --editable .",
    ]


def test_the_bill_of_materials_is_of_what_the_image_installs_and_names_licences() -> None:
    bill = json.loads((ROOT / "sbom.cdx.json").read_text())
    listed = {canonicalize_name(part["name"]): part for part in bill["components"]}
    locked = {
        canonicalize_name(name): pin for name, pin in _locked("requirements-server.lock").items()
    }
    assert {name: part["version"] for name, part in listed.items()} == {
        name: re.search(r"==([^ ;]+)", pin).group(1)  # type: ignore[union-attr]
        for name, pin in locked.items()
    }
    without = {name for name, part in listed.items() if not part.get("licenses")}
    assert without <= {"kaleido", "logistro", "qdldl"}  # their packages' metadata names none
    assert bill["metadata"]["component"]["name"] == "maat"


def _locked(file: str) -> dict[str, str]:
    """Return what a lock says of each package: version and hashes."""
    text = re.sub(r"^ *#.*\n", "", (ROOT / file).read_text(), flags=re.MULTILINE)
    entries = text.replace("\\\n", " ").splitlines()
    return {entry.split("==")[0]: " ".join(entry.split()) for entry in entries if "==" in entry}


def test_the_image_runs_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert "USER maat" in lines
    assert lines.index("USER maat") > max(
        i for i, line in enumerate(lines) if line.startswith("FROM")
    )
