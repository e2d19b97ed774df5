//! Dashboards, their panels and the queries behind them.

/// Form in which a panel shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Over time.
    Lines,
    /// The last value.
    Number,
}

impl Kind {
    /// Grafana's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Lines => "timeseries",
            Kind::Number => "stat",
        }
    }
}

/// A query in Prometheus' language.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// `@` stands for the choice of instances, `[@]` for the length of time that Grafana takes rates over.
    pub expression: &'static str,
    /// Legend of its series.
    pub legend: &'static str,
}

/// One panel.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Title.
    pub title: &'static str,
    /// Description for readers.
    pub description: &'static str,
    /// Form of the panel.
    pub kind: Kind,
    /// Grafana's name of the unit.
    pub unit: &'static str,
    /// Columns of 24.
    pub width: u32,
    /// Queries of its series.
    pub queries: &'static [Query],
}

/// One dashboard.
#[derive(Clone, Copy, Debug)]
pub struct Dashboard {
    /// Stable identifier, part of its URL.
    pub uid: &'static str,
    /// Title.
    pub title: &'static str,
    /// A metric that every instance has which can be shown.
    pub present: &'static str,
    /// Headings and their panels.
    pub rows: &'static [(&'static str, &'static [Panel])],
}

pub(super) const fn q(expression: &'static str, legend: &'static str) -> Query {
    Query { expression, legend }
}

pub(super) const fn lines(
    title: &'static str,
    unit: &'static str,
    description: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { title, description, kind: Kind::Lines, unit, width: 12, queries }
}

pub(super) const fn number(
    title: &'static str,
    unit: &'static str,
    description: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { title, description, kind: Kind::Number, unit, width: 6, queries }
}
