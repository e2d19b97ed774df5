//! A program in another pod of the run, spoken to without a hub between: how a group reaches the workers of its node.

use crate::protocol::service::Service;
use crate::remote::channel::{CarriedProgram, Channel, Running};
use crate::remote::relay::frames::Kind;
use crate::remote::relay::hub::{describe_loss, describe_refusal, open_program};
use crate::remote::relay::seal::{Opener, Sealer};
use dyno_types::sync::held;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// The writing half of a connection to a pod, which must be kept alive.
#[derive(Clone)]
pub(crate) struct PodInput(Arc<Mutex<Sealer>>);

impl PodInput {
    /// Gives a sign of life; a pod that takes nothing for long is lost, which shows to its reader.
    pub(crate) fn keep_alive(&self) {
        self.send_or_shut(Kind::Alive, &[]);
    }

    fn send_or_shut(&self, kind: Kind, bytes: &[u8]) {
        let mut sealer = held(&self.0);
        if sealer.send(kind, bytes).is_err() {
            sealer.shut();
        }
    }
}

/// Standard input of the program; closed with its end.
struct ProgramInput(PodInput);

impl Write for ProgramInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sealer = held(&self.0.0);
        sealer.send(Kind::Data, bytes).map_err(|why| {
            sealer.shut();
            io::Error::other(describe_loss(&why))
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ProgramInput {
    fn drop(&mut self) {
        self.0.send_or_shut(Kind::Close, &[]);
    }
}

/// Standard output of the program. What it says for people goes to this process' standard error.
struct ProgramOutput {
    opener: Opener,
    rest: Vec<u8>,
    at: usize,
    ended: Arc<Mutex<Option<String>>>,
}

impl Read for ProgramOutput {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() {
            let ended = match self.opener.receive() {
                Ok((Kind::Data, bytes)) => {
                    (self.rest, self.at) = (bytes, 0);
                    continue;
                }
                Ok((Kind::Words, bytes)) => {
                    // A full disk shows elsewhere.
                    let _ = io::stderr().write_all(&bytes);
                    continue;
                }
                Ok((Kind::End, bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
                Ok(_) => continue,
                Err(why) => describe_loss(&why),
            };
            held(&self.ended).get_or_insert(ended);
            return Ok(0);
        }
        let n = to.len().min(self.rest.len() - self.at);
        to[..n].copy_from_slice(&self.rest[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// The program itself. How it has ended is known once its output has been read to its end.
struct PodProgram {
    input: PodInput,
    ended: Arc<Mutex<Option<String>>>,
}

impl CarriedProgram for PodProgram {
    fn end_status(&self) -> Option<String> {
        held(&self.ended).clone()
    }

    fn abort(&self) {
        if self.end_status().is_none() {
            self.input.send_or_shut(Kind::Abort, &[]);
        }
    }
}

/// Has the pod that listens at `address` start a program, for who holds the run's `token`.
///
/// # Errors
/// The pod does not answer, does not take the token, or does not start it; the text names the address.
pub(crate) fn open_in_pod(
    address: SocketAddr,
    token: &[u8],
    service: &Service,
) -> io::Result<(Channel, PodInput)> {
    let opened = open_program(address, token, service);
    let (sealer, opener) = opened.map_err(|why| io::Error::other(describe_refusal(address, &why)))?;
    let (input, ended) = (PodInput(Arc::new(Mutex::new(sealer))), Arc::default());
    let output = ProgramOutput { opener, rest: Vec::new(), at: 0, ended: Arc::clone(&ended) };
    let running = Running::Carried(Box::new(PodProgram { input: input.clone(), ended }));
    let channel = Channel { input: Box::new(ProgramInput(input.clone())), output: Box::new(output), running };
    Ok((channel, input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::relay::pod::listen_on;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    const HELD: &[u8] = b"0123456789abcdef0123456789abcdef";

    /// A pod whose program repeats what it is told and ends with 3.
    fn start_pod(folder: &std::path::Path) -> SocketAddr {
        let path = folder.join("program");
        std::fs::write(&path, "#!/bin/sh\necho \"$@\"\ncat\nexit 3\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let pod = listen_on(0, HELD.to_vec(), &path).unwrap();
        SocketAddr::new([127, 0, 0, 1].into(), pod.address.port())
    }

    fn await_end(running: &mut Running) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match running.end_status() {
                Some(how) => return how,
                None => assert!(Instant::now() < end, "it goes on"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_hears_is_heard_and_says_how_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (channel, keep) = open_in_pod(start_pod(folder.path()), HELD, &Service::Worker).unwrap();
        let Channel { mut input, mut output, mut running } = channel;
        // More than fits one record, with signs of life between.
        let long = "x".repeat(200_000);
        for _ in 0..3 {
            input.write_all(long.as_bytes()).unwrap();
            keep.keep_alive();
        }
        drop(input);
        let mut heard = String::new();
        output.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, format!("worker --stdio\n{}", long.repeat(3)));
        assert_eq!(await_end(&mut running), "exit status: 3");
    }

    #[test]
    fn one_that_is_ended_says_so_and_who_has_another_token_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let address = start_pod(folder.path());
        let (Channel { input, mut output, mut running }, _) =
            open_in_pod(address, HELD, &Service::Worker).unwrap();
        running.end(Instant::now());
        output.read_to_end(&mut Vec::new()).unwrap();
        assert!(await_end(&mut running).contains("signal: 9"));
        drop(input);
        let refused = open_in_pod(address, &[b'x'; 32], &Service::Worker).err().unwrap().to_string();
        assert!(refused.starts_with(&address.to_string()) && refused.contains("token"), "{refused}");
        let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        assert!(open_in_pod(closed, HELD, &Service::Worker).is_err(), "nothing listens there");
    }
}
