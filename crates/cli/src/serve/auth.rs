//! Permissions of requests: only under names of this host, so that no other site's page can reach it through a name of its own
//! (DNS rebinding); with a token where one is set; and changing something takes the token and this very origin.

use super::http::{Request, Response};
use dyno_types::host_header::{is_loopback, parse_host};
use sha2::{Digest, Sha256};
use std::io;

/// Fewest characters of a token.
pub const SHORTEST: usize = 16;

/// The rules of one server.
pub struct AuthRules {
    /// Names and addresses beside those of the loopback, in lower case.
    names: Vec<String>,
    /// Values that token and cookie must have.
    secrets: Option<Secrets>,
}

struct Secrets {
    token: [u8; 32],
    cookie: [u8; 32],
    /// The cookie's value: it opens this process alone, and does not say the token.
    value: String,
    /// Name of the cookie, another one for every process: cookies know no ports.
    name: String,
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A random word of 43 characters.
pub fn random() -> io::Result<String> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(format!("no random numbers: {e}")))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

impl AuthRules {
    /// With names beside the loopback's, and a token if there is one.
    pub fn new(names: &[String], token: Option<&str>) -> io::Result<Self> {
        let secrets = |token: &str| {
            let value = random()?;
            let (token, cookie): ([u8; 32], [u8; 32]) = (hash(token), hash(&value));
            let name = format!("dyno-{}", hex::encode(&cookie[..4]));
            io::Result::Ok(Secrets { token, cookie, value, name })
        };
        Ok(AuthRules {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            secrets: token.map(secrets).transpose()?,
        })
    }

    /// Returns whether something may be changed at all.
    pub fn writes(&self) -> bool {
        self.secrets.is_some()
    }

    /// Returns whether a name is this host's.
    fn known(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        is_loopback(&name) || self.names.contains(&name)
    }

    fn bearer(&self, request: &Request) -> bool {
        let given = request.field("authorization").and_then(|value| value.strip_prefix("Bearer "));
        // Hashes are compared: how long that takes says nothing about the token.
        given.zip(self.secrets.as_ref()).is_some_and(|(given, own)| hash(given.trim()) == own.token)
    }

    fn cookie(&self, request: &Request) -> bool {
        let Some(own) = &self.secrets else { return false };
        let all = request.field("cookie").unwrap_or_default().split(';');
        let mut values =
            all.filter_map(|one| one.trim().split_once('=')).filter(|(name, _)| *name == own.name);
        values.any(|(_, value)| hash(value) == own.cookie)
    }

    /// `None` lets a request in; else this is the answer.
    pub fn check(&self, request: &Request) -> Option<Response> {
        let name = request.field("host").and_then(parse_host);
        if !name.is_some_and(|name| self.known(name)) {
            return Some(Response::plain_text(
                421,
                "this is not a name of this server (see `dyno serve --name`)",
            ));
        }
        // Another site's page may link here, but not embed or ask.
        let site = request.field("sec-fetch-site").unwrap_or("none");
        let navigates = request.field("sec-fetch-mode") == Some("navigate") && request.method == "GET";
        if !matches!(site, "none" | "same-origin") && !navigates {
            return Some(Response::plain_text(403, "asked for by another site"));
        }
        match request.method.as_str() {
            "GET" | "HEAD" => self.read(request),
            "POST" => self.write(request),
            _ => Some(Response::plain_text(405, "only GET and POST")),
        }
    }

    fn read(&self, request: &Request) -> Option<Response> {
        let own = self.secrets.as_ref()?;
        if self.cookie(request) || self.bearer(request) {
            return None;
        }
        if request.one("token").is_some_and(|given| hash(given) == own.token) {
            let mut response = Response::see("/");
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", own.name, own.value);
            response.fields.push(("Set-Cookie", cookie));
            return Some(response);
        }
        Some(Response::plain_text(
            401,
            "this server wants its token: open it as http://HOST:PORT/?token=TOKEN",
        ))
    }

    fn write(&self, request: &Request) -> Option<Response> {
        if self.secrets.is_none() {
            return Some(Response::plain_text(
                403,
                "read-only: `dyno serve --allow-write` or --token-file allows changes",
            ));
        }
        let own = request.field("host").map(|host| format!("http://{host}"));
        let origins = request.fields.iter().filter(|(name, _)| name == "origin").count();
        let same = origins == 1 && request.field("origin") == own.as_deref();
        // Programs send no origin; a token in a field cannot come from another site's page.
        let program = origins == 0 && self.bearer(request);
        if program || same && (self.cookie(request) || self.bearer(request)) {
            return None;
        }
        Some(Response::plain_text(403, "changes take the token, and must come from this server's own page"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn request(method: &str, fields: &[(&str, &str)]) -> Request {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Request { method: method.into(), path: "/".into(), fields, ..Request::default() }
    }

    fn status(auth: &AuthRules, request: &Request) -> u16 {
        auth.check(request).map_or(200, |response| response.status)
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        let auth = AuthRules::new(&["Bench.example".into()], None).unwrap();
        let asked = |host: &str| status(&auth, &request("GET", &[("host", host)]));
        for good in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "localhost:1",
            "LOCALHOST",
            "[::1]",
            "[::1]:80",
            "bench.example:7",
        ] {
            assert_eq!(asked(good), 200, "{good}");
        }
        for bad in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "localhost.evil:80",
            "10.0.0.1",
            "[::2]",
            "[::1",
            "[::1]x",
            "localhost:80:80",
            "localhost:x",
            "",
        ] {
            assert_eq!(asked(bad), 421, "{bad}");
        }
        assert_eq!(status(&auth, &request("GET", &[])), 421);
        assert_eq!(status(&auth, &request("GET", &[("host", "localhost"), ("host", "localhost")])), 421);
        assert_eq!(status(&auth, &request("PUT", &[("host", "localhost")])), 405);
        assert_eq!(status(&auth, &request("POST", &[("host", "localhost")])), 403, "read-only");
        let elsewhere = |more: (&str, &str)| {
            status(&auth, &request("GET", &[("host", "localhost"), ("sec-fetch-site", "cross-site"), more]))
        };
        assert_eq!(
            (elsewhere(("sec-fetch-mode", "no-cors")), elsewhere(("sec-fetch-mode", "navigate"))),
            (403, 200)
        );
    }

    #[test]
    fn with_a_token_nothing_is_seen_without_it_and_changes_take_this_origin() {
        let auth = AuthRules::new(&[], Some(TOKEN)).unwrap();
        let host = ("host", "127.0.0.1:81");
        assert_eq!(status(&auth, &request("GET", &[host])), 401);
        let mut login = request("GET", &[host]);
        login.query.push(("token".into(), "0123456789abcdeF".into()));
        assert_eq!(status(&auth, &login), 401);
        login.query[0].1 = TOKEN.into();
        let entered = auth.check(&login).unwrap();
        assert_eq!(entered.status, 303);
        let cookie = &entered.fields.iter().find(|(name, _)| *name == "Set-Cookie").unwrap().1;
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let with = |method: &str, more: &[(&str, &str)]| {
            let fields: Vec<(&str, &str)> = [host, ("cookie", cookie)].iter().chain(more).copied().collect();
            status(&auth, &request(method, &fields))
        };
        assert_eq!(with("GET", &[]), 200);
        assert_eq!(with("POST", &[("origin", "http://127.0.0.1:81")]), 200);
        for origin in ["http://127.0.0.1:82", "http://evil.example", "https://127.0.0.1:81", "null", ""] {
            assert_eq!(with("POST", &[("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(with("POST", &[]), 403, "no origin");
        assert_eq!(with("POST", &[("origin", "http://127.0.0.1:81"), ("sec-fetch-site", "same-site")]), 403);
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(status(&auth, &request("POST", &[host, ("authorization", &bearer)])), 200);
        assert_eq!(status(&auth, &request("POST", &[host, ("authorization", "Bearer x")])), 403);
        let foreign = [host, ("authorization", bearer.as_str()), ("origin", "http://evil.example")];
        assert_eq!(status(&auth, &request("POST", &foreign)), 403);
        let other = AuthRules::new(&[], Some(TOKEN)).unwrap();
        assert_eq!(status(&other, &request("GET", &[host, ("cookie", cookie)])), 401, "another process");
    }
}
