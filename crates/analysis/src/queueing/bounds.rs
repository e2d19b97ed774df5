//! Bounds of any closed system, from its demands alone.

/// A closed system with one class of users.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedSystem {
    /// Demand of each queueing station, divided by its number of servers.
    pub demands: Vec<f64>,
    /// Think time, and demands of pure delays.
    pub think: f64,
}

/// An interval that holds throughput, and one that holds response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least and greatest throughput.
    pub throughput: (f64, f64),
    /// Least and greatest response time.
    pub response: (f64, f64),
}

/// Greatest response time by the balanced job bounds, of a system whose total demand and bottleneck are known: how the rest
/// is spread does not matter to it.
pub fn greatest_response_time((total, most): (f64, f64), think: f64, users: f64) -> f64 {
    total + (users - 1.0) * most / (1.0 + think / (users * total))
}

impl ClosedSystem {
    /// Total demand `D`.
    pub fn total_demand(&self) -> f64 {
        self.demands.iter().sum()
    }

    /// Demand of the bottleneck, `Dmax`.
    pub fn bottleneck_demand(&self) -> f64 {
        self.demands.iter().copied().fold(0.0, f64::max)
    }

    /// The number of users at which the asymptotes cross, `N* = (D + Z) / Dmax`.
    pub fn saturation_users(&self) -> f64 {
        (self.total_demand() + self.think) / self.bottleneck_demand()
    }

    /// Asymptotic bounds for `users`: they need no more than demands that do not depend on load.
    pub fn asymptotic_bounds(&self, users: f64) -> Bounds {
        let (total, most, think) = (self.total_demand(), self.bottleneck_demand(), self.think);
        Bounds {
            throughput: (users / (users * total + think), (1.0 / most).min(users / (total + think))),
            response: (total.max(users * most - think), users * total),
        }
    }

    /// Balanced job bounds for `users`: tighter, for separable networks of single-class queueing stations.
    pub fn balanced_bounds(&self, users: f64) -> Bounds {
        let (total, most, think) = (self.total_demand(), self.bottleneck_demand(), self.think);
        let average = total / self.demands.len() as f64;
        let slow = greatest_response_time((total, most), think, users);
        let fast = total + (users - 1.0) * average / (1.0 + think / total);
        Bounds {
            throughput: (users / (think + slow), (1.0 / most).min(users / (think + fast))),
            response: ((users * most - think).max(fast), slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }

    #[test]
    fn the_sheets_vectors() {
        let system = ClosedSystem { demands: vec![0.605, 2.1, 1.35], think: 15.0 };
        near(system.total_demand(), 4.055);
        near(system.bottleneck_demand(), 2.1);
        assert!((system.saturation_users() - 9.0738).abs() < 1e-4);
        near(greatest_response_time((4.055, 2.1), 15.0, 3.0), 5.935_839);
        // Throughput, least and greatest, and response time, least and greatest.
        for (users, asymptotic, balanced) in [
            (1.0, [0.052_480, 0.052_480, 4.055, 4.055], [0.052_480, 0.052_480, 4.055, 4.055]),
            (3.0, [0.110_436, 0.157_439, 4.055, 12.165], [0.143_295, 0.152_825, 4.630_283, 5.935_839]),
            (10.0, [0.180_018, 0.476_190, 6.0, 40.55], [0.304_400, 0.462_027, 6.643_773, 17.851_490]),
            (50.0, [0.229_621, 0.476_190, 90.0, 202.75], [0.435_288, 0.476_190, 90.0, 99.866_596]),
        ] {
            for (found, expected) in
                [(system.asymptotic_bounds(users), asymptotic), (system.balanced_bounds(users), balanced)]
            {
                let Bounds { throughput, response } = found;
                for (found, expected) in
                    [throughput.0, throughput.1, response.0, response.1].into_iter().zip(expected)
                {
                    near(found, expected);
                }
            }
        }
    }
}
