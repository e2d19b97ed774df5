//! Which records are wanted: `info,dyno_hosts::remote=debug`.

use tracing::Level;
use tracing::level_filters::LevelFilter;

/// A word of a filter that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{word:?} (at character {at} of {text:?}) is neither a level nor TARGET=LEVEL; levels are off, error, warn, info, debug \
     and trace, a target is a crate or a module; such as info,dyno_hosts::remote=debug"
)]
pub struct FilterError {
    /// The word.
    pub word: String,
    /// Where it begins, from 1.
    pub at: usize,
    /// The whole filter.
    pub text: String,
}

/// Levels by target, in the syntax of tracing's filters without spans and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFilter {
    text: String,
    /// Prefix of a target, and the level wanted of it.
    levels: Vec<(String, LevelFilter)>,
}

fn level(word: &str) -> Option<LevelFilter> {
    Some(match word.to_ascii_lowercase().as_str() {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return None,
    })
}

/// A target with its level, or a level for all targets. A target alone is one of dyno's own: another word is a mistyped level.
fn directive(word: &str) -> Option<(String, LevelFilter)> {
    let is_target = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
    };
    match word.split_once('=') {
        Some((target, word)) => Some((target.to_owned(), level(word)?)).filter(|_| is_target(target)),
        None => match level(word) {
            Some(level) => Some((String::new(), level)),
            None => Some((word.to_owned(), LevelFilter::TRACE))
                .filter(|_| is_target(word) && (word == "dyno" || word.starts_with("dyno_"))),
        },
    }
}

impl TargetFilter {
    /// Reads one.
    ///
    /// # Errors
    /// A word is neither a level nor a target with one.
    pub fn parse(text: &str) -> Result<TargetFilter, FilterError> {
        let (mut levels, mut at) = (Vec::new(), 1);
        for word in text.split(',') {
            let trimmed = word.trim();
            if !trimmed.is_empty() {
                let wrong = || FilterError { word: trimmed.to_owned(), at, text: text.to_owned() };
                levels.push(directive(trimmed).ok_or_else(wrong)?);
            }
            at += word.chars().count() + 1;
        }
        Ok(TargetFilter { text: text.to_owned(), levels })
    }

    /// As it was written.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// Returns whether a record of this level and target is wanted: the longest name that the target begins with
    /// decides, of equal ones the last.
    pub(super) fn allows(&self, level: &Level, target: &str) -> bool {
        let fitting = self.levels.iter().filter(|(name, _)| target.starts_with(name.as_str()));
        fitting.max_by_key(|(name, _)| name.len()).is_some_and(|(_, wanted)| level <= wanted)
    }

    /// The most that is wanted of any target.
    pub(super) fn most(&self) -> LevelFilter {
        self.levels.iter().map(|(_, level)| *level).max().unwrap_or(LevelFilter::OFF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_decides() {
        let filter =
            TargetFilter::parse("warn, dyno_hosts::remote=debug,dyno_hosts::remote::ssh=off,dyno_engine")
                .unwrap();
        let allows = |level, target| filter.allows(&level, target);
        assert!(allows(Level::WARN, "dyno_session") && !allows(Level::INFO, "dyno_session"));
        assert!(
            allows(Level::DEBUG, "dyno_hosts::remote::far")
                && !allows(Level::TRACE, "dyno_hosts::remote::far")
        );
        assert!(!allows(Level::ERROR, "dyno_hosts::remote::ssh") && allows(Level::TRACE, "dyno_engine::net"));
        assert_eq!(filter.most(), LevelFilter::TRACE);
        assert!(!TargetFilter::parse("").unwrap().allows(&Level::ERROR, "dyno"));
    }

    #[test]
    fn a_wrong_word_is_named_with_its_place() {
        for (text, word, at) in
            [("dbug", "dbug", 1), ("info,x=loud", "x=loud", 6), ("info, [a]=info", "[a]=info", 6)]
        {
            let error = TargetFilter::parse(text).unwrap_err();
            assert_eq!((error.word.as_str(), error.at), (word, at), "{error}");
        }
    }
}
