//! The laws on one run.

use super::observe::Observed;
use serde::Serialize;

/// Result of checking a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Within what the definition makes exact.
    Yes,
    /// Within the tolerance.
    Nearly,
    /// Not: something is wrong with the measurement.
    No,
    /// A quantity that it needs was not measured.
    NotTestable,
}

impl Holds {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::Nearly => "holds within tolerance",
            Holds::No => "violated",
            Holds::NotTestable => "not testable",
        }
    }
}

/// A law, its two sides and the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LawCheck {
    /// Name.
    pub law: &'static str,
    /// Formula.
    pub formula: &'static str,
    /// Measured value.
    pub measured: f64,
    /// Value by the law.
    pub expected: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Measured by expected, less 1.
    pub error: f64,
    /// True if it holds.
    pub holds: Holds,
    /// Reason for which it does not hold, or cannot be tested.
    pub cause: Option<String>,
}

/// Errors up to these are exact, and within tolerance.
const EXACT: f64 = 0.002;
const TOLERANCE: f64 = 0.01;

fn check(
    law: &'static str,
    formula: &'static str,
    unit: &'static str,
    (measured, expected): (f64, f64),
) -> LawCheck {
    let error = if expected == 0.0 { 0.0 } else { measured / expected - 1.0 };
    let holds = match error.abs() {
        e if e <= EXACT => Holds::Yes,
        e if e <= TOLERANCE => Holds::Nearly,
        _ => Holds::No,
    };
    LawCheck { law, formula, measured, expected, unit, error, holds, cause: None }
}

fn untestable(law: &'static str, formula: &'static str, unit: &'static str, why: &str) -> LawCheck {
    LawCheck {
        holds: Holds::NotTestable,
        cause: Some(why.to_owned()),
        ..check(law, formula, unit, (0.0, 0.0))
    }
}

/// The laws that can be looked at within one run: flow balance, Little's law, the interactive response time law.
pub fn check_laws(run: &Observed) -> Vec<LawCheck> {
    let mut all = vec![LawCheck {
        cause: (run.flow.0 != run.flow.1)
            .then(|| "operations were under way at the ends of the phase, or were lost".to_owned()),
        ..check("flow balance", "A = C", "operations", (run.flow.1 as f64, run.flow.0 as f64))
    }];
    let (little, interactive) = ("Little's law", "interactive response time law");
    let (of_little, of_interactive) = ("N = X (R + Z)", "R = N / X - Z");
    match (run.users, run.implied_users) {
        (Some(users), Some(implied)) if run.failed == 0 => {
            let mut law = check(little, of_little, "users", (implied, users));
            if law.holds == Holds::No {
                law.cause = Some(cause(law.error).to_owned());
            }
            all.push(law);
            let idle = run.think_s + run.client_s;
            let expected = (users / run.throughput - idle) * 1e6;
            // Of the part of all times that lies in the phase, as in Little's law: what was under way at its ends would be
            // counted whole or not at all.
            let response = (implied / run.throughput - idle) * 1e6;
            let mut law = check(interactive, of_interactive, "us", (response, expected));
            // A small difference of large times: judged by its share of the whole cycle.
            let cycle = users / run.throughput * 1e6;
            let share = (law.measured - law.expected).abs() / cycle;
            law.holds = match share {
                s if s <= EXACT => Holds::Yes,
                s if s <= TOLERANCE => Holds::Nearly,
                _ => Holds::No,
            };
            if law.holds == Holds::No {
                law.cause = Some(cause(law.error).to_owned());
            }
            all.push(law);
        }
        (Some(_), _) => {
            let why = "failed operations have times of another kind, or none were recorded";
            all.push(untestable(little, of_little, "users", why));
            all.push(untestable(interactive, of_interactive, "us", why));
        }
        (None, _) => {
            let why = "open loop: users are not a number that was set";
            all.push(untestable(little, of_little, "users", why));
            all.push(untestable(interactive, of_interactive, "us", why));
        }
    }
    all
}

/// Returns the usual cause of an error of this sign.
fn cause(error: f64) -> &'static str {
    match error < 0.0 {
        true => {
            "users were idle in ways that were not measured: connecting, a late start, reconnecting, or waiting for the \
                 end of the phase"
        }
        false => "times of operations outside the phase were counted, or the clock jumped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(users: f64, throughput: f64, response_s: f64, client_s: f64) -> Observed {
        Observed {
            planned_s: None,
            unit: "operations",
            users: Some(users),
            connections: Some(users),
            think_s: 0.0,
            offered: None,
            rate: None,
            grows: false,
            invalid: false,
            even: false,
            due_s: None,
            seconds: 10.0,
            flow: (1_000, 1_000),
            throughput,
            response_s,
            client_s,
            implied_users: Some(throughput * (response_s + client_s)),
            failed: 0,
            uses: Vec::new(),
            rates: Vec::new(),
        }
    }

    #[test]
    fn laws_hold_or_say_why_not() {
        let holds: Vec<Holds> =
            check_laws(&closed(8.0, 1_000.0, 0.0079, 0.0001)).iter().map(|c| c.holds).collect();
        assert_eq!(holds, [Holds::Yes, Holds::Yes, Holds::Yes]);
        let found = check_laws(&closed(8.0, 1_000.0, 0.0070, 0.0001));
        assert_eq!(found[1].holds, Holds::No);
        assert!((found[1].error + 0.1125).abs() < 1e-9 && found[1].cause.is_some());
        let open = Observed { users: None, ..closed(8.0, 1_000.0, 0.001, 0.0) };
        assert!(check_laws(&open)[1..].iter().all(|law| law.holds == Holds::NotTestable));
        let lost = Observed { flow: (1_000, 900), ..closed(8.0, 1_000.0, 0.0079, 0.0001) };
        assert_eq!(check_laws(&lost)[0].holds, Holds::No);
    }

    #[test]
    fn each_answer_has_its_word_and_each_sign_its_cause() {
        let words = [Holds::Yes, Holds::Nearly, Holds::No, Holds::NotTestable].map(Holds::as_str);
        assert_eq!(words, ["holds", "holds within tolerance", "violated", "not testable"]);
        // Against an expected 0 there is no relative error, and something is there that should not be.
        let thinking = Observed { think_s: 0.008, ..closed(8.0, 1_000.0, 0.001, 0.0) };
        let over = check_laws(&Observed { implied_users: Some(9.0), ..thinking });
        assert_eq!((over[2].expected, over[2].error, over[2].holds), (0.0, 0.0, Holds::No));
        assert!(over[2].cause.as_ref().unwrap().starts_with("times of operations"), "{over:?}");
    }

    #[test]
    fn what_is_under_way_at_the_end_is_no_violation() {
        // Of eight users with operations of 80 ms in a second the last ones end after it: their whole times would be 8.1 users.
        let under_way = Observed { implied_users: Some(8.0), ..closed(8.0, 98.75, 0.082, 0.0) };
        let found = check_laws(&under_way);
        assert_eq!((found[1].holds, found[2].holds), (Holds::Yes, Holds::Yes), "{found:?}");
    }

    #[test]
    fn the_labs_errors() {
        // Users, throughput, response time (us) and the error of X R against N that the sheet gives.
        for (users, throughput, response_us, error) in [
            (1.0, 1434.695713, 688.228439, -0.0126),
            (10.0, 4507.842419, 2203.696010, -0.0066),
            (50.0, 4467.813873, 11144.400412, -0.0042),
            (100.0, 4898.656736, 20307.371086, -0.0052),
        ] {
            let found = check_laws(&closed(users, throughput, response_us / 1e6, 0.0));
            assert!((found[1].error - error).abs() < 1e-4, "{users}: {}", found[1].error);
        }
    }

    #[test]
    fn each_law_has_its_two_sides_its_error_and_its_cause() {
        // 8 users at 1,000/s: a cycle of 8 ms, of which 0.7 ms are thinking and the client's own.
        let run = |response_s: f64, implied: f64| Observed {
            think_s: 0.0002,
            implied_users: Some(implied),
            ..closed(8.0, 1_000.0, response_s, 0.0005)
        };
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} not {expected}");
        let found = check_laws(&run(0.0070, 7.7));
        near(found[1].measured, 7.7);
        near(found[1].expected, 8.0);
        near(found[1].error, -0.0375);
        near(found[2].measured, 7_000.0);
        near(found[2].expected, 7_300.0);
        near(found[2].error, -300.0 / 7_300.0);
        for law in &found[1..] {
            assert!(
                law.holds == Holds::No && law.cause.as_ref().unwrap().starts_with("users were idle"),
                "{law:?}"
            );
        }
        let over = check_laws(&run(0.0080, 8.7));
        for law in &over[1..] {
            assert!(
                law.holds == Holds::No && law.cause.as_ref().unwrap().starts_with("times of operations"),
                "{law:?}"
            );
        }
        // Response times by their share of the cycle: 0.4 and 0.9 hundredths of 8 ms are within tolerance, 0.15 exact.
        for (off_us, implied, holds) in [
            (12.0, 8.015, Holds::Yes),
            (30.0, 8.03, Holds::Nearly),
            (-72.0, 7.93, Holds::Nearly),
            (90.0, 8.09, Holds::No),
        ] {
            let found = check_laws(&run((7_300.0 + off_us) / 1e6, implied));
            assert_eq!((found[1].holds, found[2].holds), (holds, holds), "{off_us} us");
            assert_eq!(found[1].cause.is_some(), holds == Holds::No);
        }
        // Flow balance: what arrived, and what was completed.
        let flow = |flow| check_laws(&Observed { flow, ..run(0.0073, 8.0) }).remove(0);
        let (same, lost) = (flow((1_000, 1_000)), flow((1_000, 995)));
        assert_eq!((same.holds, same.cause, flow((0, 5)).error), (Holds::Yes, None, 0.0));
        assert!(
            (lost.measured, lost.expected, lost.holds) == (995.0, 1_000.0, Holds::Nearly)
                && lost.cause.is_some()
        );
        // Failures have other times.
        for run in
            [Observed { failed: 1, ..run(0.0073, 8.0) }, Observed { implied_users: None, ..run(0.0073, 8.0) }]
        {
            assert!(
                check_laws(&run)[1..]
                    .iter()
                    .all(|law| law.holds == Holds::NotTestable && law.cause.is_some())
            );
        }
    }
}
