//! `dyno record` as a proxy before real servers: what it has recorded is what they have counted.

use dyno_recording::format::RecordedEvent;
use dyno_recording::{Entry, RecordedKind, RecordingReader, RecordingTotals};
use dyno_testkit::cluster::{Certificates, RedisCluster, launch};
use dyno_testkit::{
    Dyno, RedisProcess, assert_exit, await_port, finish, free_port, signal, skip, skip_because, stderr,
    stdout,
};
use dyno_types::command::ReplyKind;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A proxy under way.
pub(crate) struct ProxyProcess {
    child: Child,
    pub(crate) port: u16,
}

pub(crate) fn start_proxy(dyno: &Dyno, to: &str, more: &[&str]) -> ProxyProcess {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let words = [&["record", "--listen", &listen, "--to", to, "--out", "traffic.dyno"], more].concat();
    let proxy = ProxyProcess { child: dyno.start(&words), port };
    await_port(port);
    proxy
}

impl ProxyProcess {
    /// Ctrl-C.
    pub(crate) fn end(self) -> Output {
        signal(self.child.id(), "INT");
        finish(self.child)
    }
}

/// What redis-cli prints on the proxy's port.
pub(crate) fn cli(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("timeout")
        .args(["-k", "1", "30", "redis-cli", "-p", &port.to_string()])
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn benchmark(port: u16, arguments: &[&str]) {
    let status = Command::new("timeout")
        .args(["-k", "1", "60", "redis-benchmark", "-p", &port.to_string(), "-q"])
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// Calls by command since the last reset, those of subcommands added up.
pub(crate) fn calls(server: &RedisProcess) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for line in server.cli(&["INFO", "commandstats"]).lines() {
        let Some((name, facts)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else {
            continue;
        };
        let number = |name: &str| -> u64 {
            facts.trim().split(',').find_map(|fact| fact.strip_prefix(name)?.parse().ok()).unwrap_or(0)
        };
        let name = name.split('|').next().unwrap_or_default().to_uppercase();
        *all.entry(name).or_default() += number("calls=") + number("rejected_calls=");
    }
    all
}

pub(crate) fn read_recording(path: &Path) -> (Vec<Entry>, RecordingTotals) {
    let mut reader = RecordingReader::open_file(path).unwrap();
    let (mut all, mut entry) = (Vec::new(), Entry::default());
    while let Some(event) = reader.next_event(&mut entry).unwrap() {
        match event {
            RecordedEvent::Entry => all.push(entry.clone()),
            RecordedEvent::LateReply { number, reply } => all[number as usize].reply = Some(reply),
        }
    }
    (all, reader.totals().cloned().unwrap())
}

#[test]
fn counts_of_a_proxy_are_those_of_the_server() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a recording proxy") };
    let dyno = Dyno::new();
    let proxy = start_proxy(&dyno, &server.uri(), &[]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    benchmark(
        proxy.port,
        &["-t", "set,get,incr,lrange_100,mset,zadd", "-n", "3000", "-c", "20", "-d", "100"],
    );
    benchmark(proxy.port, &["-t", "set,get", "-n", "3000", "-c", "5", "-P", "16", "-d", "3000", "-3"]);
    cli(proxy.port, &["EVAL", "return redis.call('get', KEYS[1])", "1", "k"]);
    cli(proxy.port, &["INCR", "no", "such", "form"]);
    let counted = calls(&server);
    let output = proxy.end();
    assert_exit(&output, &[0]);
    let path = dyno.path("traffic.dyno");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (entries, totals) = read_recording(&path);
    assert!(totals.by_name["SET"] >= 6_000, "{:?}", totals.by_name);
    for (name, count) in &totals.by_name {
        // The script's own command, and the reset of the statistics, are the server's alone.
        let beside = u64::from(["GET", "CONFIG"].contains(&name.as_str()));
        assert_eq!(counted.get(name).copied().unwrap_or(0), count + beside, "{name}: {counted:?}");
    }
    assert_eq!((totals.commands, totals.replies), (entries.len() as u64, entries.len() as u64));
    assert!(totals.left_out.is_empty(), "{:?}", totals.left_out);
    let pipelined = entries.iter().filter(|entry| entry.overlaps).count();
    assert!(pipelined > 4_000, "{pipelined} of 6,000 in pipelines of 16");
    assert!(entries.is_sorted_by_key(|entry| entry.at_ns));
    let text = stdout(&output);
    assert!(text.contains(&format!("{} commands", dyno_types::units::Thousands(totals.commands))), "{text}");
}

#[test]
fn replies_have_their_kind_size_and_time() {
    let Some(server) = RedisProcess::start(&["--requirepass", "hush-hush"]) else { return skip("replies") };
    let dyno = Dyno::new();
    let proxy = start_proxy(&dyno, &server.uri(), &["--value-limit", "1KiB"]);
    let long = "v".repeat(5_000);
    let send = |words: &[&str]| cli(proxy.port, &[&["-a", "hush-hush", "--no-auth-warning"], words].concat());
    for words in [
        &["SET", "k", "12345"][..],
        &["GET", "k"],
        &["GET", "absent"],
        &["INCR", "n"],
        &["LPUSH", "k", "x"],
        &["RPUSH", "l", "a", "b", "c"],
        &["LRANGE", "l", "0", "-1"],
        &["SET", "long", &long],
        &["CONFIG", "SET", "requirepass", "hush-hush"],
        &["-3", "HSET", "h", "f", "v"],
        &["-3", "HGETALL", "h"],
        &["BLPOP", "nothing", "0.3"],
    ] {
        send(words);
    }
    assert_exit(&proxy.end(), &[0]);
    let path = dyno.path("traffic.dyno");
    let (entries, totals) = read_recording(&path);
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| {
            let words: Vec<_> = entry.arguments.words().map(String::from_utf8_lossy).collect();
            assert!(!words.iter().any(|word| word.contains("hush")), "a password: {words:?}");
            let reply = entry.reply.as_ref().unwrap();
            let kind = match reply.kind {
                RecordedKind::Error => reply.error.clone(),
                RecordedKind::Reply(kind) => format!("{} {}", kind.kind_name(), reply.size),
            };
            format!("{}: {kind}", words[..words.len().min(2)].join(" "))
        })
        .filter(|line| !line.starts_with("COMMAND") && !line.starts_with("HELLO"))
        .collect();
    assert_eq!(
        shown,
        [
            "SET k: status 0",
            "GET k: string 5",
            "GET absent: nil 0",
            "INCR n: integer 0",
            "LPUSH k: WRONGTYPE",
            "RPUSH l: integer 0",
            "LRANGE l: array 3",
            "SET long: status 0",
            "HSET h: integer 0",
            "HGETALL h: array 2",
            "BLPOP nothing: nil 0"
        ]
    );
    // The connection's AUTH, and the setting.
    assert!(totals.left_out["credentials"] >= 11, "{:?}", totals.left_out);
    let set = entries.iter().find(|entry| entry.arguments.word(1) == b"long").unwrap();
    assert_eq!(set.arguments.long_value(2).map(|value| value.length), Some(5_000));
    let blocked = entries.last().unwrap().reply.clone().unwrap();
    assert_eq!(blocked.kind, RecordedKind::Reply(ReplyKind::Nil));
    assert!(blocked.after_ns.is_some_and(|ns| ns >= 250_000_000), "{blocked:?}");
}

#[test]
fn a_server_may_go_and_come_back_behind_the_proxy() {
    let Some(mut server) = RedisProcess::start(&[]) else { return skip("a server that goes") };
    let dyno = Dyno::new();
    let proxy = start_proxy(&dyno, &server.uri(), &[]);
    assert_eq!(cli(proxy.port, &["SET", "a", "1"]), "OK");
    server.kill();
    assert_eq!(cli(proxy.port, &["SET", "a", "2"]), "");
    server.restart();
    assert_eq!(cli(proxy.port, &["SET", "a", "3"]), "OK");
    let output = proxy.end();
    assert_exit(&output, &[0]);
    let (entries, totals) = read_recording(&dyno.path("traffic.dyno"));
    let answered = entries.iter().filter(|entry| entry.arguments.is_named("SET") && entry.reply.is_some());
    assert_eq!(answered.count(), 2);
    assert!(totals.left_out["connections that the server has not taken"] >= 1, "{:?}", totals.left_out);
}

#[test]
fn tls_is_possible_on_either_side() {
    let Some(certificates) = Certificates::make() else {
        return skip_because("a proxy with TLS", "openssl is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(mut server) = launch(folder.path(), &certificates.settings(port, "no")) else {
        return skip("a proxy with TLS");
    };
    assert!(server.listens(port));
    let dyno = Dyno::new();
    let file = |name: &str| certificates.path(name).display().to_string();
    let uri = format!("rediss://127.0.0.1:{port}?ca={}", file("ca.pem"));
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let proxy = start_proxy(&dyno, &uri, &["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca]);
    let login = ["--tls", "--cacert", &ca, "--cert", &file("client.pem"), "--key", &file("client.key")];
    assert_eq!(cli(proxy.port, &[&login[..], &["SET", "k", "v"]].concat()), "OK");
    assert_eq!(
        cli(proxy.port, &[&login[..], &["EVAL", "return string.rep('x', 3000000)", "0"]].concat()).len(),
        3_000_000
    );
    benchmark(
        proxy.port,
        &[&login[..], &["-t", "set,get", "-n", "2000", "-c", "10", "-P", "4", "-d", "20000"]].concat(),
    );
    // Without a certificate, and without TLS.
    assert_eq!(cli(proxy.port, &["--tls", "--cacert", &ca, "PING"]), "");
    assert_eq!(cli(proxy.port, &["PING"]), "");
    let output = proxy.end();
    assert_exit(&output, &[0]);
    let (entries, totals) = read_recording(&dyno.path("traffic.dyno"));
    assert!(totals.by_name["SET"] > 2_000 && totals.by_name["GET"] >= 2_000, "{:?}", totals.by_name);
    let script = entries.iter().find(|entry| entry.arguments.is_named("EVAL")).unwrap();
    assert_eq!(script.reply.as_ref().unwrap().size, 3_000_000);
    assert!(totals.left_out["connections whose TLS has failed"] >= 2, "{:?}", totals.left_out);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("refusals of the proxy") };
    let dyno = Dyno::new();
    let (listen, gone) = (format!("127.0.0.1:{}", free_port()), format!("redis://127.0.0.1:{}", free_port()));
    let uri = server.uri();
    let taken = format!("127.0.0.1:{}", server.port);
    std::fs::write(dyno.path("there.dyno"), "x").unwrap();
    for (code, words, told) in [
        (3, &["--to", &gone][..], "nothing listens there"),
        (3, &["--to", "memcached://127.0.0.1:1"], "nothing listens there"),
        (2, &["--to", "memcached://127.0.0.1:1,127.0.0.1:2"], "one server"),
        (2, &["--to", "sqlite:a.db"], "not sqlite:"),
        (2, &["--to", "mongodb://127.0.0.1:1,127.0.0.1:2"], "one server"),
        (3, &["--to", "mongodb://127.0.0.1:1"], "127.0.0.1:1"),
        (2, &["--to", &uri, "--out", "there.dyno"], "it is there already"),
        (2, &["--to", &uri, "--tls-cert", "absent.pem", "--tls-key", "absent.pem"], "absent.pem"),
        (2, &["--to", &uri, "--value-limit", "1GiB"], "64 MiB"),
        (2, &["--to", &uri, "--duration", "soon"], "--duration"),
        (2, &[], "--to"),
        (2, &["--to", &uri, "--nonsense"], "--nonsense"),
    ] {
        let output = dyno.run(&[&["record", "--listen", &listen][..], words].concat());
        assert_exit(&output, &[code]);
        assert!(stderr(&output).contains(told), "{words:?}: {}", stderr(&output));
        assert!(!dyno.path("traffic.dyno").exists(), "{words:?}");
    }
    let output = dyno.run(&["record", "--listen", &taken, "--to", &uri]);
    assert_exit(&output, &[2]);
    // It ends by itself, and says that nothing came.
    let output = dyno.run(&["record", "--listen", &listen, "--to", &uri, "--duration", "200ms"]);
    assert_exit(&output, &[0]);
    assert!(stderr(&output).contains("no command has passed"), "{}", stderr(&output));
}

#[test]
fn a_cluster_is_refused_by_the_proxy() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("a cluster before the proxy") };
    let dyno = Dyno::new();
    let listen = format!("127.0.0.1:{}", free_port());
    let uri = format!("redis://127.0.0.1:{}", cluster.port(0));
    let output = dyno.run(&["record", "--listen", &listen, "--to", &uri]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("node of a cluster"), "{}", stderr(&output));
}
