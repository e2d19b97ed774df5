//! Pressure stall information: how long tasks waited for a resource.

use crate::sample::Sample;

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12` for a host or a cgroup; the averages follow from the totals.
pub(crate) fn pressure(name: &str, text: &str, into: &mut Sample) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(share @ ("some" | "full")) = words.next() else { continue };
        let total = words.find_map(|w| w.strip_prefix("total=")).and_then(|t| t.parse::<f64>().ok());
        if let Some(us) = total {
            into.add_counter(format!("{name}.{share}_s"), us / 1e6);
        }
    }
}
