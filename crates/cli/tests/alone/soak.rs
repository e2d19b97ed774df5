//! A soak of dyno itself: its memory and its descriptors stay flat however long it runs. `make test` soaks for half a minute,
//! `make reliability PART=soak` for an hour, and writes the table of docs/reliability.md.
//!
//! Controller and workers are looked at twice a second while a real Redis is under an open-loop load, monitors read every
//! second and a client scrapes the live metrics. Flat means: what the last third has at most is what the middle third had at
//! most, but for a small allowance that does not grow with the time.

use dyno_testkit::{Dyno, RedisProcess, free_port, skip};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// Pages that are touched late, an allocator's own among them: a rare latency is the first to fall into its buckets, of some ten
/// histograms of 216 KiB that are there a few times. What grows with operations has 20,000 of them in a third of half a minute.
const ALLOWANCE_KIB: u64 = 8 << 10;
/// A scrape that is being answered, a file that is being written.
const DESCRIPTORS: u64 = 4;
const EVERY: Duration = Duration::from_millis(500);
/// Start, load and end of the run take as long on the busiest host.
const BEYOND: Duration = Duration::from_secs(120);

/// A process at a time.
#[derive(Clone, Copy)]
struct Sample {
    at_s: f64,
    resident_kib: u64,
    descriptors: u64,
}

fn sample(pid: u32, at_s: f64) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let resident_kib = resident.trim().strip_suffix(" kB")?.parse().ok()?;
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
    Some(Sample { at_s, resident_kib, descriptors })
}

/// Asks for the live metrics; returns their length, if the server answers.
fn scrape(port: u16) -> Option<usize> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).ok()?;
    Some(text.len())
}

/// The greatest value of a third of the measured time.
fn most(samples: &[Sample], (from_s, to_s): (f64, f64), of: fn(&Sample) -> u64) -> u64 {
    samples.iter().filter(|one| one.at_s >= from_s && one.at_s < to_s).map(of).max().unwrap_or(0)
}

#[expect(clippy::print_stdout, reason = "scripts/reliability.py makes a row of these lines")]
fn report(line: &str) {
    println!("{line}");
}

#[test]
fn memory_and_descriptors_stay_flat() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("the soak of dyno itself") };
    let seconds: u64 = std::env::var("SOAK_SECONDS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let (dyno, port) = (Dyno::new(), free_port());
    let text = format!(
        "target: {}\nworkload: {{ycsb: {{workload: a, records: 2000}}}}\nclient: {{workers: 2}}\n\
         phases: {{measure: {{duration: {seconds}s, warmup: 0s, connections: 16, rate: '2000'}}}}\n\
         monitors: {{interval: 1s}}\n",
        server.uri()
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let metrics = port.to_string();
    let mut child = dyno.start(&["run", "x.yaml", "--out", "o", "--quiet", "--metrics", &metrics]);
    let (begun, mut scraped) = (Instant::now(), 0u64);
    let (mut known, mut all) = (Vec::new(), BTreeMap::<u32, Vec<Sample>>::new());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let at = begun.elapsed();
        assert!(at < Duration::from_secs(seconds) + BEYOND, "dyno does not end");
        if known.len() < 3 {
            known = dyno_testkit::workers(child.id());
            known.push(child.id());
        }
        for pid in &known {
            all.entry(*pid).or_default().extend(sample(*pid, at.as_secs_f64()));
        }
        scraped += u64::from(scrape(port).is_some_and(|bytes| bytes > 1_000));
        std::thread::sleep(EVERY);
    };
    assert!(matches!(status.code(), Some(0 | 4 | 5)), "{status:?}");
    assert_eq!(all.len(), 3, "a controller and two workers were to be seen");
    assert!(scraped > 0, "no server answered on port {port}");
    // The controller's report after the load is no part of it.
    let ends =
        all.iter().filter(|(pid, _)| **pid != child.id()).map(|(_, samples)| samples[samples.len() - 1].at_s);
    let ends = ends.fold(f64::INFINITY, f64::min);
    for (pid, samples) in &all {
        let who = if *pid == child.id() { "controller" } else { "worker" };
        let (first, last) = (samples[0].at_s, samples[samples.len() - 1].at_s.min(ends));
        let third = (last - first) / 3.0;
        let (middle, end) = ((first + third, last - third), (last - third, last));
        let [memory, later] = [middle, end].map(|of| most(samples, of, |one| one.resident_kib));
        let [open, open_later] = [middle, end].map(|of| most(samples, of, |one| one.descriptors));
        report(&format!("SOAK | {who} | {last:.0} s | {memory} KiB | {later} KiB | {open} | {open_later} |"));
        assert!(later <= memory + ALLOWANCE_KIB, "{who}: {memory} KiB, then {later} KiB");
        assert!(open_later <= open + DESCRIPTORS, "{who}: {open} descriptors, then {open_later}");
    }
}
