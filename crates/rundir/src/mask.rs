//! Secrets are masked before anything is written or printed.

use dyno_types::secret::{is_user, mask_user};

/// Property and option names whose values are secret.
const SECRET: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "passphrase",
    "credential",
    "pwd",
    "requirepass",
    "masterauth",
    // They hold tokens, such as AWS_SESSION_TOKEN.
    "mechanismproperties",
];

/// Whether a value under this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|s| name.contains(s)) || name.ends_with("-pass") || name.ends_with("_pass")
}

/// The value of a setting as it may be shown.
pub fn mask_value(name: &str, value: &str) -> String {
    match (is_secret(name), is_user(name)) {
        (true, _) => "***".to_owned(),
        (false, true) => mask_user(value),
        (false, false) => mask_uris(value),
    }
}

/// Replaces the values of secret settings in a configuration file: a line each, its name ended by a blank, `:` or `=`.
pub fn mask_settings(text: &str) -> String {
    let masked = |line: &str| {
        let name = line.trim_start_matches([' ', '-']);
        let start = line.len() - name.len();
        match name.find([' ', '\t', ':', '=']) {
            Some(end) if is_secret(&name[..end]) => format!("{}***", &line[..=start + end]),
            Some(end) if is_user(&name[..end]) => {
                format!("{}{}", &line[..=start + end], mask_user(&name[end + 1..]))
            }
            _ => line.to_owned(),
        }
    };
    text.split('\n').map(masked).collect::<Vec<_>>().join("\n")
}

/// Whether a text is hosts with ports, with or without a path: what stands before the query of a URI without a login.
fn is_place(text: &str) -> bool {
    let port = |host: &str| match host.rsplit_once(':') {
        Some((_, port)) => host.starts_with('[') || port.bytes().all(|byte| byte.is_ascii_digit()),
        None => true,
    };
    text.split('/').next().unwrap_or_default().split(',').all(port)
}

/// Replaces the password of every URI in `text` (`scheme://user:password@...`).
pub fn mask_uris(text: &str) -> String {
    let mut shown = masked_once(text);
    // What is left of a text that is no URI may read as one with a longer login, and so on. Each time some of the text goes.
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
        // What follows, a query, may hold URIs of its own.
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
            out.push_str(if end > 0 { "***" } else { "" });
            rest = &tail[end..];
        } else {
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// A command line with every secret masked.
pub fn mask_arguments(arguments: &[String]) -> Vec<String> {
    let mut secret_next = false;
    arguments
        .iter()
        .map(|argument| {
            let hide = std::mem::replace(&mut secret_next, false);
            if hide {
                return "***".to_owned();
            }
            if let Some((name, _)) = argument.split_once('=').filter(|(name, _)| is_secret(name)) {
                return format!("{name}=***");
            }
            secret_next = argument.starts_with('-') && is_secret(argument);
            mask_uris(argument)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_servers() {
        let text =
            "port 1\nrequirepass \"a b\"\nmasterauth x\n--requirepass=x\nsecurity:\n  keyPassword: x\n";
        let masked =
            "port 1\nrequirepass ***\nmasterauth ***\n--requirepass=***\nsecurity:\n  keyPassword:***\n";
        assert_eq!(mask_settings(text), masked);
        assert_eq!(mask_settings(""), "");
        let redis =
            "tls-key-file-pass x\nuser default on >pw ~* +@all\nUSER\ta on \">p w\"\nuser b off\nuse >x";
        let masked = "tls-key-file-pass ***\nuser default ***\nUSER\ta ***\nuser b off\nuse >x";
        assert_eq!(mask_settings(redis), masked);
    }

    #[test]
    fn passwords_disappear() {
        assert_eq!(mask_uris("redis://bob:hunter2@h:1/0"), "redis://bob:***@h:1/0");
        assert_eq!(mask_uris("at redis://:p@ss:w/ord@h/0?x=1 now"), "at redis://:***@h/0?x=1 now");
        assert_eq!(mask_uris("redis://h:6379"), "redis://h:6379");
        assert_eq!(mask_uris("redis://:pa?ss@h:1/0?x=1"), "redis://:***@h:1/0?x=1");
        assert_eq!(mask_uris("redis://:pa?x=ss@h:1"), "redis://:***@h:1");
        assert_eq!(mask_uris("redis://u:p?a=b@c@h:1"), "redis://u:***@h:1");
        assert_eq!(mask_uris("redis://h:1/a?b@u:p@h?x"), "redis://h:***@h?x");
        let plain = "mongodb://a:1,[::1]:2/db?appName=me@here";
        assert_eq!(mask_uris(plain), plain);
        let odd = "m://me:se:1]:2,b/db?rm://me:secret@[::1]:t=a:x@[::12";
        assert_eq!(mask_uris(odd), "m://me:***@[::12");
        let nested = "http://h/?to=redis://u:p@h:1/0?x=redis://:q@i";
        assert_eq!(mask_uris(nested), "http://h/?to=redis://u:***@h:1/0?x=redis://:***@i");
        assert_eq!(mask_uris("redis://h?password=abc&db=1"), "redis://h?password=***&db=1");
        let aws = "mongodb://u:p@h/?authMechanismProperties=A:b,AWS_SESSION_TOKEN:hunter2&w=1";
        assert_eq!(mask_uris(aws), "mongodb://u:***@h/?authMechanismProperties=***&w=1");
        let arguments = ["-p", "redis.password=hunter2", "--password", "hunter2", "-threads", "4"];
        let masked = mask_arguments(&arguments.map(str::to_owned)).join(" ");
        assert_eq!(masked, "-p redis.password=*** --password *** -threads 4");
    }
}
