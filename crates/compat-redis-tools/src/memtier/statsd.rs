//! What memtier tells a StatsD server each second, and Graphite when a run begins and ends.

use super::args::{Settings, Statsd};
use super::report::{histogram_of, percentile};
use dyno_record::Buckets;

/// Least and greatest latency that is told, microseconds, and its digits.
const FORM: (u64, u64, u8) = (10, 600_000_000, 2);

/// A second of a run.
#[derive(Clone, Debug)]
pub struct RunSecond {
    /// Requests in this second, and a second so far.
    pub ops: (u64, u64),
    /// Bytes, the same.
    pub bytes: (u64, u64),
    /// Mean latencies, the same, milliseconds.
    pub latency_ms: (f64, f64),
    /// Connections.
    pub connections: u64,
    /// Per cent of the run that are done.
    pub percent: f64,
    /// Requests so far that were lost with their connection, or had none.
    pub connection_errors: u64,
    /// Latencies of this second.
    pub latencies: Buckets,
}

/// `99_9` of 99.9.
fn place(percentile: f64) -> String {
    percentile.to_string().replace('.', "_")
}

impl Statsd {
    /// The packets of a second.
    pub fn second(&self, settings: &Settings, told: &RunSecond) -> Vec<String> {
        let mut all = vec![
            format!("ops_sec:{}|g", told.ops.0),
            format!("ops_sec_avg:{}|g", told.ops.1),
            format!("bytes_sec:{}|g", told.bytes.0),
            format!("bytes_sec_avg:{}|g", told.bytes.1),
            format!("latency_ms:{:.3}|ms", told.latency_ms.0),
            format!("latency_avg_ms:{:.3}|ms", told.latency_ms.1),
            format!("connections:{}|g", told.connections),
            format!("progress_pct:{:.6}|g", told.percent),
        ];
        if told.connection_errors > 0 {
            all.push(format!("connection_errors:{}|g", told.connection_errors));
        }
        let latencies = histogram_of(FORM, &[&told.latencies]);
        if !latencies.is_empty() {
            let one = |at: &f64| format!("latency_p{}:{:.6}|g", place(*at), percentile(&latencies, *at));
            all.extend(settings.percentiles.iter().map(one));
        }
        self.named(all)
    }

    /// The packets of a run's end: curves fall to 0.
    pub fn end(&self) -> Vec<String> {
        let names = ["ops_sec", "ops_sec_avg", "bytes_sec", "bytes_sec_avg", "progress_pct"];
        self.named(names.map(|name| format!("{name}:0|g")).to_vec())
    }

    fn named(&self, all: Vec<String>) -> Vec<String> {
        all.into_iter().map(|one| format!("{}{one}", self.prefix)).collect()
    }

    /// The HTTP request that says that run number `run` begins.
    pub fn begins(&self, settings: &Settings, run: u64) -> String {
        let (clients, threads) = settings.clients;
        let data = format!("threads={threads} connections={clients} run={run}");
        self.event("Benchmark Started", "memtier,start", &data)
    }

    /// The HTTP request that says that it has ended.
    pub fn ended(&self, run: u64) -> String {
        self.event("Benchmark Completed", "memtier,end", &format!("run={run}"))
    }

    fn event(&self, what: &str, tags: &str, data: &str) -> String {
        let label = &self.label;
        let json = format!(r#"{{"what":"{what}","tags":"{tags},run:{label}","data":"{data}"}}"#);
        format!(
            "POST /events/ HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{json}",
            self.host,
            self.graphite_port,
            json.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Parsed, parse};
    use super::*;
    use dyno_record::Scale;

    /// What memtier_benchmark 2.3.0 sent: -t 2 -c 2 --test-time 2 --statsd-host 127.0.0.1 --statsd-port 18125
    /// --graphite-port 18080 --statsd-run-label "a b" --statsd-prefix "m.x y".
    const SENT: &str = include_str!("../../tests/data/memtier/statsd.txt");

    #[test]
    fn packets_are_memtiers() {
        let text =
            "-t 2 -c 2 --test-time 2 --statsd-host 127.0.0.1 --statsd-port 18125 --graphite-port 18080";
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words.extend(["--statsd-run-label", "a b", "--statsd-prefix", "m.x y"].map(str::to_owned));
        let Ok(Parsed::Run(settings)) = parse(&words) else { panic!("these are settings") };
        let statsd = settings.statsd.clone().unwrap();
        assert_eq!((statsd.host.as_str(), statsd.port), ("127.0.0.1", 18125));
        let theirs: Vec<&str> = SENT.lines().filter_map(|line| line.strip_prefix("UDP ")).collect();
        let mut latencies = Buckets::new(Scale::Ns64);
        latencies.record(31_000);
        let told = RunSecond {
            ops: (57_378, 57_378),
            bytes: (2_492_096, 2_492_096),
            latency_ms: (0.069, 0.069),
            connections: 4,
            percent: 49.9423,
            connection_errors: 0,
            latencies,
        };
        let ours = statsd.second(&settings, &told);
        assert_eq!(ours[..9], theirs[..9], "all of one second, up to the median");
        let names = |all: &[String]| -> Vec<String> {
            all.iter().map(|one| one.split(':').next().unwrap().to_owned()).collect()
        };
        let of_theirs: Vec<String> = theirs[..11].iter().map(|one| (*one).to_owned()).collect();
        assert_eq!(names(&ours), names(&of_theirs));
        assert_eq!(statsd.end(), theirs[theirs.len() - 5..]);
        let requests: Vec<String> = SENT
            .lines()
            .filter_map(|line| line.strip_prefix("TCP b'"))
            .map(|line| line.trim_end_matches('\'').replace("\\r\\n", "\r\n"))
            .collect();
        assert_eq!([statsd.begins(&settings, 1), statsd.ended(1)], requests[..]);
    }
}
