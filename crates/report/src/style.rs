//! Look of texts on a terminal: colours, and lines wrapped at words.

use dyno_rundir::schema::Trust;
use dyno_types::units::ShownLatency;
use textwrap::Options;

/// Look of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// True if escape sequences may be used.
    pub colour: bool,
    /// Width at which lines are wrapped, columns.
    pub columns: usize,
    /// Rows that a text without details may fill, so that its begin stays on the screen.
    pub rows: usize,
    /// True for every table, note and figure of the client and of monitors.
    pub details: bool,
}

impl Style {
    /// Rows of a small terminal, and of what is none.
    pub const SMALL_ROWS: usize = 24;

    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Wraps a text at words; lines after the first are indented by `indent` columns.
    pub(crate) fn wrap_text(self, text: &str, indent: usize) -> String {
        let indent = " ".repeat(indent);
        textwrap::fill(text, Options::new(self.columns).subsequent_indent(&indent).break_words(false))
    }

    /// Cuts a text off where the line ends.
    pub(crate) fn cut_line(self, text: &str) -> String {
        if text.chars().count() <= self.columns {
            return text.to_owned();
        }
        let kept: String = text.chars().take(self.columns.saturating_sub(1)).collect();
        kept + "…"
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn paint_trust(self, trust: Trust) -> String {
        match trust {
            Trust::Valid => self.paint("1;32", "VALID"),
            Trust::Suspect => self.paint("1;33", "SUSPECT"),
            Trust::Invalid => self.paint("1;31", "INVALID"),
        }
    }

    pub(crate) fn paint_grade(self, trust: Trust, text: &str) -> String {
        let code = match trust {
            Trust::Valid => "32",
            Trust::Suspect => "33",
            Trust::Invalid => "31",
        };
        self.paint(code, text)
    }
}

/// A latency of so many microseconds.
pub(crate) fn format_us(value: f64) -> String {
    ShownLatency((value * 1e3).round() as u64).to_string()
}
