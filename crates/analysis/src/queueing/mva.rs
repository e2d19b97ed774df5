//! Mean value analysis of closed networks, exactly (Reiser and Lavenberg, 1980).

/// Throughput of a closed network of one class for 1 to `users` users. `demands` are those of its queueing stations of one
/// server each; pure delays belong to `think`.
pub fn solve_exact_mva(demands: &[f64], think: f64, users: u32) -> Vec<f64> {
    let mut queues = vec![0.0; demands.len()];
    let next = |population: u32| {
        let waits: Vec<f64> =
            demands.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        let throughput = f64::from(population) / (think + waits.iter().sum::<f64>());
        queues = waits.iter().map(|wait| throughput * wait).collect();
        throughput
    };
    (1..=users).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_vectors() {
        let all = solve_exact_mva(&[0.605, 2.1, 1.35], 15.0, 50);
        assert_eq!(all.len(), 50);
        for (users, throughput, response) in [
            (1, 0.052_480, 4.055_000),
            (2, 0.103_086, 4.401_288),
            (3, 0.151_516, 4.799_825),
            (10, 0.400_205, 9.987_218),
            (50, 0.476_190, 90.000_001),
        ] {
            let found = all[users - 1];
            assert!((found - throughput).abs() < 1e-6, "{users} users: {found} instead of {throughput}");
            // N = X (R + Z).
            let time = users as f64 / found - 15.0;
            assert!((time - response).abs() < 1e-6, "{users} users: {time} instead of {response}");
        }
    }
}
