#!/usr/bin/env bash
# Runs the tests of the bucket store against a PostgreSQL server instead of SQLite: all but
# those of files. Each test makes schemas of its own. The driver is got for this run alone.
#
#   DATABASE_URL=postgres://user:password@host/database bench/postgres.sh [go test's flags]
set -euo pipefail
cd "$(dirname "$0")/.."
: "${DATABASE_URL:?names a database that may be written to}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp go.mod go.sum "$work/"
root=$PWD
cp bench/postgres/connect.go.txt "$work/connect.go"
printf '{"Replace": {"%s": "%s"}}' "$root/fleet/store/sqlite.go" "$work/connect.go" >"$work/overlay.json"
go get -modfile="$work/go.mod" github.com/jackc/pgx/v5/stdlib@v5.7.6 2>/dev/null
# Foreign, damaged, empty and older files are SQLite's matter.
go test -count=1 -modfile="$work/go.mod" -overlay="$work/overlay.json" ./fleet/store \
  -skip '^(TestOtherFilesAreRefused|TestReadingLeavesAllAsItIs|TestReadingALogWithoutItsIndex|TestEmptyFileIsNoDatabase)$' "$@"
