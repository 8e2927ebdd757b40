"""The commands of `maat users`, `tenants`, `sessions`, `tokens`, `webhooks` and `db`; no code."""

from __future__ import annotations

from maat.cli.lazy_commands import Command

ACCOUNT_NOUNS = {
    "db": (
        "The database: backed up, restored and checked, on a machine that reaches it.",
        (
            Command(
                "backup",
                "Write the whole database to one file, while Maat runs.",
                "maat.cli.db:backup",
            ),
            Command(
                "restore",
                "Write a backup into an empty database, while Maat is stopped.",
                "maat.cli.db:restore",
            ),
            Command(
                "check", "Check that the database, or a backup, is whole.", "maat.cli.db:check"
            ),
        ),
    ),
    "users": (
        "Users: people who sign in, and service accounts that have tokens.",
        (
            Command("list", "List users, oldest first.", "maat.cli.users:list_users"),
            Command("create", "Make a user.", "maat.cli.users:create"),
            Command("change", "Change a user's role or activity.", "maat.cli.users:change"),
            Command(
                "set-password",
                "Give a person another password; their sessions end.",
                "maat.cli.users:set_password",
            ),
            Command("sign-out", "Sign a user out of all browsers.", "maat.cli.users:sign_out"),
            Command("remove", "Remove a user who owns nothing.", "maat.cli.users:remove"),
        ),
    ),
    "tenants": (
        "Tenants: the teams that share the clusters.",
        (
            Command("list", "List tenants, oldest first.", "maat.cli.tenants:list_tenants"),
            Command("create", "Make a tenant.", "maat.cli.tenants:create"),
            Command("rename", "Rename a tenant.", "maat.cli.tenants:rename"),
            Command(
                "close",
                "Close a tenant: nobody of it is let in, what it has stays.",
                "maat.cli.tenants:close",
            ),
            Command("open", "Open a closed tenant again.", "maat.cli.tenants:reopen"),
            Command("remove", "Remove a tenant that has nothing.", "maat.cli.tenants:remove"),
        ),
    ),
    "shared-models": (
        "Models of which what all tenants' jobs report counts together.",
        (
            Command(
                "list",
                "List the models that tenants share, by name.",
                "maat.cli.shared_models:list_models",
            ),
            Command(
                "add",
                "Say that a name means the same model for all tenants.",
                "maat.cli.shared_models:add",
            ),
            Command(
                "remove",
                "Say that each tenant's model of this name is its own again.",
                "maat.cli.shared_models:remove",
            ),
        ),
    ),
    "sessions": (
        "Sessions: the browsers in which you are signed in.",
        (
            Command(
                "list",
                "List the browsers in which you are signed in, newest first.",
                "maat.cli.sessions:list_sessions",
            ),
            Command("end", "Sign yourself out in one browser, or in all.", "maat.cli.sessions:end"),
        ),
    ),
    "tokens": (
        "Tokens of a running Maat: yours, and those of service accounts you manage.",
        (
            Command("list", "List tokens, newest first.", "maat.cli.tokens:list_tokens"),
            Command(
                "create",
                "Make a token and print it. It is shown only once.",
                "maat.cli.tokens:create",
            ),
            Command(
                "revoke",
                "Revoke a token, and those that were made with it.",
                "maat.cli.tokens:revoke",
            ),
        ),
    ),
    "webhooks": (
        "Webhooks: what happens to jobs, reports and clusters, posted to a URL.",
        (
            Command("list", "List webhooks, oldest first.", "maat.cli.webhooks:list_webhooks"),
            Command(
                "create",
                "Make a webhook and print its secret. It is shown only once.",
                "maat.cli.webhooks:create",
            ),
            Command(
                "change",
                "Change a webhook's name, URL, events or cluster.",
                "maat.cli.webhooks:change",
            ),
            Command(
                "pause",
                "Pause a webhook: it is told of nothing, and not later either.",
                "maat.cli.webhooks:pause",
            ),
            Command("resume", "Tell a paused webhook again.", "maat.cli.webhooks:resume"),
            Command("remove", "Delete a webhook with its messages.", "maat.cli.webhooks:remove"),
            Command(
                "test", "Send a message, to see whether it arrives.", "maat.cli.webhooks:send_test"
            ),
            Command(
                "rotate-secret",
                "Give a webhook a new secret and print it. It is shown only once.",
                "maat.cli.webhooks:rotate_secret",
            ),
            Command(
                "deliveries",
                "List the messages of a webhook, newest first; or print one.",
                "maat.cli.webhooks:deliveries",
            ),
            Command(
                "redeliver",
                "Send a message once more, with the same id.",
                "maat.cli.webhooks:redeliver",
            ),
        ),
    ),
}
