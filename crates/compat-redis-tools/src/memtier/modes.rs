//! Flags that change what a load is: protocols, WAITs, records of a file, clients that begin step by step, cursors.

use super::args::{
    Import, OwnCommand, Refusal, Staircase, Statsd, ValueReader, Waits, check, pair, positive,
};

/// Most keys of a get.
const MULTI_KEYS: u64 = 10_000;

/// Only letters, digits, `_`, `-` and what else is allowed; others become `_`.
fn sane(text: &str, also: &str) -> String {
    let keeps =
        |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter) || also.contains(*letter);
    text.chars().map(|letter| if keeps(&letter) { letter } else { '_' }).collect()
}

impl ValueReader<'_> {
    /// Server that is told each second.
    pub(super) fn statsd(&self) -> Result<Option<Statsd>, Refusal> {
        let read = |name: &str, default: u16| {
            let read = |text: &str| text.trim().parse().ok().filter(|port| *port > 0);
            let port = self.get(name).map_or(Some(default), read);
            port.ok_or_else(|| check(format!("{name} must be a valid port number.")))
        };
        let others = ["statsd-port", "statsd-prefix", "statsd-run-label", "graphite-port"];
        let (port, graphite_port) = (read("statsd-port", 8125)?, read("graphite-port", 8080)?);
        let Some(host) = self.get("statsd-host") else {
            let other = others.into_iter().find(|name| self.has(name));
            return other.map_or(Ok(None), |name| Err(check(format!("--{name} needs --statsd-host"))));
        };
        let label =
            sane(self.get("statsd-run-label").filter(|label| !label.is_empty()).unwrap_or("default"), "");
        let prefix = match sane(self.get("statsd-prefix").unwrap_or("memtier"), ".").as_str() {
            "" => format!("{label}."),
            prefix => format!("{prefix}.{label}."),
        };
        Ok(Some(Statsd { host: host.to_owned(), port, graphite_port, prefix, label }))
    }

    pub(super) fn staircase(&self) -> Result<Option<Staircase>, Refusal> {
        let read = |name| self.get(name).map(|text| positive(name, text)).transpose();
        let (start, step) = (read("clients-start")?, read("clients-step")?);
        let (start, step, seconds) = match (start, step, read("step-duration")?) {
            (None, None, None) => return Ok(None),
            (Some(start), Some(step), Some(seconds)) => (start, step, seconds),
            _ => {
                return Err(check(
                    "--clients-start, --clients-step, and --step-duration must all be specified together.",
                ));
            }
        };
        let clients = self.positive("clients", 50)?;
        match () {
            () if self.has("requests") => {
                Err(check("--requests cannot be used with client staircase mode. Use --test-time instead."))
            }
            () if start >= clients => {
                Err(check(format!("--clients-start ({start}) must be less than --clients ({clients}).")))
            }
            () if !self.has("test-time") => {
                Err(check("--test-time is required when using client staircase mode."))
            }
            () if self.has("rate-limiting") => Err(check(
                "--clients-start: no --rate-limiting goes with it; dyno run --rate ramp:FROM-TO:DURATION grows a rate",
            )),
            () => Ok(Some(Staircase { start, step, seconds })),
        }
    }

    pub(super) fn iterates(&self) -> Result<Option<u64>, Refusal> {
        const FLAG: &str = "--scan-incremental-iteration";
        let most = match self.get("scan-incremental-max-iterations") {
            None => 0,
            Some(text) => text
                .trim()
                .parse()
                .map_err(|_| check("scan-incremental-max-iterations must be a positive number."))?,
        };
        let refuse = |text: &str| Err(check(text));
        if !self.has("scan-incremental-iteration") {
            return match self.has("scan-incremental-max-iterations") {
                true => Err(check(format!("--scan-incremental-max-iterations needs {FLAG}"))),
                false => Ok(None),
            };
        }
        let is_scan = |one: &OwnCommand| one.words[0].eq_ignore_ascii_case(b"SCAN");
        match self.own {
            _ if self.positive("pipeline", 1)? != 1 => Err(check(format!("{FLAG} requires --pipeline 1."))),
            [] => Err(check(format!("{FLAG} requires --command with a SCAN command."))),
            _ if self.has("cluster-mode") => Err(check(format!("{FLAG} is not supported in cluster mode."))),
            [one] if !is_scan(one) => {
                Err(check(format!("{FLAG} requires the command to be a SCAN command.")))
            }
            [one] if one.words.len() < 2 => {
                refuse("SCAN command must have at least a cursor argument (e.g., 'SCAN 0').")
            }
            [_] => Ok(Some(most)),
            _ => Err(check(format!("{FLAG} requires exactly one --command (a SCAN command)."))),
        }
    }

    pub(super) fn import(&self) -> Option<Import> {
        let verify_only = self.has("verify-only");
        self.get("data-import").map(|path| Import {
            path: path.to_owned(),
            generate_keys: self.has("generate-keys"),
            no_expiry: self.has("no-expiry"),
            verify: self.has("data-verify") || verify_only,
            verify_only,
        })
    }

    /// Refuses what does not go with the records of a file.
    pub(super) fn check_import(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(check(text));
        let has = |names: &[&str]| names.iter().any(|name| self.has(name));
        let verifies = has(&["data-verify", "verify-only"]);
        if !self.has("data-import") {
            return match () {
                () if verifies => refuse("use data-verify only with data-import"),
                () if self.has("no-expiry") => refuse("use no-expiry only with data-import"),
                () => Ok(()),
            };
        }
        let generates = self.has("generate-keys");
        let pattern = self.get("key-pattern").unwrap_or_default();
        match () {
            () if self.has("cluster-mode") => refuse("Cluster mode cannot be specified when importing."),
            () if has(&["data-size", "data-size-list", "data-size-range"]) => {
                refuse("data size cannot be specified when importing.")
            }
            () if self.has("random-data") => refuse("random-data cannot be specified when importing."),
            () if !generates && has(&["key-minimum", "key-maximum", "key-prefix"]) => {
                refuse("use key-minimum, key-maximum and key-prefix only with generate-keys.")
            }
            () if !self.own.is_empty() => refuse("--data-import goes with sets and gets, not with --command"),
            () if !generates && pattern.contains('P') => refuse(
                "--key-pattern P:P needs --generate-keys with --data-import: each client writes all records",
            ),
            () if self.has("verify-only")
                && has(&["hdr-file-prefix", "client-stats", "run-directory", "statsd-host", "run-count"]) =>
            {
                refuse("--verify-only applies no load: files, packets and runs of one do not go with it")
            }
            () if verifies && self.has("test-time") => {
                refuse("--data-verify needs --requests: of a time it is not known what was written")
            }
            () => Ok(()),
        }
    }

    /// Refuses what memcached does not have.
    pub(super) fn check_memcached(&self) -> Result<(), Refusal> {
        let refuse = |text: &str| Err(check(text));
        match () {
            () if self.has("authenticate") => {
                refuse("authenticate can only be used with redis or memcache_binary.")
            }
            () if self.has("select-db") => refuse("select-db can only be used with redis protocol."),
            () if self.has("data-offset") => {
                refuse("data-offset can only be used with redis protocol, and cannot be used with expiry")
            }
            () if self.has("wait-ratio") => refuse("WAIT command not implemented for memcache!"),
            () if !self.own.is_empty() => refuse("--command needs one of Redis' protocols"),
            () if self.has("uri") => {
                refuse("--uri names a Redis server: give --server and --port with memcache_text")
            }
            () => Ok(()),
        }
    }

    pub(super) fn is_memcached(&self) -> bool {
        self.get("protocol") == Some("memcache_text")
    }

    pub(super) fn multi_key_get(&self) -> Result<Option<u64>, Refusal> {
        let keys = self.get("multi-key-get").map(|text| positive("multi-key-get", text)).transpose()?;
        match keys.filter(|keys| *keys > MULTI_KEYS) {
            Some(keys) => Err(check(format!("--multi-key-get {keys}: expected {MULTI_KEYS} keys at most"))),
            None => Ok(keys),
        }
    }

    pub(super) fn waits(&self) -> Result<Option<Waits>, Refusal> {
        let range = |name: &str| match self.get(name) {
            None => Ok((0, 0)),
            Some(text) => {
                let sane = |(a, b): &(u64, u64)| *b > 0 && (*a).max(*b) <= u64::from(u32::MAX);
                let range = pair(text, '-').filter(sane).map(|(a, b)| (a.min(b), a.max(b)));
                range.ok_or_else(|| check(format!("{name} must be expressed as [0-n]-[1-n].")))
            }
        };
        let (replicas, timeout_ms) = (range("num-slaves")?, range("wait-timeout")?);
        let Some(text) = self.get("wait-ratio") else {
            let needs = ["num-slaves", "wait-timeout"].into_iter().find(|name| self.has(name));
            return needs.map_or(Ok(None), |name| Err(check(format!("--{name} needs --wait-ratio"))));
        };
        let ratio = pair(text, ':').filter(|(sets, waits)| *sets > 0 || *waits > 0);
        let (sets, waits) = ratio.ok_or_else(|| check("wait-ratio must be expressed as [0-n]:[0-n]."))?;
        // memtier compares whole quotients: one WAIT where there are more sets to each than asked for.
        let every = sets.checked_div(waits).map(|quotient| quotient.saturating_add(1));
        Ok(every.map(|every| Waits { every, replicas, timeout_ms }))
    }
}
