"""The calls of `maat.client.calls` as methods of both clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from maat.api.fields import Page
from maat.client import calls
from maat.client.calls import Call

P = ParamSpec("P")
Answer = TypeVar("Answer")
Shown = TypeVar("Shown")
Item = TypeVar("Item")


class _Direct(Protocol):
    """Sends a call at once, as `Client` does."""

    is_awaited: ClassVar[bool]

    def send(self, call: Call[Answer]) -> Answer: ...


class _Awaited(Protocol):
    """Sends a call when it is awaited, as `AsyncClient` does."""

    is_awaited: ClassVar[bool]

    async def send(self, call: Call[Answer]) -> Answer: ...


class _Method(Generic[P, Shown]):
    """A call as a method: sent at once by a `Client`, awaited with an `AsyncClient`.

    `show`: selects the part of the answer to return; by default all of it.
    """

    @overload
    def __init__(self, make: Callable[P, Call[Shown]]) -> None: ...
    @overload
    def __init__(
        self, make: Callable[P, Call[Answer]], show: Callable[[Answer], Shown]
    ) -> None: ...
    def __init__(
        self, make: Callable[P, Call[Any]], show: Callable[[Any], Shown] | None = None
    ) -> None:
        self._make, self._show = make, show or (lambda answer: cast(Shown, answer))

    @overload
    def __get__(self, client: _Direct, owner: type | None = None) -> Callable[P, Shown]: ...
    @overload
    def __get__(
        self, client: _Awaited, owner: type | None = None
    ) -> Callable[P, Awaitable[Shown]]: ...
    def __get__(self, client: Any, owner: type | None = None) -> Callable[P, Any]:
        if client.is_awaited:

            @wraps(self._make)
            async def awaited_call(*args: P.args, **kwargs: P.kwargs) -> Shown:
                return self._show(await client.send(self._make(*args, **kwargs)))

            return awaited_call

        @wraps(self._make)
        def direct_call(*args: P.args, **kwargs: P.kwargs) -> Shown:
            return self._show(client.send(self._make(*args, **kwargs)))

        return direct_call


def _items(page: Page[Item]) -> list[Item]:
    return page["items"]


class Methods:
    """The calls that both clients have as methods.

    `is_awaited`: whether a method returns an awaitable of its answer.
    """

    is_awaited: ClassVar[bool] = False

    health = _Method(calls.health)
    ready = _Method(calls.ready)
    me = _Method(calls.me)
    change_own_password = _Method(calls.change_own_password)
    sessions = _Method(calls.sessions, _items)
    end_session = _Method(calls.end_session)
    end_other_sessions = _Method(calls.end_other_sessions)
    tenants = _Method(calls.tenants, _items)
    tenant = _Method(calls.tenant)
    create_tenant = _Method(calls.create_tenant)
    change_tenant = _Method(calls.change_tenant)
    remove_tenant = _Method(calls.remove_tenant)
    users = _Method(calls.users, _items)
    user = _Method(calls.user)
    create_user = _Method(calls.create_user)
    change_user = _Method(calls.change_user)
    remove_user = _Method(calls.remove_user)
    set_password = _Method(calls.set_password)
    sign_out_user = _Method(calls.sign_out_user)
    token = _Method(calls.token)
    tokens = _Method(calls.tokens, _items)
    audit = _Method(calls.audit)
    audit_file = _Method(calls.audit_file)
    create_token = _Method(calls.create_token)
    revoke_token = _Method(calls.revoke_token)
    clusters = _Method(calls.clusters, _items)
    cluster = _Method(calls.cluster)
    create_cluster = _Method(calls.create_cluster)
    change_cluster = _Method(calls.change_cluster)
    cluster_state = _Method(calls.cluster_state)
    cluster_changes = _Method(calls.cluster_changes)
    slowdowns = _Method(calls.slowdowns, _items)
    reset_slowdowns = _Method(calls.reset_slowdowns)
    laboratory_use = _Method(calls.laboratory_use, _items)
    gpu_scores = _Method(calls.gpu_scores, _items)
    reset_gpu_scores = _Method(calls.reset_gpu_scores)
    model_evidence = _Method(calls.model_evidence, _items)
    reset_model_evidence = _Method(calls.reset_model_evidence)
    shared_models = _Method(calls.shared_models, _items)
    share_model = _Method(calls.share_model)
    unshare_model = _Method(calls.unshare_model)
    act_on_cluster = _Method(calls.act_on_cluster)
    preview_round = _Method(calls.preview_round)
    round_preview = _Method(calls.round_preview)
    nodes = _Method(calls.nodes)
    node = _Method(calls.node)
    add_nodes = _Method(calls.add_nodes, _items)
    change_node = _Method(calls.change_node)
    try_node_change = _Method(calls.try_node_change)
    drain_node = _Method(calls.drain_node)
    try_drain = _Method(calls.try_drain)
    restore_node = _Method(calls.restore_node)
    remove_node = _Method(calls.remove_node)
    try_node_removal = _Method(calls.try_node_removal)
    reservation = _Method(calls.reservation)
    reservations = _Method(calls.reservations, _items)
    reserve = _Method(calls.reserve)
    remove_reservation = _Method(calls.remove_reservation)
    quotas = _Method(calls.quotas)
    quota = _Method(calls.quota)
    set_quota = _Method(calls.set_quota)
    remove_quota = _Method(calls.remove_quota)
    fairness = _Method(calls.fairness)
    worst_fairness = _Method(calls.worst_fairness, _items)
    shares = _Method(calls.shares)
    recompute_fairness = _Method(calls.recompute_fairness)
    job_fairness = _Method(calls.job_fairness)
    skip_fairness = _Method(calls.skip_fairness)
    rounds = _Method(calls.rounds)
    round = _Method(calls.round_)
    jobs = _Method(calls.jobs)
    job = _Method(calls.job)
    submit_job = _Method(calls.submit_job)
    try_job = _Method(calls.try_job)
    submit_array = _Method(calls.submit_array)
    submit_jobs = _Method(calls.submit_jobs)
    add_demo_jobs = _Method(calls.add_demo_jobs)
    cancel_job = _Method(calls.cancel_job)
    pause_job = _Method(calls.pause_job)
    hold_job = _Method(calls.hold_job)
    resume_job = _Method(calls.resume_job)
    change_job = _Method(calls.change_job)
    clone_job = _Method(calls.clone_job)
    change_jobs = _Method(calls.change_jobs)
    explanation = _Method(calls.explanation)
    job_command = _Method(calls.job_command)
    attempts = _Method(calls.attempts, _items)
    samples = _Method(calls.samples, _items)
    gradients = _Method(calls.gradients, _items)
    belief = _Method(calls.belief)
    reset_belief = _Method(calls.reset_belief)
    dismiss_flag = _Method(calls.dismiss_flag)
    log = _Method(calls.log)
    log_file = _Method(calls.log_file)
    usage = _Method(calls.usage)
    prices = _Method(calls.prices, _items)
    price = _Method(calls.price)
    add_price = _Method(calls.add_price)
    change_price = _Method(calls.change_price)
    remove_price = _Method(calls.remove_price)
    measurement = _Method(calls.measurement)
    measurement_figures = _Method(calls.measurement_figures)
    measurement_files = _Method(calls.measurement_files)
    measurements = _Method(calls.measurements, _items)
    upload_measurement = _Method(calls.upload_measurement)
    delete_measurement = _Method(calls.delete_measurement)
    import_trace = _Method(calls.import_trace)
    csv_columns = _Method(calls.csv_columns)
    import_cluster = _Method(calls.import_cluster)
    simulate = _Method(calls.simulate)
    simulation = _Method(calls.simulation)
    figures = _Method(calls.figures)
    comparison = _Method(calls.comparison)
    run_result = _Method(calls.run_result)
    job_forecast = _Method(calls.job_forecast)
    ask_forecast = _Method(calls.ask_forecast)
    forecast = _Method(calls.forecast)
    forecasts = _Method(calls.forecasts, _items)
    calibration = _Method(calls.calibration)
    start_autoscaling = _Method(calls.start_autoscaling)
    start_tuning = _Method(calls.start_tuning)
    experiment = _Method(calls.experiment)
    experiments = _Method(calls.experiments, _items)
    start_sweep = _Method(calls.start_sweep)
    sweep = _Method(calls.sweep)
    sweeps = _Method(calls.sweeps)
    sweep_points = _Method(calls.sweep, lambda sweep: sweep["points"])
    sweep_rows = _Method(calls.sweep, lambda sweep: sweep["rows"])
    papers = _Method(calls.papers)
    reproductions = _Method(calls.reproductions)
    reproduction = _Method(calls.reproduction)
    start_reproduction = _Method(calls.start_reproduction)
    reproduced_item = _Method(calls.reproduced_item)
    reproduced_table = _Method(calls.reproduced_table)
    reproduction_report = _Method(calls.reproduction_report)
    report = _Method(calls.report)
    report_file = _Method(calls.report_file)
    report_files = _Method(calls.report_files)
    make_report = _Method(calls.make_report)
    reports = _Method(calls.reports, _items)
    kept_report = _Method(calls.kept_report)
    kept_report_file = _Method(calls.kept_report_file)
    delete_report = _Method(calls.delete_report)
    report_schedule = _Method(calls.report_schedule)
    report_schedules = _Method(calls.report_schedules, _items)
    schedule_report = _Method(calls.schedule_report)
    change_report_schedule = _Method(calls.change_report_schedule)
    unschedule_report = _Method(calls.unschedule_report)
    report_deliveries = _Method(calls.report_deliveries, _items)
    deliver_report = _Method(calls.deliver_report)
    retry_report_delivery = _Method(calls.retry_report_delivery)
    webhooks = _Method(calls.webhooks, _items)
    webhook = _Method(calls.webhook)
    create_webhook = _Method(calls.create_webhook)
    change_webhook = _Method(calls.change_webhook)
    remove_webhook = _Method(calls.remove_webhook)
    rotate_webhook_secret = _Method(calls.rotate_webhook_secret)
    send_webhook_test = _Method(calls.send_webhook_test)
    webhook_deliveries = _Method(calls.webhook_deliveries, _items)
    webhook_delivery = _Method(calls.webhook_delivery)
    redeliver = _Method(calls.redeliver)
    operations = _Method(calls.operations, _items)
    operation = _Method(calls.operation)
    cancel_operation = _Method(calls.cancel_operation)
