//! One station whose arrivals do not wait for earlier answers: M/M/m and, approximately, G/G/m.

/// An open station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenStation {
    /// Arrivals per unit of time.
    pub rate: f64,
    /// Mean service time.
    pub service: f64,
    /// Servers, at least 1.
    pub servers: u32,
}

impl OpenStation {
    /// Utilisation of a server; from 1 on the queue grows without end.
    pub fn utilisation(&self) -> f64 {
        self.rate * self.service / f64::from(self.servers)
    }

    /// The probability that an arrival waits (Erlang's C), by the recursion of Erlang's B.
    pub fn wait_probability(&self) -> f64 {
        let load = self.rate * self.service;
        let blocked = (1..=self.servers)
            .fold(1.0, |blocked, server| load * blocked / (f64::from(server) + load * blocked));
        blocked / (1.0 - self.utilisation() * (1.0 - blocked))
    }

    /// Mean wait of M/M/m.
    pub fn mean_wait(&self) -> f64 {
        self.wait_probability() * self.service / (f64::from(self.servers) * (1.0 - self.utilisation()))
    }

    /// Mean wait of G/G/m from the squared coefficients of variation of arrivals and service (Allen and Cunneen).
    pub fn allen_cunneen(&self, arrivals: f64, service: f64) -> f64 {
        self.mean_wait() * (arrivals + service) / 2.0
    }

    /// Mean response time of M/M/m.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 2e-6, "{found} instead of {expected}");
    }

    #[test]
    fn erlangs_vectors() {
        for (servers, busy, waits, wait) in [
            (1, 0.5, 0.5, 1.0),
            (4, 0.75, 0.509_434, 0.509_434),
            (8, 0.9, 0.701_533, 0.876_916),
            (16, 0.95, 0.780_192, 0.975_241),
        ] {
            // The unit of time is the service time, or 5 times as long: a wait is as long in either.
            for unit in [1.0, 0.2] {
                let station = OpenStation { rate: busy * f64::from(servers) / unit, service: unit, servers };
                near(station.utilisation(), busy);
                near(station.wait_probability(), waits);
                near(station.mean_wait(), wait * unit);
                near(station.mean_response(), (1.0 + wait) * unit);
                // Allen and Cunneen's: exact for M/M/m, half of it for D/M/m, and by the mean of both variations.
                near(station.allen_cunneen(1.0, 1.0), wait * unit);
                near(station.allen_cunneen(0.0, 1.0), wait * unit / 2.0);
                near(station.allen_cunneen(0.5, 2.0), wait * unit * 1.25);
            }
        }
    }
}
