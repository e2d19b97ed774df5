//! Windows of traces: `EVENT_TRACE_PARAMS`.

use serde::Serialize;

/// When something is traced.
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

impl Window {
    /// Reads triples; blank means the whole execution, and is no window.
    pub fn parse_all(text: &str) -> Result<Vec<Window>, String> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if !words.len().is_multiple_of(3) {
            return Err(format!("{text:?}: expected triples roi,BEGIN,END or time,BEGIN,LENGTH"));
        }
        words.chunks(3).map(Window::parse).collect()
    }

    fn parse(triple: &[&str]) -> Result<Window, String> {
        let second = |word: &str| {
            word.parse::<u64>().map_err(|_| format!("{word:?}: expected whole seconds in time,BEGIN,LENGTH"))
        };
        match triple {
            ["roi", begin, end] if !begin.is_empty() && !end.is_empty() => {
                Ok(Window::Roi { begin: (*begin).into(), end: (*end).into() })
            }
            ["time", begin, length] => {
                let (begin_s, length_s) = (second(begin)?, second(length)?);
                if length_s == 0 {
                    return Err("time: expected a length above 0".into());
                }
                Ok(Window::Time { begin_s, length_s })
            }
            ["roi", ..] => Err("roi: expected two phrases".into()),
            [kind, ..] => Err(format!("{kind:?}: expected roi or time")),
            [] => Err("expected roi or time".into()),
        }
    }

    /// Begin and end in the run phase, seconds, where it says so.
    pub fn seconds(&self) -> Option<(u64, u64)> {
        match self {
            Window::Time { begin_s, length_s } => Some((*begin_s, begin_s + length_s)),
            Window::Roi { .. } => None,
        }
    }
}
