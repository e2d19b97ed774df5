//! `list-kpi`: KPIs of iterations, and statistics over them.

use crate::report::grammar::{Kpi, Kpis};
use std::fmt::Write as _;

/// One iteration's KPIs.
#[derive(Clone, Debug, Default)]
pub struct IterationKpis {
    /// Folder's name, such as `itr-1`.
    pub name: String,
    /// KPIs of the iteration.
    pub kpis: Kpis,
    /// True if every client's status was 0.
    pub passed: bool,
}

/// A folder of logs.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The folder.
    pub name: String,
    /// Parameters.
    pub parameters: Vec<(String, String)>,
    /// Facts about the host, if they are wanted.
    pub host: Vec<(String, String)>,
    /// Iterations in order.
    pub iterations: Vec<IterationKpis>,
}

/// Figures of a KPI over iterations.
struct Statistics {
    count: usize,
    mean: f64,
    /// Deviation of the iterations as a sample; absent for one.
    deviation: Option<f64>,
    /// Deviation of the iterations as all there is: the original's.
    population: f64,
    median: f64,
    /// The original's: the upper of the two middle values.
    upper: f64,
    /// Absent where a value is not above 0.
    geometric: Option<f64>,
}

fn statistics(values: &[f64]) -> Option<Statistics> {
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    let count = all.len();
    let upper = *all.get(count / 2)?;
    let lower = all[(count - 1) / 2];
    let n = count as f64;
    let mean = all.iter().sum::<f64>() / n;
    let squares: f64 = all.iter().map(|v| (v - mean).powi(2)).sum();
    let positive = all.iter().all(|v| *v > 0.0);
    Some(Statistics {
        count,
        mean,
        deviation: (count > 1).then(|| (squares / (n - 1.0)).sqrt()),
        population: (squares / n).sqrt(),
        median: (lower + upper) / 2.0,
        upper,
        geometric: positive.then(|| (all.iter().map(|v| v.ln()).sum::<f64>() / n).exp()),
    })
}

/// Values that are not more than `sigmas` standard deviations off the mean; looked at once.
fn without_outliers(values: &[f64], sigmas: f64) -> Vec<f64> {
    let Some(Statistics { mean, deviation: Some(deviation), .. }) = statistics(values) else {
        return values.to_vec();
    };
    values.iter().copied().filter(|v| (v - mean).abs() <= sigmas * deviation).collect()
}

impl Listing {
    /// Names of the KPIs in the order in which iterations say them.
    fn names(&self, all: bool) -> Vec<(String, bool)> {
        let mut names: Vec<(String, bool)> = Vec::new();
        for kpi in self.iterations.iter().flat_map(|iteration| &iteration.kpis.kpis) {
            if (all || kpi.primary) && !names.iter().any(|(known, _)| *known == kpi.name) {
                names.push((kpi.name.clone(), kpi.primary));
            }
        }
        names
    }

    /// A KPI's values in iterations that passed.
    fn values(&self, name: &str) -> Vec<f64> {
        let passed = self.iterations.iter().filter(|iteration| iteration.passed);
        let of = |kpi: &&Kpi| kpi.name == name;
        passed.filter_map(|iteration| iteration.kpis.kpis.iter().find(of)).map(|kpi| kpi.value).collect()
    }
}

/// The listing as text: parameters, each iteration's KPIs, statistics of starred ones.
pub fn list(listing: &Listing, all: bool, parameters: bool, outlier: Option<f64>) -> String {
    let mut out = format!("{}:\n", listing.name);
    if parameters {
        for (name, value) in &listing.parameters {
            let _ = writeln!(out, "## {name}: {value}");
        }
    }
    for (name, value) in &listing.host {
        let _ = writeln!(out, "# {name}: {value}");
    }
    for iteration in &listing.iterations {
        let failed = if iteration.passed { "" } else { " (failed: not part of the statistics)" };
        let _ = writeln!(out, "#{}{failed}", iteration.name);
        for kpi in iteration.kpis.kpis.iter().filter(|kpi| all || kpi.primary) {
            let _ = writeln!(out, "{}{}: {}", if kpi.primary { "*" } else { "" }, kpi.name, kpi.value);
        }
    }
    for (name, _) in listing.names(false) {
        let values = listing.values(&name);
        spread("", &name, &values, &mut out);
        if let Some(sigmas) = outlier {
            let kept = without_outliers(&values, sigmas);
            if kept.len() < values.len() {
                let _ = writeln!(
                    out,
                    "# {} of {} beyond {sigmas} sigma",
                    values.len() - kept.len(),
                    values.len()
                );
                spread("without outliers, ", &name, &kept, &mut out);
            }
        }
    }
    out
}

fn spread(message: &str, name: &str, values: &[f64], out: &mut String) {
    let Some(s) = statistics(values) else { return };
    let mut line = |what: &str, value: f64, why: &str| {
        let _ = writeln!(out, "{what} {message}{name}: {value}{why}");
    };
    line("avg", s.mean, "");
    if let Some(deviation) = s.deviation {
        line("std", deviation, &format!(" # the original's, without Bessel's correction: {}", s.population));
    }
    let even = s.count.is_multiple_of(2) && s.upper != s.median;
    line(
        "med",
        s.median,
        &if even { format!(" # the original's, the upper one: {}", s.upper) } else { String::new() },
    );
    if let Some(geometric) = s.geometric {
        line("geo", geometric, "");
    }
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// The listings as one table: rows are parameters and KPIs, columns iterations.
pub fn csv(listings: &[Listing], all: bool, parameters: bool) -> String {
    let columns: Vec<(&Listing, &IterationKpis)> = listings
        .iter()
        .flat_map(|listing| listing.iterations.iter().map(move |one| (listing, one)))
        .collect();
    let mut out = String::new();
    let mut row = |name: &str, cells: Vec<String>| {
        let fields: Vec<String> =
            std::iter::once(name.to_owned()).chain(cells).map(|text| field(&text)).collect();
        let _ = writeln!(out, "{}", fields.join(","));
    };
    row("testcase", columns.iter().map(|(listing, _)| listing.name.clone()).collect());
    row("iteration", columns.iter().map(|(_, one)| one.name.clone()).collect());
    row(
        "status",
        columns.iter().map(|(_, one)| if one.passed { "passed" } else { "failed" }.into()).collect(),
    );
    type Pairs = fn(&Listing) -> &[(String, String)];
    let described: [(bool, Pairs); 2] = [(parameters, |one| &one.parameters), (true, |one| &one.host)];
    for (_, pairs) in described.into_iter().filter(|(wanted, _)| *wanted) {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in listings.iter().flat_map(pairs) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        for name in names {
            let value = |listing: &Listing| {
                let found = pairs(listing).iter().find(|(known, _)| known == name);
                found.map_or(String::new(), |(_, value)| value.clone())
            };
            row(name, columns.iter().map(|(listing, _)| value(listing)).collect());
        }
    }
    let mut names: Vec<(String, bool)> = Vec::new();
    for one in listings.iter().flat_map(|listing| listing.names(all)) {
        if !names.iter().any(|(known, _)| *known == one.0) {
            names.push(one);
        }
    }
    for (name, primary) in names {
        let value = |one: &IterationKpis| {
            let found = one.kpis.kpis.iter().find(|kpi| kpi.name == name);
            found.map_or(String::new(), |kpi| kpi.value.to_string())
        };
        let shown = format!("{}{name}", if primary { "*" } else { "" });
        row(&shown, columns.iter().map(|(_, one)| value(one)).collect());
    }
    out
}

/// Names of parameters that tell the tables, rows and columns of [`pivot`] apart.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Each value is a row.
    pub row: &'a str,
    /// Each value is a column.
    pub column: &'a str,
    /// Each combination of values has tables of its own.
    pub tables: &'a [&'a str],
}

/// No test has the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: expected {}", known.join(", "))]
pub struct NoParameter {
    /// Name.
    pub name: String,
    /// The parameters that tests have.
    pub known: Vec<String>,
}

/// A table for each KPI: its mean over the iterations that passed, by two parameters; an error names a parameter that no test
/// has.
pub fn pivot(listings: &[Listing], axes: Axes<'_>, all: bool) -> Result<String, NoParameter> {
    let value = |listing: &Listing, name: &str| {
        listing.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let asked = [axes.row, axes.column].into_iter().chain(axes.tables.iter().copied());
    for name in asked {
        if listings.iter().all(|listing| value(listing, name).is_none()) {
            let known =
                listings.iter().flat_map(|listing| &listing.parameters).map(|(known, _)| known.as_str());
            let known: std::collections::BTreeSet<&str> = known.collect();
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(NoParameter { name: name.to_owned(), known });
        }
    }
    let of = |listing: &Listing, name: &str| value(listing, name).unwrap_or_default();
    let apart = |listing: &Listing| axes.tables.iter().map(|name| of(listing, name)).collect::<Vec<_>>();
    let mut out = String::new();
    for group in distinct(listings.iter().map(apart)) {
        let mine: Vec<&Listing> = listings.iter().filter(|listing| apart(listing) == group).collect();
        let columns = distinct(mine.iter().map(|listing| of(listing, axes.column)));
        let rows = distinct(mine.iter().map(|listing| of(listing, axes.row)));
        for name in distinct(mine.iter().flat_map(|listing| listing.names(all)).map(|(name, _)| name)) {
            let places = axes.tables.iter().zip(&group).map(|(name, value)| format!("{name}={value}"));
            let title: Vec<String> = std::iter::once(name.clone()).chain(places).collect();
            let _ = writeln!(out, "{}", field(&title.join(", ")));
            let head = std::iter::once(format!("{} / {}", axes.row, axes.column)).chain(columns.clone());
            let _ = writeln!(out, "{}", head.map(|text| field(&text)).collect::<Vec<_>>().join(","));
            for row in &rows {
                let cell = |column: &String| {
                    let here =
                        mine.iter().filter(|l| of(l, axes.row) == *row && of(l, axes.column) == *column);
                    let values: Vec<f64> = here.flat_map(|listing| listing.values(&name)).collect();
                    statistics(&values).map_or(String::new(), |all| all.mean.to_string())
                };
                let cells = std::iter::once(field(row)).chain(columns.iter().map(cell));
                let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join(","));
            }
            out.push('\n');
        }
    }
    Ok(out)
}

/// Returns the distinct values: numbers by size, other words in their order.
fn distinct<T: Clone + PartialEq + Sortable>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    if found.iter().all(|one| one.number().is_some()) {
        found.sort_by(|a, b| a.number().unwrap_or(0.0).total_cmp(&b.number().unwrap_or(0.0)));
    }
    found
}

trait Sortable {
    fn number(&self) -> Option<f64>;
}

impl Sortable for String {
    fn number(&self) -> Option<f64> {
        self.parse().ok()
    }
}

impl Sortable for Vec<String> {
    fn number(&self) -> Option<f64> {
        match &self[..] {
            [one] => one.parse().ok(),
            _ => None,
        }
    }
}
