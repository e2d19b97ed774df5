//! Models of throughput as a function of the number of users.

use crate::queueing::mva::solve_exact_mva;
use dyno_types::units::{ShownLatency, Significant};

/// A shape of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// `X = l N`: nothing is shared.
    Linear,
    /// `X = l N / (1 + s (N - 1))`: contention alone (Amdahl's law).
    Contention,
    /// One queue and a delay, by mean value analysis: demand at the queue, and delay.
    OneQueue,
    /// `X = l N / (1 + s (N - 1) + k N (N - 1))`: the universal scalability law (Gunther, 2007).
    Universal,
}

/// Parameters in the order of [`Model::parameter_names`].
pub type Parameters = Vec<f64>;

/// A parameter's name and value as people read them: a time has its unit, any other number three significant digits.
pub fn describe_parameter(name: &str, value: f64) -> (&str, String) {
    match name.strip_suffix("_s") {
        Some(time) => (time, ShownLatency((value * 1e9).round() as u64).to_string()),
        None => (name, Significant(value).to_string()),
    }
}

impl Model {
    /// All of them, simplest first.
    pub const ALL: [Model; 4] = [Model::Linear, Model::Contention, Model::OneQueue, Model::Universal];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Linear => "linear",
            Model::Contention => "contention only",
            Model::OneQueue => "one queue and a delay",
            Model::Universal => "universal scalability law",
        }
    }

    /// Names of its parameters.
    pub fn parameter_names(self) -> &'static [&'static str] {
        match self {
            Model::Linear => &["lambda"],
            Model::Contention => &["lambda", "sigma"],
            Model::OneQueue => &["demand_s", "delay_s"],
            Model::Universal => &["lambda", "sigma", "kappa"],
        }
    }

    /// Least and greatest value of each parameter.
    pub(super) fn parameter_bounds(self) -> &'static [(f64, f64)] {
        const POSITIVE: (f64, f64) = (1e-12, f64::INFINITY);
        const SHARE: (f64, f64) = (0.0, 1.0);
        const FROM_0: (f64, f64) = (0.0, f64::INFINITY);
        match self {
            Model::Linear => &[POSITIVE],
            Model::Contention => &[POSITIVE, SHARE],
            Model::OneQueue => &[POSITIVE, FROM_0],
            Model::Universal => &[POSITIVE, SHARE, FROM_0],
        }
    }

    /// Throughput for `users`.
    pub fn throughput_at(self, parameters: &[f64], users: f64) -> f64 {
        match self {
            Model::Linear => parameters[0] * users,
            Model::Contention => parameters[0] * users / (1.0 + parameters[1] * (users - 1.0)),
            Model::Universal => {
                let coherency = parameters[2] * users * (users - 1.0);
                parameters[0] * users / (1.0 + parameters[1] * (users - 1.0) + coherency)
            }
            Model::OneQueue => one_queue(parameters[0], parameters[1], users),
        }
    }

    /// Users and throughput of the curve's peak; `None` where it has none.
    pub fn find_peak(self, parameters: &[f64]) -> Option<(f64, f64)> {
        if self != Model::Universal || parameters[2] <= 0.0 {
            return None;
        }
        let users = ((1.0 - parameters[1]) / parameters[2]).sqrt().max(1.0);
        Some((users, self.throughput_at(parameters, users)))
    }

    /// Returns the throughput that is approached with ever more users; `None` where it grows without end or falls.
    pub fn throughput_limit(self, parameters: &[f64]) -> Option<f64> {
        match self {
            Model::Linear => None,
            Model::Contention => (parameters[1] > 0.0).then(|| parameters[0] / parameters[1]),
            Model::OneQueue => Some(1.0 / parameters[0]),
            Model::Universal if parameters[2] > 0.0 => None,
            Model::Universal => (parameters[1] > 0.0).then(|| parameters[0] / parameters[1]),
        }
    }
}

/// Between whole numbers of users, by a line.
fn one_queue(demand: f64, delay: f64, users: f64) -> f64 {
    let most = users.ceil().clamp(1.0, 1e6) as u32;
    let all = solve_exact_mva(&[demand], delay, most);
    let upper = all[most as usize - 1];
    let part = users - users.floor();
    match part > 0.0 && most > 1 {
        true => all[most as usize - 2] * (1.0 - part) + upper * part,
        false => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn each_law_gives_its_throughput() {
        near(Model::Linear.throughput_at(&[100.0], 5.0), 500.0);
        near(Model::Contention.throughput_at(&[100.0, 0.1], 11.0), 1_100.0 / 2.0);
        near(Model::Universal.throughput_at(&[100.0, 0.1, 0.01], 11.0), 1_100.0 / 3.1);
        // One user never waits: 1 / (0.1 + 0.9). The second finds a tenth of one ahead: 2 / (0.11 + 0.9).
        for (users, expected) in [(0.5, 1.0), (1.0, 1.0), (2.0, 2.0 / 1.01), (1.25, 0.75 + 0.25 * 2.0 / 1.01)]
        {
            near(Model::OneQueue.throughput_at(&[0.1, 0.9], users), expected);
        }
    }

    #[test]
    fn a_peak_is_where_the_universal_law_falls_and_a_limit_where_a_law_does_not() {
        let law = [100.0, 0.1, 0.01];
        let (users, most) = Model::Universal.find_peak(&law).unwrap();
        near(users, 90f64.sqrt());
        near(most, Model::Universal.throughput_at(&law, users));
        assert!(
            [users - 1.0, users + 1.0].iter().all(|near| Model::Universal.throughput_at(&law, *near) < most)
        );
        // Never below one user.
        assert_eq!(Model::Universal.find_peak(&[100.0, 1.0, 0.5]), Some((1.0, 100.0)));
        assert_eq!(Model::Universal.find_peak(&[100.0, 0.1, 0.0]), None);
        assert_eq!((Model::Contention.find_peak(&law), Model::OneQueue.find_peak(&law)), (None, None));
        for (model, parameters, limit) in [
            (Model::Linear, &[100.0][..], None),
            (Model::Contention, &[100.0, 0.1], Some(1_000.0)),
            (Model::Contention, &[100.0, 0.0], None),
            (Model::OneQueue, &[0.25, 9.0], Some(4.0)),
            (Model::Universal, &law, None),
            (Model::Universal, &[100.0, 0.1, 0.0], Some(1_000.0)),
            (Model::Universal, &[100.0, 0.0, 0.0], None),
        ] {
            assert_eq!(model.throughput_limit(parameters), limit, "{model:?} {parameters:?}");
        }
    }

    #[test]
    fn each_parameter_has_its_name_and_its_bounds() {
        let names = Model::ALL.map(Model::name);
        let told = ["linear", "contention only", "one queue and a delay", "universal scalability law"];
        assert_eq!(names, told);
        let each = [
            vec!["lambda"],
            vec!["lambda", "sigma"],
            vec!["demand_s", "delay_s"],
            vec!["lambda", "sigma", "kappa"],
        ];
        for (model, names) in Model::ALL.into_iter().zip(each) {
            assert_eq!((model.parameter_names(), model.parameter_bounds().len()), (&names[..], names.len()));
            assert!(
                model.parameter_bounds()[0].0 > 0.0
                    && model.parameter_bounds()[1..].iter().all(|(least, _)| *least == 0.0)
            );
        }
    }
}
