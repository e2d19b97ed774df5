#!/usr/bin/env bash
# The second step of action.yml: a run, the summary of the job, and a comparison with the baseline. Exits as dyno does.
set -uo pipefail
words=$(mktemp)
trap 'rm -f "$words" "$words.error" "$words.shown"' EXIT
# shellcheck source=deploy/github/commands.sh
. "$(dirname "$0")/commands.sh"
stop_commands

# finish CODE [WHY]: the output and the end of the step.
finish() {
  echo "exit-code=$1" >>"$GITHUB_OUTPUT"
  [ "$1" = 0 ] || failed "${2:-see the summary of the job}" "dyno exited with $1"
  exit "$1"
}

# fenced FILE: the file as a block of the summary, whatever backticks are in it.
fenced() {
  local fence='```'
  while grep -qF -- "$fence" "$1"; do fence=$fence'`'; done
  printf '%s\n' "$fence" && cat "$1" && printf '\n%s\n' "$fence"
}

case $DYNO_FAIL_ON in
  worse | different | unclear) fail_on=(--fail-on "$DYNO_FAIL_ON") ;;
  nothing) fail_on=() ;;
  *) finish 2 "fail-on: $DYNO_FAIL_ON: expected worse, different, unclear or nothing" ;;
esac
[ -n "$DYNO_OUT" ] || finish 2 "out is empty"
[ ! -e "$DYNO_OUT" ] || finish 2 "out: $DYNO_OUT is there already"
[ -z "$DYNO_BASELINE" ] || [ -d "$DYNO_BASELINE" ] || finish 2 "baseline: $DYNO_BASELINE is no directory"
# Words as a shell splits them, without starting anything.
printf '%s' "$DYNO_COMMAND" | xargs printf '%s\n' >"$words" 2>"$words.error" || finish 2 "command: $(head -1 "$words.error")"
arguments=()
while IFS= read -r word; do
  [ -z "$word" ] || arguments+=("$word")
done <"$words"
[ "${#arguments[@]}" -gt 0 ] || finish 2 "command is empty"
while IFS= read -r threshold; do
  [ -z "${threshold//[[:space:]]/}" ] || arguments+=(--require "$threshold")
done <<<"$DYNO_THRESHOLDS"

code=0
"$DYNO_PROGRAM" run "${arguments[@]}" --out "$DYNO_OUT" 2>"$words.error" || code=$?
cat "$words.error" >&2
# The summary of the job: what the terminal shows, and the long form folded behind it.
if [ -f "$DYNO_OUT/summary.md" ]; then
  {
    "$DYNO_PROGRAM" report "$DYNO_OUT" >"$words.shown" && fenced "$words.shown"
    printf '\n<details><summary>summary.md</summary>\n\n' && cat "$DYNO_OUT/summary.md" && printf '\n</details>\n'
  } >>"$GITHUB_STEP_SUMMARY"
else
  tail -n 20 "$words.error" >"$words.shown"
  { echo "dyno exited with $code and left no summary:" && fenced "$words.shown"; } >>"$GITHUB_STEP_SUMMARY"
fi
[ "$code" = 0 ] || finish "$code"
if [ -n "$DYNO_BASELINE" ]; then
  { echo && "$DYNO_PROGRAM" compare "$DYNO_BASELINE" "$DYNO_OUT" ${fail_on[@]+"${fail_on[@]}"} --format md; } >>"$GITHUB_STEP_SUMMARY" ||
    finish $? "the comparison with $DYNO_BASELINE"
fi
finish 0
