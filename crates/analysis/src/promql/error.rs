//! Why a query has no figure.

use super::parse::{OVER, RANGED};

/// A text that is no query of the part of PromQL that is read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// This part has no meaning here; its beginning.
    #[error("{0:?}: is not evaluated here")]
    NotEvaluated(String),
    /// A character is missing.
    #[error("{at:?}: expected {expected:?}")]
    Expected {
        /// Text that stands there instead; its beginning.
        at: String,
        /// The character.
        expected: char,
    },
    /// Expressions lie too deep in each other.
    #[error("too many brackets in each other")]
    TooDeep,
    /// A number that is none.
    #[error("{0:?} is no number")]
    NotANumber(String),
    /// A rate of a metric without a window.
    #[error("{0}: expected a window, such as [5m]")]
    NoWindow(String),
    /// A sum, or its like, of a metric with a window.
    #[error("{0}: expected no window, such as [5m]")]
    Window(String),
    /// Another function.
    #[error("{0}: of functions only {over} and {ranged} are evaluated here", over = OVER.join(", "), ranged = RANGED.join(", "))]
    Function(String),
    /// Labels that are not closed; what stands there instead.
    #[error("{0:?}: expected a comma or '}}'")]
    OpenLabels(String),
    /// A window that is not closed.
    #[error("a window is not closed by ']'")]
    OpenWindow,
    /// A label without a sign; what stands there instead.
    #[error("{0:?}: expected a sign after a label")]
    NoSign(String),
    /// A label that is to match a pattern.
    #[error("{label}{sign}: patterns are not evaluated here")]
    Pattern {
        /// The label.
        label: String,
        /// The sign.
        sign: &'static str,
    },
    /// A label that is compared with something else than a text.
    #[error("expected a text after a label")]
    NoText,
    /// A text that is not closed.
    #[error("a text is not closed")]
    OpenText,
}

/// A query that has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It is not understood.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The phase has no sample.
    #[error("no sample lies in the phase")]
    NoSample,
    /// Several series are left at the end.
    #[error("{0} series, and no sum or max of them")]
    SeveralSeries(usize),
    /// The figure is not finite.
    #[error("the figure is divided by nothing")]
    NotFinite,
    /// No source has recorded the metric.
    #[error("{0}: was not recorded")]
    NotRecorded(String),
    /// A window that no function takes.
    #[error("{0}: a window without rate or increase")]
    BareWindow(String),
    /// The phase has not enough samples of the metric.
    #[error("{0}: too few samples in the phase")]
    TooFewSamples(String),
    /// An operator between several series and several others.
    #[error("several series on both sides of an operator are not evaluated here")]
    SeveralOnBothSides,
    /// A function of a number.
    #[error("{0}: expected a metric, not a number")]
    NoMetric(String),
}
