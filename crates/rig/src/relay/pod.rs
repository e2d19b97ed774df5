//! The pods' end: listens on the pod network and starts programs for whoever holds the token.

use super::seal::{Opener, Sealer, Side, meet};
use super::{ALIVE, Kind, PIECE, SILENCE, Service};
use dyno_types::child;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections at a time: workers and agents of one pod, and who knocks without a token.
const CONNECTIONS: usize = 512;
/// How long somebody may take to show that they hold the token.
const KNOCK: Duration = Duration::from_secs(5);
/// How long a program may take to end by itself once its input has closed.
const END: Duration = Duration::from_secs(5);

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pod that listens.
#[derive(Debug)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    programs: Arc<AtomicUsize>,
}

impl Listening {
    /// Programs that run for somebody now.
    pub fn programs(&self) -> usize {
        self.programs.load(Ordering::Relaxed)
    }
}

/// Listens on `port` of all addresses for the rest of the process' life, and starts `program` for holders of `token`.
pub fn listen(port: u16, token: Vec<u8>, program: &Path) -> io::Result<Listening> {
    // A listener for both families, or where there is but one, for that.
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
    let address = listener.local_addr()?;
    let programs = Arc::new(AtomicUsize::new(0));
    let (running, program) = (programs.clone(), program.to_owned());
    let accept = move || accept(&listener, &Arc::new(token), &program, &running);
    std::thread::Builder::new().name("relay".into()).spawn(accept)?;
    Ok(Listening { address, programs })
}

/// Counts as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one(of: &Arc<AtomicUsize>) -> Counted {
        of.fetch_add(1, Ordering::Relaxed);
        Counted(of.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener, token: &Arc<Vec<u8>>, program: &Path, running: &Arc<AtomicUsize>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, perhaps: others may close theirs.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let one = Counted::one(&open);
        if open.load(Ordering::Relaxed) > CONNECTIONS {
            continue;
        }
        let (token, program, running) = (token.clone(), program.to_owned(), running.clone());
        let serve = move || {
            let _one = one;
            // Who hears of a failure is the hub, and it hears that the connection has ended.
            let _ = serve(&stream, &token, program, &running);
            let _ = stream.shutdown(std::net::Shutdown::Both);
        };
        // Without a thread the connection closes.
        let _ = std::thread::Builder::new().name("connection".into()).spawn(serve);
    }
}

type Back = Arc<Mutex<Sealer>>;

/// One connection: one program.
fn serve(stream: &TcpStream, token: &[u8], program: PathBuf, running: &Arc<AtomicUsize>) -> io::Result<()> {
    stream.set_read_timeout(Some(KNOCK))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let (mut sealer, mut opener) = meet(stream, token, Side::Pod)?;
    let (kind, bytes) = opener.receive()?;
    if kind != Kind::Open {
        return Err(io::Error::other("the first word must be what is wanted"));
    }
    let service: Service = serde_json::from_slice(&bytes)?;
    // Shows that the token is here, too.
    sealer.send(Kind::Alive, &[])?;
    stream.set_read_timeout(Some(SILENCE))?;
    let _one = Counted::one(running);
    let mut command = child::command(program);
    command.args(service.words()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.process_group(0).spawn() {
        Ok(child) => child,
        Err(why) => return sealer.send(Kind::End, format!("it does not start: {why}").as_bytes()),
    };
    let input = child.stdin.take();
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("no pipe"));
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
            // Its input closes with this.
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
