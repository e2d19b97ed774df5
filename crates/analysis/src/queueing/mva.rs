//! Mean value analysis of closed networks.
//!
//! Exact: Reiser and Lavenberg (1980), one class or several. Approximate: Bard and Schweitzer (1979). A station of
//! several servers is split into a queue of demand `D/m` and a delay of `D (m-1)/m` (Seidmann, Schweitzer and
//! Shalev-Oren, 1987): an approximation, least accurate at middle load.

/// A station and the demand of each class at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// Demand of each class.
    pub demands: Vec<f64>,
    /// Servers; 0 for a pure delay.
    pub servers: u32,
}

impl Station {
    /// A queueing station with one server, for one class.
    pub fn queue(name: &str, demand: f64) -> Self {
        Station { name: name.to_owned(), demands: vec![demand], servers: 1 }
    }

    /// A pure delay, for one class.
    pub fn delay(name: &str, demand: f64) -> Self {
        Station { name: name.to_owned(), demands: vec![demand], servers: 0 }
    }
}

/// What a network does with a number of users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Solution {
    /// Throughput of each class.
    pub throughput: Vec<f64>,
    /// Response time of each class, without think time.
    pub response: Vec<f64>,
    /// Mean number of users at each station, those in service and of all classes.
    pub queue: Vec<f64>,
    /// Utilisation of each station, per server; 0 for delays.
    pub utilisation: Vec<f64>,
}

/// Populations that the exact recursion may visit; beyond, it is refused.
const MOST_STATES: u64 = 10_000_000;

/// Steps of the fixed point.
const MOST_STEPS: usize = 10_000;

/// A station's queueing part and its delay part, by Seidmann's split.
fn parts(station: &Station, class: usize) -> (f64, f64) {
    let demand = station.demands[class];
    match station.servers {
        0 => (0.0, demand),
        servers => {
            let servers = f64::from(servers);
            (demand / servers, demand * (servers - 1.0) / servers)
        }
    }
}

/// Solves the network of one class exactly, for 1 to `users` users.
pub fn exact(stations: &[Station], think: f64, users: u32) -> Vec<Solution> {
    let split: Vec<(f64, f64)> = stations.iter().map(|station| parts(station, 0)).collect();
    let mut queues = vec![0.0; stations.len()];
    let mut all = Vec::with_capacity(users as usize);
    for population in 1..=users {
        let waits: Vec<f64> = split.iter().zip(&queues).map(|((queue, _), q)| queue * (1.0 + q)).collect();
        let delays: f64 = split.iter().map(|(_, delay)| delay).sum();
        let response = waits.iter().sum::<f64>() + delays;
        let throughput = f64::from(population) / (think + response);
        queues = waits.iter().map(|wait| throughput * wait).collect();
        let present = queues.iter().zip(&split).map(|(queue, (_, delay))| queue + throughput * delay);
        all.push(Solution {
            throughput: vec![throughput],
            response: vec![response],
            queue: present.collect(),
            utilisation: split.iter().map(|(queue, _)| throughput * queue).collect(),
        });
    }
    all
}

/// Solves the network of several classes exactly for the population `users`, one number a class; `None` where the
/// recursion would visit more than ten million populations.
pub fn exact_classes(stations: &[Station], think: &[f64], users: &[u32]) -> Option<Solution> {
    let sizes: Vec<u64> = users.iter().map(|n| u64::from(*n) + 1).collect();
    let states = sizes.iter().try_fold(1u64, |all, size| all.checked_mul(*size))?;
    if states > MOST_STATES / stations.len().max(1) as u64 {
        return None;
    }
    let strides: Vec<u64> =
        sizes.iter().scan(1, |stride, size| Some(std::mem::replace(stride, *stride * size))).collect();
    let mut queues = vec![vec![0.0; stations.len()]; states as usize];
    let mut last = Solution::default();
    for state in 1..states {
        let of = |class: usize| (state / strides[class]) % sizes[class];
        let mut found = Solution { queue: vec![0.0; stations.len()], ..Solution::default() };
        found.utilisation = vec![0.0; stations.len()];
        for class in 0..users.len() {
            let population = of(class);
            if population == 0 {
                found.throughput.push(0.0);
                found.response.push(0.0);
                continue;
            }
            let before = &queues[(state - strides[class]) as usize];
            let mut waits = Vec::with_capacity(stations.len());
            for (number, station) in stations.iter().enumerate() {
                let (queue, delay) = parts(station, class);
                waits.push((queue * (1.0 + before[number]), delay));
            }
            let response: f64 = waits.iter().map(|(wait, delay)| wait + delay).sum();
            let throughput = population as f64 / (think[class] + response);
            for (number, (wait, _)) in waits.iter().enumerate() {
                found.queue[number] += throughput * wait;
                found.utilisation[number] += throughput * parts(&stations[number], class).0;
            }
            found.throughput.push(throughput);
            found.response.push(response);
        }
        queues[state as usize].clone_from(&found.queue);
        last = found;
    }
    Some(last)
}

/// Solves the network of several classes approximately (Bard-Schweitzer): a fixed point of the assumption that one user
/// less takes its share from each queue.
pub fn approximate(stations: &[Station], think: &[f64], users: &[f64]) -> Solution {
    let classes = users.len();
    let split: Vec<Vec<(f64, f64)>> =
        stations.iter().map(|station| (0..classes).map(|class| parts(station, class)).collect()).collect();
    let mut queues = vec![vec![0.0; classes]; stations.len()];
    for station in &mut queues {
        let share = |class: usize| users[class] / stations.len() as f64;
        station.iter_mut().enumerate().for_each(|(class, queue)| *queue = share(class));
    }
    let mut found = Solution::default();
    for _ in 0..MOST_STEPS {
        found = Solution { queue: vec![0.0; stations.len()], ..Solution::default() };
        let mut next = queues.clone();
        for class in (0..classes).filter(|class| users[*class] > 0.0) {
            let seen = |station: usize| {
                let all: f64 = queues[station].iter().sum();
                all - queues[station][class] / users[class]
            };
            let waits: Vec<f64> =
                (0..stations.len()).map(|station| split[station][class].0 * (1.0 + seen(station))).collect();
            let delays: f64 = split.iter().map(|station| station[class].1).sum();
            let response = waits.iter().sum::<f64>() + delays;
            let throughput = users[class] / (think[class] + response);
            waits.iter().enumerate().for_each(|(station, wait)| next[station][class] = throughput * wait);
            found.throughput.push(throughput);
            found.response.push(response);
        }
        let change = next.iter().flatten().zip(queues.iter().flatten());
        let change = change.map(|(new, old)| (new - old).abs() / new.abs().max(1e-12)).fold(0.0, f64::max);
        queues = next;
        if change < 1e-9 {
            break;
        }
    }
    found.queue = queues.iter().map(|station| station.iter().sum()).collect();
    let busy = |station: &Vec<(f64, f64)>| {
        station.iter().zip(&found.throughput).map(|((queue, _), throughput)| queue * throughput).sum()
    };
    found.utilisation = split.iter().map(busy).collect();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }

    fn stations() -> Vec<Station> {
        vec![Station::queue("cpu", 0.605), Station::queue("disk 1", 2.1), Station::queue("disk 2", 1.35)]
    }

    #[test]
    fn exact_vectors() {
        let all = exact(&stations(), 15.0, 50);
        let expected = [
            (1, 0.052_480, 4.055_000),
            (2, 0.103_086, 4.401_288),
            (3, 0.151_516, 4.799_825),
            (10, 0.400_205, 9.987_218),
            (50, 0.476_190, 90.000_001),
        ];
        for (users, throughput, response) in expected {
            near(all[users - 1].throughput[0], throughput);
            near(all[users - 1].response[0], response);
        }
        for (found, expected) in all[2].queue.iter().zip([0.097_566, 0.394_657, 0.235_030]) {
            near(*found, expected);
        }
        for (found, expected) in all[2].utilisation.iter().zip([0.091_667, 0.318_185, 0.204_547]) {
            near(*found, expected);
        }
    }

    #[test]
    fn classes_of_one_kind_are_one_class() {
        let two: Vec<Station> = stations()
            .into_iter()
            .map(|station| Station { demands: vec![station.demands[0]; 2], ..station })
            .collect();
        let split = exact_classes(&two, &[15.0, 15.0], &[4, 6]).unwrap();
        let whole = &exact(&stations(), 15.0, 10)[9];
        near(split.throughput.iter().sum(), whole.throughput[0]);
        near(split.response[0], whole.response[0]);
        near(split.queue[1], whole.queue[1]);
        assert!(exact_classes(&two, &[0.0, 0.0], &[100_000, 100_000]).is_none());
    }

    #[test]
    fn schweitzer_vectors() {
        for (users, throughput, response) in
            [(3.0, 0.150_986, 4.869_409), (10.0, 0.384_696, 10.994_525), (50.0, 0.474_045, 90.475_174)]
        {
            let found = approximate(&stations(), &[15.0], &[users]);
            near(found.throughput[0], throughput);
            near(found.response[0], response);
        }
    }

    #[test]
    fn several_servers_saturate_later() {
        let four = Station { servers: 4, ..Station::queue("cpu", 0.4) };
        let all = exact(&[four], 0.0, 100);
        near(all[0].response[0], 0.4);
        assert!((all[99].throughput[0] - 10.0).abs() < 0.05, "{:?}", all[99]);
    }
}
