//! The hub, in one pod of a run: opens connections to all pods, and carries what the controller and they say to each other.

use crate::protocol::service::Service;
use crate::protocol::silence::{GONE, LEASE, Silence};
use crate::remote::relay::frames::{
    ALIVE, ChannelPiece, Kind, Open, PIECE, SILENCE, greeted, hello, read, write,
};
use crate::remote::relay::seal::{Opener, SealError, Sealer, Side, meet};
use dyno_engine::net::monotonic_ns;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that a pod may take to answer: it listens a moment after its container has started.
const CONNECT: Duration = Duration::from_secs(10);
/// Time that a pod may take to receive: what goes to pods is little.
const SEND: Duration = Duration::from_secs(2);
/// Limit of bytes that wait for a pod that is being connected.
const WAITING: usize = 8 << 20;
/// Pieces on their way to the controller; then pods have to wait.
const PIECES: usize = 256;
/// Bytes that go to the controller with one call.
const TOGETHER: usize = 1 << 20;

/// The way to a pod.
enum Pod {
    /// Being made; what waits for it.
    Waiting(Vec<(Kind, Vec<u8>)>),
    There(Box<Sealer>),
}

struct HubChannel {
    pod: Pod,
    /// True if the controller has said anything on it: signs of life must not be the first words.
    spoken: bool,
}

struct Hub {
    token: Vec<u8>,
    channels: Mutex<BTreeMap<u32, HubChannel>>,
    back: SyncSender<ChannelPiece>,
    /// When the controller was last heard, monotonic nanoseconds.
    heard_ns: AtomicU64,
}

/// Serves one controller until it closes the pipe or is silent for longer than workers wait for it; then all connections end. A
/// controller that takes nothing for a while holds up what pods say: they keep it until then.
pub fn serve_hub(
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
    token: Vec<u8>,
) -> io::Result<()> {
    greeted(&read(&mut input)?)?;
    write(&mut output, 0, Kind::Hello, &hello()?)?;
    let (back, pieces) = sync_channel(PIECES);
    let heard_ns = AtomicU64::new(monotonic_ns());
    let hub = Arc::new(Hub { token, channels: Mutex::default(), back, heard_ns });
    let (over, ended) = channel();
    let also = over.clone();
    let tell = move || drop(also.send(carry(&pieces, &mut output)));
    std::thread::Builder::new().name("output".into()).spawn(tell)?;
    let own = hub.clone();
    let listen = move || drop(over.send(own.listen(&mut input)));
    std::thread::Builder::new().name("input".into()).spawn(listen)?;
    let mut silence = Silence::starting(hub.heard_ns.load(Ordering::Relaxed));
    loop {
        match ended.recv_timeout(ALIVE) {
            Ok(how) => {
                hub.shut();
                return how;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let silent_ns = silence.look(hub.heard_ns.load(Ordering::Relaxed), monotonic_ns());
        if u128::from(silent_ns) > (GONE * LEASE).as_nanos() {
            break;
        }
        hub.keep_pods();
        // Where pieces wait, the controller hears enough.
        let _ = hub.back.try_send(ChannelPiece { channel: 0, kind: Kind::Alive, bytes: Vec::new() });
    }
    hub.shut();
    Err(io::Error::other("the controller is silent"))
}

/// Writes what waits, as much as there is with one call.
fn carry(pieces: &Receiver<ChannelPiece>, output: &mut dyn Write) -> io::Result<()> {
    let mut all = Vec::new();
    while let Ok(first) = pieces.recv() {
        first.put(&mut all);
        while all.len() < TOGETHER
            && let Ok(next) = pieces.try_recv()
        {
            next.put(&mut all);
        }
        output.write_all(&all)?;
        output.flush()?;
        all.clear();
    }
    Ok(())
}

impl Hub {
    fn channels(&self) -> MutexGuard<'_, BTreeMap<u32, HubChannel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shut(&self) {
        for channel in std::mem::take(&mut *self.channels()).into_values() {
            if let Pod::There(sealer) = channel.pod {
                sealer.shut();
            }
        }
    }

    /// Reads the controller's pipe to its end.
    fn listen(self: &Arc<Self>, input: &mut dyn Read) -> io::Result<()> {
        loop {
            let piece = match read(input) {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            self.heard_ns.store(monotonic_ns(), Ordering::Relaxed);
            match piece.kind {
                Kind::Open => self.open(piece.channel, &piece.bytes)?,
                Kind::Data | Kind::Close | Kind::Abort => self.pass(piece),
                Kind::All => self.all(&piece.bytes),
                Kind::Hello | Kind::Words | Kind::End | Kind::Alive => {}
            }
        }
    }

    fn open(self: &Arc<Self>, number: u32, bytes: &[u8]) -> io::Result<()> {
        let open: Open = serde_json::from_slice(bytes)?;
        let channel = HubChannel { pod: Pod::Waiting(Vec::new()), spoken: false };
        self.channels().insert(number, channel);
        let own = self.clone();
        let carry = move || {
            let how = match own.connect(number, open.address, &open.service) {
                Ok(opener) => own.receive(number, opener),
                Err(why) => describe_refusal(open.address, &why),
            };
            own.channels().remove(&number);
            own.tell(number, Kind::End, how.into_bytes());
        };
        std::thread::Builder::new().name(format!("pod-{number}")).spawn(carry).map(drop)
    }

    /// To the controller; it waits while the controller does not take what there is.
    fn tell(&self, channel: u32, kind: Kind, bytes: Vec<u8>) {
        // A controller that is gone shows at the other end.
        let _ = self.back.send(ChannelPiece { channel, kind, bytes });
    }

    fn connect(&self, number: u32, address: SocketAddr, service: &Service) -> Result<Opener, SealError> {
        let (mut sealer, opener) = open_program(address, &self.token, service)?;
        let mut channels = self.channels();
        let Some(channel) = channels.get_mut(&number) else {
            return Err(io::Error::other("given up while it was being connected").into());
        };
        if let Pod::Waiting(waiting) = &mut channel.pod {
            std::mem::take(waiting).into_iter().try_for_each(|(kind, bytes)| sealer.send(kind, &bytes))?;
        }
        channel.pod = Pod::There(Box::new(sealer));
        Ok(opener)
    }

    /// Takes what a pod says to the controller; how it has ended.
    fn receive(&self, number: u32, mut opener: Opener) -> String {
        loop {
            match opener.receive() {
                Ok((kind @ (Kind::Data | Kind::Words), bytes)) => self.tell(number, kind, bytes),
                Ok((Kind::End, bytes)) => return String::from_utf8_lossy(&bytes).into_owned(),
                Ok(_) => {}
                Err(why) => return describe_loss(&why),
            }
        }
    }

    /// To a pod, or to wait for it. A pod that takes nothing for long is lost.
    fn pass(&self, piece: ChannelPiece) {
        let mut channels = self.channels();
        let Some(channel) = channels.get_mut(&piece.channel) else { return };
        channel.spoken |= piece.kind == Kind::Data;
        let given_up = match &mut channel.pod {
            Pod::There(sealer) => {
                let failed = sealer.send(piece.kind, &piece.bytes).is_err();
                if failed {
                    sealer.shut();
                }
                false
            }
            Pod::Waiting(waiting) => {
                let bytes: usize = waiting.iter().map(|(_, bytes)| bytes.len()).sum();
                let aborted = piece.kind == Kind::Abort;
                waiting.push((piece.kind, piece.bytes));
                aborted || bytes > WAITING
            }
        };
        if given_up {
            channels.remove(&piece.channel);
        }
    }

    /// A sign of life for every pod: the way to it is whole, whatever the controller does.
    fn keep_pods(&self) {
        for channel in self.channels().values_mut() {
            if let Pod::There(sealer) = &mut channel.pod
                && sealer.send(Kind::Alive, &[]).is_err()
            {
                sealer.shut();
            }
        }
    }

    fn all(&self, bytes: &[u8]) {
        for channel in self.channels().values_mut().filter(|channel| channel.spoken) {
            if let Pod::There(sealer) = &mut channel.pod
                && sealer.send(Kind::Data, bytes).is_err()
            {
                sealer.shut();
            }
        }
    }
}

/// Has a pod start a program; both halves of the connection that is its standard input, output and error.
pub(super) fn open_program(
    address: SocketAddr,
    token: &[u8],
    service: &Service,
) -> Result<(Sealer, Opener), SealError> {
    let stream = connected(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SEND))?;
    let (mut sealer, mut opener) = meet(&stream, token, Side::Hub, None)?;
    sealer.send(Kind::Open, &serde_json::to_vec(service).map_err(io::Error::from)?)?;
    if let (Kind::End, words) = opener.receive()? {
        return Err(io::Error::other(String::from_utf8_lossy(&words).into_owned()).into());
    }
    Ok((sealer, opener))
}

/// Why a program in a pod could not be opened, in the controller's words for people.
pub(super) fn describe_refusal(address: SocketAddr, why: &SealError) -> String {
    match why {
        // A pod closes the connection of who does not hold its token.
        SealError::Closed => format!("{address}: it does not take the token"),
        why => format!("{address}: {why}"),
    }
}

/// Why an open connection has ended, in the controller's words for people.
pub(super) fn describe_loss(why: &SealError) -> String {
    match why {
        SealError::Io(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            format!("its pod is silent for {} s", SILENCE.as_secs())
        }
        _ => format!("the connection to its pod is lost: {why}"),
    }
}

fn connected(address: SocketAddr) -> io::Result<TcpStream> {
    let end = Instant::now() + CONNECT;
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Err(_) if Instant::now() + ALIVE < end => std::thread::sleep(Duration::from_millis(50)),
            made => return made,
        }
    }
}

// A piece of a pod fits a frame of the controller.
const _: () = assert!(PIECE + 5 <= crate::remote::relay::frames::FRAME_BYTES);
