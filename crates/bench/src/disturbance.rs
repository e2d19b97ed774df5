//! Clients that run to their end while they, or their server, are disturbed.

use crate::children::Bench;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the client is stopped, and how long it runs then.
const STOPPED: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(450));

/// When the server is stopped, and until when; when its core gets something else to do.
const SERVER: (Duration, Duration) = (Duration::from_millis(4_000), Duration::from_millis(6_500));
const MIDDLE: Duration = Duration::from_millis(5_500);

/// Longest that a client may run.
const LONGEST: Duration = Duration::from_secs(60);

/// What is done meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// A busy loop on the client's core.
    Busy,
    /// The client is stopped for 50 ms, twice a second.
    Stopped,
    /// The server is stopped for 2.5 s.
    ServerStopped,
    /// A busy loop on the server's core, from the middle on.
    ServerBusy,
}

impl Disturbance {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Disturbance::None => "undisturbed",
            Disturbance::Busy => "beside a busy loop on its core",
            Disturbance::Stopped => "stopped for 50 ms, twice a second",
            Disturbance::ServerStopped => "its server stopped for 2.5 s",
            Disturbance::ServerBusy => "its server beside a busy loop from the middle on",
        }
    }
}

/// A child that is killed, with all that it has started, when dropped.
pub struct Group(pub Child);

impl Group {
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        if let Some(group) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A program of its own group on one core.
pub fn on_core(core: usize, program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string(), program]).args(arguments).process_group(0).stdin(Stdio::null());
    command
}

fn busy(core: usize) -> Result<Group> {
    Ok(Group(on_core(core, "sh", &["-c", "while :; do :; done"].map(str::to_owned)).spawn()?))
}

/// Runs a client on its core to its end, disturbed all the time; what it has printed.
pub fn disturbed(
    bench: &Bench,
    (program, arguments): (&str, &[String]),
    disturbance: Disturbance,
) -> Result<String> {
    let mut beside = match disturbance {
        Disturbance::Busy => Some(busy(bench.client_core)?),
        _ => None,
    };
    let mut command = on_core(bench.client_core, program, arguments);
    let mut client = Group(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
    let mut stdout = client.0.stdout.take().context("stdout")?;
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let server = |signal: Signal| {
        let pid = Pid::from_raw(bench.server.pid() as i32).context("the server's number")?;
        kill_process(pid, signal).context("the server's signal")
    };
    let (begun, mut halted) = (Instant::now(), false);
    while client.0.try_wait()?.is_none() {
        let since = begun.elapsed();
        if since > LONGEST {
            bail!("{program} does not end");
        }
        match disturbance {
            Disturbance::Stopped => {
                std::thread::sleep(STOPPED.1);
                client.signal(Signal::STOP);
                std::thread::sleep(STOPPED.0);
                client.signal(Signal::CONT);
                continue;
            }
            Disturbance::ServerStopped if (since >= SERVER.0 && since < SERVER.1) != halted => {
                halted = !halted;
                server(if halted { Signal::STOP } else { Signal::CONT })?;
            }
            Disturbance::ServerBusy if since >= MIDDLE && beside.is_none() => {
                beside = Some(busy(bench.server_core)?);
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if halted {
        server(Signal::CONT)?;
    }
    drop((client, beside));
    Ok(reading.join().ok().context("the client's output")??)
}
