//! Documents of sysbench: `_id`, `k`, `c` and `pad`, in this order and always of the same size; where they are sharded,
//! `shardKey` and `orderId` stand behind `_id`.
//!
//! Draws of a document, in order: k (of 1 to N), the 110 digits of c, the 55 digits of pad.

use super::config::Sharding;
use crate::java_random::{Bound, JavaRandom};
use dyno_types::bson;

/// Digits of c and of pad, without dashes.
const C_DIGITS: usize = 110;
const PAD_DIGITS: usize = 55;

/// Characters of c.
pub const C_LEN: usize = 119;
/// Characters of pad.
pub const PAD_LEN: usize = 59;

/// Digits between two dashes.
const GROUP: usize = 11;

/// Type of `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
}

/// A document's skeleton: everything but the values, and where they stand.
#[derive(Debug)]
struct Skeleton {
    bytes: Vec<u8>,
    id: usize,
    /// Of `shardKey` and `orderId`.
    shard: Option<[usize; 2]>,
    k: usize,
    c: usize,
    pad: usize,
}

impl Skeleton {
    fn new(ids: IdKind, sharded: bool) -> Self {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        match ids {
            IdKind::Int32 => bson::put_int32(&mut out, "_id", 0),
            IdKind::Int64 => bson::put_int64(&mut out, "_id", 0),
        }
        let id = out.len() - if ids == IdKind::Int32 { 4 } else { 8 };
        let shard = sharded.then(|| {
            ["shardKey", "orderId"].map(|name| {
                bson::put_int32(&mut out, name, 0);
                out.len() - 4
            })
        });
        bson::put_int32(&mut out, "k", 0);
        let k = out.len() - 4;
        // Not a letter stays: they mark where the digits go.
        bson::put_string(&mut out, "c", &"-".repeat(C_LEN));
        let c = out.len() - 1 - C_LEN;
        bson::put_string(&mut out, "pad", &"-".repeat(PAD_LEN));
        let pad = out.len() - 1 - PAD_LEN;
        bson::close(&mut out, at);
        Skeleton { bytes: out, id, shard, k, c, pad }
    }
}

/// Makes the documents of collections with `n` documents each.
#[derive(Debug)]
pub struct Generator {
    bound: Bound,
    sharding: Option<Sharding>,
    int32: Skeleton,
    int64: Skeleton,
}

impl Generator {
    /// For numbers from 1 to `n`.
    pub fn new(n: u32, sharding: Option<Sharding>) -> Self {
        Generator {
            bound: Bound::new(n),
            sharding,
            int32: Skeleton::new(IdKind::Int32, sharding.is_some()),
            int64: Skeleton::new(IdKind::Int64, sharding.is_some()),
        }
    }

    /// The bound of `_id` and `k`.
    #[inline]
    pub fn key_bound(&self) -> Bound {
        self.bound
    }

    /// The generator with which a collection, counted from 1, begins.
    pub fn for_collection(number: u32) -> JavaRandom {
        JavaRandom::new(i64::from(number))
    }

    /// A number from 1 to N.
    #[inline]
    pub fn draw_id(&self, random: &mut JavaRandom) -> i32 {
        random.below(self.bound) as i32 + 1
    }

    /// Appends the document with this `_id`.
    #[inline]
    pub fn put_document(&self, random: &mut JavaRandom, id: i32, ids: IdKind, out: &mut Vec<u8>) {
        let skeleton = match ids {
            IdKind::Int32 => &self.int32,
            IdKind::Int64 => &self.int64,
        };
        let k = self.draw_id(random);
        let mut digits = [0; C_DIGITS + PAD_DIGITS];
        random.digits(&mut digits);
        let from = out.len();
        out.extend_from_slice(&skeleton.bytes);
        let bytes = &mut out[from..];
        match ids {
            IdKind::Int32 => bytes[skeleton.id..][..4].copy_from_slice(&id.to_le_bytes()),
            IdKind::Int64 => bytes[skeleton.id..][..8].copy_from_slice(&i64::from(id).to_le_bytes()),
        }
        if let (Some([key, order]), Some(sharding)) = (skeleton.shard, &self.sharding) {
            let place = sharding.shard_place(id as u32);
            bytes[key..][..4].copy_from_slice(&place.0.to_le_bytes());
            bytes[order..][..4].copy_from_slice(&place.1.to_le_bytes());
        }
        bytes[skeleton.k..][..4].copy_from_slice(&k.to_le_bytes());
        place(&digits[..C_DIGITS], &mut bytes[skeleton.c..][..C_LEN]);
        place(&digits[C_DIGITS..], &mut bytes[skeleton.pad..][..PAD_LEN]);
    }

    /// Goes on as if a document had been made.
    #[inline]
    pub fn skip_document(&self, random: &mut JavaRandom) {
        random.below(self.bound);
        random.skip_digits::<{ C_DIGITS + PAD_DIGITS }>();
    }

    /// Appends a new `c` as a BSON element called `name`.
    pub fn put_c(random: &mut JavaRandom, name: &str, out: &mut Vec<u8>) {
        let mut digits = [0; C_DIGITS];
        random.digits(&mut digits);
        let mut c = [b'-'; C_LEN];
        place(&digits, &mut c);
        bson::put_head(out, bson::kind::STRING, name);
        bson::put_text_value(out, &c);
    }

    /// Goes on as if a `c` had been made.
    pub fn skip_c(random: &mut JavaRandom) {
        random.skip_digits::<C_DIGITS>();
    }
}

/// Puts digits between the dashes.
#[inline]
fn place(digits: &[u8], text: &mut [u8]) {
    for (group, to) in digits.chunks_exact(GROUP).zip(text.chunks_mut(GROUP + 1)) {
        to[..GROUP].copy_from_slice(group);
    }
}
