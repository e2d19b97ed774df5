#!/usr/bin/env bash
# cargo's runner in `make test`: a test program may take ten minutes. One that hangs is shown with what it has started, all of it is
# ended, and the rest goes on.
mark="DYNO_TEST_PROGRAM=$$"
env "$mark" timeout --foreground -s KILL "${BOUND:-600}" "$@"
code=$?
[ "$code" = 137 ] || exit "$code"
echo "FAILED: $1 was ended after ${BOUND:-600} s (or killed); what it had started:"
for process in /proc/[0-9]*; do
  [ "$process" != "/proc/$$" ] && tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qx "$mark" || continue
  ps -o pid,ppid,etimes,stat,wchan:24,args -p "${process#/proc/}" | tail -n +2
  kill -KILL "${process#/proc/}" 2>/dev/null
done
exit "$code"
