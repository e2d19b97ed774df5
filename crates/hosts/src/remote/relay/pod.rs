//! The pods' end: listens on the pod network and starts programs for holders of the token.

use crate::protocol::service::Service;
use crate::protocol::silence::{GONE, LEASE};
use crate::remote::relay::frames::{ALIVE, Kind, PIECE, SILENCE};
use crate::remote::relay::seal::{Opener, SealError, Sealer, Side, meet};
use dyno_types::child;
use dyno_types::sync::held;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Programs at a time: workers and agents of one pod.
const PROGRAMS: usize = 512;
/// Connections at a time of which it is not known yet whether they hold the token. One more takes the place of the oldest:
/// a holder of the token shows it at once.
const KNOCKING: usize = 128;
/// Time that a client may take to show that it holds the token.
const KNOCK: Duration = Duration::from_secs(5);
/// Time that a program may take to end by itself once its input has closed.
const END: Duration = Duration::from_secs(5);

/// A pod that listens.
#[derive(Debug)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    programs: Arc<AtomicUsize>,
}

impl Listening {
    /// Programs that run for a client now.
    pub fn count_programs(&self) -> usize {
        self.programs.load(Ordering::Relaxed)
    }
}

/// Listens on `port` of all addresses for the rest of the process' life, and starts `program` for holders of `token`.
pub fn listen_on(port: u16, token: Vec<u8>, program: &Path) -> io::Result<Listening> {
    listen_for(port, token, program, KNOCK)
}

/// The same with another patience.
pub(super) fn listen_for(
    port: u16,
    token: Vec<u8>,
    program: &Path,
    knock: Duration,
) -> io::Result<Listening> {
    // A listener for both families, or where there is but one, for that.
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
    let address = listener.local_addr()?;
    let programs = Arc::new(AtomicUsize::new(0));
    let door = ListenerState {
        token,
        program: program.to_owned(),
        knock,
        knocking: Mutex::default(),
        programs: programs.clone(),
    };
    let door = Arc::new(door);
    std::thread::Builder::new().name("relay".into()).spawn(move || accept(&listener, &door))?;
    Ok(Listening { address, programs })
}

/// State that all connections of a pod share.
struct ListenerState {
    token: Vec<u8>,
    program: PathBuf,
    /// Time that a client may take to show that it holds the token.
    knock: Duration,
    /// Connections that have not shown it yet, the oldest first.
    knocking: Mutex<VecDeque<(u64, TcpStream)>>,
    /// Programs that run.
    programs: Arc<AtomicUsize>,
}

impl ListenerState {
    /// A client has knocked; where there are too many the oldest is sent away.
    fn knocks(&self, number: u64, stream: TcpStream) {
        let mut knocking = held(&self.knocking);
        if knocking.len() >= KNOCKING
            && let Some((_, oldest)) = knocking.pop_front()
        {
            // It may have gone by itself.
            let _ = oldest.shutdown(std::net::Shutdown::Both);
        }
        knocking.push_back((number, stream));
    }

    /// A connection has shown that it holds the token, or has ended.
    fn settled(&self, number: u64) {
        held(&self.knocking).retain(|(other, _)| *other != number);
    }
}

/// Counts as long as it lives.
struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    /// One more, unless there are too many.
    fn one(of: &Arc<AtomicUsize>) -> Option<ConnectionCount> {
        let one = ConnectionCount(of.clone());
        (of.fetch_add(1, Ordering::Relaxed) < PROGRAMS).then_some(one)
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, door: &Arc<ListenerState>) {
    for (number, stream) in (0..).zip(listener.incoming()) {
        let Ok((stream, own)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else {
            // Out of descriptors, perhaps: others may close theirs.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        door.knocks(number, own);
        let inside = door.clone();
        let serve = move || {
            // The hub hears of a failure: it hears that the connection has ended.
            let _ = serve(&stream, &inside, number);
            inside.settled(number);
            let _ = stream.shutdown(std::net::Shutdown::Both);
        };
        if std::thread::Builder::new().name("connection".into()).spawn(serve).is_err() {
            // Without a thread the connection closes.
            door.settled(number);
        }
    }
}

type Back = Arc<Mutex<Sealer>>;

/// One connection: one program.
fn serve(stream: &TcpStream, door: &ListenerState, number: u64) -> Result<(), SealError> {
    // The hub takes nothing while the controller does not; its signs of life show that it is there.
    stream.set_write_timeout(Some(GONE * LEASE))?;
    let until = Instant::now() + door.knock;
    let (mut sealer, mut opener) = meet(stream, &door.token, Side::Pod, Some(until))?;
    let (kind, bytes) = opener.receive()?;
    door.settled(number);
    opener.trust(SILENCE)?;
    if kind != Kind::Open {
        return Err(io::Error::other("the first word must be what is wanted").into());
    }
    let service: Service = serde_json::from_slice(&bytes).map_err(io::Error::from)?;
    // Shows that the token is here, too.
    sealer.send(Kind::Alive, &[])?;
    let Some(_one) = ConnectionCount::one(&door.programs) else {
        return sealer.send(Kind::End, format!("{PROGRAMS} programs run in its pod already").as_bytes());
    };
    let mut command = child::clean_command(&door.program);
    command
        .args(service.argument_words())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match command.process_group(0).spawn() {
        Ok(child) => child,
        Err(why) => return sealer.send(Kind::End, format!("it does not start: {why}").as_bytes()),
    };
    let input = child.stdin.take();
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("no pipe").into());
    };
    let back: Back = Arc::new(Mutex::new(sealer));
    let over = Arc::new(AtomicBool::new(false));
    let child = Arc::new(Mutex::new(child));
    let data = carry(output, &back, Kind::Data)?;
    let words = carry(errors, &back, Kind::Words)?;
    let (own, ended, telling) = (child.clone(), over.clone(), back.clone());
    let reap = move || {
        // A thread that has panicked has ended, too.
        let _ = (data.join(), words.join());
        let how = reaped(&own);
        ended.store(true, Ordering::Relaxed);
        let mut back = held(&telling);
        // The hub may be gone.
        let _ = back.send(Kind::End, how.as_bytes());
        back.finish();
    };
    let reaper = std::thread::Builder::new().name("reaper".into()).spawn(reap)?;
    alive(&back, &over)?;
    let patience = if feed(&mut opener, input) { END } else { Duration::ZERO };
    // The connection is lost, or the program has ended.
    let end = Instant::now() + patience;
    while !over.load(Ordering::Relaxed) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    if !over.load(Ordering::Relaxed) {
        // It may end just now.
        let _ = held(&child).kill();
    }
    let _ = reaper.join();
    Ok(())
}

/// Takes what a pipe says to the hub.
fn carry(
    mut pipe: impl Read + Send + 'static,
    back: &Back,
    kind: Kind,
) -> io::Result<std::thread::JoinHandle<()>> {
    let back = back.clone();
    let carry = move || {
        let mut piece = vec![0; PIECE];
        // A connection that is lost shows to who reads from it; the pipe is emptied nevertheless.
        while let Ok(n @ 1..) = pipe.read(&mut piece) {
            let _ = held(&back).send(kind, &piece[..n]);
        }
    };
    std::thread::Builder::new().name("carry".into()).spawn(carry)
}

fn alive(back: &Back, over: &Arc<AtomicBool>) -> io::Result<()> {
    let (back, over) = (back.clone(), over.clone());
    let alive = move || {
        while !over.load(Ordering::Relaxed) && held(&back).send(Kind::Alive, &[]).is_ok() {
            std::thread::sleep(ALIVE);
        }
    };
    std::thread::Builder::new().name("alive".into()).spawn(alive).map(drop)
}

/// Takes what the hub says to the program, until one of them is gone; false if the program must not even end by itself.
fn feed(opener: &mut Opener, mut input: Option<impl Write>) -> bool {
    loop {
        match opener.receive() {
            // A program that reads no more has ended or will be ended: its own end says so.
            Ok((Kind::Data, bytes)) => drop(input.as_mut().map(|pipe| pipe.write_all(&bytes))),
            Ok((Kind::Close, _)) => drop(input.take()),
            Ok((Kind::Abort, _)) => return false,
            // The program's input closes with this.
            Err(_) => return true,
            Ok(_) => {}
        }
    }
}

fn reaped(child: &Mutex<Child>) -> String {
    loop {
        // Not waited for under the lock: it may have to be killed.
        match held(child).try_wait() {
            Ok(Some(status)) => return status.to_string(),
            Ok(None) => {}
            Err(why) => return why.to_string(),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
