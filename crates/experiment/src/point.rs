//! A point of a search: what a run is made with beyond its cell.

/// Settings of a run beyond its cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPoint {
    /// Keys that are set, and their values; none for the grid.
    pub sets: Vec<(String, String)>,
    /// That in words, such as `users=8`; empty for the grid.
    pub label: String,
    /// The value that is searched for.
    pub value: f64,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Number of the draw of operations and arrivals, from 1: the repetition, unless the run repeats another one.
    pub draw: u32,
}

impl SearchPoint {
    /// A cell as it is.
    pub fn plain(repetition: u32) -> Self {
        SearchPoint { sets: Vec::new(), label: String::new(), value: 0.0, repetition, draw: repetition }
    }

    pub(crate) fn one(key: &str, value: f64, repetition: u32) -> Self {
        // As few digits as say it: the search has rounded it.
        let text = value.to_string();
        let label = format!("{}={text}", key.rsplit('.').next().unwrap_or(key));
        SearchPoint { sets: vec![(key.to_owned(), text)], label, value, repetition, draw: repetition }
    }
}
