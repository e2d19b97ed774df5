//! One axis of time for everything a run recorded: seconds from its first phase.

use dyno_rundir::RunDir;
use dyno_rundir::series::ReadRow;

/// A phase on the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// `load`, `warmup` or `measure`.
    pub name: String,
    /// Begin and end.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Where its seconds are counted from.
    pub epoch: f64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// When.
    pub at: f64,
    /// Text of the event.
    pub text: String,
}

/// The axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Unix time of its 0, milliseconds; `None` where no event says it.
    pub origin_ms: Option<f64>,
    /// Phases in order.
    pub spans: Vec<Span>,
    /// Events in order.
    pub marks: Vec<Mark>,
    /// Notes on what is missing.
    pub notes: Vec<String>,
}

/// Seconds by which a clock that is merely slewed, and the waiting for last replies, may put times out of order.
const JUMP_S: f64 = 2.0;

/// Seconds after the last interval within which a phase ends: replies are awaited for ten by default.
const LATE_S: f64 = 60.0;

impl Timeline {
    /// The axis of a run.
    pub fn from_run(dir: &RunDir, rows: &[ReadRow]) -> Self {
        let mut all = Timeline::default();
        let events = dir.read_events().unwrap_or_else(|error| {
            all.notes.push(format!("events are not known: {error}"));
            Vec::new()
        });
        let mut names: Vec<&str> = Vec::new();
        for row in rows {
            if !names.contains(&row.phase.as_str()) {
                names.push(&row.phase);
            }
        }
        let at = |kind: &str, name: &str| {
            events.iter().find(|e| e.event == kind && e.text == name).and_then(dyno_rundir::Event::at_ms)
        };
        all.origin_ms = names.iter().filter_map(|name| at("begin", name)).reduce(f64::min);
        let mut after = 0.0;
        for name in names {
            let starts = rows.iter().filter(|row| row.phase == name).map(|row| row.start_s);
            let (first, last) =
                starts.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), s| (a.min(s), b.max(s)));
            let before = Some("warmup").filter(|_| name == "measure").and_then(|name| at("begin", name));
            let since = |ms: f64| all.origin_ms.map(|origin| (ms - origin) / 1e3);
            let begin = at("begin", name);
            let epoch = before.or(begin).and_then(since).unwrap_or(after - first);
            let from = begin.and_then(since).unwrap_or(epoch + first);
            // A phase that lies before the phase before it, or ends before its last interval began, was dated by a clock that
            // jumped.
            let jumped = from < after - JUMP_S;
            let (epoch, from) = if jumped { (after - first, after) } else { (epoch, from) };
            let told = at("end", name).and_then(since).filter(|_| !jumped);
            // One mean over a whole phase is as long as the phase.
            let length = if first < last {
                interval_length(rows, name)
            } else {
                told.map_or(1.0, |end| end - epoch - last).max(1.0)
            };
            let recorded = epoch + last + length;
            let told = told.unwrap_or(recorded);
            let early = told < from || told < epoch + last - JUMP_S;
            let to = if early { recorded } else { told };
            if jumped || early {
                all.notes.push(format!(
                    "the clock was set back around phase {name}: it is drawn by its recorded intervals, and events and \
                     monitors may stand in the wrong place"
                ));
            } else if told > recorded + LATE_S {
                all.notes.push(format!(
                    "phase {name} ended {:.0} s after its last recorded interval: the clock was set forward, or nothing was \
                     recorded for that long",
                    told - recorded
                ));
            }
            after = to;
            all.spans.push(Span { name: name.to_owned(), from, to, epoch });
        }
        match all.origin_ms {
            Some(origin) => {
                let told = events.iter().filter(|e| !matches!(e.event.as_str(), "begin" | "end" | "phase"));
                let marks = told.filter_map(|e| {
                    let text = if e.text.is_empty() { e.event.clone() } else { format!("{}: {}", e.event, e.text) };
                    Some(Mark { at: (e.at_ms()? - origin) / 1e3, text })
                });
                all.marks = marks.collect();
            }
            None if !all.spans.is_empty() => all.notes.push(
                "when phases began was not recorded: they are drawn one after another, and monitors cannot be put beside them"
                    .into(),
            ),
            None => {}
        }
        all
    }

    /// A phase.
    pub fn phase_span(&self, name: &str) -> Option<&Span> {
        self.spans.iter().find(|span| span.name == name)
    }

    /// Begin and end of all that was drawn.
    pub fn drawn_range(&self) -> (f64, f64) {
        let from = self.spans.iter().map(|span| span.from).fold(0.0, f64::min);
        (from, self.spans.iter().map(|span| span.to).fold(from + 1.0, f64::max))
    }
}

/// Length of the recorded intervals of a phase, seconds: the least step between its rows, or between those of any phase where it
/// has one alone.
pub fn interval_length(rows: &[ReadRow], phase: &str) -> f64 {
    let totals: Vec<&ReadRow> = rows.iter().filter(|row| row.metric == "TOTAL").collect();
    let least = |belongs: &dyn Fn(&ReadRow) -> bool| {
        let steps = totals.windows(2).filter(|pair| pair[0].phase == pair[1].phase && belongs(pair[0]));
        steps.map(|pair| pair[1].start_s - pair[0].start_s).filter(|step| *step > 0.0).reduce(f64::min)
    };
    least(&|row| row.phase == phase).or_else(|| least(&|_| true)).unwrap_or(1.0)
}
