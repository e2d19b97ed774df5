//! Windows of traces: `EVENT_TRACE_PARAMS`.

use dyno_config::experiment::traces::TracedPhase;
use serde::Serialize;

/// Lines of a client's log that mark the boundaries of phases, as both versions write them.
const MARKS: [(&str, Boundary); 5] = [
    ("[LOAD PHASE]", Boundary::Load),
    ("[LOAD_PHASE]", Boundary::Load),
    ("[RUN PHASE]", Boundary::Run),
    ("[RUN_PHASE]", Boundary::Run),
    ("benchmark-finish", Boundary::Finish),
];

/// A boundary of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Boundary {
    Load,
    Run,
    Finish,
}

/// A part of a phase in which something is traced, on dyno's own timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The phase.
    pub phase: TracedPhase,
    /// Begin in it, seconds.
    pub from_s: u64,
    /// Length; absent: until the phase ends.
    pub length_s: Option<u64>,
}

/// Time in which something is traced.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Window {
    /// From one phrase of the log to another.
    Roi {
        /// Phrase of the beginning; `/.../` is a pattern; `+5s` behind it delays.
        begin: String,
        /// Phrase of the end.
        end: String,
    },
    /// From a second of the run phase on.
    Time {
        /// Seconds from the beginning of the run phase.
        begin_s: u64,
        /// Seconds.
        length_s: u64,
    },
}

/// A window of traces that is not understood.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WindowError {
    /// Words that are no triples.
    #[error("{0:?}: expected triples roi,BEGIN,END or time,BEGIN,LENGTH")]
    NoTriples(String),
    /// A triple of another kind.
    #[error("{0:?}: expected roi or time")]
    Kind(String),
    /// A time that is no whole number.
    #[error("{0:?}: expected whole seconds in time,BEGIN,LENGTH")]
    Seconds(String),
    /// A window of no length.
    #[error("time: expected a length above 0")]
    NoLength,
    /// A phrase is missing.
    #[error("roi: expected two phrases")]
    NoPhrases,
    /// It ends before it begins.
    #[error("roi: its end comes before its begin")]
    EndsBefore,
    /// It begins when everything is over.
    #[error("roi: nothing follows benchmark-finish")]
    AfterFinish,
    /// A pattern that is none.
    #[error("{phrase:?}: no regular expression: {source}")]
    Pattern {
        /// The phrase with the pattern.
        phrase: String,
        /// Error in the pattern.
        source: regex_lite::Error,
    },
    /// A phrase that marks no boundary of a phase.
    #[error("{0:?}: is no phrase of the log: LOAD PHASE, RUN PHASE, benchmark-finish; +5s behind it delays")]
    NoPhrase(String),
}

impl Window {
    /// Reads triples; blank means the whole execution, and is no window.
    pub fn parse_all(text: &str) -> Result<Vec<Window>, WindowError> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if !words.len().is_multiple_of(3) {
            return Err(WindowError::NoTriples(text.to_owned()));
        }
        words.chunks(3).map(Window::parse).collect()
    }

    fn parse(triple: &[&str]) -> Result<Window, WindowError> {
        let second = |word: &str| word.parse::<u64>().map_err(|_| WindowError::Seconds(word.to_owned()));
        match triple {
            ["roi", begin, end] if !begin.is_empty() && !end.is_empty() => {
                let window = Window::Roi { begin: (*begin).into(), end: (*end).into() };
                window.traced().map(|_| window)
            }
            ["time", begin, length] => {
                let (begin_s, length_s) = (second(begin)?, second(length)?);
                if length_s == 0 {
                    return Err(WindowError::NoLength);
                }
                Ok(Window::Time { begin_s, length_s })
            }
            ["roi", ..] => Err(WindowError::NoPhrases),
            _ => Err(WindowError::Kind(triple.first().copied().unwrap_or_default().to_owned())),
        }
    }

    /// Begin and end in the run phase, seconds, where it says so.
    pub fn seconds(&self) -> Option<(u64, u64)> {
        match self {
            Window::Time { begin_s, length_s } => Some((*begin_s, begin_s + length_s)),
            Window::Roi { .. } => None,
        }
    }

    /// The parts of phases that it means: boundaries of phases are known exactly, no log is searched for phrases.
    pub fn traced(&self) -> Result<Vec<Traced>, WindowError> {
        let (begin, end) = match self {
            Window::Time { begin_s, length_s } => {
                let length_s = Some(*length_s);
                return Ok(vec![Traced { phase: TracedPhase::Measure, from_s: *begin_s, length_s }]);
            }
            Window::Roi { begin, end } => (boundary(begin)?, boundary(end)?),
        };
        let ((first, after), (last, beyond)) = (begin, end);
        if (first, after) >= (last, beyond) {
            return Err(WindowError::EndsBefore);
        }
        let phase =
            |boundary| if boundary == Boundary::Load { TracedPhase::Load } else { TracedPhase::Measure };
        if first == Boundary::Finish {
            return Err(WindowError::AfterFinish);
        }
        let mut all = vec![Traced { phase: phase(first), from_s: after, length_s: None }];
        match last {
            // A delay behind the same boundary is a length.
            _ if last == first => all[0].length_s = Some(beyond - after),
            Boundary::Run if beyond > 0 => {
                all.push(Traced { phase: TracedPhase::Measure, from_s: 0, length_s: Some(beyond) });
            }
            Boundary::Finish if first == Boundary::Load => {
                all.push(Traced { phase: TracedPhase::Measure, from_s: 0, length_s: None });
            }
            _ => {}
        }
        Ok(all)
    }
}

/// The boundary that a phrase marks, and the delay behind it in seconds.
fn boundary(phrase: &str) -> Result<(Boundary, u64), WindowError> {
    let (text, delay) = match phrase.rsplit_once('+') {
        Some((text, delay)) if seconds(delay).is_some() => (text, seconds(delay).unwrap_or(0)),
        _ => (phrase, 0),
    };
    let found = match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
        Some(pattern) => {
            let pattern = regex_lite::Regex::new(&pattern.replace('~', "\n"))
                .map_err(|source| WindowError::Pattern { phrase: phrase.to_owned(), source })?;
            MARKS.iter().find(|(mark, _)| pattern.is_match(mark))
        }
        None => MARKS.iter().find(|(mark, _)| mark.contains(text)),
    };
    found.map(|(_, boundary)| (*boundary, delay)).ok_or_else(|| WindowError::NoPhrase(phrase.to_owned()))
}

/// `5s`, `2m`, `1h`.
fn seconds(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return None,
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit)
}
