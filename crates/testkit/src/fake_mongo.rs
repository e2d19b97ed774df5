//! Servers that speak just enough of MongoDB's protocol to play deployments that cannot be had for real: a script says
//! what each command is answered.

use dyno_db_mongodb::protocol::compress::{Codec, Compressor};
use dyno_db_mongodb::protocol::message::{self, HEADER, code};
use dyno_types::bson::{self, kind};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// A command as it came: its document, and the sequences after it.
pub struct FakeCommand {
    pub document: Vec<u8>,
    pub sequences: Vec<u8>,
    /// The compressor it was packed by.
    pub packed: Option<u8>,
}

impl FakeCommand {
    /// The command's name.
    pub fn name(&self) -> String {
        let first = bson::read_elements(&self.document).unwrap().next().unwrap().unwrap();
        String::from_utf8(first.name.to_vec()).unwrap()
    }
}

/// Answers a command by appending the fields of the reply.
pub type Script = Arc<dyn Fn(&FakeCommand, &mut Vec<u8>) + Send + Sync>;

/// No server says this.
const HANG_UP: &[u8] = b"<the line goes dead>";

const HALF: &[u8] = b"<half of this is sent>";

/// Half of the answer is sent, and the connection is closed.
pub fn cut(out: &mut Vec<u8>) {
    out.extend_from_slice(HALF);
}

/// Instead of an answer the connection is closed.
pub fn hang_up(out: &mut Vec<u8>) {
    out.extend_from_slice(HANG_UP);
}

/// Listens on a free port until the process ends; returns `host:port`.
pub fn serve(script: impl FnOnce(String) -> Script) -> String {
    listen(0, script, None)
}

/// The same on a port of one's own.
pub fn serve_on(port: u16, script: impl FnOnce(String) -> Script) -> String {
    listen(port, script, None)
}

/// The same behind TLS.
pub fn serve_tls(script: impl FnOnce(String) -> Script, tls: Arc<ServerConfig>) -> String {
    listen(0, script, Some(tls))
}

fn listen(port: u16, script: impl FnOnce(String) -> Script, tls: Option<Arc<ServerConfig>>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let script = script(name.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (script, tls) = (script.clone(), tls.clone());
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || match tls {
                None => talk(stream, &script),
                Some(tls) => talk(StreamOwned::new(ServerConnection::new(tls).unwrap(), stream), &script),
            });
        }
    });
    name
}

fn read_message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut whole = vec![0; i32::from_le_bytes(head) as usize];
    whole[..4].copy_from_slice(&head);
    stream.read_exact(&mut whole[4..]).ok()?;
    Some(whole)
}

fn int(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn talk(mut stream: impl Read + Write, script: &Script) {
    let mut codec = Codec::new(-1);
    while let Some(whole) = read_message(&mut stream) {
        let (id, mut opcode) = (int(&whole, 4), int(&whole, 12));
        let (mut body, mut packed) = (whole[HEADER..].to_vec(), None);
        if opcode == code::COMPRESSED {
            packed = Some(body[8]);
            let header = message::read_header(&whole).unwrap().unwrap();
            let mut plain = Vec::new();
            opcode = codec.expand_body(header, &body, &mut plain).unwrap();
            body = plain;
        }
        let from = if opcode == code::QUERY { 4 + "admin.$cmd".len() + 1 + 8 } else { 5 };
        let length = int(&body, from) as usize;
        let sequences = body[from + length..].to_vec();
        let command = FakeCommand { document: body[from..from + length].to_vec(), sequences, packed };
        let mut out = Vec::new();
        if opcode == code::QUERY {
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&code::REPLY.to_le_bytes());
            out.extend_from_slice(&[0; 16]);
            out.extend_from_slice(&1i32.to_le_bytes());
        } else {
            message::begin(&mut out, 1);
            out[8..12].copy_from_slice(&id.to_le_bytes());
        }
        let document = bson::open(&mut out);
        script(&command, &mut out);
        if out.ends_with(HANG_UP) {
            return;
        }
        let half = out.ends_with(HALF);
        out.truncate(out.len() - if half { HALF.len() } else { 0 });
        bson::close(&mut out, document);
        message::end(&mut out, 0);
        if half {
            let _ = stream.write_all(&out[..out.len() / 2]);
            return;
        }
        let sent = match packed.and_then(|p| Compressor::ALL.into_iter().find(|c| *c as u8 == p)) {
            Some(by) => {
                let mut small = Vec::new();
                codec.compress_message(by, &out, &mut small);
                stream.write_all(&small)
            }
            None => stream.write_all(&out),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// What hello is answered by a member of a replica set.
pub fn hello(primary: &str, hosts: &[String], me: &str, out: &mut Vec<u8>) {
    bson::put_boolean(out, "ismaster", primary == me);
    bson::put_int32(out, "maxWireVersion", 21);
    if !hosts.is_empty() {
        bson::put_boolean(out, "secondary", primary != me);
        bson::put_string(out, "setName", "rs0");
        bson::put_string(out, "primary", primary);
        bson::put_head(out, kind::ARRAY, "hosts");
        let list = bson::open(out);
        for (index, host) in hosts.iter().enumerate() {
            bson::put_item_head(out, kind::STRING, index as u32);
            bson::put_text_value(out, host.as_bytes());
        }
        bson::close(out, list);
    }
    bson::put_head(out, kind::ARRAY, "compression");
    let list = bson::open(out);
    for (index, name) in ["snappy", "zlib", "zstd"].iter().enumerate() {
        bson::put_item_head(out, kind::STRING, index as u32);
        bson::put_text_value(out, name.as_bytes());
    }
    bson::close(out, list);
    bson::put_double(out, "ok", 1.0);
}

/// A cursor's reply with `count` empty documents.
pub fn cursor(id: i64, batch: &str, count: u32, out: &mut Vec<u8>) {
    bson::put_head(out, kind::DOCUMENT, "cursor");
    let cursor = bson::open(out);
    bson::put_head(out, kind::ARRAY, batch);
    let list = bson::open(out);
    for index in 0..count {
        bson::put_item_head(out, kind::DOCUMENT, index);
        let document = bson::open(out);
        bson::close(out, document);
    }
    bson::close(out, list);
    bson::put_int64(out, "id", id);
    bson::put_string(out, "ns", "a.b");
    bson::close(out, cursor);
    bson::put_double(out, "ok", 1.0);
}

/// An error reply.
pub fn error(number: i32, message: &str, out: &mut Vec<u8>) {
    bson::put_double(out, "ok", 0.0);
    bson::put_string(out, "errmsg", message);
    bson::put_int32(out, "code", number);
}
