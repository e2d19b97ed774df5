//! Passwords that are not on the command line: from the environment, a file or a prompt.

use crate::exit::Failure;
use crate::signals;
use dyno_databases::registry;
use dyno_db::target::LoginForm;
use dyno_types::bounded;
use dyno_types::limits::SECRET_BYTES;
use dyno_types::percent;
use dyno_types::secret::{mask_text, remember, remember_variable};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::str::FromStr;

const CTRL_C: u8 = 3;

/// Source of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordFrom {
    /// The environment variable of this name.
    Env(String),
    /// The first line of this file.
    File(PathBuf),
    /// The user at the terminal.
    Prompt,
}

/// A text that names no source of a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected env:NAME, file:PATH or prompt")]
pub struct UnknownPasswordSource;

/// Reasons for which a target takes no password.
#[derive(Debug, thiserror::Error)]
enum NoRoom {
    /// It takes none.
    #[error("expected a target that takes a login ({servers}), found {found:?}", servers = registry::servers_in_words())]
    Target {
        /// The target without secrets.
        found: String,
    },
    /// It names no user where one is needed; its scheme.
    #[error("expected a user in the URI: {0}://USER@HOST")]
    User(String),
    /// It has one.
    #[error("the URI has a password already")]
    Taken,
}

impl FromStr for PasswordFrom {
    type Err = UnknownPasswordSource;

    fn from_str(text: &str) -> Result<Self, UnknownPasswordSource> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(PasswordFrom::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(PasswordFrom::File(path.into())),
            None if text == "prompt" => Ok(PasswordFrom::Prompt),
            _ => Err(UnknownPasswordSource),
        }
    }
}

impl PasswordFrom {
    fn read(&self, target: &str) -> Result<String, Failure> {
        let found = match self {
            PasswordFrom::Env(name) => {
                remember_variable(name);
                std::env::var(name)
                    .map_err(|_| wrong(format!("env:{name}: there is no such variable, or it is no text")))?
            }
            PasswordFrom::File(path) => {
                let text = bounded::text_file(path, SECRET_BYTES);
                let text = text.map_err(|e| wrong(format!("file:{}: {e}", path.display())))?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            PasswordFrom::Prompt => {
                asked(&format!("password of {target}: ")).map_err(|error| match error.kind() {
                    io::ErrorKind::Interrupted => Failure::Interrupted,
                    _ => wrong(format!("prompt: there is no terminal to ask at ({error})")),
                })?
            }
        };
        remember(&found);
        if found.is_empty() { Err(wrong("the password is empty")) } else { Ok(found) }
    }
}

fn wrong(why: impl Display) -> Failure {
    Failure::usage(format!("--password-from: {why}"))
}

/// A line that is typed at the terminal. It shows nothing from before it is asked for: what is typed ahead stays hidden, too.
fn asked(question: &str) -> io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    // Ctrl-C ends the line instead of dyno, which would leave a terminal that shows nothing.
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    silent.local_modes.insert(LocalModes::ECHONL);
    silent.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    let (same, shown) = (terminal.try_clone()?, before.clone());
    // Nothing is left to be told of a terminal that is gone.
    signals::restoring(move || {
        let _ = tcsetattr(&same, OptionalActions::Now, &shown);
    })?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    // A terminal gives a line at a time.
    let mut line = [0; 4096];
    let read = terminal.write_all(question.as_bytes()).and_then(|()| terminal.read(&mut line));
    tcsetattr(&terminal, OptionalActions::Now, &before)?;
    signals::settled();
    let line = &line[..read?];
    if line.last() == Some(&CTRL_C) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let text = std::str::from_utf8(line).map_err(io::Error::other)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// A target's URI with the password in it.
pub fn uri(target: &str, from: Option<&PasswordFrom>) -> Result<String, Failure> {
    let Some(from) = from else { return Ok(target.to_owned()) };
    // Errors in the URI are told before the user is asked.
    with(target, "").map_err(wrong)?;
    let password = from.read(target)?;
    with(target, &password).map_err(wrong)
}

/// A target's URI without its password.
pub fn without(target: &str) -> String {
    let Some((scheme, rest)) = target.split_once("://") else { return target.to_owned() };
    let end = rest.find('?').unwrap_or(rest.len());
    let Some((login, place)) = rest[..end].rsplit_once('@') else { return mask_text(target) };
    let user = login.split(':').next().unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    mask_text(&format!("{scheme}://{user}{at}{place}{}", &rest[end..]))
}

fn with(target: &str, password: &str) -> Result<String, NoRoom> {
    let expected = || NoRoom::Target { found: mask_text(target) };
    let (scheme, rest) = target.split_once("://").ok_or_else(expected)?;
    let known = registry::schemes().find(|known| known.name == scheme && known.login != LoginForm::None);
    let known = known.ok_or_else(expected)?;
    let end = rest.find('?').unwrap_or(rest.len());
    let (login, place) =
        rest[..end].rsplit_once('@').map_or(("", &rest[..end]), |(login, place)| (login, place));
    if login.contains(':') {
        return Err(NoRoom::Taken);
    }
    if login.is_empty() && known.login == LoginForm::User {
        return Err(NoRoom::User(scheme.to_owned()));
    }
    Ok(format!(
        "{scheme}://{login}:{}@{place}{}",
        percent::percent_encode(password, percent::RESERVED),
        &rest[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_becomes_a_part_of_the_uri() {
        for (target, filled) in [
            ("redis://h:1/2?protocol=3", "redis://:a%40%2F%3A%C3%A9@h:1/2?protocol=3"),
            ("redis://me@h", "redis://me:a%40%2F%3A%C3%A9@h"),
            ("unix:///run/r.sock", "unix://:a%40%2F%3A%C3%A9@/run/r.sock"),
            ("memcached://me@h:1,h:2", "memcached://me:a%40%2F%3A%C3%A9@h:1,h:2"),
            ("mongodb://me@a:1,b:2/d?x=y@z", "mongodb://me:a%40%2F%3A%C3%A9@a:1,b:2/d?x=y@z"),
        ] {
            assert_eq!(with(target, "a@/:é").unwrap(), filled);
            if ["redis", "unix"].iter().any(|scheme| target.starts_with(scheme)) {
                let options = dyno_db_redis::protocol::RedisOptions::from_uri(filled).unwrap();
                assert_eq!(options.password.as_deref(), Some("a@/:é"));
            }
        }
        for (target, why) in [
            ("redis://me:pw@h", "has a password already"),
            ("mongodb://h", "a user in the URI: mongodb://USER@HOST"),
            (
                "sqlite:/x",
                "expected a target that takes a login (redis://..., mongodb://... or memcached://...)",
            ),
            ("e.yaml", "expected a target"),
        ] {
            assert!(with(target, "x").unwrap_err().to_string().contains(why), "{target}");
        }
    }

    #[test]
    fn a_uri_is_kept_without_its_password() {
        for (target, kept) in [
            ("redis://:pw@h:1/2", "redis://h:1/2"),
            ("mongodb://me:p%40w@a:1,b:2/d?w=1", "mongodb://me@a:1,b:2/d?w=1"),
            ("unix://:pw@/run/r.sock", "unix:///run/r.sock"),
            ("redis://h", "redis://h"),
            ("sqlite:x", "sqlite:x"),
        ] {
            assert_eq!(without(target), kept);
        }
    }

    #[test]
    fn sources_are_read() {
        assert_eq!("prompt".parse(), Ok(PasswordFrom::Prompt));
        assert_eq!("env:X".parse(), Ok(PasswordFrom::Env("X".into())));
        for wrong in ["", "env:", "file", "pass:x", "hunter2"] {
            assert!(wrong.parse::<PasswordFrom>().unwrap_err().to_string().contains("file:PATH"), "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pw");
        std::fs::write(&path, "secret word\nnext\n").unwrap();
        assert_eq!(PasswordFrom::File(path).read("x").unwrap(), "secret word");
        let gone = PasswordFrom::File(folder.path().join("none")).read("x").unwrap_err().to_string();
        assert!(gone.contains("No such file"), "{gone}");
    }
}
