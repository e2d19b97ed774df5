//! One station with arrivals that wait for nobody: M/M/m and, approximately, G/G/m.

/// An open station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Open {
    /// Arrivals per unit of time.
    pub rate: f64,
    /// Mean service time.
    pub service: f64,
    /// Servers, at least 1.
    pub servers: u32,
}

impl Open {
    /// Utilisation of a server; from 1 on the queue grows without end.
    pub fn utilisation(&self) -> f64 {
        self.rate * self.service / f64::from(self.servers)
    }

    /// The probability that an arrival waits (Erlang's C), by the recursion of Erlang's B.
    pub fn waits(&self) -> f64 {
        let load = self.rate * self.service;
        let blocked = (1..=self.servers)
            .fold(1.0, |blocked, server| load * blocked / (f64::from(server) + load * blocked));
        blocked / (1.0 - self.utilisation() * (1.0 - blocked))
    }

    /// Mean wait of M/M/m.
    pub fn wait(&self) -> f64 {
        self.waits() * self.service / (f64::from(self.servers) * (1.0 - self.utilisation()))
    }

    /// The probability of M/M/m that the wait is longer than `time`.
    pub fn wait_longer(&self, time: f64) -> f64 {
        self.waits() * (-(f64::from(self.servers) / self.service - self.rate) * time).exp()
    }

    /// Mean wait of G/G/m from the squared coefficients of variation of arrivals and service (Allen and Cunneen).
    pub fn allen_cunneen(&self, arrivals: f64, service: f64) -> f64 {
        self.wait() * (arrivals + service) / 2.0
    }

    /// Mean wait of G/G/m without Erlang's C (Sakasegawa, 1977).
    pub fn sakasegawa(&self, arrivals: f64, service: f64) -> f64 {
        let servers = f64::from(self.servers);
        let power = (2.0 * (servers + 1.0)).sqrt() - 1.0;
        let busy = self.utilisation();
        self.service * busy.powf(power) / (servers * (1.0 - busy)) * (arrivals + service) / 2.0
    }

    /// Mean response time of M/M/m.
    pub fn response(&self) -> f64 {
        self.wait() + self.service
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlangs_vectors() {
        for (servers, busy, waits, wait, sakasegawa) in [
            (1, 0.5, 0.5, 1.0, 1.0),
            (4, 0.75, 0.509_434, 0.509_434, 0.536_844),
            (8, 0.9, 0.701_533, 0.876_916, 0.888_249),
            (16, 0.95, 0.780_192, 0.975_241, 0.975_649),
        ] {
            let station = Open { rate: busy * f64::from(servers), service: 1.0, servers };
            assert!((station.waits() - waits).abs() < 1e-6, "{servers}: {}", station.waits());
            assert!((station.wait() - wait).abs() < 1e-6, "{servers}: {}", station.wait());
            assert!((station.sakasegawa(1.0, 1.0) - sakasegawa).abs() < 1e-6, "{servers}");
            assert!((station.allen_cunneen(1.0, 1.0) - wait).abs() < 1e-6);
            assert!((station.wait_longer(0.0) - waits).abs() < 1e-6);
        }
    }
}
