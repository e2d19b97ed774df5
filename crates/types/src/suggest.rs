//! "Did you mean ...?": the nearest of the accepted names, one measure for all messages.

/// Likeness (Jaro-Winkler, 0 to 1) from which a name is worth suggesting.
const LIKENESS: f64 = 0.78;

/// The candidate most like `name`, if any is like it at all. Case does not count; of equals the first is taken.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim().to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = likeness(&name, &candidate.to_lowercase());
        if likeness >= LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Jaro-Winkler, which thinks little of slips in short words: one slip in three letters or more counts as 0.9.
fn likeness(a: &str, b: &str) -> f64 {
    let slip = a.len().min(b.len()) >= 3 && strsim::osa_distance(a, b) <= 1;
    strsim::jaro_winkler(a, b).max(if slip { 0.9 } else { 0.0 })
}

/// `; did you mean NAME?`, or nothing if no candidate is near.
pub fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or(String::new(), |near| format!("; did you mean {near}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let names = ["redis", "basic", "sqlite", "redb"];
        assert_eq!(nearest("rdis", names), Some("redis"));
        assert_eq!(nearest("SQLITE", names), Some("sqlite"));
        assert_eq!(nearest("sqllite", names), Some("sqlite"));
        for far in ["cassandra-cql", "", "x", "hbase20", "jdbc"] {
            assert_eq!(nearest(far, names), None, "{far}");
        }
        assert_eq!(nearest("rnu", ["load", "run", "shell"]), Some("run"));
        assert_eq!(hint("bsic", names), "; did you mean basic?");
        assert_eq!(hint("voldemort", names), "");
    }
}
