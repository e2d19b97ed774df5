//! A program on another host, or in another process: what it is told, what it says, and how it ends.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where a program is told things; nothing once it has been closed.
pub type ProgramInput = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

/// A program and its pipes.
pub struct Channel {
    /// Standard input.
    pub input: Box<dyn Write + Send>,
    /// Standard output.
    pub output: Box<dyn Read + Send>,
    /// Itself.
    pub running: Running,
}

/// A program that runs, as far as it can be seen from here.
pub enum Running {
    /// The process, or the one that is the way to it.
    Process(Child),
    /// A program that shares its way here with others.
    Carried(Box<dyn CarriedProgram>),
}

/// A program that shares its way here with others: signs of life are given for all of them together.
pub trait CarriedProgram: Send + Sync {
    /// Returns how it has ended, if it has.
    fn end_status(&self) -> Option<String>;

    /// Ends it at once.
    fn abort(&self);
}

impl Channel {
    /// Starts a command; Ctrl-C in a terminal does not reach it.
    pub fn start(command: &mut Command) -> std::io::Result<Channel> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                running: Running::Process(child),
            }),
            _ => Err(std::io::Error::other("no pipe")),
        }
    }
}

impl Running {
    /// Number of the process here; 0 where there is none.
    pub fn number(&self) -> u32 {
        match self {
            Running::Process(child) => child.id(),
            Running::Carried(_) => 0,
        }
    }

    /// Returns whether signs of life are given on its way for all together.
    pub fn is_kept_alive(&self) -> bool {
        matches!(self, Running::Carried(_))
    }

    /// Returns how it has ended, if it has.
    pub fn end_status(&mut self) -> Option<String> {
        match self {
            Running::Process(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(status.to_string()),
                Err(why) => Some(why.to_string()),
            },
            Running::Carried(program) => program.end_status(),
        }
    }

    /// Ends it at once, and does not wait until it has; `end_status` says when.
    pub fn kill(&mut self) {
        match self {
            // It may have ended by itself.
            Running::Process(child) => drop(child.kill()),
            Running::Carried(program) => program.abort(),
        }
    }

    /// Waits until it has ended, at most until `end`; then it is ended.
    pub fn end(&mut self, end: Instant) {
        while self.end_status().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        if let Running::Process(child) = self {
            let _ = child.wait();
        }
    }
}
