"""Why figures differ, in sentences: each names a rule in which the runs differ.

The tables hold the effects that can be measured.
"""

SIMULATOR_DIFFERENCES = (
    "Ties: many assignments cost the same after the published rounding, and which of them is "
    "taken is the solver's choice. Exchanging only its solver "
    "moves the published simulator's own figures too (last table); the range over the seeds shows "
    "the same of Maat.",
    "p99 of 160 jobs is the second slowest of them, and makespan ends with the last: where a "
    "trace has 160 jobs, both are single imagenet jobs.",
    "imagenet, yolov3 and deepspeech2 jobs are fewer and longer than those of cifar10. Their mix "
    "of GPU types differs most, between Maat and the "
    "published run as between two of Maat's own seeds (GPU-hours by type, last two columns).",
)

ONE_TYPE_DIFFERENCES = (
    "Restarts: on one type, jobs of one model differ in nothing but age, so that exchanges among "
    "them often cost the same after rounding. Maat draws "
    "again each round among such answers and at times exchanges what two jobs hold, for a restart "
    "each; a solver that is asked the same question again "
    "gives the same answer.",
)

PAPER_DIFFERENCES = (
    "Traces: the paper's means are over more traces than are public, and rounded to one decimal. "
    "The published simulator itself, on the public ones, "
    "lies beside the paper as the second table says; a few imagenet jobs of each trace make its "
    "p99, its makespan and a good part of its GPU-hours.",
    "Profiling before the first run: the paper lets every job be profiled on one GPU of every "
    "type first, and so does Maat, charging 20 GPU-seconds per "
    "type. The published simulator uses no profile before the first run: jobs begin on types that "
    "they leave again, for restarts and GPU-hours (tables "
    "of single rules).",
    "Batch sizes are planned up to the model's largest, not up to the size in the trace: planned "
    "and executed goodput agree, and jobs find more GPUs "
    "worth their while, which shortens them and costs GPU-hours.",
    "Restarts take their true time in the policy's computation; the published simulator counts 30 "
    "s for cifar10 and 45 s for yolov3, which cost 50 s and "
    "80 s, and so restarts them more often.",
    "A job that is moved to other nodes pays a restart, also where its type and count stay; in "
    "the published simulator such moves are free. They are "
    "a part of the restarts here, though only those move who are in the way of others (its rule "
    "c).",
    "A job scales up to at most twice its present GPUs (the paper's rule), not to twice the most "
    "that it ever ran on, which holds fewer GPUs.",
    "Exceptions that only the published code has are off: a job younger than one restart moves "
    "without a discount (`young_move_freely`; Sia eq. 3 has no "
    "exception), and a job that never ran on several nodes is believed to lose 1.1 times there "
    "what it loses within one (`across_over_within`; Pollux "
    "section 4.1: nothing, so that it is tried). Both are in the table.",
    "Fits end at the minimum of their loss, not where the published search ends (`fit_search`); "
    "the last section has what that changes.",
    "No whole-second rounding at the ends of epochs, no rounding of costs, and GPU-hours by the "
    "second: a few per cent each, in the table.",
    "Kept although it is worse than it need be: where a job has run on one GPU only, the paper's "
    "rule assumes that it scales perfectly, and it climbs "
    "by doubling. What that costs is the second line of the table of single rules: jobs whose "
    "every configuration is known from the start.",
)
