//! Clients that run to their end while they, or their server, are disturbed.

use crate::children::Bench;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// When the server's core gets something else to do.
const MIDDLE: Duration = Duration::from_millis(5_500);

/// Longest that a client may run.
const LONGEST: Duration = Duration::from_secs(60);

/// Who is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Stops of a process: times since the client's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stops {
    /// Who is stopped.
    pub of: Party,
    /// When for the first time.
    pub first: Duration,
    /// For how long.
    pub length: Duration,
    /// From one stop's begin to the next one's; `None` for one stop alone.
    pub every: Option<Duration>,
    /// None begins later.
    pub last: Duration,
}

impl Stops {
    /// The client for 50 ms twice a second, to the end.
    pub const OF_THE_CLIENT: Stops = Stops {
        of: Party::Client,
        first: Duration::from_millis(450),
        length: Duration::from_millis(50),
        every: Some(Duration::from_millis(500)),
        last: LONGEST,
    };
    /// The server for 2.5 s.
    pub const OF_THE_SERVER: Stops = Stops {
        of: Party::Server,
        first: Duration::from_millis(4_000),
        length: Duration::from_millis(2_500),
        every: None,
        last: LONGEST,
    };

    /// Returns whether the process stands still at a time since the client's start, and for how much longer this lasts: `None`
    /// to the end.
    fn at(&self, since: Duration) -> (bool, Option<Duration>) {
        let Some(passed) = since.checked_sub(self.first) else { return (false, Some(self.first - since)) };
        let number = self.every.map_or(0, |every| passed.as_nanos() / every.as_nanos());
        let begin = self.first + self.every.map_or(Duration::ZERO, |every| every * number as u32);
        if begin > self.last {
            return (false, None);
        }
        match (since < begin + self.length, self.every) {
            (true, _) => (true, Some(begin + self.length - since)),
            (false, Some(every)) => (false, Some(begin + every - since)),
            (false, None) => (false, None),
        }
    }
}

/// What is done meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// A busy loop on the client's core.
    Busy,
    /// The client or the server is stopped.
    Stopped(Stops),
    /// A busy loop on the server's core, from the middle on.
    ServerBusy,
}

impl Disturbance {
    /// In words.
    pub fn describe(self) -> String {
        let stops = match self {
            Disturbance::None => return "undisturbed".to_owned(),
            Disturbance::Busy => return "beside a busy loop on its core".to_owned(),
            Disturbance::ServerBusy => return "its server beside a busy loop from the middle on".to_owned(),
            Disturbance::Stopped(stops) => stops,
        };
        let who = if stops.of == Party::Client { "" } else { "its server " };
        let every = stops.every.map_or("once".to_owned(), |every| format!("every {every:?}"));
        format!("{who}stopped for {:?}, {every}", stops.length)
    }
}

/// A child that is killed, with all that it has started, when dropped.
pub struct KilledGroup(pub Child);

impl KilledGroup {
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        if let Some(group) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for KilledGroup {
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

fn busy(core: usize) -> Result<KilledGroup> {
    Ok(KilledGroup(on_core(core, "sh", &["-c", "while :; do :; done"].map(str::to_owned)).spawn()?))
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
    let mut client = KilledGroup(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
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
        let mut pause = Duration::from_millis(20);
        match disturbance {
            Disturbance::Stopped(stops) => {
                let (stands, remaining) = stops.at(since);
                if stands != halted {
                    halted = stands;
                    let signal = if halted { Signal::STOP } else { Signal::CONT };
                    match stops.of {
                        Party::Client => client.signal(signal),
                        Party::Server => server(signal)?,
                    }
                }
                pause = remaining.map_or(pause, |remaining| remaining.min(pause));
            }
            Disturbance::ServerBusy if since >= MIDDLE && beside.is_none() => {
                beside = Some(busy(bench.server_core)?);
            }
            _ => {}
        }
        std::thread::sleep(pause);
    }
    // The run may end while the server is stopped: let the server go on.
    server(Signal::CONT)?;
    drop((client, beside));
    Ok(reading.join().ok().context("the client's output")??)
}
