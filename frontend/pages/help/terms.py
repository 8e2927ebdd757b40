"""The terms that the pages use, by what they are about. Texts that a page has too are that page's.

docs/glossary.md has more words; docs/policies.md, fairness.md, usage.md and forecasts.md the rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from frontend.components.fairness_rule import MEANINGS
from frontend.pages.calibration import WHAT as PROMISES
from frontend.pages.help.term import Formula, Seen, Term
from frontend.pages.job.ledger import HOW as RESTARTS
from maat.api.usage import FORMULAS
from maat.vocabulary import FairnessRule

_JOB = Seen("/jobs", "Jobs", "a job's page")
_BELIEF = Seen("/jobs", "Jobs", "what is believed, on a job's page")
_RESTARTS = Seen("/jobs", "Jobs", "the restarts, on a job's page")
_ROUNDS = Seen("/rounds", "Rounds")
_USAGE = Seen("/usage", "Usage & cost")
_FAIRNESS = Seen("/fairness", "Fairness")
_SIMULATE = Seen("/simulate", "Simulate", "the results of a simulation")
_SUBMIT = Seen("/submit", "Submit")
_QUOTAS = Seen("/admin?tab=quotas", "Admin", "quotas")

_SPEED = (
    Term(
        "throughput",
        "Throughput",
        "How many samples a job processes each second in a configuration.",
        (_SUBMIT, _BELIEF),
        (
            Formula("throughput = M / T", means="M: total batch size; T: seconds of one step"),
            Formula(
                "T = s T_{grad} + (T_{grad}^{γ} + T_{sync}^{γ})^{1/γ}",
                means="s: accumulation steps; T_{grad}: forward and backward pass; T_{sync}: "
                "synchronisation of gradients; γ: how far the two overlap",
            ),
        ),
        source="Pollux eq. 8 to 11",
        also=("samples per second", "step time"),
    ),
    Term(
        "efficiency",
        "Statistical efficiency",
        "What a sample is worth in a larger batch, against a sample at the initial batch size.",
        (_BELIEF, _USAGE),
        (
            Formula(
                "efficiency(M) = (φ + M_{0}) / (φ + M)",
                means="φ: gradient noise scale; M_{0}: initial batch size; M: total batch size",
            ),
        ),
        source="Pollux eq. 6",
    ),
    Term(
        "noise-scale",
        "Gradient noise scale",
        "How noisy a job's gradients are, in samples: the larger it is, the less a larger batch "
        "wastes.",
        (_BELIEF,),
        (
            Formula(
                "φ = M_{0} var / sqr",
                means="var: variance of the gradient at the initial batch size M_{0}; sqr: its "
                "squared norm",
            ),
        ),
        source="Pollux eq. 5",
        also=("phi",),
    ),
    Term(
        "goodput",
        "Goodput",
        "How much useful work a job does each second: samples, each counted for what it teaches.",
        (_ROUNDS, _JOB, _SUBMIT),
        (Formula("goodput = throughput × efficiency(M)", means="M: total batch size"),),
        source="Pollux eq. 4 and 13",
        more="It is in effective samples per second. Of a configuration it is that of the best "
        "batch size.",
    ),
)

_TIMES = (
    Term(
        "jct",
        "JCT",
        "The time from a job's submission to its finish.",
        (_SIMULATE, _FAIRNESS, Seen("/sweeps", "Sweeps")),
        (Formula("JCT = finish - submission"),),
        more="In the fairness of a live cluster, time for which a job was paused does not count.",
        also=("job completion time",),
    ),
    Term(
        "makespan",
        "Makespan",
        "The time from the first submission of a trace to the last finish.",
        (_SIMULATE, Seen("/sweeps", "Sweeps")),
        (Formula("makespan = last finish - first submission"),),
    ),
    Term(
        "queueing-delay",
        "Queueing delay",
        "How long a job waits for its first GPUs.",
        (_SIMULATE, _USAGE),
        (Formula("queueing delay = first GPUs - submission"),),
        also=("wait",),
    ),
    Term(
        "contention",
        "Contention",
        "How many jobs are active at a time, running or waiting.",
        (_SIMULATE, _FAIRNESS),
        (
            Formula("n(t) = jobs that are active at t", of="at a time"),
            Formula(
                "n_{avg} = 1 / (end - begin) × ∫ n(t) dt",
                of="mean over a job's life",
                means="In a simulation it is the mean over rounds.",
            ),
        ),
    ),
)

_RHO_FORMULAS: Mapping[FairnessRule, tuple[str, str]] = {
    FairnessRule.MEAN_OF_RATIOS: (
        "ρ = Σ_{g} N_{g} / N × (JCT / JCT_{g})",
        "Sia eq. 6; the share as in its published script",
    ),
    FairnessRule.RATIO_TO_MEAN: (
        "ρ = JCT / (Σ_{g} N_{g} / N × JCT_{g})",
        "Sia's published script; never larger than the first",
    ),
    FairnessRule.SHARE_OF_TYPE: (
        "ρ = Σ_{g} N_{g} / N × (JCT / JCT_{g})",
        "Sia section 5.5, taken literally",
    ),
}

_FAIR = (
    Term(
        "rho",
        "Finish-time fairness ρ",
        "How long a job took, against the time that it would have taken alone on an equal share "
        "of the cluster; above 1, the share would have been better.",
        (_FAIRNESS, _SIMULATE, Seen("/jobs", "Jobs", "the page of a job that has ended")),
        tuple(
            Formula(text, of=rule.value, means=f"Compares {MEANINGS[rule]}. {source}.")
            for rule, (text, source) in _RHO_FORMULAS.items()
        ),
        source="Sia section 5.5, eq. 6",
        more="N: GPUs of the cluster; N_{g}: those of type g; JCT_{g}: the job's JCT alone on its "
        "share of type g; n: active jobs, averaged over its life.",
        also=("rho", "unfair", "FTF"),
    ),
    Term(
        "deserved-share",
        "Deserved share",
        "The GPUs that a tenant would hold if all were divided by weight, and nobody got more "
        "than it can use.",
        (_FAIRNESS,),
        (
            Formula("deserved_{k} = min(D_{k}, w_{k} × level)"),
            Formula(
                "Σ_{k} deserved_{k} = min(N, Σ_{k} D_{k})",
                means="D_{k}: GPUs that the jobs of tenant k could use; w_{k}: its weight; N: GPUs "
                "in service; one level for all",
            ),
        ),
        source="max-min fairness",
    ),
    Term(
        "jain",
        "Jain's index",
        "How equally tenants hold what they deserve: 1 if all alike, 1 / n if one has everything.",
        (Seen("/fairness", "Fairness", "Jain's index over time"),),
        (
            Formula(
                "J = (Σ x)^{2} / (n Σ x^{2})",
                means="x: GPUs held over GPUs deserved, of each of n tenants that deserve some",
            ),
        ),
        also=("Jain index",),
    ),
)

_HOURS = (
    Term(
        "allocated",
        "GPU-hours allocated",
        "The time for which jobs hold GPUs.",
        (_USAGE, Seen("/reports", "Reports")),
        (Formula(f"allocated = {FORMULAS['allocated']}"),),
    ),
    Term(
        "used",
        "GPU-hours used",
        "What is left of the allocated hours without measuring and restarting.",
        (_USAGE,),
        (Formula(f"used = {FORMULAS['used']}"),),
    ),
    Term(
        "lost",
        "GPU-hours lost",
        "Used hours that a failure undid.",
        (_USAGE,),
        (Formula(f"lost = {FORMULAS['lost']}"),),
    ),
    Term(
        "useful",
        "GPU-hours useful",
        "Used hours that brought training forward, each counted for what its samples taught.",
        (_USAGE, Seen("/reports", "Reports")),
        (
            Formula(f"useful = {FORMULAS['useful']}"),
            Formula("useful share = useful / allocated"),
        ),
    ),
    Term(
        "idle",
        "GPU-hours idle",
        "The time for which usable GPUs are held by no job.",
        (_USAGE,),
        (Formula(f"idle = {FORMULAS['idle']}"),),
    ),
    Term(
        "utilisation",
        "Utilisation",
        "The share of the usable GPU time that jobs hold.",
        (_USAGE, Seen("/reports", "Reports")),
        (Formula(f"utilisation = {FORMULAS['utilisation']}"),),
        also=("utilization",),
    ),
)

_DECISIONS = (
    Term(
        "round",
        "Round",
        "One decision about a cluster, at a numbered time: what each job gets until the next.",
        (_ROUNDS, Seen("/", "Overview", "what the last round changed")),
        no_formula="it is a decision, and no figure",
    ),
    Term(
        "policy",
        "Policy",
        "Decides how much each job gets: GPU type, GPU count and batch size.",
        (_ROUNDS, Seen("/simulate", "Simulate"), Seen("/cluster", "Cluster", "what if")),
        no_formula="each policy has its own; docs/policies.md has them",
    ),
    Term(
        "placer",
        "Placer",
        "Decides on which GPUs a job runs, once the policy has said how many.",
        (Seen("/cluster", "Cluster"), Seen("/simulate", "Simulate")),
        no_formula="each placer has its own rule; docs/policies.md has them",
    ),
    Term(
        "price",
        "Price of a GPU type (dual)",
        "About how much the objective of a round would grow with one more GPU of the type.",
        (_ROUNDS, Seen("/reports", "Reports", "what to buy")),
        (
            Formula(
                "l minimises Σ_{i} max(0, max_{j} (v_{ij} - l · a_{ij})) + l · c",
                of="price of a round",
                means="l: prices of all limits; v_{ij}: value of configuration j to job i; "
                "a_{ij}: places that it takes; c: places that there are",
            ),
            Formula(
                "worth_{t} = Σ (price_{t} × seconds until the next round) / seconds with a price",
                of="worth of one more GPU, over rounds",
            ),
        ),
        source="Lagrangian dual; docs/solver.md",
        more="It is in units of the objective, not of money; policies that solve no programme have "
        "none.",
        also=("dual variable", "shadow price", "worth of one more GPU"),
    ),
    Term(
        "gap",
        "Gap",
        "How far at most the decision of a round is below the best one.",
        (_ROUNDS,),
        (
            Formula(
                "gap = (bound - objective) / bound",
                means="bound: proved to be above every decision; objective: value of this one",
            ),
        ),
        also=("certificate",),
    ),
    Term(
        "preemption",
        "Preemption",
        "All GPUs of a running job are taken away; it waits, and goes on from its checkpoint.",
        (_JOB, _ROUNDS),
        no_formula="it is an event, and no figure",
        also=("preempt", "resume"),
    ),
    Term(
        "restart",
        "Restart cost",
        "The time for which a job stands still to save, stop, start and restore when its GPUs "
        "change.",
        (_RESTARTS, _SIMULATE, _USAGE),
        (
            Formula(
                "cost in GPU-hours = hours that it stood still × GPUs that it then held", of="cost"
            ),
            Formula(
                "r = max(T - N S, 0) / (T + S)",
                of="restart factor, the discount on moving a job",
                means="T: age of the job; N: restarts so far; S: seconds of one. Sia eq. 3.",
            ),
        ),
        source="Sia eq. 3",
        also=("restart seconds",),
    ),
    Term(
        "break-even",
        "Break-even of a restart",
        "How long a job must run on its new GPUs until the restart has paid.",
        (_RESTARTS,),
        (
            Formula(
                "t = rate_{before} × stood / (rate_{after} - rate_{before})",
                means="stood: time for which it stood still; rates: effective samples per second. "
                "It never pays where the rate after is not above the rate before.",
            ),
        ),
        more=RESTARTS,
        also=("pays after",),
    ),
)

_FORECASTS = (
    Term(
        "quantile",
        "P50 and P90 of a forecast",
        "The time by which the job starts, or ends, in five or in nine of ten futures that are "
        "played.",
        (_JOB, _SUBMIT, Seen("/cluster", "Cluster", "what if")),
        (
            Formula(
                "P_{q} = the k-th smallest of n times, k = min(⌈q (n + 1)⌉, n)",
                means="n: futures that were played; q: 0.5 or 0.9. Of fewer than nine there is no "
                "P90.",
            ),
        ),
        also=("median", "quantile", "forecast"),
    ),
    Term(
        "calibration",
        "Calibration",
        "Whether what forecasts promised happened as often as it should.",
        (Seen("/calibration", "Calibration"),),
        (Formula("held = promises that came in time / promises whose time has come"),),
        more=PROMISES,
    ),
)

_TENANTS = (
    Term(
        "quota",
        "Quota: guaranteed, ceiling, lent",
        "GPUs of a type that a tenant is guaranteed, and may hold at most (its ceiling); idle "
        "guaranteed ones are lent to others, and come back in the next round.",
        (_QUOTAS, Seen("/account", "Account", "quotas of your tenant")),
        (
            Formula(
                "d_{k} = min(D_{k}, max(F_{k}, w_{k} × level)), Σ_{k} d_{k} = GPUs placed",
                of="what a round owes a tenant",
                means="D_{k}: GPUs that the jobs of tenant k could use; F_{k}: what is guaranteed "
                "and wanted; w_{k}: its weight; one level for all",
            ),
            Formula(
                "lent = max(max(guaranteed - held, 0) - free, 0)",
                of="lent",
                means="held: GPUs of the type that the tenant holds; free: those that nobody holds",
            ),
        ),
        source="docs/quotas.md",
        also=("borrowed", "weight"),
    ),
)

GROUPS: Mapping[str, tuple[Term, ...]] = {
    "How fast a job trains": _SPEED,
    "Times of jobs": _TIMES,
    "Fairness": _FAIR,
    "GPU-hours": _HOURS,
    "What a round decides": _DECISIONS,
    "Forecasts": _FORECASTS,
    "Tenants": _TENANTS,
}
TERMS = tuple(term for terms in GROUPS.values() for term in terms)
