#!/bin/sh
# Makes the role and the database of Maat, at the first start of an empty PostgreSQL. The role owns
# its database and nothing else: what it is made to run cannot read files or start programs.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set role="${ROLE:-maat}" --set password="$ROLE_PASSWORD" \
    --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE :"role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE :"role" OWNER :"role";
REVOKE ALL ON DATABASE :"role" FROM PUBLIC;
SQL
