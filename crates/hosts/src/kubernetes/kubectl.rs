//! kubectl: the user's own way to the cluster and its credentials.

use crate::kubernetes::in_pod;
use dyno_config::experiment::kubernetes::Kubernetes;
use dyno_types::bounded;
use dyno_types::child;
use dyno_types::limits::OUTPUT_BYTES;
use dyno_types::shell::quoted;
use serde_json::Value;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Why kubectl has not done what was asked.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// It could not be started.
    #[error("{program}: {source}; is kubectl on PATH?")]
    NotStarted {
        /// The program.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// It could not be waited for.
    #[error(transparent)]
    Io(io::Error),
    /// The cluster does not answer.
    #[error(
        "the cluster does not answer; see kubernetes.kubeconfig and kubernetes.context ({})",
        last(stderr)
    )]
    Unreachable {
        /// Output of kubectl on standard error.
        stderr: String,
    },
    /// The cluster does not know who asks.
    #[error("the cluster does not take your login: it may have expired ({})", last(stderr))]
    Unauthorized {
        /// Output of kubectl on standard error.
        stderr: String,
    },
    /// kubectl or the cluster has refused the command.
    #[error("{}", last(stderr))]
    Refused {
        /// Output of kubectl on standard error.
        stderr: String,
        /// Exit status.
        status: ExitStatus,
    },
    /// The output is no JSON.
    #[error("kubectl {command}: {source}")]
    Garbled {
        /// The words of the command.
        command: String,
        /// Error of the parser.
        source: serde_json::Error,
    },
}

/// What kubectl says of a cluster that does not answer, or not yet: one that starts again among them.
const SILENT: [&str; 11] = [
    "dial tcp",
    "was refused",
    "Unable to connect",
    "i/o timeout",
    "TLS handshake timeout",
    "connection reset by peer",
    "unexpected EOF",
    "(ServiceUnavailable)",
    "(Timeout)",
    "etcdserver: request timed out",
    "etcdserver: leader changed",
];

impl KubectlError {
    /// Returns whether the cluster may be reached again later: by itself, or after a login.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(self, KubectlError::Unreachable { .. } | KubectlError::Unauthorized { .. })
    }
}

/// The last line that is not empty.
fn last(stderr: &str) -> &str {
    stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no words")
}

/// Access to a cluster by kubectl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubectl {
    program: String,
    options: Vec<String>,
    /// A kubeconfig that only this process and its children see.
    of_pod: Option<&'static str>,
}

impl Kubectl {
    /// As an experiment says.
    pub fn new(asked: &Kubernetes) -> Self {
        let mut options = Vec::new();
        for (option, value) in [
            ("--kubeconfig", &asked.kubeconfig),
            ("--context", &asked.context),
            ("--namespace", &asked.namespace),
        ] {
            options.extend(value.iter().map(|value| format!("{option}={value}")));
        }
        let usual = asked.kubeconfig.is_none() && asked.context.is_none();
        let of_pod = if usual { in_pod::kubeconfig() } else { None };
        Kubectl { program: asked.kubectl.clone().unwrap_or_else(|| "kubectl".into()), options, of_pod }
    }

    /// Returns whether this process runs in a pod of the cluster.
    pub fn is_in_pod(&self) -> bool {
        self.of_pod.is_some()
    }

    /// Returns the words before a command where people type it.
    pub fn typed_words(&self) -> String {
        [std::slice::from_ref(&self.program), &self.options[..]].concat().join(" ")
    }

    /// A command.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = child::clean_command(&self.program);
        command.args(self.of_pod.map(|path| format!("--kubeconfig={path}")));
        command.args(&self.options).args(words).process_group(0);
        command
    }

    /// Runs one with a text as its input; what it printed.
    ///
    /// # Errors
    /// kubectl does not run, the cluster does not answer, or one of the two refuses the command.
    pub fn run(&self, words: &[&str], input: Option<&str>) -> Result<String, KubectlError> {
        let (begun, command) = (Instant::now(), quoted(words));
        let told = self.told(words, input);
        let took_ms = begun.elapsed().as_millis() as u64;
        // Looking goes on several times a second.
        let only_looks = words.iter().any(|word| ["get", "logs"].contains(word));
        match &told {
            Ok(_) if only_looks => tracing::debug!(command, took_ms, exit = 0, "kubectl has ended"),
            Ok(_) => tracing::info!(command, took_ms, exit = 0, "kubectl has ended"),
            Err(KubectlError::Refused { stderr, status }) => {
                tracing::warn!(command, took_ms, exit = status.code(), stderr, "kubectl has failed");
            }
            Err(error) => tracing::warn!(command, took_ms, %error, "kubectl has failed"),
        }
        told
    }

    fn told(&self, words: &[&str], input: Option<&str>) -> Result<String, KubectlError> {
        // What waits, waits in a loop of ours, which has an end.
        let mut command = self.command(&[&["--request-timeout=30s"], words].concat());
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let unstarted = |source| KubectlError::NotStarted { program: self.program.clone(), source };
        let mut child = started.map_err(unstarted)?;
        if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
            let text = text.to_owned();
            // A child that reads nothing more says why by itself.
            std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        let told = bounded::read_output(child, OUTPUT_BYTES).map_err(KubectlError::Io)?;
        if told.status.success() {
            return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
        // kubectl has one exit status for every failure: only its words say that no server has answered.
        let silent = SILENT.iter().any(|word| last(&stderr).contains(word));
        let unknown =
            ["(Unauthorized)", "You must be logged in"].iter().any(|word| last(&stderr).contains(word));
        Err(match silent {
            true => KubectlError::Unreachable { stderr },
            false if unknown => KubectlError::Unauthorized { stderr },
            false => KubectlError::Refused { stderr, status: told.status },
        })
    }

    /// The same, read as JSON.
    ///
    /// # Errors
    /// As of [`Kubectl::run`]; or what it printed is no JSON.
    pub fn run_json(&self, words: &[&str]) -> Result<Value, KubectlError> {
        let text = self.run(words, None)?;
        serde_json::from_str(&text)
            .map_err(|source| KubectlError::Garbled { command: words.join(" "), source })
    }

    /// Creates objects; what the cluster made of them.
    ///
    /// # Errors
    /// As of [`Kubectl::run_json`].
    pub fn create_objects(&self, objects: &[Value]) -> Result<Vec<Value>, KubectlError> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let text = self.run(&["create", "-f", "-", "-o", "json"], Some(&list.to_string()))?;
        // One object after the other.
        let made: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
        made.map_err(|source| KubectlError::Garbled { command: "create".into(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn failing(stderr: &str) -> KubectlError {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("kubectl");
        std::fs::write(&program, format!("#!/bin/sh\nprintf '{stderr}' >&2\nexit 1\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let asked = Kubernetes { kubectl: Some(program.display().to_string()), ..Kubernetes::default() };
        Kubectl::new(&asked).run(&["get", "pods"], None).unwrap_err()
    }

    #[test]
    fn a_cluster_that_is_silent_is_told_from_one_that_refuses() {
        let silent =
            failing("E1 memcache.go: dial tcp\\nUnable to connect to the server: dial tcp: i/o timeout\\n");
        assert!(matches!(silent, KubectlError::Unreachable { .. }), "{silent:?}");
        let message = "the cluster does not answer; see kubernetes.kubeconfig and kubernetes.context (Unable to connect to the \
                     server: dial tcp: i/o timeout)";
        assert_eq!(silent.to_string(), message);
        let refused = failing("Warning: old\\nError from server (NotFound): pods \"a\" not found\\n\\n");
        assert_eq!(refused.to_string(), "Error from server (NotFound): pods \"a\" not found");
        let expired = failing("error: You must be logged in to the server (Unauthorized)\\n");
        assert!(expired.is_out_of_reach() && !refused.is_out_of_reach(), "{expired:?}");
        assert!(expired.to_string().starts_with("the cluster does not take your login"), "{expired}");
        let KubectlError::Refused { stderr, status } = refused else { panic!("{refused:?}") };
        assert!(stderr.starts_with("Warning: old") && status.code() == Some(1));
        assert_eq!(failing("").to_string(), "no words");
    }

    #[test]
    fn a_kubectl_that_is_not_there_is_named() {
        let asked = Kubernetes { kubectl: Some("/nowhere/kubectl".into()), ..Kubernetes::default() };
        let error = Kubectl::new(&asked).run_json(&["get", "pods"]).unwrap_err();
        assert!(matches!(error, KubectlError::NotStarted { .. }), "{error:?}");
        assert!(error.to_string().starts_with("/nowhere/kubectl: No such file"), "{error}");
    }
}
