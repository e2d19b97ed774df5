//! Time of users between the requests of one operation.

use dyno_record::Totals;
use dyno_rundir::{READ_MODIFY_WRITE, TRANSACTIONAL};

/// Nanoseconds that users spent within read-modify-writes of the core workload but in neither of their requests: from the
/// reply of the read until the update is sent. The requests are counted under READ and UPDATE beside others of their kind, so
/// that what they took is estimated by the means of these: the same requests of the same users.
pub(crate) fn between_requests_ns<S: AsRef<str>>(totals: &Totals, names: &[S]) -> f64 {
    if names.iter().any(|name| name.as_ref().starts_with(TRANSACTIONAL)) {
        return 0.0;
    }
    let service = |name: &str| {
        let number = names.iter().position(|one| one.as_ref() == name)?;
        Some(&totals.ok_slot(number)?.service)
    };
    let Some(whole) = service(READ_MODIFY_WRITE) else { return 0.0 };
    let (Some(read), Some(update)) = (service("READ"), service("UPDATE")) else { return 0.0 };
    (whole.count() as f64 * (whole.mean_ns() - read.mean_ns() - update.mean_ns())).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::{Scale, ThreadInterval};
    use dyno_types::Outcome;

    #[test]
    fn what_is_between_read_and_update_is_counted_for_each_read_modify_write() {
        let mut interval = ThreadInterval::new(3, Scale::Ns64);
        // Two plain reads, and two read-modify-writes of 100 µs and 200 µs with 64 µs between them.
        (0..4).for_each(|_| interval.record_ended(0, Outcome::Ok, 100_000, 100_000));
        (0..2).for_each(|_| interval.record_ended(1, Outcome::Ok, 200_000, 200_000));
        (0..2).for_each(|_| interval.record_ended(2, Outcome::Ok, 364_000, 364_000));
        let mut totals = Totals::new(3, Scale::Ns64);
        totals.add_interval(&interval);
        let of = |names: [&str; 3]| between_requests_ns(&totals, &names);
        let found = of(["READ", "UPDATE", "READ-MODIFY-WRITE"]);
        assert!((found - 128_000.0).abs() < 500.0, "{found}");
        assert_eq!(
            (of(["READ", "UPDATE", "SCAN"]), of(["READ", "TX-READ", "READ-MODIFY-WRITE"])),
            (0.0, 0.0)
        );
    }
}
