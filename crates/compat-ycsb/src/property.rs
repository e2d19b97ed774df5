//! A property as the list of known ones has it.

use std::borrow::Cow;

/// A property as help describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedProperty {
    /// Reader of the property: `client`, `core`, `dyno`, `occupancy`, `timeseries`, `closedeconomy`, or the name of a binding.
    pub group: &'static str,
    /// Name, case-sensitive.
    pub name: Cow<'static, str>,
    /// Default as text; empty if there is none.
    pub default: &'static str,
    /// Meaning and accepted values, one line.
    pub doc: Cow<'static, str>,
}
