//! Commands of the classic text protocol, for servers that do not speak the meta protocol.

use super::command::WriteCondition;
use dyno_workload::keys::push_decimal;

/// The question of a greeting: any server answers it with `VERSION`.
pub(super) const ASK: &[u8] = b"version\r\n";

/// Appends a read; with `version`, the reply has it.
#[inline]
pub(super) fn put_read(key: &[u8], version: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if version { b"gets " } else { b"get " });
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Appends a write of `value`, which expires after `expiry_s` seconds unless that is 0.
#[inline]
pub(super) fn put_write(key: &[u8], mode: WriteCondition, expiry_s: u32, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(match mode {
        WriteCondition::Add => b"add ",
        WriteCondition::Replace => b"replace ",
        WriteCondition::Swap(_) => b"cas ",
    });
    out.extend_from_slice(key);
    out.extend_from_slice(b" 0 ");
    push_decimal(u64::from(expiry_s), out);
    out.push(b' ');
    push_decimal(value.len() as u64, out);
    if let WriteCondition::Swap(version) = mode {
        out.push(b' ');
        push_decimal(version, out);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a removal.
#[inline]
pub(super) fn put_delete(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"delete ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Appends a login. The server takes it as one before it looks at the key; a server without logins stores it as a value.
/// Such a value has expired when it is stored: a password is nothing to leave there.
pub(super) fn put_login(user: &str, password: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"set dyno-login 0 -1 ");
    push_decimal((user.len() + 1 + password.len()) as u64, out);
    for part in ["\r\n", user, " ", password, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
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
        let key = b"user1";
        assert_eq!(written(|out| put_read(key, false, out)), "get user1\r\n");
        assert_eq!(written(|out| put_read(key, true, out)), "gets user1\r\n");
        assert_eq!(written(|out| put_delete(key, out)), "delete user1\r\n");
        assert_eq!(
            written(|out| put_write(key, WriteCondition::Add, 0, b"{}", out)),
            "add user1 0 0 2\r\n{}\r\n"
        );
        assert_eq!(
            written(|out| put_write(key, WriteCondition::Replace, 60, b"", out)),
            "replace user1 0 60 0\r\n\r\n"
        );
        assert_eq!(
            written(|out| put_write(key, WriteCondition::Swap(12), 0, b"abc", out)),
            "cas user1 0 0 3 12\r\nabc\r\n"
        );
        assert_eq!(written(|out| put_login("me", "secret", out)), "set dyno-login 0 -1 9\r\nme secret\r\n");
    }
}
