//! Commands of one's own, in every protocol: what was exchanged for each template, and what is said of a wrong value.

use dyno_types::command::{CommandArgument, Traffic};
use dyno_types::{Content, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says that a key does not hold what it should.
pub fn command_words(
    content: &dyn Content,
    request: &Request,
    command: u32,
    expected: &[u8],
    found: Option<&[u8]>,
) -> String {
    let form = &content.commands()[usize::from(request.shape)].commands[command as usize];
    let mut key = Vec::new();
    if let (Some(number), Some(CommandArgument::Rendered)) = (form.key, form.arguments.get(1)) {
        content.argument(request, command, number, &mut key);
    }
    let shown = |text: &[u8]| String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
    let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("[{}]", shown(found)));
    format!("key [{}]: expected [{}], got {found}", shown(&key), shown(expected))
}

/// Most commands and replies between two reports of their bytes.
const MOST: u32 = 1_024;
/// Reports are so far apart, at least and at most: often enough for every second, and seldom enough to cost nothing.
const APART: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// What was exchanged for each template and not reported yet.
pub struct Unreported {
    content: Arc<dyn Content>,
    all: Vec<Traffic>,
    /// Said for each request, too.
    each: bool,
    counted: u32,
    /// Commands and replies until the next report.
    stride: u32,
    last: Instant,
}

impl Unreported {
    /// Nothing yet.
    pub fn new(content: &Arc<dyn Content>) -> Self {
        let all = vec![Traffic::default(); content.commands().len()];
        Unreported {
            all,
            each: content.counts_each(),
            content: content.clone(),
            counted: 0,
            stride: 1,
            last: Instant::now(),
        }
    }

    /// Adds what was exchanged for a request.
    pub fn add_traffic(&mut self, request: &Request, more: Traffic) {
        if self.each {
            self.content.exchanged_for(request, more);
        }
        let template = request.shape;
        let own = &mut self.all[usize::from(template)];
        *own += more;
        self.counted += 1;
        if self.counted >= self.stride {
            let took = self.last.elapsed();
            if took < APART.0 {
                self.stride = (self.stride * 2).min(MOST);
            } else if took > APART.1 {
                self.stride = (self.stride / 2).max(1);
            }
            self.last += took;
            self.report();
        }
    }

    fn report(&mut self) {
        self.counted = 0;
        for (template, own) in (0..).zip(&mut self.all) {
            self.content.exchanged(template, std::mem::take(own));
        }
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        self.report();
    }
}
