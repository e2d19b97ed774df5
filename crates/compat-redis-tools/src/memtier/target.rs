//! The target of the settings, as dyno names it.

use super::args::{Refusal, ValueReader, check};

impl ValueReader<'_> {
    /// The target as dyno names it.
    pub(super) fn uri(&self, notes: &mut Vec<String>) -> Result<String, Refusal> {
        let protocol = match self.get("protocol").unwrap_or("redis") {
            // memtier greets none of its servers unless it is asked for a version.
            "redis" | "resp2" => "2",
            "resp3" => "3",
            "memcache_text" => "text",
            "memcache_binary" => {
                return Err(check(
                    "--protocol memcache_binary: memcached's authors have deprecated it; memcache_text has the same data",
                ));
            }
            _ => {
                return Err(check(
                    "supported protocols are 'memcache_text', 'memcache_binary', 'redis', 'resp2' and resp3'.",
                ));
            }
        };
        let mut options = vec![format!("protocol={protocol}"), "layout=string".to_owned()];
        if self.is_memcached() {
            options.pop();
        }
        let mut put = |name: &str, value: &str| options.push(format!("{name}={}", encoded(value)));
        if self.has("cluster-mode") {
            put("cluster", "true");
        }
        for (flag, option) in [("cacert", "ca"), ("cert", "cert"), ("sni", "server-name")] {
            if let Some(value) = self.get(flag) {
                put(option, value);
            }
        }
        if let Some(cert) = self.get("cert") {
            put("key", self.get("key").unwrap_or(cert));
        }
        if self.has("tls-skip-verify") {
            put("insecure", "true");
        }
        let mut tls = self.has("tls");
        let login = self.get("authenticate").map(|text| match text.split_once(':') {
            Some((user, password)) => format!("{}:{}@", encoded(user), encoded(password)),
            None => format!(":{}@", encoded(text)),
        });
        let mut database = match self.get("select-db") {
            None => 0,
            Some(text) => {
                text.trim().parse().map_err(|_| check("select-db must be greater or equal zero."))?
            }
        };
        let login_text = login.unwrap_or_default();
        if let Some(path) = self.get("unix-socket") {
            if !path.starts_with('/') {
                return Err(check(format!("--unix-socket {path}: expected an absolute path")));
            }
            if database > 0 {
                options.push(format!("db={database}"));
            }
            return Ok(match self.is_memcached() {
                true => format!("memcached://{}?{}", encoded(path), options.join("&")),
                false => format!("unix://{login_text}{}?{}", encoded(path), options.join("&")),
            });
        }
        let host = self.get("server").unwrap_or("localhost");
        let port = self.get("port").unwrap_or("6379").parse::<u16>().ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| check("port must be a number in the range [1-65535]."))?;
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let mut place = format!("{login_text}{host}:{port}");
        if let Some(uri) = self.get("uri") {
            for (flag, said) in [
                ("server", "--host/--server"),
                ("port", "--port"),
                ("authenticate", "--authenticate"),
                ("select-db", "--select-db"),
                ("tls", "--tls"),
            ] {
                if self.has(flag) {
                    notes.push(format!("both URI and {said} specified, URI takes precedence."));
                }
            }
            (place, database, tls) = of_uri(uri)?;
        }
        if self.has("cluster-mode") && database > 0 {
            return Err(check(
                "database selection not supported in cluster mode. Redis Cluster only supports database 0.",
            ));
        }
        let scheme = match (self.is_memcached(), tls) {
            (true, true) => "memcacheds",
            (true, false) => "memcached",
            (false, true) => "rediss",
            (false, false) => "redis",
        };
        let database = if database > 0 { format!("/{database}") } else { String::new() };
        Ok(format!("{scheme}://{place}{database}?{}", options.join("&")))
    }
}

/// Login and place of a URI, its database, and whether it is encrypted.
fn of_uri(uri: &str) -> Result<(String, u64, bool), Refusal> {
    if uri.is_empty() {
        return Err(check("empty URI provided."));
    }
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| check("invalid URI format, missing scheme."))?;
    if !["redis", "rediss"].contains(&scheme) {
        return Err(check(format!("unsupported URI scheme '{scheme}'. Use 'redis' or 'rediss'.")));
    }
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let database = match database {
        "" => 0,
        text => text.parse().map_err(|_| check(format!("invalid database number '{text}'.")))?,
    };
    Ok((place.to_owned(), database, scheme == "rediss"))
}

/// Text as a part of a URI.
fn encoded(text: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if safe(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
