//! `dyno record --anonymise` of real captures: what the application said is not in the recording.

use dyno_recording::{Entry, RecordingReader};
use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, skip_because, stderr, stdout};
use std::process::{Child, Command, Stdio};

/// Captures the traffic of a port on the loopback; `None` where that cannot be done here.
struct Tcpdump {
    child: Child,
}

impl Tcpdump {
    fn start(dyno: &Dyno, port: u16) -> Option<Self> {
        let file = dyno.path("traffic.pcap");
        let child = Command::new("tcpdump")
            .args(["-i", "lo", "-U", "-s", "0", "-w"])
            .arg(&file)
            .arg(format!("tcp port {port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let capture = Tcpdump { child };
        let begun = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            std::fs::metadata(&file).is_ok_and(|facts| facts.len() >= 24)
        });
        begun.then_some(capture)
    }

    /// Waits until it has seen a text: what is still in the kernel when it ends is lost.
    fn await_text(&self, dyno: &Dyno, text: &[u8]) {
        let seen = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            holds(&std::fs::read(dyno.path("traffic.pcap")).unwrap(), text)
        });
        assert!(seen, "the capture has come to its end");
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // An interrupt lets it write what it holds.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// All bytes of the words of a recording, one after the other.
fn words(dyno: &Dyno, file: &str) -> Vec<u8> {
    let mut reader = RecordingReader::open_file(&dyno.path(file)).unwrap();
    let (mut all, mut entry) = (Vec::new(), Entry::default());
    while reader.next_event(&mut entry).unwrap().is_some() {
        entry.arguments.words().for_each(|word| {
            all.extend_from_slice(word);
            all.push(0);
        });
    }
    all
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Every eight bytes of a text.
fn assert_gone(bytes: &[u8], text: &str) {
    for part in text.as_bytes().windows(8) {
        assert!(!holds(bytes, part), "{text}: {}", String::from_utf8_lossy(part));
    }
}

#[test]
fn a_capture_of_redis_tells_no_keys_and_no_values() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("anonymising") };
    let dyno = Dyno::new();
    let Some(capture) = Tcpdump::start(&dyno, server.port) else {
        return skip_because("anonymising", "tcpdump cannot capture here");
    };
    let texts =
        ["customer:Almeida-Santos", "Rua-das-Flores-17", "{session-of-Almeida}:cart", "familyname-field"];
    for n in 0..20 {
        let key = format!("{}:{n}", texts[0]);
        server.cli(&["SET", &key, texts[1], "EX", "600"]);
        server.cli(&["GET", &key]);
        server.cli(&["HSET", texts[2], texts[3], &"a long value of many words ".repeat(20)]);
        server.cli(&["ZADD", "scoreboard-of-all", &n.to_string(), texts[1]]);
        server.cli(&["EVAL", "return redis.call('GET', KEYS[1])", "1", &key]);
    }
    server.cli(&["PING", "the-end-of-the-capture"]);
    capture.await_text(&dyno, b"the-end-of-the-capture");
    drop(capture);
    let record = |out: &str, more: &[&str]| {
        let output = dyno.run(&[&["record", "traffic.pcap", "-o", out][..], more].concat());
        assert_exit(&output, &[0]);
        stdout(&output) + &stderr(&output)
    };
    record("plain.dyno", &[]);
    let said = record("other.dyno", &["--anonymise", "key"]);
    assert!(said.contains("key: a new key") && said.contains("left out: 20 commands of scripts"), "{said}");
    let (plain, other) = (words(&dyno, "plain.dyno"), words(&dyno, "other.dyno"));
    for text in texts.into_iter().chain(["a long value of many words", "scoreboard-of-all"]) {
        assert!(holds(&plain, text.as_bytes()), "{text}");
        assert_gone(&other, text);
    }
    // The same key makes the same words.
    record("again.dyno", &["--anonymise", "key"]);
    assert_eq!(words(&dyno, "again.dyno"), other);
    // It behaves as the traffic did: the same commands, and the same replies.
    server.cli(&["FLUSHALL"]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let replay = dyno.run(&["replay", "other.dyno", &server.uri(), "--out", "run"]);
    assert_exit(&replay, &[0, 5]);
    let replay = dyno.summary("run");
    let replay = &dyno_testkit::phase(&replay, "measure")["replay"];
    for way in ["missing", "error", "kind", "size"] {
        assert_eq!(replay[way].as_u64(), Some(0), "{replay}");
    }
    assert!(replay["compared"].as_u64() >= Some(80), "{replay}");
    assert_eq!(server.cli(&["DBSIZE"]), "22");
    let short = dyno.path("short");
    std::fs::write(&short, "too short").unwrap();
    let refused = dyno.run(&["record", "traffic.pcap", "-o", "no.dyno", "--anonymise", "short"]);
    assert_exit(&refused, &[2]);
    let refused = dyno.run(&["record", "traffic.pcap", "-o", "no.dyno", "--keep-scripts"]);
    assert_exit(&refused, &[2]);
}

#[test]
fn what_cannot_be_anonymised_is_refused() {
    let dyno = Dyno::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/data/mongoreplay-4.0.playback.gz");
    let output = dyno.run(&["record", file, "-o", "other.dyno", "--anonymise", "key"]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("only traffic of Redis"), "{}", stderr(&output));
    assert!(!dyno.path("other.dyno").exists());
}
