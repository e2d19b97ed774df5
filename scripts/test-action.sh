#!/usr/bin/env bash
# action.yml: the scripts of its steps, executed with the variables that a runner sets. DYNO names the program, DIST a folder that
# `make dist` made; without DIST the step that installs is skipped.
set -u
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/dyno-action.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ -z "${DYNO:-}" ]; then
  ${CARGO:-cargo} build --release --locked -p dyno-cli || exit 1
  DYNO=${CARGO_TARGET_DIR:-target}/release/dyno
fi
dyno=$(readlink -f "$DYNO")
unset DYNO
export GITHUB_ACTION_PATH=$PWD RUNNER_TEMP=$work/temp GITHUB_PATH=$work/path GITHUB_OUTPUT=$work/output GITHUB_STEP_SUMMARY=$work/summary
export DYNO_VERSION='' DYNO_RELEASE='' DYNO_PATH='' DYNO_COMMAND='' DYNO_THRESHOLDS='' DYNO_BASELINE='' DYNO_FAIL_ON=worse DYNO_OUT='' \
  DYNO_PROGRAM=$dyno
passed=0 broken=0 skipped=0
steps=$PWD/deploy/github
mkdir "$RUNNER_TEMP" "$work/job"
cd "$work/job" || exit 1

# step TITLE CODE WORDS FILE COMMAND...: a step exits with CODE, and FILE then has WORDS.
step() {
  local title=$1 expected=$2 words=$3 file=$4 code=0
  shift 4
  : >"$GITHUB_OUTPUT" && : >"$GITHUB_STEP_SUMMARY" && : >"$GITHUB_PATH"
  "$@" >"$work/log" 2>&1 || code=$?
  if [ "$code" = "$expected" ] && grep -qF -- "$words" "$file"; then
    passed=$((passed + 1))
    echo "ok: $title"
  else
    broken=$((broken + 1))
    echo "FAILED: $title: exit code $code, expected $expected and \"$words\""
    tail -n 20 "$work/log" "$file"
  fi
}

printf '#!/bin/sh\nprintf "error: \\140\\140\\140\\n::error::from a server\\n" >&2\nexit 3\n' >"$work/hostile"
chmod +x "$work/hostile"
load='sim: --rate 1000 --records 1000 --ops 5000 --warmup 0s --quiet'
step "a program that is there" 0 "program=$dyno" "$GITHUB_OUTPUT" env DYNO_PATH="$dyno" "$steps/install.sh"
step "neither version nor path" 2 "exactly one of" "$work/log" "$steps/install.sh"
step "two of version, release, path" 2 "2 were given" "$work/log" env DYNO_PATH="$dyno" DYNO_VERSION=0.1.0 "$steps/install.sh"
step "a path without a program" 2 "is no program" "$work/log" env DYNO_PATH="$work/none" "$steps/install.sh"
step "a release that is not there" 2 "cannot be installed" "$work/log" env DYNO_RELEASE="$work/none" "$steps/install.sh"
if [ -n "${DIST:-}" ]; then
  step "a release in a folder" 0 "program=$RUNNER_TEMP/dyno/bin/dyno" "$GITHUB_OUTPUT" env DYNO_RELEASE="$DIST" "$steps/install.sh"
else
  echo "SKIPPED: action.yml: installing a release: DIST names none"
  skipped=1
fi
step "a run" 0 "UPDATE" "$GITHUB_STEP_SUMMARY" env DYNO_COMMAND="$load" DYNO_OUT=first "$steps/run.sh"
step "its exit code" 0 "exit-code=0" "$GITHUB_OUTPUT" env DYNO_COMMAND="$load --require 'errors < 1%'" DYNO_OUT=quoted "$steps/run.sh"
step "thresholds that hold" 0 "p99(read) < 60s" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND="$load" DYNO_OUT=held DYNO_THRESHOLDS=$'p99(read) < 60s\n\nerrors < 1%\n' "$steps/run.sh"
step "a threshold that is missed" 4 "exit-code=4" "$GITHUB_OUTPUT" \
  env DYNO_COMMAND="$load" DYNO_OUT=missed DYNO_THRESHOLDS='p99(read) < 1us' "$steps/run.sh"
step "a threshold that is none" 2 "left no summary" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND="$load" DYNO_OUT=none DYNO_THRESHOLDS='p99(read' "$steps/run.sh"
step "a server that is not there" 3 "exit-code=3" "$GITHUB_OUTPUT" \
  env DYNO_COMMAND="redis://127.0.0.1:1 --duration 1s" DYNO_OUT=gone "$steps/run.sh"
step "the long form" 0 "<details><summary>summary.md</summary>" "$GITHUB_STEP_SUMMARY" env DYNO_COMMAND="$load" DYNO_OUT=long "$steps/run.sh"
step "one run beside one run" 0 "not enough data" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND="$load" DYNO_OUT=second DYNO_BASELINE=first "$steps/run.sh"
step "one run beside one run, where that fails" 4 "comparison with first" "$work/log" \
  env DYNO_COMMAND="$load" DYNO_OUT=unclear DYNO_BASELINE=first DYNO_FAIL_ON=unclear "$steps/run.sh"
for service in 100us 200us; do
  cat >"$service.yaml" <<Y
target: "sim:?service=$service"
workload: {ycsb: {workload: b, records: 1k}}
phases: {measure: {duration: 6s, warmup: 0s}}
factors: {users: [1]}
repetitions: 5
Y
done
step "an experiment" 0 "users  runs" "$GITHUB_STEP_SUMMARY" env DYNO_COMMAND=100us.yaml DYNO_OUT=baseline "$steps/run.sh"
step "a baseline that was equal" 0 "throughput" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND=100us.yaml DYNO_OUT=equal DYNO_BASELINE=baseline "$steps/run.sh"
step "a baseline that was faster" 4 "worse by 50.0 %" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND=200us.yaml DYNO_OUT=slower DYNO_BASELINE=baseline "$steps/run.sh"
step "a faster baseline, and nothing fails" 0 "worse by 50.0 %" "$GITHUB_STEP_SUMMARY" \
  env DYNO_COMMAND=200us.yaml DYNO_OUT=slower-2 DYNO_BASELINE=baseline DYNO_FAIL_ON=nothing "$steps/run.sh"
step "a baseline that is not there" 2 "is no directory" "$work/log" env DYNO_COMMAND="$load" DYNO_OUT=third DYNO_BASELINE=none "$steps/run.sh"
step "a directory that is there" 2 "is there already" "$work/log" env DYNO_COMMAND="$load" DYNO_OUT=first "$steps/run.sh"
step "an open quote" 2 "command:" "$work/log" env DYNO_COMMAND="$load --require 'errors" DYNO_OUT=third "$steps/run.sh"
step "no command" 2 "command is empty" "$work/log" env DYNO_OUT=third "$steps/run.sh"
step "an unknown fail-on" 2 "expected worse, different" "$work/log" env DYNO_COMMAND="$load" DYNO_OUT=third DYNO_FAIL_ON=better "$steps/run.sh"
# What inputs and servers say is no command to the runner: the only commands are those of the steps, and no words of others are in
# them.
step "an input with a command in it" 2 "::stop-commands::" "$work/log" env DYNO_COMMAND="$load" DYNO_OUT=$'first\n::warning::from input' DYNO_BASELINE=none "$steps/run.sh"
step "its words stand where commands are stopped" 2 "the log of this step says why" "$work/log" \
  env DYNO_COMMAND="$load" DYNO_FAIL_ON=$'better\n::warning::from input' DYNO_OUT=third "$steps/run.sh"
awk '/^::stop-commands::/ { token = substr($0, 18); next } token != "" && $0 == "::" token "::" { token = ""; next }
  token == "" && /^::/ && !/^::error::dyno exited with [0-9]+: the log of this step says why$/ { bad = 1 } END { exit bad }' "$work/log" ||
  { broken=$((broken + 1)) && echo "FAILED: an input's line is a command" && cat "$work/log"; }
step "a server's backticks" 3 '````' "$GITHUB_STEP_SUMMARY" env DYNO_PROGRAM="$work/hostile" DYNO_COMMAND=x DYNO_OUT=fourth "$steps/run.sh"
# What the steps read is what action.yml passes.
for variable in $(grep -oh 'DYNO_[A-Z_]*' "$steps"/*.sh | sort -u); do
  grep -q "^        $variable: " "$GITHUB_ACTION_PATH/action.yml" || { broken=$((broken + 1)) && echo "FAILED: action.yml does not set $variable"; }
done
echo "$passed passed, $broken failed, $skipped skipped"
[ "$broken" = 0 ]
