//! Results of queueing theory in closed form, for checking the engine against a simulated server.
//!
//! Rates are per second, times in seconds. Source: L. Kleinrock, "Queueing Systems", volume 1 (1975).

/// Mean response time of M/M/1: 1 / (mu - lambda).
pub fn mm1_response(lambda: f64, mu: f64) -> f64 {
    1.0 / (mu - lambda)
}

/// Percentile (0 to 1) of M/M/1's response time, which is exponential.
pub fn mm1_response_quantile(lambda: f64, mu: f64, q: f64) -> f64 {
    -(1.0 - q).ln() * mm1_response(lambda, mu)
}

/// Mean response time of M/D/1 (Pollaczek-Khinchine with no variance): 1/mu + rho / (2 mu (1 - rho)).
pub fn md1_response(lambda: f64, mu: f64) -> f64 {
    let rho = lambda / mu;
    1.0 / mu + rho / (2.0 * mu * (1.0 - rho))
}

/// Throughput of a closed loop of `users` with think time on one server of constant service time: the asymptotic
/// bounds, which are exact for constant times.
pub fn closed_throughput(users: f64, service: f64, think: f64) -> f64 {
    (users / (service + think)).min(1.0 / service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        assert!((mm1_response(8.0, 10.0) - 0.5).abs() < 1e-12);
        assert!((md1_response(8.0, 10.0) - 0.3).abs() < 1e-12);
        assert!((md1_response(5.0, 10.0) - 0.15).abs() < 1e-12);
        assert!((mm1_response_quantile(8.0, 10.0, 0.5) - 0.346_573_59).abs() < 1e-8);
        assert_eq!(closed_throughput(4.0, 0.1, 0.1), 10.0);
        assert_eq!(closed_throughput(1.0, 0.1, 0.1), 5.0);
    }
}
