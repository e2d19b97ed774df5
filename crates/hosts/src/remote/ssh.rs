//! Commands on another host, by the user's own ssh.

use dyno_config::inventory::InventoryHost;
use dyno_engine::Control;
use dyno_localhost::error::Cause;
use dyno_types::bounded;
use dyno_types::child;
use dyno_types::limits::OUTPUT_BYTES;
use dyno_types::shell;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Why something could not be done on another host.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// There is no way to it.
    #[error("{host}: {message}")]
    Unreachable {
        /// Name.
        host: String,
        /// Why, and what helps.
        message: String,
    },
    /// The agent there has ended before its time.
    #[error("{host}: the agent there was lost: {message}")]
    AgentLost {
        /// Name.
        host: String,
        /// Why, as far as that is known.
        message: String,
    },
    /// It answers, but something went wrong there.
    #[error("{host}: {source}")]
    Failed {
        /// Name.
        host: String,
        /// Cause of the failure.
        source: Cause,
    },
}

/// Options that every call has: no user is there to answer questions, a connection lasts as long as the lease of those at its
/// other end (`silence::LEASE`: 18 times 5 s), and none stays behind for others (one that is there already is used).
const OPTIONS: [&str; 9] = [
    "-oControlMaster=no",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=18",
    "-oForwardX11=no",
    "-oForwardAgent=no",
    "-oClearAllForwardings=yes",
    "-T",
];

/// A host and the way to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SshHost {
    /// Name in messages.
    pub name: String,
    /// Options of ssh.
    options: Vec<String>,
    destination: String,
}

impl SshHost {
    /// From an inventory's variables; `config` is given to `ssh -F`.
    pub fn new(host: &InventoryHost, config: Option<&Path>) -> Result<Self, RemoteError> {
        let wrong = |message: String| RemoteError::Failed { host: host.name.clone(), source: message.into() };
        let destination = host.ssh_destination().to_owned();
        if destination.is_empty() || destination.starts_with('-') {
            return Err(wrong(format!("{destination:?} is no name of a host")));
        }
        let mut options: Vec<String> = Vec::new();
        if let Some(config) = config {
            options.extend(["-F".to_owned(), config.display().to_string()]);
        }
        for (variable, option) in [
            ("ansible_port", "-p"),
            ("ansible_user", "-l"),
            ("ansible_ssh_user", "-l"),
            ("ansible_ssh_private_key_file", "-i"),
        ] {
            if let Some(value) = host.get(variable) {
                options.extend([option.to_owned(), value.to_owned()]);
            }
        }
        for variable in ["ansible_ssh_common_args", "ansible_ssh_extra_args"] {
            let words = shell::split_words(host.get(variable).unwrap_or_default());
            options.extend(words.map_err(|why| wrong(format!("{variable}: {why}")))?);
        }
        Ok(SshHost { name: host.name.clone(), options, destination })
    }

    /// ssh with a command for the far shell; the words reach the program there as they are.
    pub fn command(&self, remote: &[&str]) -> Command {
        // The first value that ssh is told counts.
        let mut command = child::clean_command("ssh");
        command.args(OPTIONS).args(&self.options).arg("--").arg(&self.destination).arg(shell::quoted(remote));
        command
    }

    /// The address that ssh uses, as its configuration has it.
    pub fn address(&self) -> Result<String, RemoteError> {
        let told = child::clean_command("ssh")
            .args(&self.options)
            .arg("-G")
            .arg("--")
            .arg(&self.destination)
            .output();
        let told = told.map_err(|e| self.unreachable(format!("ssh could not be started: {e}")))?;
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let name = text.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned);
        name.ok_or_else(|| self.unreachable(String::from_utf8_lossy(&told.stderr).trim().to_owned()))
    }

    /// Runs words of a shell there, with a file as its input; what it printed. It is given up after so long, or once control
    /// stops.
    pub fn run(
        &self,
        script: &str,
        input: Option<File>,
        (patience, control): (Duration, &Control),
    ) -> Result<String, RemoteError> {
        let begun = Instant::now();
        let told = self.told(script, input, (patience, control));
        let (host, took_ms) = (&self.name, begun.elapsed().as_millis() as u64);
        match &told {
            Ok(_) => tracing::info!(host, command = script, took_ms, exit = 0, "ssh has ended"),
            Err(error) => tracing::warn!(host, command = script, took_ms, %error, "ssh has failed"),
        }
        told
    }

    fn told(
        &self,
        script: &str,
        input: Option<File>,
        (patience, control): (Duration, &Control),
    ) -> Result<String, RemoteError> {
        let mut command = self.command(&["/bin/sh", "-c", script]);
        command.stdin(input.map_or(Stdio::null(), Stdio::from));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child =
            command.spawn().map_err(|e| self.unreachable(format!("ssh could not be started: {e}")))?;
        let read = |pipe: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let text = bounded::read_out(pipe, OUTPUT_BYTES);
                text.map_or_else(|e| e.to_string(), |text| String::from_utf8_lossy(&text).into_owned())
            })
        };
        let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(self.failed("no pipe"));
        };
        let (out, err) = (read(Box::new(out)), read(Box::new(err)));
        let end = Instant::now() + patience;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < end && !control.is_stopping() => {
                    std::thread::sleep(Duration::from_millis(5))
                }
                _ => {
                    // With the command that makes the way, where the configuration names one. It may have ended by itself.
                    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                    let _ = child.wait();
                    return Err(match control.is_stopping() {
                        true => self.failed("no longer waited for"),
                        false => self.failed(format!("no end after {} s", patience.as_secs())),
                    });
                }
            }
        };
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match status.code() {
            Some(0) => Ok(out),
            Some(255) => Err(self.unreachable(reason(&err))),
            _ => Err(self.failed(format!("{} ({status})", last(&err)))),
        }
    }

    pub(super) fn unreachable(&self, message: String) -> RemoteError {
        RemoteError::Unreachable { host: self.name.clone(), message }
    }

    pub(super) fn failed(&self, why: impl Into<Cause>) -> RemoteError {
        RemoteError::Failed { host: self.name.clone(), source: why.into() }
    }
}

pub(super) fn last(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no words")
}

/// Returns the error of ssh, with advice.
pub(super) fn reason(text: &str) -> String {
    let advice = [
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "the host's key is not the one that is known: see ssh-keygen -R",
        ),
        (
            "Host key verification failed",
            "its key is not known here: connect once by hand, or add it to known_hosts",
        ),
        ("Permission denied", "no key of yours is accepted: see ssh-copy-id and ssh-agent"),
        ("Could not resolve", "its name is not known"),
        ("Connection refused", "no ssh server listens there"),
        ("timed out", "it does not answer"),
        ("No route to host", "there is no route to it"),
    ];
    let said = last(text);
    match advice.iter().find(|(message, _)| text.contains(message)) {
        Some((_, advice)) => format!("ssh: {advice} ({said})"),
        None => format!("ssh: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_options_and_words_stay_whole() {
        let mut host = InventoryHost::named_host("db1");
        for (name, value) in [
            ("ansible_host", "10.0.0.1"),
            ("ansible_port", "2222"),
            ("ansible_user", "root"),
            ("ansible_ssh_common_args", "-o 'ProxyCommand=nc %h %p'"),
        ] {
            host.variables.insert(name.into(), value.into());
        }
        let ssh = SshHost::new(&host, Some(Path::new("conf"))).unwrap();
        let command = ssh.command(&["a b", "$HOME"]);
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words[..OPTIONS.len()], OPTIONS);
        let own = &words[OPTIONS.len()..][..8];
        assert_eq!(own, ["-F", "conf", "-p", "2222", "-l", "root", "-o", "ProxyCommand=nc %h %p"]);
        assert_eq!(&words[words.len() - 3..], ["--", "10.0.0.1", "'a b' '$HOME'"]);
        let evil = InventoryHost { name: "-oProxyCommand=reboot".into(), ..InventoryHost::default() };
        assert!(SshHost::new(&evil, None).is_err());
    }

    #[test]
    fn what_ssh_says_has_an_answer() {
        let text = "Warning: x\nroot@h: Permission denied (publickey).\n";
        assert!(reason(text).starts_with("ssh: no key of yours is accepted"), "{}", reason(text));
        assert_eq!(reason("strange\n"), "ssh: strange");
    }
}
