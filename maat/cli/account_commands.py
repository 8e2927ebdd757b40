"""The commands of `maat users`, `tenants`, `tokens` and `db`, listed without their code."""

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
}
