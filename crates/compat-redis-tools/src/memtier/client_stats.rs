//! The files of `--client-stats`: one for each client, with its seconds and its latencies.

use super::args::{Breakdown, Settings};
use super::plan::{TableRow, rows_by};
use super::report::{capitals, histogram_from, steps_of};
use dyno_types::command::Traffic;
use dyno_workload::commands::{ClientSecond, CommandClient};
use std::fmt::Write as _;

/// Least and greatest latency of these files, microseconds, and its digits.
const FORM: (u64, u64, u8) = (10, 600_000_000, 2);

/// A client's file: its path, and what is in it.
pub type ClientFile = (String, String);

/// The files of run number `run`, from 1 on; none where they are not asked for.
pub fn client_files(settings: &Settings, run: u64, clients: &[CommandClient]) -> Vec<ClientFile> {
    let Some(prefix) = settings.value("client-stats") else { return Vec::new() };
    let of_thread = settings.clients.0;
    // Here each command has columns of its own.
    let rows = rows_by(settings, Breakdown::Line);
    let begun = (0..).zip(clients).filter(|(_, client)| !client.seconds.is_empty());
    begun
        .map(|(number, client): (u64, &CommandClient)| {
            let (thread, place) = (number / of_thread, number % of_thread);
            (format!("{prefix}-{run}-{thread}-{place}.csv"), file(settings, &rows, client))
        })
        .collect()
}

/// Seconds with six digits.
fn mean(second: &ClientSecond) -> String {
    let us = second.latency_us.checked_div(second.count).unwrap_or(0);
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// What a row's operations came to in a second.
fn sum(row: &TableRow, second: &[ClientSecond]) -> ClientSecond {
    let mut all = ClientSecond::default();
    for one in row.metrics.iter().filter_map(|metric| second.get(*metric)) {
        all.count += one.count;
        all.latency_us += one.latency_us;
        all.traffic += one.traffic;
    }
    all
}

fn bytes(Traffic { sent, received, .. }: Traffic) -> String {
    format!("{},{sent},{received}", sent + received)
}

fn file(settings: &Settings, rows: &[TableRow], client: &CommandClient) -> String {
    let mut out = String::new();
    let name = |row: &TableRow| capitals(&row.name);
    if settings.own.is_empty() {
        out.push_str("Per-Second Benchmark Data\nSecond");
        for row in ["SET", "GET"] {
            let _ = write!(
                out,
                ",{row} Requests,{row} Average Latency,{row} Total Bytes,{row} Total Bytes TX,{row} Total Bytes RX"
            );
        }
        out.push_str(",GET Misses,GET Hits,WAIT Requests,WAIT Average Latency\n");
        for (number, second) in &client.seconds {
            let [sets, gets, waits] = [0, 1, 2].map(|row| sum(&rows[row], second));
            let _ = write!(out, "{number},{},{},{}", sets.count, mean(&sets), bytes(sets.traffic));
            let Traffic { hits, misses, .. } = gets.traffic;
            let _ = write!(out, ",{},{},{},{misses},{hits}", gets.count, mean(&gets), bytes(gets.traffic));
            let _ = writeln!(out, ",{},{}", waits.count, mean(&waits));
        }
        for row in [&rows[1], &rows[0], &rows[2]] {
            latencies(&name(row), row, client, &mut out);
        }
        return out;
    }
    out.push_str("Per-Second Benchmark Arbitrary Commands Data\nSecond");
    for row in rows.iter().map(name) {
        let _ = write!(
            out,
            ",{row} Requests,{row} Average Latency,{row} Total Bytes,{row} Total Bytes TX,{row} Total Bytes RX"
        );
    }
    out.push('\n');
    for (number, second) in &client.seconds {
        let _ = write!(out, "{number},");
        for row in rows {
            let own = sum(row, second);
            let _ = write!(out, "{},{},{},", own.count, mean(&own), bytes(own.traffic));
        }
        out.push('\n');
    }
    rows.iter().for_each(|row| latencies(&name(row), row, client, &mut out));
    out
}

/// The distribution of a row's latencies.
fn latencies(name: &str, row: &TableRow, client: &CommandClient, out: &mut String) {
    let _ = writeln!(out, "\nFull-Test {name} Latency\nLatency (<= msec),Percent");
    let all = row.metrics.iter().filter_map(|metric| client.latencies_us.get(*metric)).flatten();
    let found = histogram_from(FORM, all.map(|(us, count)| (*us, *count)));
    if found.is_empty() {
        // What memtier has of none.
        out.push_str("   0.000,100.000\n");
    }
    for step in steps_of(&found) {
        let _ = writeln!(out, "{:>8.3},{:.3}", step.us as f64 / 1e3, step.part * 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Parsed, parse};
    use super::*;
    use std::collections::BTreeMap;

    /// Written by memtier_benchmark 2.3.0: -t 2 -c 2 -n 1000 --ratio 1:1 --key-maximum 100 --client-stats=cs; and -t 1 -c 1
    /// -n 100 --command "SET __key__ 1" --command "set __key__ 3" --command "GET a" --client-stats=ca.
    const SETS: &str = include_str!("../../tests/data/memtier/client_stats.csv");
    const OWN: &str = include_str!("../../tests/data/memtier/client_stats_commands.csv");

    fn settings(words: &[&str]) -> Settings {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match parse(&words) {
            Ok(Parsed::Run(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    /// What a row of a file says of an operation, whose columns begin at `at`.
    fn second(columns: &[&str], at: usize, misses: usize) -> ClientSecond {
        let number = |at: usize| columns[at].parse::<u64>().unwrap();
        let mean: f64 = columns[at + 1].parse().unwrap();
        let mut traffic = Traffic::default();
        if columns.len() > at + 4 {
            (traffic.sent, traffic.received) = (number(at + 3), number(at + 4));
        }
        if misses > 0 {
            (traffic.misses, traffic.hits) = (number(misses), number(misses + 1));
        }
        let latency_us = (mean * 1e6).round() as u64 * number(at);
        ClientSecond { count: number(at), latency_us, traffic }
    }

    fn client(seconds: Vec<ClientSecond>) -> CommandClient {
        let latencies = seconds.iter().map(|one| BTreeMap::from([(95, one.count)])).collect();
        CommandClient { seconds: BTreeMap::from([(0, seconds)]), latencies_us: latencies }
    }

    fn titles(text: &str) -> Vec<&str> {
        text.lines().filter(|line| line.starts_with("Full-Test")).collect()
    }

    #[test]
    fn files_of_sets_and_gets_are_memtiers() {
        let own = settings(&["-t", "2", "-c", "2", "--client-stats=cs"]);
        let columns: Vec<&str> = SETS.lines().nth(2).unwrap().split(',').collect();
        let one = client(vec![second(&columns, 1, 0), second(&columns, 6, 11)]);
        let none = CommandClient::default();
        let files = client_files(&own, 1, &[none.clone(), none, one.clone(), one]);
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["cs-1-1-0.csv", "cs-1-1-1.csv"]);
        let lines = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&files[0].1), lines(SETS));
        assert_eq!(titles(&files[0].1), titles(SETS));
        let end = "\nFull-Test WAIT Latency\nLatency (<= msec),Percent\n   0.000,100.000\n";
        assert!(files[0].1.ends_with(end) && SETS.ends_with(end));
        assert!(files[0].1.contains("\n   0.095,0.000\n   0.095,100.000\n"), "{}", files[0].1);
    }

    #[test]
    fn files_of_commands_are_memtiers() {
        let words = ["--command", "SET __key__ 1", "--command", "set __key__ 3", "--command", "GET a"];
        let own = settings(&[&words[..], &["--client-stats=ca", "-t", "1", "-c", "1"]].concat());
        let columns: Vec<&str> = OWN.lines().nth(2).unwrap().split(',').collect();
        let one = client([1, 6, 11].map(|at| second(&columns, at, 0)).to_vec());
        let files = client_files(&own, 2, &[one]);
        assert_eq!(files[0].0, "ca-2-0-0.csv");
        let lines = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&files[0].1), lines(OWN));
        assert_eq!(titles(&files[0].1), titles(OWN));
    }
}
