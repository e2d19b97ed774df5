//! Hides secrets by where they stand in a text: URIs, options, configuration files.

use super::known::conceal;
use super::names::{MASK, is_address, is_secret, is_user, mask_user};
use std::borrow::Cow;

/// The value of a setting as it may be shown.
pub fn mask_value(name: &str, value: &str) -> String {
    match () {
        () if value.is_empty() => String::new(),
        () if is_secret(name) => MASK.to_owned(),
        // Rules of a user of Redis hold passwords, as they are or hashed.
        () if is_user(name) => mask_user(value),
        () if is_address(name) => mask_text(&mask_login(value)),
        () => mask_text(value),
    }
}

/// Replaces the values of secret settings in a configuration file: a line each, its name ended by a blank, `:` or `=`.
pub fn mask_settings(text: &str) -> String {
    let masked = |line: &str| {
        let name = line.trim_start_matches([' ', '-']);
        let start = line.len() - name.len();
        match name.find([' ', '\t', ':', '=']) {
            Some(end) if is_secret(&name[..end]) => format!("{}{MASK}", &line[..=start + end]),
            Some(end) if is_user(&name[..end]) => {
                format!("{}{}", &line[..=start + end], mask_user(&name[end + 1..]))
            }
            _ => line.to_owned(),
        }
    };
    conceal(&text.split('\n').map(masked).collect::<Vec<_>>().join("\n")).into_owned()
}

/// Returns whether a text is hosts with ports, with or without a path: what stands before the query of a URI without a login.
fn is_place(text: &str) -> bool {
    let port = |host: &str| match host.rsplit_once(':') {
        Some((_, port)) => host.starts_with('[') || port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    };
    text.split('/').next().unwrap_or_default().split(',').all(port)
}

/// Hides the password of every URI in a text (`scheme://user:password@...`), the values of its `name=value` pairs whose name is
/// secret, and secrets that are remembered.
pub fn mask_text(text: &str) -> String {
    let by_place = |text: &str| listed(text).into_iter().map(mask_one).collect::<Vec<_>>().join("|");
    let shown = by_place(text);
    match conceal(&shown) {
        Cow::Borrowed(_) => shown,
        // A secret that was hidden by its value may have held what ended a URI.
        Cow::Owned(concealed) => by_place(&concealed),
    }
}

/// The URIs of a list, which MongoDB's binding has; else the text as it is.
fn listed(text: &str) -> Vec<&str> {
    let begins = |at: &usize| {
        ["mongodb://", "mongodb+srv://"].iter().any(|scheme| text[*at + 1..].starts_with(scheme))
    };
    let mut from = 0;
    let mut pieces = Vec::new();
    for at in text.match_indices('|').map(|(at, _)| at).filter(begins) {
        pieces.push(&text[from..at]);
        from = at + 1;
    }
    pieces.push(&text[from..]);
    pieces
}

fn mask_one(text: &str) -> String {
    let mut shown = masked_once(text);
    // The rest of a text that is no URI may read as one with a longer login, and so on. Each time some of the text goes.
    for _ in 0..text.len() {
        match masked_once(&shown) {
            again if again == shown => break,
            again => shown = again,
        }
    }
    shown
}

fn masked_once(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let end = tail.find(|c: char| c.is_whitespace() || c == '"' || c == '\'').unwrap_or(tail.len());
        let place = &tail[..end];
        // A password may itself hold '@' or '/': everything up to the last '@' before the query is login.
        let path_end = place.find('?').unwrap_or(place.len());
        // Or even '?': then no hosts come before it, or no option's name comes before the '@'.
        let odd = || {
            let named = place[path_end..].find('=').map_or(place.len(), |at| path_end + at);
            match is_place(&place[..path_end]) {
                true => place[path_end..named].rfind('@').map(|at| path_end + at),
                false => place.rfind('@'),
            }
        };
        // The part that follows, a query, may hold URIs of its own.
        rest = match place[..path_end].rfind('@').or_else(odd) {
            Some(login_end) => {
                let user = place[..login_end].split(':').next().unwrap_or("");
                let has_password = place[..login_end].contains(':');
                out.push_str(user);
                out.push_str(if has_password { ":***" } else { "" });
                &tail[login_end..]
            }
            None => {
                out.push_str(&place[..path_end]);
                &tail[path_end..]
            }
        };
    }
    out.push_str(rest);
    mask_pairs(&out)
}

/// Replaces the values of `name=value` pairs whose name is secret, up to the next separator.
fn mask_pairs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let (head, tail) = rest.split_at(at + 1);
        let name_at = head[..at]
            .rfind(|c: char| !(c.is_alphanumeric() || "._-".contains(c)))
            .map_or(0, |i| i + head[i..].chars().next().map_or(1, char::len_utf8));
        out.push_str(head);
        if is_secret(&head[name_at..at]) {
            // Properties of a mechanism are a list with commas, in one value.
            let list = head[name_at..at].to_ascii_lowercase().ends_with("properties");
            let ends = |c: char| ['&', ' ', '\n', '"', '\''].contains(&c) || (c == ',' && !list);
            let end = tail.find(ends).unwrap_or(tail.len());
            out.push_str(if end > 0 { MASK } else { "" });
            rest = &tail[end..];
        } else {
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// Schemes of stores in this process: what follows is a file's path, which has no login.
const EMBEDDED: [&str; 6] = ["sqlite", "redb", "fjall", "lmdb", "rocksdb", "wiredtiger"];

/// Hides the login in what is meant as a URI and is none, such as `redis:me:secret@host` or `me:secret@host`: all between its
/// beginning and its last `@`, but for a user's name. Behind a `/` a word without `:` is no more than a user's name, or a part
/// of a file's; what follows a bare `?` is a query.
fn mask_login(text: &str) -> String {
    let begin = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_alphanumeric() || c == '+');
    let login = begin.trim_start_matches([':', '/', '\\']);
    let is_embedded = EMBEDDED.contains(&text[..text.len() - begin.len()].trim_start());
    if text.contains("://") || login.len() == begin.len() || is_embedded {
        return text.to_owned();
    }
    // A password that holds a bare '?' hides more rather than less.
    let query = login.find('?').filter(|query| login[..*query].contains('@')).unwrap_or(login.len());
    let Some(end) = login[..query].rfind('@') else { return text.to_owned() };
    let between = &begin[..begin.len() - login.len()];
    let is_path = between.ends_with(['/', '\\']) && !login[..end].contains(':');
    if is_path || login.starts_with('?') && login[..end].contains('=') {
        return text.to_owned();
    }
    let user = login[..end].split_once(':').map_or(String::new(), |(user, _)| format!("{user}:"));
    format!("{}{user}{MASK}{}", &text[..text.len() - login.len()], &login[end..])
}

/// Hides the values of secret names in what may be a mapping that no parser can read any more, such as `{requirepass: secret`.
fn mask_mapping(text: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_name) {
        let name = &rest[at..];
        let name = &name[..name.find(|c| !is_name(c)).unwrap_or(name.len())];
        let tail = &rest[at + name.len()..];
        let value = tail.trim_start_matches(['"', '\'', ' ']);
        out.push_str(&rest[..at + name.len()]);
        rest = tail;
        let Some(value) = value.strip_prefix([':', '=']).filter(|_| is_secret(name)) else { continue };
        let value = value.trim_start();
        out.push_str(&tail[..tail.len() - value.len()]);
        let end = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |end| end + 2),
            _ => value.find([',', '}', ']', '\n']).unwrap_or(value.len()),
        };
        out.push_str(if end > 0 { MASK } else { "" });
        rest = &value[end..];
    }
    out.push_str(rest);
    out
}

/// Shells and tools of MongoDB; YCSB's bindings, whose `-p` is a property, are called otherwise.
const MONGO_TOOLS: [&str; 9] = [
    "mongo",
    "mongosh",
    "mongodump",
    "mongorestore",
    "mongoexport",
    "mongoimport",
    "mongostat",
    "mongotop",
    "mongofiles",
];

/// Programs whose `-a` is a password, and whose URIs may have one in the place of a user.
const BENCHMARKS: [&str; 4] = ["memtier", "memtier_benchmark", "redis-benchmark", "valkey-benchmark"];

fn is_benchmark(program: &str) -> bool {
    BENCHMARKS.contains(&program.rsplit('/').next().unwrap_or(program))
}

/// An argument of such a program whose password is in one word with its option, or alone before the host of a URI.
fn mask_benchmark(argument: &str) -> Option<String> {
    if let Some((option, _)) = argument.split_once('=').filter(|(option, _)| option.starts_with("--au")) {
        return Some(format!("{option}={MASK}"));
    }
    if argument.strip_prefix("-a").is_some_and(|rest| !rest.is_empty()) {
        return Some(format!("-a{MASK}"));
    }
    let (before, rest) = argument.split_once("://")?;
    let (login, place) = rest.rsplit_once('@').filter(|(login, _)| !login.contains(':'))?;
    (!login.is_empty()).then(|| format!("{before}://{MASK}@{place}"))
}

/// Options with one letter whose word is a password, by the program that has them.
fn takes_password(program: &str, option: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    match option {
        "-a" => name.ends_with("-cli") || is_benchmark(name),
        // Its beginning is enough.
        long if long.len() > 3 && "--authenticate".starts_with(long) => is_benchmark(name),
        "-p" => MONGO_TOOLS.contains(&name),
        "-u" => name == "curl",
        _ => false,
    }
}

/// A command line with every secret masked: words behind options and in properties with a secret's name, logins of URIs, and the
/// same within words that are command lines or mappings themselves.
pub fn mask_arguments(arguments: &[String]) -> Vec<String> {
    let (mut secret_next, mut program) = (false, "");
    let word = |argument: &str| {
        // A property, or an option with its value. In `NAME VALUE` and `NAME: VALUE`, too, the name tells.
        let named = argument.find(['=', ':', ' ', '\t']).filter(|at| {
            let name = argument[..*at].trim_start_matches('-');
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
        });
        match named.map(|at| (at, argument[..at].trim_start_matches('-'), &argument[at + 1..])) {
            Some((at, name, value)) if is_secret(name) && !value.is_empty() => {
                return format!("{}{MASK}", &argument[..=at]);
            }
            Some((at, name, value)) if argument[at..].starts_with('=') => {
                let shown = mask_mapping(&mask_value(name, value));
                return format!("{}{shown}", &argument[..=at]);
            }
            _ => {}
        }
        mask_text(&mask_login(&mask_mapping(argument)))
    };
    arguments
        .iter()
        .map(|argument| {
            if std::mem::replace(&mut secret_next, false) {
                return MASK.to_owned();
            }
            // The program of a hook, which `env`, `timeout` and others may come before.
            if !argument.starts_with('-') && takes_password(argument, "-a") | takes_password(argument, "-p") {
                program = argument;
            }
            secret_next = argument.starts_with('-') && is_secret(argument) && !argument.contains(['=', ' '])
                || takes_password(program, argument);
            if let Some(shown) = is_benchmark(program).then(|| mask_benchmark(argument)).flatten() {
                return shown;
            }
            match argument.split_whitespace().count() {
                0 | 1 => word(argument),
                _ => word(&mask_words(argument)),
            }
        })
        .collect()
}

/// A command line in one word, such as that of `sh -c`.
fn mask_words(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    for (word, shown) in words.iter().zip(mask_arguments(&words)) {
        let at = rest.find(word.as_str()).unwrap_or(0);
        out.push_str(&rest[..at]);
        out.push_str(&shown);
        rest = &rest[at + word.len()..];
    }
    out.push_str(rest);
    out
}
