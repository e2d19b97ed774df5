//! Programs of the system: started, waited for, and their complaints.

use crate::error::ProgramError;
use crate::machine::Machine;
use crate::process;
use dyno_engine::Control;
use dyno_types::bounded;
use dyno_types::child;
use dyno_types::limits::OUTPUT_BYTES;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

/// Runs a program of the system; what it prints on standard output, or its complaint.
pub(crate) fn run(machine: &Machine, program: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    run_under(machine, program, arguments, None)
}

/// The same; it is ended as soon as `control` stops. Ctrl-C in a terminal goes to every process of the foreground group: what
/// puts things back must not end by that, so it has a group of its own.
pub fn run_under(
    machine: &Machine,
    program: &str,
    arguments: &[&str],
    control: Option<&Control>,
) -> Result<String, ProgramError> {
    let missing = || ProgramError::Missing { program: program.to_owned(), hint: "" };
    let path = machine.find_program(program).ok_or_else(missing)?;
    let mut command = child::clean_command(path);
    command.args(arguments).env("LC_ALL", "C").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |source| ProgramError::Io { program: program.to_owned(), source };
    let child = command.spawn().map_err(failed)?;
    let group = child.id();
    let output = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bounded::read_output(child, OUTPUT_BYTES));
        while !waiting.is_finished() {
            if control.is_some_and(Control::is_stopping) {
                process::end_group(group);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        waiting.join().unwrap_or_else(|_| Err(std::io::Error::other("no caller waits for it")))
    });
    let output = output.map_err(failed)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let message = text(&output.stderr).lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    Err(ProgramError::Ended { program: program.to_owned(), message, status: output.status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_caller_ends() {
        let control = Control::default();
        control.stop();
        let machine = Machine::default();
        let begun = std::time::Instant::now();
        let ended = run_under(&machine, "sleep", &["4717.25"], Some(&control)).unwrap_err();
        assert!(ended.to_string().contains("signal: 9") && begun.elapsed().as_secs() < 5, "{ended}");
        assert_eq!(run_under(&machine, "true", &[], None).unwrap(), "");
    }
}
