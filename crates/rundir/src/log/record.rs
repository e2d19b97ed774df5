//! Records of the log: what has happened, without secrets, and as a line for people.

use dyno_types::limits::LOG_TEXT_BYTES;
use dyno_types::secret::{mask_text, mask_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Severity of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something has failed.
    Error,
    /// Something is not as it should be, and the run goes on.
    Warn,
    /// A step of a run.
    #[default]
    Info,
    /// Details that help to understand a step.
    Debug,
    /// Everything else.
    Trace,
}

impl Level {
    /// Name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    pub(super) fn of(level: &tracing::Level) -> Level {
        match *level {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG => Level::Debug,
            tracing::Level::TRACE => Level::Trace,
        }
    }

    pub(super) fn tracing(self) -> tracing::Level {
        match self {
            Level::Error => tracing::Level::ERROR,
            Level::Warn => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Debug => tracing::Level::DEBUG,
            Level::Trace => tracing::Level::TRACE,
        }
    }
}

/// Something that has happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, Unix nanoseconds.
    pub unix_ns: u64,
    /// Severity.
    pub level: Level,
    /// Source of the record: `controller`, `worker-1`, `host-NAME`, as monitors and messages name them.
    pub source: String,
    /// The part of dyno that says it.
    pub target: String,
    /// Text of the message.
    pub message: String,
    /// Details by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

/// A line of `log.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Time since the run directory was made, nanoseconds; negative before.
    pub t_ns: i64,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

impl Record {
    /// Without secrets, and with texts of a limited length.
    pub(super) fn masked(mut self) -> Record {
        self.message = shortened(mask_text(&self.message));
        for (name, value) in &mut self.fields {
            if let Value::String(text) = value {
                *text = shortened(mask_value(name, text));
            }
        }
        self
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > LOG_TEXT_BYTES {
        let end = (0..=LOG_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// As a line for people, without the time.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { level, source, target, message, .. } = self;
        // Of the crate of hosts its parts: servers, workers elsewhere and pods are different subjects.
        let target = target.trim_start_matches("dyno_hosts::");
        let room = target.split("::").next().unwrap_or_default().trim_start_matches("dyno_");
        write!(f, "{:5} {source} {room}: {}", level.name(), message.replace('\n', "\\n"))?;
        for (name, value) in &self.fields {
            match value {
                Value::String(text)
                    if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"') =>
                {
                    write!(f, " {name}={text}")?;
                }
                value => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_texts_are_short() {
        let mut fields = Map::new();
        fields.insert("uri".into(), "redis://me:hunter22@h".into());
        fields.insert("requirepass".into(), "x".into());
        fields.insert("long".into(), "ü".repeat(LOG_TEXT_BYTES).into());
        let message = "opened mongodb://a:s3cret@h/db".to_owned();
        let masked = Record { message, fields, ..Record::default() }.masked();
        assert_eq!(masked.message, "opened mongodb://a:***@h/db");
        assert_eq!(
            (&masked.fields["uri"], &masked.fields["requirepass"]),
            (&"redis://me:***@h".into(), &"***".into())
        );
        assert!(masked.fields["long"].as_str().unwrap().len() < LOG_TEXT_BYTES + 4);
    }

    #[test]
    fn a_line_for_people_is_one_line() {
        let mut fields = Map::new();
        fields.insert("words".into(), "two words".into());
        fields.insert("n".into(), 3.into());
        fields.insert("uri".into(), "null:".into());
        let (target, source) = ("dyno_hosts::remote::far".to_owned(), "worker-0".to_owned());
        let record = Record { source, target, message: "a\nb".into(), fields, ..Record::default() };
        assert_eq!(record.to_string(), "info  worker-0 remote: a\\nb words=\"two words\" n=3 uri=null:");
    }
}
