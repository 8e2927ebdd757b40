"""The commands of reports, their schedules, use and prices, for the list of all commands."""

from __future__ import annotations

from maat.cli.lazy_commands import Command

REPORT_COMMANDS = (
    Command(
        "report",
        "Report a period to managers; without one, this week.",
        "maat.cli.report:report",
    ),
    Command("reports", "List kept reports, newest first.", "maat.cli.report:reports"),
    Command(
        "kept-report",
        "Print a kept report, or write it to files. They are the same bytes each time.",
        "maat.cli.kept_reports:kept_report",
    ),
    Command(
        "delete-report",
        "Delete a kept report, for everybody. It asks before.",
        "maat.cli.kept_reports:delete_report",
    ),
    Command(
        "schedule-report",
        "Have a report made each week or month, and sent to a folder or a webhook.",
        "maat.cli.report_schedules:schedule_report",
    ),
    Command(
        "report-schedules",
        "List schedules of reports, or the deliveries of one.",
        "maat.cli.report_schedules:report_schedules",
    ),
    Command(
        "change-report-schedule",
        "Change a schedule's name, hour, URL or secret.",
        "maat.cli.report_schedules:change_report_schedule",
    ),
    Command(
        "pause-report-schedule",
        "Pause a schedule: no report is made by it until it is resumed.",
        "maat.cli.report_schedules:pause_report_schedule",
    ),
    Command(
        "resume-report-schedule",
        "Resume a paused schedule, from its next due time on.",
        "maat.cli.report_schedules:resume_report_schedule",
    ),
    Command(
        "send-report",
        "Make a schedule's report and send it now, to see whether it arrives.",
        "maat.cli.report_schedules:send_report",
    ),
    Command(
        "retry-report",
        "Send a report once more whose delivery has failed, with the same id.",
        "maat.cli.report_schedules:retry_report",
    ),
    Command(
        "unschedule-report",
        "Delete a schedule of reports. Kept reports stay.",
        "maat.cli.report_schedules:unschedule_report",
    ),
    Command(
        "usage",
        "GPU-hours of a period: allocated, used, useful, lost, and what they cost.",
        "maat.cli.usage:usage",
    ),
    Command(
        "laboratory",
        "Show the CPU hours that simulations and other work took in 24 hours, and what is left.",
        "maat.cli.laboratory:laboratory",
    ),
    Command("prices", "List what GPU-hours cost, and from which day on.", "maat.cli.usage:prices"),
    Command(
        "price",
        "Set what a GPU-hour of a type costs from a day on. Earlier days cost what they cost.",
        "maat.cli.usage:price",
    ),
    Command(
        "change-price",
        "Correct a price: its days cost what it says then, past ones too.",
        "maat.cli.usage:change_price",
    ),
    Command("unprice", "Remove a price: the one before it counts on.", "maat.cli.usage:unprice"),
)
