"""Why figures differ, in sentences: each names a rule in which the runs differ. Effects that can be measured stand in the tables."""

SIMULATOR_DIFFERENCES = (
    "Ties: many assignments cost the same after the published rounding, and which of them is taken is the solver's choice. Exchanging only its solver "
    "moves the published simulator's own figures too (last table); the next table shows the same of Maat.",
    "p99 of 160 jobs is the second slowest of them, an imagenet job: one job's luck with A100s decides it, and with it the makespan.",
    "GPU-hours and restarts follow from the first type that a job gets. No job has a model before its first run, so all types tie, and a slow first "
    "type costs hours there and a restart to leave it.",
)

PAPER_DIFFERENCES = (
    "Profiling before the first run: the paper lets every job be profiled on one GPU of every type first, and so does Maat, charging 20 GPU-seconds per "
    "type. The published simulator uses no profile before the first run; its own switch for that (next table) takes away a good quarter of its "
    "restarts and a sixth of its GPU-hours, for jobs no longer start on a type that they leave again.",
    "No whole-second rounding: the published simulator rounds the time to the end of every epoch to a second; epochs take their true time here.",
    "Batch sizes are planned up to the model's largest, not up to the size in the trace: planned and executed goodput agree, and jobs find more GPUs "
    "worth their while, which shortens them and costs GPU-hours.",
    "Restarts take their true time in the policy's reckoning; the published simulator reckons 30 s for cifar10 and 45 s for yolov3, which cost 50 s and "
    "80 s.",
    "A job scales up to at most twice its present GPUs (the paper's rule), not to twice the most that it ever ran on: after scaling down it climbs "
    "again in steps, and every step is a restart.",
    "GPU-hours count seconds here, and whole rounds in the paper's scripts: about 1 % more there.",
    "Traces: the paper's means are over more traces than are public, rounded to one decimal; makespan and p99 hang on a few imagenet jobs of each trace.",
    "Kept although it is worse than it need be: where a job has run on one GPU only, the paper's rule assumes that it scales perfectly. The first "
    "allocation of several GPUs is chosen on that optimistic figure, and is at times left again for a restart.",
)
