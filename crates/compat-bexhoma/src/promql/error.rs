//! Reasons for which a query has no figure.

use super::parse::SyntaxError;

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
