//! Unit of a run's operations, and which metrics tell how long one took: one fact for throughput, times, laws and models.
//!
//! An operation may be a script of several requests. Its metrics are then the requests, and one that covers them all.

use dyno_types::metric::{
    BULK, CLEANUP, DELIVERY, HELD, HITS, MISSES, OWN, SCAN_PER_RECORD, TRANSACTION, VERIFY, WAIT,
};
pub use dyno_types::metric::{READ_MODIFY_WRITE, TRANSACTIONAL};

/// Metrics that cover requests which are recorded beside others of the same name, or that are no requests of the workload.
const DERIVED: [&str; 6] = [READ_MODIFY_WRITE, VERIFY, SCAN_PER_RECORD, CLEANUP, BULK, HELD];

/// Returns the name of several operations of a phase with these metrics.
pub fn unit_name<S: AsRef<str>>(names: &[S]) -> &'static str {
    let has = |name: &str| names.iter().any(|one| one.as_ref() == name);
    match (has(TRANSACTION), has(BULK)) {
        (true, _) => "transactions",
        (_, true) if names.iter().any(|name| name.as_ref().ends_with("QUERY")) => "bulks and queries",
        (_, true) => "bulks",
        _ => "operations",
    }
}

/// Returns whether the times of a metric are those of operations: over these metrics, and no others, they add up to the time that
/// users spend in operations. Of scripts that have a metric of their own it is that one, else their requests.
pub fn adds_up<S: AsRef<str>>(names: &[S], name: &str) -> bool {
    if names.iter().any(|one| one.as_ref() == TRANSACTION) {
        return name == TRANSACTION;
    }
    // Requests of an operation in a file of one's own: `pay.commit` beside `pay`.
    let of_whole = |whole: &str| name.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'));
    !DERIVED.contains(&name)
        && !is_beside(name)
        && !name.starts_with(TRANSACTIONAL)
        && !names.iter().any(|one| of_whole(one.as_ref()))
}

/// Returns whether a metric is of an operation beside the mix, or of a step of one: in no total.
pub fn is_beside(name: &str) -> bool {
    name.split('.').nth(1).is_some_and(|part| [DELIVERY, OWN, WAIT].contains(&part))
}

/// Returns whether a metric counts what commands found or did not find, element by element: it is no operation, and has no times.
pub fn is_element_count(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, part)| [HITS, MISSES].contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adding<'a>(names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| adds_up(names, name)).collect()
    }

    #[test]
    fn times_of_operations_are_counted_once() {
        let sysbench = ["POINT-SELECT", "INSERT", TRANSACTION];
        assert_eq!((adding(&sysbench), unit_name(&sysbench)), (vec![TRANSACTION], "transactions"));
        let core = ["READ", "UPDATE", "READ-MODIFY-WRITE", "VERIFY", "CLEANUP"];
        assert_eq!((adding(&core), unit_name(&core)), (vec!["READ", "UPDATE"], "operations"));
        let own = ["pay", "pay.update", "pay.commit", "pay.abort"];
        assert_eq!((adding(&own), unit_name(&own)), (vec!["pay"], "operations"));
        let steps = ["cart", "cart.get", "cart.set", "pay.later", "carts"];
        assert_eq!(adding(&steps), ["cart", "pay.later", "carts"]);
        assert_eq!(adding(&["some", "some.hits", "some.misses"]), ["some"]);
        assert!(is_element_count("cart.mget.hits") && !is_element_count("hits"));
        assert_eq!(adding(&["get", "poll.own", "work.wait", "work.wait.read", "work.delivery"]), ["get"]);
        let poc = ["INSERT", "KEYQUERY", BULK];
        assert_eq!((adding(&poc), unit_name(&poc)), (vec!["INSERT", "KEYQUERY"], "bulks and queries"));
        assert_eq!(
            (unit_name(&["INSERT", BULK]), unit_name(&["INSERT", "KEYQUERY"]), unit_name::<&str>(&[])),
            ("bulks", "operations", "operations")
        );
        let parts = ["READ", "TX-READ", "SCAN-LATENCY-PER-RECORD"];
        assert_eq!(adding(&parts), ["READ"]);
    }
}
