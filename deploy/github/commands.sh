# Read by the steps of action.yml: what dyno, a server or an input says must not pass for a command to the runner.

# stop_commands: the runner takes no line for a command from now on, until it reads a token that nobody knows.
stop_commands() {
  commands_token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$commands_token"
}

# failed WHY WORDS: what was wrong, as a plain line; and an error of the job in our own WORDS.
failed() {
  printf '%s\n' "$1"
  echo "::$commands_token::"
  echo "::error::$2: the log of this step says why"
}
