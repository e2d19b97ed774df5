//! Dashboards, their panels and the queries behind them.

/// Form in which a panel shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelKind {
    /// Over time.
    Lines,
    /// The last value.
    Number,
}

impl PanelKind {
    /// Grafana's name of it.
    pub fn name(self) -> &'static str {
        match self {
            PanelKind::Lines => "timeseries",
            PanelKind::Number => "stat",
        }
    }
}

/// A query in Prometheus' language.
#[derive(Clone, Copy, Debug)]
pub struct PanelQuery {
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
    pub kind: PanelKind,
    /// Grafana's name of the unit.
    pub unit: &'static str,
    /// Columns of 24.
    pub width: u32,
    /// Queries of its series.
    pub queries: &'static [PanelQuery],
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

pub(super) const fn panel_query(expression: &'static str, legend: &'static str) -> PanelQuery {
    PanelQuery { expression, legend }
}

pub(super) const fn lines_panel(
    title: &'static str,
    unit: &'static str,
    description: &'static str,
    queries: &'static [PanelQuery],
) -> Panel {
    Panel { title, description, kind: PanelKind::Lines, unit, width: 12, queries }
}

pub(super) const fn number_panel(
    title: &'static str,
    unit: &'static str,
    description: &'static str,
    queries: &'static [PanelQuery],
) -> Panel {
    Panel { title, description, kind: PanelKind::Number, unit, width: 6, queries }
}
