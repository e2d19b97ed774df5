//! `mongodb+srv://` before a scripted DNS server and a pair of scripted routers.

use dyno_testkit::fake_mongo::{Script, cursor, error, serve};
use dyno_testkit::{Dyno, assert_exit, outcome, phase, stderr};
use dyno_types::bson;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SRV: u16 = 33;
const TXT: u16 = 16;

/// Answers questions of type SRV with these ports of `host`, and those of type TXT with `text`; returns its address.
fn dns(host: &'static str, ports: Vec<u16>, text: &'static str) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((n, from)) = socket.recv_from(&mut buffer) {
            let question = &buffer[..n];
            let kind = u16::from_be_bytes([question[n - 4], question[n - 3]]);
            let mut records: Vec<Vec<u8>> = Vec::new();
            match kind {
                SRV => records.extend(ports.iter().map(|port| {
                    let mut data = [0u16, 0, *port].map(u16::to_be_bytes).concat();
                    for label in host.split('.') {
                        data.push(label.len() as u8);
                        data.extend_from_slice(label.as_bytes());
                    }
                    data.push(0);
                    data
                })),
                TXT if !text.is_empty() => records.push([&[text.len() as u8], text.as_bytes()].concat()),
                _ => {}
            }
            let mut answer = question.to_vec();
            answer[2..4].copy_from_slice(&0x8180u16.to_be_bytes());
            answer[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
            for data in records {
                // The name of the question, the class IN, an hour.
                answer.extend_from_slice(&0xC00Cu16.to_be_bytes());
                answer.extend_from_slice(&kind.to_be_bytes());
                answer.extend_from_slice(&[0, 1, 0, 0, 14, 16]);
                answer.extend_from_slice(&(data.len() as u16).to_be_bytes());
                answer.extend_from_slice(&data);
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
    address
}

/// A router that counts what it is asked.
fn router(asked: &Arc<AtomicU64>) -> u16 {
    let asked = asked.clone();
    let name = serve(|_| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => {
                bson::put_boolean(out, "ismaster", true);
                bson::put_string(out, "msg", "isdbgrid");
                bson::put_int32(out, "maxWireVersion", 21);
                bson::put_double(out, "ok", 1.0);
            }
            "find" => {
                asked.fetch_add(1, Ordering::Relaxed);
                cursor(0, "firstBatch", 1, out);
            }
            name => error(59, &format!("no such command: {name}"), out),
        })
    });
    name.rsplit(':').next().unwrap().parse().unwrap()
}

fn run(dns: &str, uri: &str) -> (Dyno, std::process::Output) {
    let dyno = Dyno::new();
    let more = ["--no-load", "--records", "100", "--workload", "c", "--ops", "200", "--out", "d"];
    let output = dyno.command(&[&["run", uri][..], &more].concat()).env("DYNO_DNS", dns).output().unwrap();
    (dyno, output)
}

// An address is a name too: within `.0.0.1` there is one that needs no resolver to be found.
const HOST: &str = "127.0.0.1";

#[test]
fn the_load_goes_to_the_hosts_of_the_records() {
    let asked = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let ports: Vec<u16> = asked.iter().map(router).collect();
    let counts = || asked.each_ref().map(|count| count.swap(0, Ordering::Relaxed));
    let all = dns(HOST, ports.clone(), "authSource=users");
    let (dyno, output) = run(&all, "mongodb+srv://cluster.0.0.1/t?tls=false");
    dyno.assert_ran(&output);
    let summary = dyno.summary("d");
    assert_eq!(outcome(phase(&summary, "measure"), "ok"), 200, "{summary}");
    let both = counts();
    assert!(both[0] + both[1] == 200 && both[0] > 50 && both[1] > 50, "{both:?}");
    assert!(
        stderr(&output).contains("mongodb+srv://cluster.0.0.1/t")
            || summary.to_string().contains("cluster.0.0.1")
    );
    // One of them, by chance; and TLS where nothing is said, which these do not speak.
    let (_, output) = run(&all, "mongodb+srv://cluster.0.0.1/t?tls=false&srvMaxHosts=1");
    dyno.assert_ran(&output);
    let one = counts();
    assert_eq!((one[0].min(one[1]), one[0].max(one[1])), (0, 200));
    let (_, output) = run(&all, "mongodb+srv://cluster.0.0.1/t?srvMaxHosts=1");
    assert_exit(&output, &[3]);
}

#[test]
fn records_that_lead_elsewhere_or_say_too_much_are_refused() {
    for (host, ports, text, message) in [
        ("127.0.0.2", vec![1], "", "not within .0.0.1"),
        (HOST, Vec::new(), "", "no SRV records"),
        (HOST, vec![1], "tls=false", "only authSource"),
        (HOST, vec![1, 2], "loadBalanced=true", "loadBalanced"),
    ] {
        let (_, output) = run(&dns(host, ports, text), "mongodb+srv://cluster.0.0.1/t?tls=false");
        assert_exit(&output, &[3]);
        assert!(stderr(&output).contains(message), "{message}: {}", stderr(&output));
    }
    let (_, output) = run("nobody", "mongodb+srv://cluster.0.0.1/t");
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("DYNO_DNS"), "{}", stderr(&output));
}
