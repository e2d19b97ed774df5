//! Options of live metrics.

use crate::exit::Failure;
use crate::push::{PushProtocol, Receiver, parse_headers};
use clap::Args;
use dyno_types::bounded;
use dyno_types::limits::SECRET_BYTES;
use dyno_types::secret::{mask_text, remember_variable};
use dyno_types::units::parse_duration_ns;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The longest interval.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Options of live metrics, which `dyno run` and `dyno resume` share.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Monitoring")]
pub struct LiveArgs {
    /// Serve live metrics of this run for Prometheus; the host is the loopback unless given, port 0 takes a free
    /// one
    #[arg(long, value_name = "[HOST:]PORT")]
    pub metrics: Option<String>,
    /// Send live metrics by Prometheus remote write 1.0, such as http://127.0.0.1:9090; without a path to /api/v1/write
    #[arg(long, value_name = "URL")]
    pub remote_write: Option<String>,
    /// Headers for --remote-write from env:NAME or file:PATH: lines such as Authorization: Bearer TOKEN
    #[arg(long, value_name = "FROM", requires = "remote_write")]
    pub remote_write_headers: Option<HeadersFrom>,
    /// Send live metrics by OTLP over HTTP, such as http://127.0.0.1:4318; without a path to /v1/metrics
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Headers for --otlp from env:NAME or file:PATH: lines, or name=value,... as in OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "FROM", requires = "otlp")]
    pub otlp_headers: Option<HeadersFrom>,
    /// Time between two pushes of --remote-write and --otlp, 1s to 1h; default 1s
    #[arg(long, value_name = "DURATION")]
    pub push_interval: Option<String>,
}

/// Source of headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadersFrom {
    /// The environment variable of this name.
    Env(String),
    /// This file.
    File(PathBuf),
}

/// A text that names no source of headers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected env:NAME or file:PATH")]
pub struct NoSource;

impl FromStr for HeadersFrom {
    type Err = NoSource;

    fn from_str(text: &str) -> Result<Self, NoSource> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(HeadersFrom::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(HeadersFrom::File(path.into())),
            _ => Err(NoSource),
        }
    }
}

impl HeadersFrom {
    /// Reads them; `option` is the one that names this source.
    fn read(&self, option: &str) -> Result<Vec<(String, String)>, Failure> {
        let wrong =
            |place: &str, why: &dyn std::fmt::Display| Failure::usage(format!("{option}: {place}: {why}"));
        let (place, text) = match self {
            HeadersFrom::Env(name) => {
                let place = format!("env:{name}");
                // Programs that are started do not get it.
                remember_variable(name);
                let text = std::env::var(name)
                    .map_err(|_| wrong(&place, &"there is no such variable, or it is no text"))?;
                (place, text)
            }
            HeadersFrom::File(path) => {
                let place = format!("file:{}", path.display());
                let text = bounded::text_file(path, SECRET_BYTES).map_err(|error| wrong(&place, &error))?;
                (place, text)
            }
        };
        parse_headers(&text).map_err(|error| wrong(&place, &error))
    }
}

/// Where live metrics go.
#[derive(Debug, Default)]
pub struct Outlets {
    /// Address to serve them on.
    pub metrics: Option<String>,
    /// Options that name receivers, and these.
    pub receivers: Vec<(&'static str, Receiver)>,
    /// Time between two pushes.
    pub push_interval: Duration,
}

impl Outlets {
    /// Returns whether they go nowhere.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_none() && self.receivers.is_empty()
    }
}

impl LiveArgs {
    /// Reads what is written, before anything is done.
    ///
    /// # Errors
    /// A value that cannot be meant.
    pub fn outlets(&self) -> Result<Outlets, Failure> {
        let named = [
            (PushProtocol::RemoteWrite, "--remote-write", &self.remote_write, &self.remote_write_headers),
            (PushProtocol::Otlp, "--otlp", &self.otlp, &self.otlp_headers),
        ];
        let mut receivers = Vec::new();
        for (protocol, option, url, headers) in named {
            let Some(url) = url else { continue };
            let headers = headers.as_ref().map(|from| from.read(&format!("{option}-headers"))).transpose()?;
            let receiver = Receiver::parse(protocol, url, headers.unwrap_or_default());
            let wrong = |error| Failure::usage(format!("{option} {}: {error}", mask_text(url)));
            receivers.push((option, receiver.map_err(wrong)?));
        }
        let push_interval = self.interval(receivers.is_empty())?;
        Ok(Outlets { metrics: self.metrics.clone(), receivers, push_interval })
    }

    fn interval(&self, no_receiver: bool) -> Result<Duration, Failure> {
        let second = Duration::from_secs(1);
        let Some(text) = &self.push_interval else { return Ok(second) };
        let wrong = |why: &str| Failure::usage(format!("--push-interval {text}: {why}"));
        if no_receiver {
            return Err(wrong("goes with --remote-write or --otlp"));
        }
        let interval = parse_duration_ns(text, 1_000_000_000).map(Duration::from_nanos);
        let fits = interval.ok().filter(|interval| (second..=LONGEST).contains(interval));
        fits.ok_or_else(|| wrong("expected 1s to 1h"))
    }
}
