//! The truth of latencies where the client is disturbed: a responder knows how long each reply took, and the client's core is
//! shared with a busy program, or the client is stopped for 50 ms at a time. What clients report stands beside it.

use crate::children::{Bench, split_words};
use crate::disturbance::{Disturbance, Stops, disturbed};
use crate::promises::phase;
use crate::responder::Responder;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// How long each client runs, seconds, and its users.
const SECONDS: u64 = 15;
const USERS: u64 = 8;

/// p50, p99 and p99.9 in microseconds.
type Percentiles = [f64; 3];

/// What the replies of a responder since the last call took, and how many they were.
fn truth(responder: &Responder) -> Result<(Percentiles, u64)> {
    let mut stream = TcpStream::connect(("127.0.0.1", responder.port))?;
    stream.write_all(b"*1\r\n$5\r\nTRUTH\r\n")?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let length: usize = line.trim().trim_start_matches('$').parse()?;
    let mut text = vec![0; length];
    reader.read_exact(&mut text)?;
    let numbers: Vec<f64> = String::from_utf8(text)?.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [p50, p99, p999, count] = numbers[..] else { bail!("the responder's truth") };
    Ok(([p50, p99, p999].map(|ns| ns / 1e3), count as u64))
}

/// A program that applies the load.
struct Tool {
    name: &'static str,
    program: String,
    arguments: Vec<String>,
    read: fn(&str) -> Option<Percentiles>,
}

fn tools(bench: &Bench, port: u16) -> Vec<Tool> {
    let dyno = |name: &'static str, stamps: &str, pace: &str, read: fn(&str) -> Option<Percentiles>| Tool {
        name,
        program: bench.dyno.display().to_string(),
        arguments: split_words(&format!(
            "run redis://127.0.0.1:{port}?layout=string --no-load --records 1000 -p fieldcount=1 -p fieldlength=1000 \
             -p readproportion=1 -p updateproportion=0 {pace} --duration {SECONDS}s --warmup 0s --threads 1 --no-pin \
             --wait sleep --stamps {stamps} --no-out --json --quiet"
        )),
        read,
    };
    let users = format!("--users {USERS}");
    let open = "--rate 2000 --connections 64";
    let mut all = vec![
        dyno("dyno", "kernel", &users, service),
        dyno("dyno --stamps client", "client", &users, service),
        dyno("dyno --rate 2000, response", "kernel", open, response),
        dyno("dyno --rate 2000, ideal client", "kernel", open, ideal),
    ];
    if bench.has_memtier() {
        all.push(Tool {
            name: "memtier",
            program: "memtier_benchmark".into(),
            arguments: split_words(&format!(
                "-s 127.0.0.1 -p {port} -t 1 -c {USERS} --ratio 0:1 --test-time {SECONDS} --print-percentiles 50,99,99.9 \
                 --hide-histogram"
            )),
            read: memtier,
        });
    }
    if let Some(jars) = crate::ycsb::client() {
        all.push(Tool {
            name: "YCSB",
            program: "java".into(),
            arguments: split_words(&format!(
                "-cp {jars}:{jars}/* site.ycsb.Client -t -db RecordStore -threads {USERS} -p \
                 workload=site.ycsb.workloads.CoreWorkload -p recordcount=1000 -p operationcount=100000000 -p \
                 maxexecutiontime={SECONDS} -p readproportion=1 -p updateproportion=0 -p redis.host=127.0.0.1 -p \
                 redis.port={port} -p measurementtype=hdrhistogram -p hdrhistogram.percentiles=50,99,99.9"
            )),
            read: ycsb,
        });
    }
    all
}

fn measured(text: &str, of: fn(&serde_json::Value) -> &serde_json::Value) -> Option<Percentiles> {
    let summary: serde_json::Value = serde_json::from_str(text).ok()?;
    let at = |name: &str| of(phase(&summary, "measure"))["percentiles_us"][name].as_f64();
    Some([at("p50")?, at("p99")?, at("p99.9")?])
}

fn service(text: &str) -> Option<Percentiles> {
    measured(text, |phase| &phase["metrics"][0]["service"])
}

fn response(text: &str) -> Option<Percentiles> {
    measured(text, |phase| &phase["metrics"][0]["response"])
}

fn ideal(text: &str) -> Option<Percentiles> {
    measured(text, |phase| &phase["ideal_response"])
}

/// The row `Gets` of memtier's table: kind, ops, hits, misses, mean, then the percentiles in milliseconds.
fn memtier(text: &str) -> Option<Percentiles> {
    let row = text.lines().find(|line| line.starts_with("Gets"))?;
    let at: Vec<f64> = row.split_whitespace().skip(5).filter_map(|word| word.parse().ok()).collect();
    Some([at.first()? * 1e3, at.get(1)? * 1e3, at.get(2)? * 1e3])
}

/// Lines such as `[READ], 99thPercentileLatency(us), 1234`; `99.9` has no `th`.
fn ycsb(text: &str) -> Option<Percentiles> {
    let of = |name: &str| {
        let start = format!("[READ], {name}PercentileLatency(us)");
        let line = text.lines().find(|line| line.starts_with(&start))?;
        line.rsplit(", ").next()?.trim().parse::<f64>().ok()
    };
    Some([of("50th")?, of("99th")?, of("99.9")?])
}

/// What a client said of its latencies, and what they were.
struct TruthRow {
    disturbance: Disturbance,
    name: &'static str,
    said: Percentiles,
    truth: Percentiles,
}

/// All rows: what each client says beside the truth of the same replies; `picture` names a file for a chart of them (SVG).
pub fn rows(bench: &Bench, picture: Option<&str>) -> Result<()> {
    println!(
        "\nWhat clients say of replies whose times are known, {USERS} users, {SECONDS} s each: p50, p99, p99.9 in us"
    );
    let responder = Responder::start(bench.server_core, "delays")?;
    let mut all = Vec::new();
    for disturbance in [Disturbance::None, Disturbance::Busy, Disturbance::Stopped(Stops::OF_THE_CLIENT)] {
        println!("  {}", disturbance.describe());
        for tool in tools(bench, responder.port) {
            truth(&responder)?;
            let text = disturbed(bench, (&tool.program, &tool.arguments), disturbance)?;
            let (taken, count) = truth(&responder)?;
            let Some(said) = (tool.read)(&text) else {
                bail!("{} printed no percentiles: {text}", tool.name)
            };
            let cells: Vec<String> = said
                .iter()
                .zip(taken)
                .map(|(said, truth)| format!("{said:8.0} of {truth:7.0} ({:+6.1} %)", off_by(*said, truth)))
                .collect();
            println!("  {:<32} {}  {count} replies", tool.name, cells.join("  "));
            all.push(TruthRow { disturbance, name: tool.name, said, truth: taken });
        }
    }
    if let Some(path) = picture {
        std::fs::write(path, chart(&all)).with_context(|| path.to_owned())?;
    }
    Ok(())
}

/// By how many per cent a figure is not the truth.
fn off_by(said: f64, truth: f64) -> f64 {
    (said / truth - 1.0) * 100.0
}

/// Clients that stand in the chart, and their colours.
const CHARTED: [(&str, &str); 3] = [("dyno", "#2f7d4f"), ("memtier", "#b5651d"), ("YCSB", "#8a4f9e")];

/// A bar for each p99.9 of the closed loop, with a line where the truth is.
fn chart(all: &[TruthRow]) -> String {
    const P999: usize = 2;
    const LEFT: f64 = 190.0;
    const LONGEST: f64 = 445.0;
    let colour =
        |row: &TruthRow| CHARTED.iter().find(|(name, _)| *name == row.name).map(|(_, colour)| *colour);
    let shown: Vec<&TruthRow> = all.iter().filter(|row| colour(row).is_some()).collect();
    let most = shown.iter().map(|row| row.said[P999].max(row.truth[P999])).fold(1.0, f64::max);
    let (mut body, mut y, mut group) = (String::new(), 64.0, None);
    for row in shown {
        if group != Some(row.disturbance) {
            y += if group.is_some() { 3.0 } else { 0.0 };
            let message = row.disturbance.describe();
            body += &format!("<text x=\"14\" y=\"{y}\" font-weight=\"bold\">client {message}</text>\n");
            (group, y) = (Some(row.disturbance), y + 21.0);
        }
        let at = |us: f64| LEFT + us / most * LONGEST;
        let (end, truth) = (at(row.said[P999]), at(row.truth[P999]));
        body += &format!(
            "<text x=\"182\" y=\"{y}\" text-anchor=\"end\">{}</text>\n<rect x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" \
             height=\"14\" fill=\"{}\"/>\n<line x1=\"{truth:.1}\" y1=\"{}\" x2=\"{truth:.1}\" y2=\"{}\" stroke=\"#c00\" \
             stroke-width=\"2\"/>\n<text x=\"{:.1}\" y=\"{y}\">{:.1} ms ({:+.1} %)</text>\n",
            row.name,
            y - 11.0,
            end - LEFT,
            colour(row).unwrap_or("#888"),
            y - 13.0,
            y + 5.0,
            end.max(truth) + 6.0,
            row.said[P999] / 1e3,
            off_by(row.said[P999], row.truth[P999]),
        );
        y += 20.0;
    }
    let height = y + 20.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 790 {height}\" width=\"790\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\"><title>p99.9 as each client reports it, beside the \
         truth</title><rect width=\"790\" height=\"{height}\" fill=\"#fff\"/>\n<text x=\"14\" y=\"20\" font-size=\"14\" \
         font-weight=\"bold\">p99.9 that each client reports of replies whose times are known</text>\n<text x=\"14\" \
         y=\"37\">dyno: service time by the kernel's clock, which it calls the server's share; memtier and YCSB: their only \
         figure</text>\n{body}<line x1=\"{LEFT}\" \
         y1=\"{}\" x2=\"{LEFT}\" y2=\"{}\" stroke=\"#c00\" stroke-width=\"2\"/><text x=\"198\" y=\"{}\">what the replies \
         really took</text>\n</svg>\n",
        y - 5.0,
        y + 9.0,
        y + 7.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_a_bar_and_the_truth_for_each_client_that_it_compares() {
        let row = |disturbance, name, said, truth| TruthRow {
            disturbance,
            name,
            said: [0.0, 0.0, said],
            truth: [0.0, 0.0, truth],
        };
        let all = [
            row(Disturbance::None, "dyno", 6_200.0, 6_200.0),
            row(Disturbance::None, "dyno --stamps client", 9_000.0, 6_000.0),
            row(Disturbance::None, "YCSB", 9_000.0, 6_000.0),
            row(Disturbance::Stopped(Stops::OF_THE_CLIENT), "memtier", 62_000.0, 6_200.0),
        ];
        let chart = chart(&all);
        // A background and three bars, three truths and their legend.
        assert_eq!([chart.matches("<rect").count(), chart.matches("<line").count()], [4, 4]);
        for text in
            ["6.2 ms (+0.0 %)", "9.0 ms (+50.0 %)", "62.0 ms (+900.0 %)", "width=\"445.0\"", "width=\"44.5\""]
        {
            assert!(chart.contains(text), "{text}: {chart}");
        }
        assert_eq!(chart.matches("font-weight=\"bold\"").count(), 3);
    }
}
