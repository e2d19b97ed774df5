//! Commands of the meta protocol (memcached 1.6): `mg`, `ms`, `md`, `mn`.

use super::command::{SentKey, WriteCondition};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_workload::keys::push_decimal;

/// Longest key on the wire, bytes: in base64 where it is encoded.
pub(super) const KEY_BYTES: usize = 250;

/// The question whether the server speaks the protocol: `MN` if it does, `ERROR` if it does not.
pub(super) const ASK: &[u8] = b"mn\r\n";

/// Returns whether a key of so many bytes can be sent in base64.
pub(super) fn fits_base64(bytes: usize) -> bool {
    bytes.div_ceil(3) * 4 <= KEY_BYTES
}

/// Appends the key as it is, or in base64.
#[inline]
fn put_key(key: SentKey<'_>, out: &mut Vec<u8>) {
    if !key.encoded {
        return out.extend_from_slice(key.bytes);
    }
    debug_assert!(fits_base64(key.bytes.len()), "the command would go out without its key");
    let mut text = [0u8; KEY_BYTES + 6];
    // Longer keys are refused before they get here.
    if let Ok(length) = STANDARD.encode_slice(key.bytes, &mut text) {
        out.extend_from_slice(&text[..length]);
    }
}

/// Appends the flag that says that a key is encoded, and the end of the line.
#[inline]
fn put_end(key: SentKey<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(if key.encoded { b" b\r\n" } else { b"\r\n" });
}

/// Appends a read; with `version`, the reply has it.
#[inline]
pub(super) fn put_read(key: SentKey<'_>, version: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"mg ");
    put_key(key, out);
    out.extend_from_slice(if version { b" v c" } else { b" v" });
    put_end(key, out);
}

/// Appends a write of `value`, which expires after `expiry_s` seconds unless that is 0.
#[inline]
pub(super) fn put_write(
    key: SentKey<'_>,
    mode: WriteCondition,
    expiry_s: u32,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"ms ");
    put_key(key, out);
    out.push(b' ');
    push_decimal(value.len() as u64, out);
    match mode {
        WriteCondition::Add => out.extend_from_slice(b" ME"),
        WriteCondition::Replace => out.extend_from_slice(b" MR"),
        WriteCondition::Swap(version) => {
            out.extend_from_slice(b" C");
            push_decimal(version, out);
            out.extend_from_slice(b" MR");
        }
    }
    if expiry_s > 0 {
        out.extend_from_slice(b" T");
        push_decimal(u64::from(expiry_s), out);
    }
    put_end(key, out);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a removal.
#[inline]
pub(super) fn put_delete(key: SentKey<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"md ");
    put_key(key, out);
    put_end(key, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(put: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn golden_bytes() {
        let plain = SentKey { bytes: b"user1", encoded: false };
        let odd = SentKey { bytes: b"hello world", encoded: true };
        assert_eq!(written(|out| put_read(plain, false, out)), "mg user1 v\r\n");
        assert_eq!(written(|out| put_read(odd, true, out)), "mg aGVsbG8gd29ybGQ= v c b\r\n");
        assert_eq!(written(|out| put_delete(plain, out)), "md user1\r\n");
        assert_eq!(written(|out| put_delete(odd, out)), "md aGVsbG8gd29ybGQ= b\r\n");
        assert_eq!(
            written(|out| put_write(plain, WriteCondition::Add, 0, b"{}", out)),
            "ms user1 2 ME\r\n{}\r\n"
        );
        assert_eq!(
            written(|out| put_write(plain, WriteCondition::Replace, 60, b"", out)),
            "ms user1 0 MR T60\r\n\r\n"
        );
        assert_eq!(
            written(|out| put_write(odd, WriteCondition::Swap(12), 0, b"abc", out)),
            "ms aGVsbG8gd29ybGQ= 3 C12 MR b\r\nabc\r\n"
        );
    }

    #[test]
    fn the_longest_keys_in_base64() {
        assert!(fits_base64(186) && !fits_base64(187));
        let key = SentKey { bytes: &[0; 186], encoded: true };
        assert_eq!(written(|out| put_delete(key, out)).len(), "md ".len() + 248 + " b\r\n".len());
    }
}
