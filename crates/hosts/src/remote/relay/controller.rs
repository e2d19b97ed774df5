//! The controller's end: one process of kubectl, and channels through it.

use crate::kubernetes::kubectl::Kubectl;
use crate::protocol::frame::{FRAME_BYTES, Frame, write_frame};
use crate::protocol::service::Service;
use crate::protocol::silence::{LEASE, Silence};
use crate::protocol::worker::ToWorker;
use crate::remote::channel::CarriedProgram;
use crate::remote::relay::frames::{Kind, Open, PIECE, greeted, hello, put, read};
use dyno_engine::Control;
use dyno_engine::net::monotonic_ns;
use dyno_types::bounded;
use dyno_types::child;
use dyno_types::limits::LOG_END_BYTES;
use dyno_types::sync::held;
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Time that the hub may take to say hello.
const READY: Duration = Duration::from_secs(30);
/// Time between two signs of life: a sixth of the shortest lease of workers in pods.
const ALIVE: Duration = Duration::from_millis(500);
/// Time that kubectl may take to end.
const END: Duration = Duration::from_secs(5);
/// Limit of bytes that wait to be read on a channel: its reader reads all the time.
const WAITING: usize = 4 * FRAME_BYTES;

/// A channel as the thread that reads kubectl's output knows it.
struct KnownChannel {
    data: Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    errors: File,
    ended: Arc<Mutex<Option<String>>>,
}

struct ControllerEnd {
    /// The pod of the hub.
    pod: String,
    log: PathBuf,
    input: Mutex<Option<ChildStdin>>,
    child: Mutex<Child>,
    channels: Mutex<BTreeMap<u32, KnownChannel>>,
    /// Why the hub is gone.
    lost: Mutex<Option<String>>,
    heard_ns: AtomicU64,
    next: AtomicU32,
    ending: AtomicBool,
    /// True once the hub was silent for too long.
    silent: AtomicBool,
}

/// Why there is no way to the pods of a run.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// There is nowhere to write what kubectl says.
    #[error("{}: {source}", .path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// kubectl cannot be started.
    #[error("{program}: {source}")]
    Start {
        /// Name.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A thread cannot be started, or no greeting be made.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// kubectl gives no pipe.
    #[error("no pipe")]
    NoPipe,
    /// The hub does not greet, or not as this end does.
    #[error("the relay in pod {pod}: {message}")]
    Lost {
        /// Pod.
        pod: String,
        /// kubectl's last words, or else why.
        message: String,
    },
    /// A signal came first.
    #[error("interrupted")]
    Interrupted,
}

/// The way to all pods of a run.
pub struct Relay(Arc<ControllerEnd>);

impl std::fmt::Debug for Relay {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Relay({})", self.0.pod)
    }
}

impl Relay {
    /// Has the hub started in `pod` by kubectl, whose words go to `log`. A controller in a pod of the same cluster reaches the
    /// others by itself, and starts the hub beside it, with the run's `token`.
    pub fn start(
        kubectl: &Kubectl,
        (pod, token): (&str, &str),
        log: &Path,
        control: &Control,
    ) -> Result<Relay, RelayError> {
        let relay = match kubectl.is_in_pod() {
            false => {
                let command = kubectl.command(&["exec", "-i", pod, "--", "dyno", "relay", "--stdio"]);
                Relay::by(command, pod, log, control)
            }
            true => {
                // In memory, where only this process and its children find it.
                let mut file =
                    File::from(memfd_create("dyno-token", MemfdFlags::empty()).map_err(io::Error::from)?);
                file.write_all(token.as_bytes())?;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let mut command = child::clean_command(std::env::current_exe()?);
                command.args(["relay", "--stdio", "--token", &path]).process_group(0);
                // The hub has read it once it greets.
                Relay::by(command, "of the controller", log, control)
            }
        };
        match &relay {
            Ok(_) => {
                tracing::info!(pod, in_pod = kubectl.is_in_pod(), "the relay to the pods has been started")
            }
            Err(error) => tracing::error!(pod, %error, "the relay to the pods could not be started"),
        }
        relay
    }

    /// The same by any command.
    pub(super) fn by(
        mut command: Command,
        pod: &str,
        log: &Path,
        control: &Control,
    ) -> Result<Relay, RelayError> {
        let errors = File::create(log).map_err(|source| RelayError::Log { path: log.to_owned(), source })?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::from(errors));
        let started = command.spawn();
        let program = || command.get_program().to_string_lossy().into_owned();
        let mut child = started.map_err(|source| RelayError::Start { program: program(), source })?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let controller = Arc::new(ControllerEnd {
            pod: pod.to_owned(),
            log: log.to_owned(),
            input: Mutex::new(input),
            child: Mutex::new(child),
            channels: Mutex::default(),
            lost: Mutex::default(),
            heard_ns: AtomicU64::new(monotonic_ns()),
            next: AtomicU32::new(1),
            ending: AtomicBool::new(false),
            silent: AtomicBool::new(false),
        });
        // From here on an error drops this, and ends kubectl.
        let relay = Relay(controller.clone());
        let Some(output) = output else { return Err(RelayError::NoPipe) };
        let (tell, told) = channel();
        let listen = move || controller.listen(output, &tell);
        let thread = std::thread::Builder::new().name("relay".into());
        thread.spawn(listen)?;
        relay.0.send(0, Kind::Hello, &hello()?);
        let end = Instant::now() + READY;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match told.recv_timeout(left.min(Duration::from_millis(50))) {
                Ok(Ok(())) => break,
                Ok(Err(why)) => return Err(relay.0.lost(&why.to_string())),
                Err(RecvTimeoutError::Disconnected) => return Err(relay.0.lost("it ended")),
                Err(RecvTimeoutError::Timeout) if control.is_stopping() => {
                    return Err(RelayError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(relay.0.lost(&format!("no answer within {} s", READY.as_secs())));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let controller = relay.0.clone();
        let thread = std::thread::Builder::new().name("alive".into());
        thread.spawn(move || controller.keep_alive())?;
        // A thread that writes may have to wait; the one that looks at the silence never writes.
        let controller = relay.0.clone();
        let thread = std::thread::Builder::new().name("silence".into());
        thread.spawn(move || controller.end_silence())?;
        Ok(relay)
    }

    /// Starts a program in the pod that listens at `address`; its standard error goes to `errors`. What it says of itself, and
    /// that it could not be started, shows when it is read from.
    pub fn open(
        &self,
        address: SocketAddr,
        service: &Service,
        errors: File,
    ) -> io::Result<(Input, PodOutput, RelayChannel)> {
        let controller = &self.0;
        let number = controller.next.fetch_add(1, Ordering::Relaxed);
        let open = serde_json::to_vec(&Open { address, service: service.clone() })?;
        let (data, coming) = channel();
        let (waiting, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
        let known = KnownChannel { data, waiting: waiting.clone(), errors, ended: ended.clone() };
        held(&controller.channels).insert(number, known);
        controller.send(number, Kind::Open, &open);
        // The hub may have been lost just before the channel was there to be told so.
        let lost = held(&controller.lost).clone();
        if let Some(why) = lost {
            held(&controller.channels).remove(&number);
            *held(&ended) = Some(why);
        }
        let input = Input { controller: controller.clone(), number };
        let output = PodOutput { coming, waiting, rest: Vec::new(), at: 0 };
        Ok((input, output, RelayChannel { controller: controller.clone(), number, ended }))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let controller = &self.0;
        controller.ending.store(true, Ordering::Relaxed);
        let end = Instant::now() + END;
        loop {
            match controller.input.try_lock() {
                Ok(mut input) => break drop(input.take()),
                Err(TryLockError::Poisoned(input)) => break drop(input.into_inner().take()),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {}
                // It takes nothing any more, and the thread that writes to it waits.
                Err(TryLockError::WouldBlock) => drop(held(&controller.child).kill()),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut child = held(&controller.child);
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl ControllerEnd {
    /// A hub that is gone shows at the other end.
    fn send(&self, channel: u32, kind: Kind, bytes: &[u8]) {
        let mut all = Vec::with_capacity(bytes.len() + 16);
        match bytes.is_empty() {
            true => put(&mut all, channel, kind, bytes),
            false => bytes.chunks(PIECE).for_each(|piece| put(&mut all, channel, kind, piece)),
        }
        if let Some(pipe) = held(&self.input).as_mut() {
            let _ = pipe.write_all(&all);
        }
    }

    /// One sign of life for all.
    fn keep_alive(&self) {
        let mut ping = Vec::new();
        // Workers and agents have the same word for it.
        if write_frame(&mut ping, &Frame::Message(&ToWorker::Ping)).is_err() {
            return;
        }
        while !self.ending.load(Ordering::Relaxed) && held(&self.lost).is_none() {
            self.send(0, Kind::All, &ping);
            std::thread::sleep(ALIVE);
        }
    }

    /// An end for a hub that gives no sign of life.
    fn end_silence(&self) {
        let mut silence = Silence::starting(self.heard_ns.load(Ordering::Relaxed));
        while !self.ending.load(Ordering::Relaxed) && held(&self.lost).is_none() {
            let silent_ns = silence.look(self.heard_ns.load(Ordering::Relaxed), monotonic_ns());
            if u128::from(silent_ns) > LEASE.as_nanos() {
                self.silent.store(true, Ordering::Relaxed);
                // The end of the child is read like any other; it may have come already.
                let _ = held(&self.child).kill();
                return;
            }
            std::thread::sleep(ALIVE);
        }
    }

    /// Returns the last line of kubectl, or else `why`.
    fn lost(&self, why: &str) -> RelayError {
        // The child's pipe closes a moment before its last words are there.
        let end = Instant::now() + Duration::from_millis(500);
        while matches!(held(&self.child).try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = bounded::end_of(&self.log, LOG_END_BYTES).unwrap_or_default();
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or(why);
        RelayError::Lost { pod: self.pod.clone(), message: last.to_owned() }
    }

    fn listen(&self, mut output: ChildStdout, tell: &Sender<io::Result<()>>) {
        let mut output = io::BufReader::with_capacity(1 << 16, &mut output);
        let first = read(&mut output).and_then(|piece| greeted(&piece));
        let well = first.is_ok();
        // The thread that waits for it may have been interrupted.
        let _ = tell.send(first);
        while well && let Ok(piece) = read(&mut output) {
            self.heard_ns.store(monotonic_ns(), Ordering::Relaxed);
            self.take(piece.channel, piece.kind, piece.bytes);
        }
        let why = match self.silent.load(Ordering::Relaxed) {
            true => format!("the relay in pod {}: silent for {} s", self.pod, LEASE.as_secs()),
            false => self.lost("it ended").to_string(),
        };
        *held(&self.lost) = Some(why.clone());
        for known in std::mem::take(&mut *held(&self.channels)).into_values() {
            *held(&known.ended) = Some(why.clone());
        }
    }

    fn take(&self, number: u32, kind: Kind, bytes: Vec<u8>) {
        let mut channels = held(&self.channels);
        let Some(known) = channels.get_mut(&number) else { return };
        match kind {
            Kind::Data => {
                let waiting = known.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
                // The reader of a channel that was given up is gone; its end comes.
                let _ = known.data.send(bytes);
                if waiting > WAITING
                    && let Some(known) = channels.remove(&number)
                {
                    *held(&known.ended) = Some("it says more than is read".into());
                }
            }
            // A full disk shows elsewhere.
            Kind::Words => drop(known.errors.write_all(&bytes)),
            Kind::End => {
                if let Some(known) = channels.remove(&number) {
                    *held(&known.ended) = Some(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            _ => {}
        }
    }
}

/// Standard input of a program in a pod; closed with its end.
pub struct Input {
    controller: Arc<ControllerEnd>,
    number: u32,
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.controller.send(self.number, Kind::Data, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.controller.send(self.number, Kind::Close, &[]);
    }
}

/// Standard output of a program in a pod.
pub struct PodOutput {
    coming: Receiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    rest: Vec<u8>,
    at: usize,
}

impl Read for PodOutput {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() {
            let Ok(next) = self.coming.recv() else { return Ok(0) };
            self.waiting.fetch_sub(next.len(), Ordering::Relaxed);
            (self.rest, self.at) = (next, 0);
        }
        let n = to.len().min(self.rest.len() - self.at);
        to[..n].copy_from_slice(&self.rest[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// A program in a pod.
pub struct RelayChannel {
    controller: Arc<ControllerEnd>,
    number: u32,
    ended: Arc<Mutex<Option<String>>>,
}

impl CarriedProgram for RelayChannel {
    fn end_status(&self) -> Option<String> {
        held(&self.ended).clone()
    }

    fn abort(&self) {
        if self.end_status().is_none() {
            self.controller.send(self.number, Kind::Abort, &[]);
        }
    }
}
