//! YCSB's BasicDB: a mock that stores nothing, can write one line for each request, and can take its time.
//!
//! ```text
//! READ usertable user123 [ <all fields>]         READ usertable user123 [ field1 ]
//! UPDATE usertable user123 [ field3=... ]        INSERT usertable user123 [ field0=... field1=... ]
//! SCAN usertable user123 42 [ <all fields>]      DELETE usertable user123
//! ```
//!
//! As in YCSB, reads and scans end well with no record, the delay comes before the line, and a randomised delay is a
//! whole number of milliseconds. BasicDB's option `count` (a histogram of the keys) is not here.

use crate::kind::StoreKind;
use crate::null::no_path;
use crate::options::{GivenOptions, OptionSpec, SWITCH};
use crate::uri::StoreUri;
use dyno_types::rng::{Purpose, Stream};
use dyno_types::{Content, Executed, Outcome, Refused, Request, Store, StoreSession, Verb};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where the `basic` mock writes its lines.
pub type Sink = Arc<Mutex<dyn Write + Send>>;

/// Form and options of `basic:` URIs.
pub const KIND: StoreKind = StoreKind {
    scheme: "basic",
    form: "basic:",
    about: "YCSB's BasicDB mock: stores nothing, writes a line for each request",
    options: &[
        OptionSpec {
            name: "verbose",
            values: SWITCH,
            default: "true",
            about: "whether a line is written for each request",
        },
        OptionSpec {
            name: "simulatedelay",
            values: "DURATION such as 5ms",
            default: "0",
            about: "the longest simulated delay, in whole milliseconds",
        },
        OptionSpec {
            name: "randomizedelay",
            values: SWITCH,
            default: "true",
            about: "whether the delay is drawn uniformly from 0 ms up to, not including, simulatedelay",
        },
    ],
    built: true,
    library: None,
};

/// Opens `basic:`.
pub(crate) fn open(
    uri: &StoreUri,
    given: &GivenOptions<'_>,
    content: Arc<dyn Content>,
    sink: Option<Sink>,
) -> Result<Arc<dyn Store>, Refused> {
    no_path(uri)?;
    Ok(Arc::new(Basic::new(content, settings(given)?, sink)))
}

fn settings(given: &GivenOptions<'_>) -> Result<MockSettings, Refused> {
    Ok(MockSettings {
        verbose: given.switch("verbose", true)?,
        delay_ms: given.milliseconds("simulatedelay", 0)?,
        randomised: given.switch("randomizedelay", true)?,
    })
}

/// Refuses options whose values are not accepted.
pub(crate) fn check(given: &GivenOptions<'_>) -> Result<(), Refused> {
    settings(given).map(drop)
}

/// Behaviour of the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MockSettings {
    /// True if a line is written for each request.
    pub verbose: bool,
    /// The longest simulated delay, in milliseconds; 0 for none.
    pub delay_ms: u32,
    /// True if the delay is drawn from `0 .. delay_ms`, in whole milliseconds.
    pub randomised: bool,
}

impl Default for MockSettings {
    fn default() -> Self {
        MockSettings { verbose: true, delay_ms: 0, randomised: true }
    }
}

/// The mock.
pub struct Basic {
    content: Arc<dyn Content>,
    settings: MockSettings,
    sink: Option<Sink>,
    sessions: AtomicU64,
}

impl Basic {
    /// A mock that writes its lines to `sink`, if there is one and `settings` are verbose.
    pub fn new(content: Arc<dyn Content>, settings: MockSettings, sink: Option<Sink>) -> Self {
        let sink = sink.filter(|_| settings.verbose);
        Basic { content, settings, sink, sessions: AtomicU64::new(0) }
    }
}

impl Store for Basic {
    fn engine(&self) -> String {
        "basic (mock after YCSB's BasicDB)".to_owned()
    }

    fn durability(&self) -> String {
        "nothing is stored".to_owned()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MockSession {
            content: self.content.clone(),
            settings: self.settings,
            sink: self.sink.clone(),
            delays: Stream::new(0, number, Purpose::Service),
            line: Vec::new(),
            error: String::new(),
        }))
    }
}

struct MockSession {
    content: Arc<dyn Content>,
    settings: MockSettings,
    sink: Option<Sink>,
    delays: Stream,
    line: Vec<u8>,
    error: String,
}

impl StoreSession for MockSession {
    fn execute(&mut self, request: &Request) -> Executed {
        if matches!(request.verb, Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology) {
            return Executed::new(Outcome::NotImplemented, 0);
        }
        self.delay();
        if let Err(error) = self.write_line(request) {
            self.error = format!("cannot write the line of a request: {error}");
            return Executed::new(Outcome::ServerError, 0);
        }
        Executed::new(Outcome::Ok, 0)
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

impl MockSession {
    fn delay(&mut self) {
        let longest = u64::from(self.settings.delay_ms);
        if longest == 0 {
            return;
        }
        let ms = if self.settings.randomised { self.delays.next_below(longest) } else { longest };
        if ms > 0 {
            std::thread::sleep(Duration::from_millis(ms));
        }
    }

    fn write_line(&mut self, request: &Request) -> io::Result<()> {
        let Some(sink) = &self.sink else { return Ok(()) };
        self.line.clear();
        render(self.content.as_ref(), request, &mut self.line);
        sink.lock().unwrap_or_else(PoisonError::into_inner).write_all(&self.line)
    }
}

fn render(content: &dyn Content, request: &Request, line: &mut Vec<u8>) {
    let verb: &[u8] = match request.verb {
        Verb::Read => b"READ ",
        Verb::Insert => b"INSERT ",
        Verb::Update => b"UPDATE ",
        Verb::Scan => b"SCAN ",
        Verb::Delete => b"DELETE ",
        Verb::Document | Verb::Command | Verb::Recorded | Verb::Topology => return,
    };
    line.extend_from_slice(verb);
    line.extend_from_slice(content.table().as_bytes());
    line.push(b' ');
    content.key(request, line);
    if request.verb == Verb::Scan {
        // Writing to a Vec cannot fail.
        let _ = write!(line, " {}", request.limit);
    }
    if request.verb != Verb::Delete {
        line.extend_from_slice(b" [ ");
        let named = content.fields(request);
        if named == 0 && !request.verb.changes_data() {
            line.extend_from_slice(b"<all fields>");
        }
        for field in 0..named {
            content.name(request, field, line);
            if request.verb.changes_data() {
                line.push(b'=');
                content.value(request, field, line);
            }
            line.push(b' ');
        }
        line.push(b']');
    }
    line.push(b'\n');
}
