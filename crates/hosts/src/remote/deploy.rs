//! This program on another host: copied once, under a name that says what it is, and checked.

use crate::remote::ssh::{RemoteError, SshHost};
use dyno_engine::Control;
use dyno_localhost::error::Cause;
use dyno_types::shell;
use sha2::{Digest, Sha256};
use std::env::consts::ARCH;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ASK: Duration = Duration::from_secs(30);
/// A program of 100 MiB over 10 Mbit/s.
const COPY: Duration = Duration::from_secs(120);

/// Copies `program` to `host`, unless it is there already; returns its path there. For another architecture the program is
/// looked for beside it, as `dyno-worker-ARCHITECTURE`. `directory` is where it goes; by default the user's cache. The wait
/// ends once `control` stops.
pub fn deploy_program(
    host: &SshHost,
    program: &Path,
    directory: Option<&str>,
    control: &Control,
) -> Result<String, RemoteError> {
    let told = host.run(
        "uname -s; uname -m; printf '%s\\n' \"${XDG_CACHE_HOME:-$HOME/.cache}\"",
        None,
        (ASK, control),
    )?;
    let mut told = told.lines().map(str::trim);
    let (system, machine) = (told.next().unwrap_or_default(), told.next().unwrap_or_default());
    let cache = told.next().unwrap_or("/var/tmp");
    if system != "Linux" {
        return Err(host.failed(format!("{system} there: workers run on Linux")));
    }
    let file = fitting(program, machine).map_err(|error| host.failed(error))?;
    let digest = file_digest(&file).map_err(|e| host.failed(format!("{}: {e}", file.display())))?;
    let folder = directory.map_or_else(|| format!("{cache}/dyno"), str::to_owned);
    let path = format!("{folder}/dyno-{}-{}", env!("CARGO_PKG_VERSION"), &digest[..16]);
    let (path_word, folder_word) = (shell::quoted(&[&path]), shell::quoted(&[&folder]));
    let there = host.run(&format!("sha256sum {path_word} 2>/dev/null || true"), None, (ASK, control))?;
    if !there.starts_with(&digest) {
        let script = format!(
            "umask 077 && mkdir -p {folder_word} && cat > {path_word}.$$ && chmod 700 {path_word}.$$ && \
             mv {path_word}.$$ {path_word} && sha256sum {path_word}"
        );
        tracing::info!(host = host.name, program = %file.display(), path, "the program is copied");
        let input = File::open(&file).map_err(|e| host.failed(format!("{}: {e}", file.display())))?;
        let copied = host.run(&script, Some(input), (COPY, control))?;
        if !copied.starts_with(&digest) {
            return Err(host.failed("the copy of the program is not what was sent"));
        }
    }
    let version =
        host.run(&format!("{path_word} --version"), None, (ASK, control)).map_err(|error| match error {
            RemoteError::Failed { source, .. } => {
                host.failed(NoProgram::DoesNotRun { machine: machine.to_owned(), source })
            }
            other => other,
        })?;
    if !version.contains(env!("CARGO_PKG_VERSION")) {
        return Err(host.failed(format!("{path} is {}, not {}", version.trim(), env!("CARGO_PKG_VERSION"))));
    }
    Ok(path)
}

/// Why there is no program for a host.
#[derive(Debug, thiserror::Error)]
enum NoProgram {
    /// None is for its architecture.
    #[error("it is {machine}, this host {ARCH}: put a program for it beside dyno, as {}", .wanted.display())]
    OtherMachine {
        /// The architecture there.
        machine: String,
        /// Where a program for it would be.
        wanted: PathBuf,
    },
    /// It is there, but does not run.
    #[error(
        "the program does not run there: {source}; put a static one beside dyno (make worker), as dyno-worker-{machine}"
    )]
    DoesNotRun {
        /// The architecture there.
        machine: String,
        /// Error of the program.
        source: Cause,
    },
}

/// The program for a machine: a static one beside this one, or this one where the machine is the same.
fn fitting(program: &Path, machine: &str) -> Result<PathBuf, NoProgram> {
    let machine = if machine == "arm64" { "aarch64" } else { machine };
    let own = program.with_file_name(format!("dyno-worker-{machine}"));
    if own.is_file() {
        return Ok(own);
    }
    if machine == ARCH {
        return Ok(program.to_owned());
    }
    Err(NoProgram::OtherMachine { machine: machine.to_owned(), wanted: own })
}

/// SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// It cannot be read.
pub fn file_digest(path: &Path) -> std::io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            n => digest.update(&block[..n]),
        }
    }
    Ok(hex::encode(digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_each_machine() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("dyno");
        std::fs::write(&program, "x").unwrap();
        assert_eq!(fitting(&program, ARCH).unwrap(), program);
        let other = if ARCH == "aarch64" { "x86_64" } else { "arm64" };
        assert!(fitting(&program, other).unwrap_err().to_string().contains("dyno-worker-"));
        let worker =
            folder.path().join(if other == "arm64" { "dyno-worker-aarch64" } else { "dyno-worker-x86_64" });
        std::fs::write(&worker, "y").unwrap();
        assert_eq!(fitting(&program, other).unwrap(), worker);
        assert_eq!(file_digest(&program).unwrap()[..8], *"2d711642");
    }
}
