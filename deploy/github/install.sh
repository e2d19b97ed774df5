#!/usr/bin/env bash
# The first step of action.yml: installs dyno, or takes a program that is there, and names it as the output `program`.
set -euo pipefail
# shellcheck source=deploy/github/commands.sh
. "$(dirname "$0")/commands.sh"
stop_commands
fail() { failed "$1" "dyno is not there" && exit 2; }
given=0
for input in "$DYNO_VERSION" "$DYNO_RELEASE" "$DYNO_PATH"; do
  [ -z "$input" ] || given=$((given + 1))
done
[ "$given" = 1 ] || fail "give exactly one of the inputs version, release and path; $given were given"
if [ -n "$DYNO_PATH" ]; then
  program=$(readlink -f "$DYNO_PATH") && [ -x "$program" ] || fail "path: $DYNO_PATH is no program"
else
  case $DYNO_VERSION in *[!0-9A-Za-z.+-]*) fail "version: $DYNO_VERSION: expected a version such as 0.1.0" ;; esac
  release=${DYNO_RELEASE:-https://github.com/dyno-bench/dyno/releases/download/v$DYNO_VERSION}
  sh "$GITHUB_ACTION_PATH/scripts/install.sh" --to "$RUNNER_TEMP/dyno" "$release" || fail "dyno cannot be installed from $release"
  program=$RUNNER_TEMP/dyno/bin/dyno
fi
"$program" --version || fail "$program does not run here"
# Each is one line: with another in it a path would set more than itself.
case $program in *$'\n'*) fail "path: it has more than one line" ;; esac
dirname "$program" >>"$GITHUB_PATH"
echo "program=$program" >>"$GITHUB_OUTPUT"
echo "::$commands_token::"
