//! The framework's grammar of KPIs.
//!
//! ```text
//! # comment
//! ## name: value              a tunable
//! name (unit): value          a KPI
//! *name (unit): value  # why  one that comparisons look at, with a remark
//! ```

/// A KPI.
#[derive(Clone, Debug, PartialEq)]
pub struct Kpi {
    /// Name with its unit, without the star.
    pub name: String,
    /// Value.
    pub value: f64,
    /// True if it is starred.
    pub primary: bool,
}

/// A text's KPIs and tunables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kpis {
    /// KPIs in their order.
    pub kpis: Vec<Kpi>,
    /// Tunables in their order.
    pub tunables: Vec<(String, String)>,
}

/// Reads a text; lines of other forms are no KPIs.
pub fn read_kpis(text: &str) -> Kpis {
    let mut all = Kpis::default();
    for line in text.lines().map(str::trim) {
        if let Some(tunable) = line.strip_prefix("## ") {
            if let Some((name, value)) = tunable.split_once(':') {
                all.tunables.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bare = line.split_once(" #").map_or(line, |(before, _)| before);
        let Some((name, value)) = bare.rsplit_once(':') else { continue };
        // The whole word must be a number: what reads 1.23457e+06 as 1.23457 is off by a million.
        let Some(value) = value.trim().parse::<f64>().ok().filter(|v| v.is_finite()) else { continue };
        let (name, primary) = match name.strip_prefix('*') {
            Some(name) => (name, true),
            None => (name, false),
        };
        all.kpis.push(Kpi { name: name.trim().to_owned(), value, primary });
    }
    all
}
