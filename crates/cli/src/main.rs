//! The program `dyno`.

use std::process::ExitCode;

fn main() -> ExitCode {
    dyno_cli::main()
}
