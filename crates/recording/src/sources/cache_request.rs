//! Requests of caches that speak memcached's protocol, as commands of Redis: their files name keys and lengths of values, which
//! either server can be asked for.

use crate::entry::{Arguments, LongValue};

/// Longest value that is made of what a file says, bytes: Redis' own.
const LONGEST_VALUE: u64 = 512 << 20;

/// Longest key that is filled up, bytes: memcached's own.
const LONGEST_KEY: u64 = 250;

/// A request, as far as a file tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheRequest<'a> {
    /// Name of the operation, in any case.
    pub operation: &'a str,
    /// The key, or what stands for it.
    pub key: &'a [u8],
    /// Length of the key, bytes; a shorter one is filled up.
    pub key_length: u64,
    /// Length of the value, bytes.
    pub value_length: u64,
    /// Time to live, seconds; 0: none.
    pub ttl_s: u64,
}

/// What a request does, in Redis' terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A name and the key.
    Key(&'static str),
    /// The same, and a value.
    Value(&'static str),
    /// `SET`, with this condition.
    Set(&'static str),
}

fn form_of(operation: &str) -> Option<Form> {
    let name = operation.to_ascii_lowercase();
    Some(match name.strip_suffix("_lease").unwrap_or(&name) {
        "get" | "gets" => Form::Key("GET"),
        "set" => Form::Set(""),
        "add" => Form::Set("NX"),
        // Whether its number fitted is not known: it overwrites what is there.
        "replace" | "cas" => Form::Set("XX"),
        "append" => Form::Value("APPEND"),
        "delete" => Form::Key("DEL"),
        "incr" => Form::Key("INCR"),
        "decr" => Form::Key("DECR"),
        _ => return None,
    })
}

/// Puts the command of Redis that does the same as a request; false where Redis has none. Values are random: only their length is
/// known, and equal keys have equal values.
pub(super) fn put_command(request: &CacheRequest<'_>, arguments: &mut Arguments) -> bool {
    arguments.clear();
    let Some(form) = form_of(request.operation) else { return false };
    let name = match form {
        Form::Key(name) | Form::Value(name) => name,
        Form::Set(_) => "SET",
    };
    arguments.push_word(name.as_bytes());
    let mut key = request.key.to_vec();
    let length = request.key_length.min(LONGEST_KEY) as usize;
    if key.len() < length {
        key.resize(length, b'.');
    }
    arguments.push_word(&key);
    if matches!(form, Form::Value(_) | Form::Set(_)) {
        let hash = LongValue::of_bytes(&key).hash;
        let length = request.value_length.min(LONGEST_VALUE);
        match length {
            0 => arguments.push_word(b""),
            length => arguments.push_long(LongValue { length, hash, compressed: 100 }),
        }
    }
    if let Form::Set(condition) = form {
        if request.ttl_s > 0 {
            arguments.push_word(b"EX");
            arguments.push_word(request.ttl_s.to_string().as_bytes());
        }
        if !condition.is_empty() {
            arguments.push_word(condition.as_bytes());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(
        operation: &str,
        (key, key_length): (&str, u64),
        value_length: u64,
        ttl_s: u64,
    ) -> Option<String> {
        let request = CacheRequest { operation, key: key.as_bytes(), key_length, value_length, ttl_s };
        let mut arguments = Arguments::default();
        let is_one = put_command(&request, &mut arguments);
        let word = |number: usize| match arguments.long_value(number) {
            Some(value) => format!("<{}>", value.length),
            None => String::from_utf8_lossy(arguments.word(number)).into_owned(),
        };
        is_one.then(|| (0..arguments.count()).map(word).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn requests_are_the_commands_that_do_the_same() {
        let of = |operation: &str| command(operation, ("k", 3), 5, 60).unwrap();
        assert_eq!(of("get"), "GET k..");
        assert_eq!(of("GET_LEASE"), "GET k..");
        assert_eq!(of("set"), "SET k.. <5> EX 60");
        assert_eq!(of("add"), "SET k.. <5> EX 60 NX");
        assert_eq!(of("cas"), "SET k.. <5> EX 60 XX");
        assert_eq!(
            (of("append"), of("delete"), of("incr")),
            ("APPEND k.. <5>".into(), "DEL k..".into(), "INCR k..".into())
        );
        assert_eq!(command("prepend", ("k", 1), 5, 0), None);
        assert_eq!(command("set", ("key", 1), 0, 0).unwrap(), "SET key ");
    }
}
