//! The codec against a real server, over a blocking socket. Skipped where `memcached` is not installed; `MEMCACHED` names another
//! program.

use dyno_db::probe::FactsStep;
use dyno_db_memcached::protocol::reply::{Reply, read_reply};
use dyno_db_memcached::protocol::{
    Exchange, MemcachedDriver, MemcachedFacts, MemcachedOptions, Protocol, Servers,
};
use dyno_types::driver::NOWHERE;
use dyno_types::{Content, Decoded, Driver, Endpoint, Fields, GreetingStep, Outcome, Request, Then, Verb};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server on a free loopback port; killed when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "the test script counts these lines")]
fn skipped(what: &str) {
    // In one piece: other tests write to the same stream.
    let line = format!("SKIPPED: {what}: memcached is not installed\n");
    eprint!("{line}");
}

fn server(what: &str, options: &[&str]) -> Option<Server> {
    let program = std::env::var("MEMCACHED").unwrap_or_else(|_| "memcached".into());
    for _ in 0..20 {
        // Another process may take the port before the server does.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(&program);
        command
            .args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-u", "root", "-p", &port.to_string()])
            .args(options);
        let Ok(child) = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        else {
            skipped(what);
            return None;
        };
        let mut server = Server { child, port };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) && server.child.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    panic!("memcached does not start");
}

/// Ten fields with values that need escapes; field 3 has `size` bytes.
struct Ten {
    size: usize,
    odd_key: bool,
}

impl Content for Ten {
    fn table(&self) -> &str {
        "usertable"
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        let odd = if self.odd_key { " \t" } else { "" };
        out.extend_from_slice(format!("user{odd}{}", request.key).as_bytes());
    }

    fn fields(&self, request: &Request) -> usize {
        match (request.fields, request.verb) {
            (Fields::One(_), _) => 1,
            (Fields::All, Verb::Read) => 0,
            _ => 10,
        }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let number = if let Fields::One(number) = request.fields { usize::from(number) } else { field };
        out.extend_from_slice(format!("field{number}").as_bytes());
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        let mut out = Vec::new();
        self.value(request, field, &mut out);
        out.len()
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let mut name = Vec::new();
        self.name(request, field, &mut name);
        out.extend_from_slice(format!("\"\\\r\n\u{e9} of {} ", String::from_utf8_lossy(&name)).as_bytes());
        if name == b"field3" {
            out.resize(out.len() + self.size, b'x');
        }
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, request: &Request, field: &[u8], value: &[u8]) -> bool {
        let all = Request { verb: Verb::Insert, fields: Fields::All, ..*request };
        (0..10).any(|number| {
            let (mut name, mut expected) = (Vec::new(), Vec::new());
            self.name(&all, number, &mut name);
            self.value(&all, number, &mut expected);
            name == field && expected == value
        })
    }
}

/// One driver and its connections.
struct Client {
    driver: MemcachedDriver,
    sockets: Vec<(TcpStream, Vec<u8>)>,
    exchange: Exchange,
}

fn options(servers: &[&Server], query: &str) -> MemcachedOptions {
    let places: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    MemcachedOptions::from_uri(&format!("memcached://{}?{query}", places.join(","))).unwrap()
}

fn connected(endpoint: &Endpoint) -> TcpStream {
    let Endpoint::Tcp { address, .. } = endpoint else { panic!("{endpoint}") };
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

/// Reads more; false if the server has closed the connection.
fn more(socket: &mut TcpStream, input: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 65_536];
    let n = socket.read(&mut buffer).unwrap();
    input.extend_from_slice(&buffer[..n]);
    n > 0
}

impl Client {
    fn new(options: MemcachedOptions, content: Ten) -> Result<Self, (Outcome, String)> {
        let endpoint = |address: &dyno_types::address::Address| match address {
            dyno_types::address::Address::Tcp(host, port) => {
                Endpoint::Tcp { host: host.clone(), address: format!("{host}:{port}").parse().unwrap() }
            }
            other => panic!("{other:?}"),
        };
        let endpoints = options.addresses.iter().map(endpoint).collect();
        let servers = Servers::new(&options, endpoints).unwrap();
        let driver = MemcachedDriver::new(Arc::new(options), Arc::new(content), servers, &[]).unwrap();
        let mut client = Client { driver, sockets: Vec::new(), exchange: Exchange::default() };
        for node in 0..client.driver.endpoints().len() {
            client.connect(node as u16)?;
        }
        Ok(client)
    }

    fn connect(&mut self, node: u16) -> Result<(), (Outcome, String)> {
        let mut socket = connected(&self.driver.endpoints()[usize::from(node)]);
        let (mut out, mut input) = (Vec::new(), Vec::new());
        assert!(self.driver.hello(node, 0, &mut out));
        socket.write_all(&out).unwrap();
        let mut number = 0;
        loop {
            match self.driver.greeted(node, 0, number, &input, &mut Vec::new()) {
                GreetingStep::Need => assert!(more(&mut socket, &mut input)),
                GreetingStep::Refused(outcome, message) => return Err((outcome, message)),
                GreetingStep::Reply { used, more } => {
                    input.drain(..used);
                    number += 1;
                    if !more {
                        assert!(input.is_empty());
                        self.sockets.push((socket, input));
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Sends commands and reads their replies, in order, until the exchange ends.
    fn follow(&mut self, first: u32, count: u32) -> Outcome {
        let mut awaited = Vec::new();
        for command in first..first + count {
            let node = self.driver.route(&self.exchange, command);
            assert_ne!(node, NOWHERE, "{}", self.driver.last_error());
            let mut out = Vec::new();
            self.driver.encode(&mut self.exchange, command, &mut out);
            self.sockets[usize::from(node)].0.write_all(&out).unwrap();
            awaited.push((command, usize::from(node)));
        }
        for (command, node) in awaited {
            let then = loop {
                let (socket, input) = &mut self.sockets[node];
                match self.driver.decode(&mut self.exchange, command, input) {
                    Decoded::Need => assert!(more(socket, input), "the server has closed the connection"),
                    Decoded::Reply { used, then } => {
                        input.drain(..used);
                        break then;
                    }
                    other => panic!("{other:?}: {:?}", String::from_utf8_lossy(input)),
                }
            };
            match then {
                Then::Wait => {}
                Then::Finish(outcome) => return outcome,
                Then::Send { first, count } => return self.follow(first, count),
                other => panic!("{other:?}"),
            }
        }
        panic!("no end");
    }

    fn run(&mut self, verb: Verb, fields: Fields, key: u64) -> Outcome {
        let request = Request { verb, fields, key, ..Request::default() };
        let count = self.driver.begin(&mut self.exchange, &request);
        let outcome = self.follow(0, count);
        assert!(self.sockets.iter().all(|(_, input)| input.is_empty()), "stray bytes");
        outcome
    }

    /// The value of a key as it is stored, read by another connection.
    fn stored(&self, node: usize, key: &str) -> Option<Vec<u8>> {
        let mut socket = connected(&self.driver.endpoints()[node]);
        socket.write_all(format!("get {key}\r\n").as_bytes()).unwrap();
        let mut input = Vec::new();
        loop {
            match read_reply(&input).unwrap() {
                Some((Reply::Value { data, .. }, _)) => return Some(data.to_vec()),
                Some((other, _)) => {
                    assert_eq!(other, Reply::Miss);
                    return None;
                }
                None => assert!(more(&mut socket, &mut input)),
            }
        }
    }
}

const TEN: Ten = Ten { size: 0, odd_key: false };

#[test]
fn records_live_and_die_by_both_protocols() {
    let Some(server) = server("records_live_and_die_by_both_protocols", &[]) else { return };
    for (query, base) in [("protocol=auto", 0), ("protocol=meta", 100), ("protocol=text", 200)] {
        let mut client = Client::new(options(&[&server], query), TEN).unwrap();
        let key = base + 1;
        assert_eq!(client.run(Verb::Read, Fields::All, key), Outcome::NotFound, "{query}");
        assert_eq!(client.run(Verb::Update, Fields::All, key), Outcome::NotFound);
        assert_eq!(client.run(Verb::Update, Fields::One(3), key), Outcome::NotFound);
        assert_eq!(client.run(Verb::Insert, Fields::All, key), Outcome::Ok);
        assert_eq!(client.run(Verb::Insert, Fields::All, key), Outcome::Duplicate);
        let before = client.stored(0, &format!("user{key}")).unwrap();
        for fields in [Fields::One(0), Fields::One(9), Fields::All] {
            assert_eq!(client.run(Verb::Update, fields, key), Outcome::Ok);
            for asked in [Fields::All, Fields::Named, Fields::One(5)] {
                assert_eq!(client.run(Verb::Read, asked, key), Outcome::Ok);
                assert_eq!(
                    client.driver.verified(&client.exchange),
                    Some(Outcome::Ok),
                    "{fields:?} {asked:?}"
                );
                assert_eq!(client.driver.records(&client.exchange), 1);
            }
        }
        assert_eq!(client.stored(0, &format!("user{key}")).unwrap(), before, "an update of all fields");
        assert_eq!(client.run(Verb::Delete, Fields::All, key), Outcome::Ok);
        assert_eq!(client.run(Verb::Delete, Fields::All, key), Outcome::NotFound);
        let requests =
            [1, 2, 1, 3].map(|n| Request { verb: Verb::Insert, key: base + 10 + n, ..Request::default() });
        let count = client.driver.begin_batch(&mut client.exchange, &requests);
        let whole = client.follow(0, count);
        let ended = [0, 1, 2, 3].map(|n| client.driver.batch_outcome(&client.exchange, n, whole));
        assert_eq!(ended, [Outcome::Ok, Outcome::Ok, Outcome::Duplicate, Outcome::Ok], "{query}");
    }
}

#[test]
fn an_update_by_replacement_loses_the_other_fields() {
    let Some(server) = server("an_update_by_replacement_loses_the_other_fields", &[]) else { return };
    let query = "update=replace&prefix=usertable-&layout=json";
    let mut client = Client::new(options(&[&server], query), TEN).unwrap();
    assert_eq!(client.run(Verb::Insert, Fields::All, 1), Outcome::Ok);
    assert_eq!(client.run(Verb::Update, Fields::One(0), 1), Outcome::Ok);
    let expected = "{\"field0\":\"\\\"\\\\\\r\\n\u{e9} of field0 \"}";
    assert_eq!(
        client.stored(0, "usertable-user1").map(|v| String::from_utf8(v).unwrap()).as_deref(),
        Some(expected)
    );
    // YCSB's data integrity looks at the fields that came, so the nine that were lost are no mismatch.
    assert_eq!(client.run(Verb::Read, Fields::Named, 1), Outcome::Ok);
    assert_eq!(client.driver.verified(&client.exchange), Some(Outcome::Ok));
}

#[test]
fn an_update_that_another_overtakes_reads_again() {
    let Some(server) = server("an_update_that_another_overtakes_reads_again", &[]) else { return };
    for query in ["protocol=meta", "protocol=text"] {
        let mut client = Client::new(options(&[&server], query), TEN).unwrap();
        let mut other = Client::new(options(&[&server], query), TEN).unwrap();
        client.run(Verb::Delete, Fields::All, 1);
        assert_eq!(client.run(Verb::Insert, Fields::All, 1), Outcome::Ok);
        let request = Request { verb: Verb::Update, fields: Fields::One(0), key: 1, ..Request::default() };
        client.driver.begin(&mut client.exchange, &request);
        let mut commands = vec![];
        let mut command = 0;
        loop {
            let mut out = Vec::new();
            client.driver.encode(&mut client.exchange, command, &mut out);
            let (socket, input) = &mut client.sockets[0];
            socket.write_all(&out).unwrap();
            let then = loop {
                match client.driver.decode(&mut client.exchange, command, input) {
                    Decoded::Need => assert!(more(socket, input)),
                    Decoded::Reply { used, then } => {
                        input.drain(..used);
                        break then;
                    }
                    broken => panic!("{broken:?}"),
                }
            };
            commands.push(command);
            if command == 0 {
                assert_eq!(other.run(Verb::Update, Fields::One(5), 1), Outcome::Ok);
            }
            match then {
                Then::Send { first, count: 1 } => command = first,
                Then::Finish(outcome) => {
                    assert_eq!(outcome, Outcome::Ok);
                    break;
                }
                then => panic!("{then:?}"),
            }
        }
        assert_eq!(commands, [0, 1, 2, 3], "{query}");
    }
}

#[test]
fn what_the_server_refuses_keeps_the_connection_in_step() {
    let Some(server) = server("what_the_server_refuses_keeps_the_connection_in_step", &["-m", "4", "-M"])
    else {
        return;
    };
    for query in ["protocol=meta", "protocol=text"] {
        let large = Ten { size: 2_000_000, odd_key: false };
        let mut client = Client::new(options(&[&server], query), large).unwrap();
        assert_eq!(client.run(Verb::Insert, Fields::All, 1), Outcome::BadRequest);
        assert!(client.driver.last_error().contains("too large"), "{}", client.driver.last_error());
        assert_eq!(client.run(Verb::Read, Fields::All, 1), Outcome::NotFound);
        for size in [3_000, 900_000] {
            let mut client = Client::new(options(&[&server], query), Ten { size, odd_key: false }).unwrap();
            let full = (0..3_000)
                .map(|key| (key, client.run(Verb::Insert, Fields::All, size as u64 * 10_000 + key)));
            let (key, outcome) = full
                .into_iter()
                .find(|(_, outcome)| !outcome.is_ok() && *outcome != Outcome::Duplicate)
                .unwrap();
            assert_eq!(outcome, Outcome::OutOfMemory, "{query} {size} {key}: {}", client.driver.last_error());
            assert_eq!(client.run(Verb::Read, Fields::All, 1), Outcome::NotFound);
        }
    }
}

#[test]
fn keys_with_spaces_travel_in_base64_and_records_expire() {
    let Some(server) = server("keys_with_spaces_travel_in_base64_and_records_expire", &[]) else { return };
    let content = Ten { size: 10, odd_key: true };
    let mut client = Client::new(options(&[&server], ""), content).unwrap();
    assert_eq!(client.run(Verb::Insert, Fields::All, 1), Outcome::Ok);
    assert_eq!(client.run(Verb::Update, Fields::One(1), 1), Outcome::Ok);
    assert_eq!(client.run(Verb::Read, Fields::All, 1), Outcome::Ok);
    assert_eq!(client.driver.verified(&client.exchange), Some(Outcome::Ok));
    assert_eq!(client.run(Verb::Delete, Fields::All, 1), Outcome::Ok);
    for query in ["expiry=1", "expiry=1&protocol=text"] {
        let mut client = Client::new(options(&[&server], query), TEN).unwrap();
        assert_eq!(client.run(Verb::Insert, Fields::All, 2), Outcome::Ok);
        let begun = Instant::now();
        while client.run(Verb::Read, Fields::All, 2) == Outcome::Ok {
            assert!(begun.elapsed() < Duration::from_secs(10), "{query}: it stays");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn several_servers_share_the_keys() {
    let what = "several_servers_share_the_keys";
    let (Some(a), Some(b), Some(c)) = (server(what, &[]), server(what, &[]), server(what, &[])) else {
        return;
    };
    for query in ["hash=ketama", "hash=modulo&prefix=m"] {
        let mut client = Client::new(options(&[&a, &b, &c], query), TEN).unwrap();
        let mut seen = [0; 3];
        for key in 0..60 {
            assert_eq!(client.run(Verb::Insert, Fields::All, key), Outcome::Ok);
            let node = usize::from(client.driver.route(&client.exchange, 0));
            let name = format!("{}user{key}", if query.contains("prefix") { "m" } else { "" });
            for other in 0..3 {
                assert_eq!(client.stored(other, &name).is_some(), other == node);
            }
            seen[node] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0), "{query}: {seen:?}");
    }
}

fn facts(options: &MemcachedOptions) -> (FactsStep, MemcachedFacts) {
    let dyno_types::address::Address::Tcp(host, port) = &options.addresses[0] else { panic!() };
    let mut socket = TcpStream::connect((host.as_str(), *port)).unwrap();
    let (mut out, mut input, mut facts) = (Vec::new(), Vec::new(), MemcachedFacts::default());
    MemcachedFacts::ask_all(options, &mut out);
    socket.write_all(&out).unwrap();
    loop {
        match MemcachedFacts::read_answers(options, &input, &mut facts) {
            FactsStep::Need => assert!(more(&mut socket, &mut input)),
            step => return (step, facts),
        }
    }
}

#[test]
fn a_server_tells_what_it_is_to_those_who_log_in() {
    let folder = std::env::temp_dir().join(format!("dyno-memcached-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("users");
    std::fs::write(&file, "me:s3cret\n").unwrap();
    let what = "a_server_tells_what_it_is_to_those_who_log_in";
    let Some(open) = server(what, &["-m", "32"]) else { return };
    let Some(closed) = server(what, &["-Y", file.to_str().unwrap()]) else { return };
    let (step, facts_of_open) = facts(&options(&[&open], ""));
    assert_eq!(step, FactsStep::Done);
    assert!(facts_of_open.product_name().starts_with("memcached 1."), "{}", facts_of_open.product_name());
    assert_eq!(
        (facts_of_open.count_items(), facts_of_open.get("limit_maxbytes")),
        (Some(0), Some("33554432"))
    );
    assert_eq!(facts_of_open.stats_setting("item_size_max"), Some("1048576"));
    assert_eq!(facts_of_open.protocol, Some(Protocol::Meta));

    let login = |server: &Server, login: &str, query: &str| {
        MemcachedOptions::from_uri(&format!("memcached://{login}127.0.0.1:{}?{query}", server.port)).unwrap()
    };
    for query in ["", "protocol=text"] {
        let right = login(&closed, "me:s3cret@", query);
        let (step, found) = facts(&right);
        assert_eq!(step, FactsStep::Done);
        assert_ne!(found.stats_setting("auth_enabled_ascii"), Some("no"));
        let mut client = Client::new(right, TEN).unwrap();
        assert_ne!(client.run(Verb::Insert, Fields::All, 1), Outcome::NotFound);
        for (wrong, expected) in [("me:wrong@", "does not accept this user name"), ("", "unauthenticated")] {
            let (outcome, message) = Client::new(login(&closed, wrong, query), TEN).err().unwrap();
            assert!(outcome == Outcome::Forbidden && message.contains(expected), "{outcome:?} {message}");
            assert!(matches!(
                facts(&login(&closed, wrong, query)).0,
                FactsStep::Refused(Outcome::Forbidden, _)
            ));
        }
        // A server without logins takes one for a value: nothing of it stays.
        let client = Client::new(login(&open, "me:s3cret@", query), TEN).unwrap();
        assert_eq!(client.stored(0, "user"), None, "{query}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
