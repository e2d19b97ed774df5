//! kubectl: the user's own way to the cluster and its credentials.

use dyno_plan::experiment::Kubernetes;
use dyno_types::child;
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// How a cluster is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubectl {
    program: String,
    options: Vec<String>,
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
        Kubectl { program: asked.kubectl.clone().unwrap_or_else(|| "kubectl".into()), options }
    }

    /// What stands before the words of a command where people type it.
    pub fn typed(&self) -> String {
        [std::slice::from_ref(&self.program), &self.options[..]].concat().join(" ")
    }

    /// A command.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = child::command(&self.program);
        command.args(&self.options).args(words).process_group(0);
        command
    }

    /// Runs one with a text as its input; what it printed, or its words.
    pub fn run(&self, words: &[&str], input: Option<&str>) -> Result<String, String> {
        // What waits, waits in a loop of ours, which has an end.
        let mut command = self.command(&[&["--request-timeout=30s"], words].concat());
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| format!("{}: {e}; is kubectl on PATH?", self.program))?;
        if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
            let text = text.to_owned();
            // A child that reads nothing more says why by itself.
            std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        let told = child.wait_with_output().map_err(|e| e.to_string())?;
        if told.status.success() {
            return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
        }
        let words = String::from_utf8_lossy(&told.stderr);
        let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no words");
        let silent = ["dial tcp", "was refused", "Unable to connect", "i/o timeout"]
            .iter()
            .any(|word| last.contains(word));
        match silent {
            true => Err(format!(
                "the cluster does not answer; see kubernetes.kubeconfig and kubernetes.context ({last})"
            )),
            false => Err(last.to_owned()),
        }
    }

    /// The same, read as JSON.
    pub fn json(&self, words: &[&str]) -> Result<Value, String> {
        let text = self.run(words, None)?;
        serde_json::from_str(&text).map_err(|e| format!("kubectl {}: {e}", words.join(" ")))
    }

    /// Creates objects; what the cluster made of them.
    pub fn create(&self, objects: &[Value]) -> Result<Vec<Value>, String> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let text = self.run(&["create", "-f", "-", "-o", "json"], Some(&list.to_string()))?;
        // One object after the other.
        let made: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&text).into_iter().collect();
        made.map_err(|e| format!("kubectl create: {e}"))
    }
}
