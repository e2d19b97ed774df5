//! Bytes that were a good message once.

use dyno_types::document::OperationShape;
use dyno_types::{Content, Endpoint, Request};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddr};

/// Ways to spoil a message. Places are taken modulo its length.
#[derive(Clone, Debug)]
pub enum Spoil {
    /// One byte becomes another.
    Byte(usize, u8),
    /// Four bytes become this number: a length that lies.
    Number(usize, i32),
    /// The rest is cut off.
    Cut(usize),
    /// Bytes are put in.
    Insert(usize, Vec<u8>),
    /// A piece is repeated where it ends.
    Repeat(usize, usize),
}

/// A few of them.
pub fn spoils() -> impl Strategy<Value = Vec<Spoil>> {
    let lies = prop_oneof![
        prop::sample::select(vec![i32::MIN, -1, 0, 1, 4, 5, 15, 16, 1 << 16, 49 << 20, i32::MAX]),
        0..400i32,
        any::<i32>(),
    ];
    let bytes = prop_oneof![any::<u8>(), prop::sample::select(b"0123456789-+*$%~>|_:\r\n\0\xff".to_vec())];
    let one = prop_oneof![
        (any::<usize>(), bytes.clone()).prop_map(|(at, byte)| Spoil::Byte(at, byte)),
        (any::<usize>(), lies).prop_map(|(at, number)| Spoil::Number(at, number)),
        any::<usize>().prop_map(Spoil::Cut),
        (any::<usize>(), prop::collection::vec(bytes, 1..20))
            .prop_map(|(at, bytes)| Spoil::Insert(at, bytes)),
        (any::<usize>(), 1..60usize).prop_map(|(at, length)| Spoil::Repeat(at, length)),
    ];
    prop::collection::vec(one, 0..4)
}

/// Spoils a message.
pub fn spoil(message: &mut Vec<u8>, spoils: &[Spoil]) {
    for spoil in spoils {
        let length = message.len().max(1);
        match spoil {
            Spoil::Byte(at, byte) => message.iter_mut().skip(at % length).take(1).for_each(|b| *b = *byte),
            Spoil::Number(at, number) => {
                let places = message.iter_mut().skip(at % length);
                places.zip(number.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
            Spoil::Cut(at) => message.truncate(at % length),
            Spoil::Insert(at, bytes) => {
                let at = (at % length).min(message.len());
                message.splice(at..at, bytes.iter().copied());
            }
            Spoil::Repeat(at, bytes) => {
                let at = (at % length).min(message.len());
                let end = (at + bytes).min(message.len());
                let piece = message[at..end].to_vec();
                message.splice(end..end, piece);
            }
        }
    }
}

/// A content with these shapes that looks at every value.
pub struct Curious(pub Vec<OperationShape>);

impl Content for Curious {
    fn table(&self) -> &str {
        "t"
    }

    fn key(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(b"key");
    }

    fn fields(&self, _request: &Request) -> usize {
        2
    }

    fn name(&self, _request: &Request, field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("field{field}").as_bytes());
    }

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        5
    }

    fn value(&self, _request: &Request, _field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"value");
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.0
    }

    fn verifies(&self) -> bool {
        true
    }

    fn watches_scans(&self) -> bool {
        true
    }

    fn verify(&self, _request: &Request, _field: &[u8], value: &[u8]) -> bool {
        value == b"value"
    }
}

/// No server listens there, and no test connects to it.
pub fn endpoint() -> Endpoint {
    Endpoint::Tcp { host: "127.0.0.1".into(), address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) }
}
