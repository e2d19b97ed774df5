//! Golden commands, and what every reply means to every request.

use super::super::ketama::Ring;
use super::*;
use dyno_types::Fields;
use dyno_types::address::Address;
use dyno_types::document::OperationShape;
use std::net::{Ipv4Addr, SocketAddr};

/// Records with these fields, whose keys are `user` and a number unless told otherwise.
#[derive(Default)]
pub struct Rows {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    key: Option<Vec<u8>>,
    shapes: Vec<OperationShape>,
}

impl Rows {
    /// Names and values.
    pub fn of(rows: &[(&str, &[u8])]) -> Self {
        let rows = rows.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
        Rows { rows, ..Rows::default() }
    }

    fn row(&self, request: &Request, field: usize) -> &(Vec<u8>, Vec<u8>) {
        match request.fields {
            Fields::One(number) => &self.rows[usize::from(number)],
            _ => &self.rows[field],
        }
    }
}

impl Content for Rows {
    fn table(&self) -> &str {
        "usertable"
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        match &self.key {
            Some(key) => out.extend_from_slice(key),
            None => out.extend_from_slice(format!("user{}", request.key).as_bytes()),
        }
    }

    fn fields(&self, request: &Request) -> usize {
        match (request.fields, request.verb) {
            (Fields::One(_), _) => 1,
            (Fields::All, Verb::Read) => 0,
            _ => self.rows.len(),
        }
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row(request, field).0);
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        self.row(request, field).1.len()
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row(request, field).1);
    }

    fn shapes(&self) -> &[OperationShape] {
        &self.shapes
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, _request: &Request, field: &[u8], value: &[u8]) -> bool {
        self.rows.iter().any(|(name, own)| name == field && own == value)
    }
}

fn endpoints(count: usize) -> Vec<Endpoint> {
    let endpoint =
        |port| Endpoint::Tcp { host: "h".into(), address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) };
    (1..=count as u16).map(endpoint).collect()
}

fn rows() -> Rows {
    Rows::of(&[("field0", b"zero\""), ("field1", b"one")])
}

fn made(uri: &str, content: Rows, verbs: &[Verb]) -> Result<MemcachedDriver, Refused> {
    let options = MemcachedOptions::from_uri(uri).unwrap();
    let servers = Servers::new(&options, endpoints(options.addresses.len()))?;
    MemcachedDriver::new(Arc::new(options), Arc::new(content), servers, verbs)
}

fn driver(uri: &str) -> MemcachedDriver {
    made(uri, rows(), &[]).unwrap()
}

fn request(verb: Verb) -> Request {
    Request { verb, key: 7, ..Request::default() }
}

const UPDATE: Request = Request {
    verb: Verb::Update,
    fields: Fields::One(1),
    metric: 0,
    script: 0,
    step: 0,
    shape: 0,
    limit: 0,
    collection: 0,
    key: 7,
    seed: 0,
};

fn written(driver: &mut MemcachedDriver, x: &mut Exchange, command: u32) -> String {
    let mut out = Vec::new();
    driver.encode(x, command, &mut out);
    String::from_utf8(out).unwrap()
}

/// The only command of a request.
fn only(uri: &str, request: &Request) -> String {
    let (mut driver, mut x) = (driver(uri), Exchange::default());
    assert_eq!(driver.begin(&mut x, request), 1);
    written(&mut driver, &mut x, 0)
}

const META: &str = "memcached://h";
const TEXT: &str = "memcached://h?protocol=text";

#[test]
fn golden_commands() {
    let value = "{\"field0\":\"zero\\\"\",\"field1\":\"one\"}";
    let cases = [
        (META, request(Verb::Read), "mg user7 v\r\n".to_owned()),
        (META, request(Verb::Delete), "md user7\r\n".into()),
        (META, request(Verb::Insert), format!("ms user7 34 ME\r\n{value}\r\n")),
        (META, request(Verb::Update), format!("ms user7 34 MR\r\n{value}\r\n")),
        (META, UPDATE, "mg user7 v c\r\n".into()),
        (TEXT, request(Verb::Read), "get user7\r\n".into()),
        (TEXT, request(Verb::Delete), "delete user7\r\n".into()),
        (TEXT, request(Verb::Insert), format!("add user7 0 0 34\r\n{value}\r\n")),
        (TEXT, request(Verb::Update), format!("replace user7 0 0 34\r\n{value}\r\n")),
        (TEXT, UPDATE, "gets user7\r\n".into()),
        ("memcached://h?update=replace", UPDATE, "ms user7 16 MR\r\n{\"field1\":\"one\"}\r\n".into()),
        ("memcached://h?layout=string", request(Verb::Insert), "ms user7 8 ME\r\nzero\"one\r\n".into()),
        ("memcached://h?prefix=usertable-", request(Verb::Read), "mg usertable-user7 v\r\n".into()),
        ("memcached://h?expiry=60", request(Verb::Insert), format!("ms user7 34 ME T60\r\n{value}\r\n")),
        (
            "memcached://h?expiry=2147483647&protocol=text",
            request(Verb::Insert),
            format!("add user7 0 2147483647 34\r\n{value}\r\n"),
        ),
    ];
    for (uri, request, expected) in cases {
        assert_eq!(only(uri, &request), expected, "{uri} {request:?}");
    }
}

/// Meaning taken from a reply to the only command of a request, whole and in pieces.
fn replied(uri: &str, request: &Request, bytes: &str) -> (Decoded, u32, Option<Outcome>) {
    let bytes = bytes.as_bytes();
    let decode = |input: &[u8]| {
        let (mut driver, mut x) = (driver(uri), Exchange::default());
        driver.begin(&mut x, request);
        let decoded = driver.decode(&mut x, 0, input);
        (decoded, driver.records(&x), driver.verified(&x))
    };
    let whole = decode(bytes);
    for cut in 0..bytes.len() {
        let part = decode(&bytes[..cut]).0;
        assert!(
            part == Decoded::Need || (part == Decoded::Broken && whole.0 == part),
            "{bytes:?} cut at {cut}"
        );
    }
    assert_eq!(decode(&[bytes, b"HD\r\nEN\r\n"].concat()), whole, "{bytes:?} and others");
    whole
}

#[test]
fn every_reply_to_every_request() {
    use Outcome::*;
    let (read, insert, update, delete) =
        (request(Verb::Read), request(Verb::Insert), request(Verb::Update), request(Verb::Delete));
    let cases = [
        (META, insert, "HD\r\n", Some(Ok)),
        (META, insert, "NS\r\n", Some(Duplicate)),
        (META, insert, "SERVER_ERROR out of memory storing object\r\n", Some(OutOfMemory)),
        (META, insert, "SERVER_ERROR object too large for cache\r\n", Some(BadRequest)),
        (META, insert, "CLIENT_ERROR bad data chunk\r\n", None),
        (META, insert, "CLIENT_ERROR bad command line format\r\n", None),
        (META, insert, "ERROR\r\n", None),
        (META, insert, "EN\r\n", None),
        (META, insert, "VA 2\r\n{}\r\n", None),
        (META, insert, "EX\r\n", None),
        (META, update, "HD\r\n", Some(Ok)),
        (META, update, "NS\r\n", Some(NotFound)),
        (META, update, "EX\r\n", None),
        (META, UPDATE, "EN\r\n", Some(NotFound)),
        (META, UPDATE, "VA 3 c1\r\nabc\r\n", Some(Mismatch)),
        (META, UPDATE, "CLIENT_ERROR no\r\n", Some(BadRequest)),
        (META, UPDATE, "HD\r\n", None),
        (META, read, "EN\r\n", Some(NotFound)),
        (META, read, "NF\r\n", None),
        (META, read, "HD\r\n", None),
        (META, read, "SERVER_ERROR backend failure\r\n", Some(ServerError)),
        (META, read, "CLIENT_ERROR bad command line format\r\n", Some(BadRequest)),
        (META, delete, "HD\r\n", Some(Ok)),
        (META, delete, "NF\r\n", Some(NotFound)),
        (META, delete, "NS\r\n", None),
        (META, delete, "ERROR\r\n", Some(NotImplemented)),
        (TEXT, insert, "STORED\r\n", Some(Ok)),
        (TEXT, insert, "NOT_STORED\r\n", Some(Duplicate)),
        (TEXT, update, "NOT_STORED\r\n", Some(NotFound)),
        (TEXT, read, "END\r\n", Some(NotFound)),
        (TEXT, UPDATE, "END\r\n", Some(NotFound)),
        (TEXT, delete, "DELETED\r\n", Some(Ok)),
        (TEXT, delete, "NOT_FOUND\r\n", Some(NotFound)),
        (META, read, "STAT pid 1\r\n", None),
        (META, read, "HTTP/1.1 400 Bad Request\r\n", None),
    ];
    for (uri, request, bytes, expected) in cases {
        let expected = match expected {
            Some(outcome) => Decoded::Reply { used: bytes.len(), then: Then::Finish(outcome) },
            None => Decoded::Broken,
        };
        assert_eq!(replied(uri, &request, bytes), (expected, 0, None), "{uri} {request:?} {bytes:?}");
    }
}

#[test]
fn records_read_are_verified() {
    let read = request(Verb::Read);
    let one = Request { fields: Fields::One(1), ..read };
    let cases = [
        (META, read, "VA 34\r\n{\"field0\":\"zero\\\"\",\"field1\":\"one\"}\r\n", Outcome::Ok),
        (
            TEXT,
            read,
            "VALUE user7 0 34\r\n{\"field0\":\"zero\\\"\",\"field1\":\"one\"}\r\nEND\r\n",
            Outcome::Ok,
        ),
        (META, one, "VA 16\r\n{\"field1\":\"one\"}\r\n", Outcome::Ok),
        (META, one, "VA 19\r\n{\"field0\":\"zero\\\"\"}\r\n", Outcome::Mismatch),
        (META, read, "VA 16\r\n{\"field1\":\"two\"}\r\n", Outcome::Mismatch),
        (META, read, "VA 0\r\n\r\n", Outcome::Mismatch),
        ("memcached://h?layout=string", read, "VA 8\r\nzero\"one\r\n", Outcome::Ok),
        ("memcached://h?layout=string", read, "VA 8\r\nzero\"two\r\n", Outcome::Mismatch),
    ];
    for (uri, request, bytes, verified) in cases {
        let done = Decoded::Reply { used: bytes.len(), then: Then::Finish(Outcome::Ok) };
        assert_eq!(replied(uri, &request, bytes), (done, 1, Some(verified)), "{uri} {request:?} {bytes:?}");
    }
}

fn then(driver: &mut MemcachedDriver, x: &mut Exchange, command: u32, bytes: &str) -> Then {
    match driver.decode(x, command, bytes.as_bytes()) {
        Decoded::Reply { used, then } if used == bytes.len() => then,
        other => panic!("{bytes:?}: {other:?}"),
    }
}

#[test]
fn an_update_of_some_fields_keeps_the_others() {
    for (uri, read, write, done) in [
        (
            META,
            "VA 34 c5\r\n{\"field0\":\"x\\n\",\"field1\":\"before\"}\r\n",
            "ms user7 31 C5 MR\r\n",
            "HD\r\n",
        ),
        (
            TEXT,
            "VALUE user7 0 34 5\r\n{\"field0\":\"x\\n\",\"field1\":\"before\"}\r\nEND\r\n",
            "cas user7 0 0 31 5\r\n",
            "STORED\r\n",
        ),
    ] {
        let (mut driver, mut x) = (driver(uri), Exchange::default());
        driver.begin(&mut x, &UPDATE);
        assert_eq!(then(&mut driver, &mut x, 0, read), Then::Send { first: 1, count: 1 });
        let expected = format!("{write}{{\"field0\":\"x\\n\",\"field1\":\"one\"}}\r\n");
        assert_eq!(written(&mut driver, &mut x, 1), expected);
        assert_eq!(then(&mut driver, &mut x, 1, done), Then::Finish(Outcome::Ok));
        // The state is used again by an operation of another kind.
        driver.begin(&mut x, &request(Verb::Delete));
        assert!(written(&mut driver, &mut x, 0).contains("user7\r\n"));
    }
}

#[test]
fn an_update_that_others_overtake_is_tried_again_and_gives_up() {
    let (mut driver, mut x) = (driver(META), Exchange::default());
    driver.begin(&mut x, &UPDATE);
    for attempt in 0..TRIES {
        let command = 2 * attempt;
        assert_eq!(written(&mut driver, &mut x, command), "mg user7 v c\r\n");
        let found = format!("VA 2 c{attempt}\r\n{{}}\r\n");
        assert_eq!(then(&mut driver, &mut x, command, &found), Then::Send { first: command + 1, count: 1 });
        let expected = format!("ms user7 16 C{attempt} MR\r\n{{\"field1\":\"one\"}}\r\n");
        assert_eq!(written(&mut driver, &mut x, command + 1), expected);
        let next = then(&mut driver, &mut x, command + 1, "EX\r\n");
        if attempt + 1 < TRIES {
            assert_eq!(next, Then::Send { first: command + 2, count: 1 });
        } else {
            assert_eq!(next, Then::Finish(Outcome::Busy));
            assert!(driver.last_error().contains("changed by others"));
        }
    }
    // Removed between the two round trips.
    driver.begin(&mut x, &UPDATE);
    then(&mut driver, &mut x, 0, "VA 2 c1\r\n{}\r\n");
    assert_eq!(then(&mut driver, &mut x, 1, "NF\r\n"), Then::Finish(Outcome::NotFound));
    // The second command of an update carries a value.
    driver.begin(&mut x, &UPDATE);
    then(&mut driver, &mut x, 0, "VA 2 c1\r\n{}\r\n");
    assert_eq!(driver.decode(&mut x, 1, b"CLIENT_ERROR bad data chunk\r\n"), Decoded::Broken);
}

#[test]
fn a_batch_is_an_insert_for_each_record() {
    let (mut driver, mut x) = (driver("memcached://a,b,c?hash=modulo"), Exchange::default());
    let requests = [1, 2, 3].map(|key| Request { key, ..request(Verb::Insert) });
    assert_eq!(driver.begin_batch(&mut x, &requests), 3);
    let mut single = Exchange::default();
    for (command, request) in (0..).zip(&requests) {
        driver.begin(&mut single, request);
        assert_eq!(driver.route(&x, command), driver.route(&single, 0));
        assert_eq!(written(&mut driver, &mut x, command), written(&mut driver, &mut single, 0));
    }
    assert_eq!(then(&mut driver, &mut x, 2, "HD\r\n"), Then::Wait);
    assert_eq!(then(&mut driver, &mut x, 0, "NS\r\n"), Then::Wait);
    assert_eq!(driver.batch_outcome(&x, 2, Outcome::Disconnected), Outcome::Disconnected, "cut short");
    assert_eq!(then(&mut driver, &mut x, 1, "HD\r\n"), Then::Finish(Outcome::Duplicate));
    let ended = [0, 1, 2].map(|number| driver.batch_outcome(&x, number, Outcome::Duplicate));
    assert_eq!(ended, [Outcome::Duplicate, Outcome::Ok, Outcome::Ok]);
}

#[test]
fn keys_that_cannot_be_sent() {
    let with = |key: &[u8], uri: &str| made(uri, Rows { key: Some(key.to_vec()), ..rows() }, &[]);
    let fits = |key: &[u8], uri: &str| with(key, uri).map(drop).map_err(|refused| refused.to_string());
    assert_eq!(fits(&[b'k'; 250], META), Ok(()));
    assert_eq!(fits("\u{e9}".as_bytes(), TEXT), Ok(()));
    assert_eq!(fits(&[b' '; 186], META), Ok(()));
    for (key, uri) in [
        (&[b'k'; 251][..], META),
        (&[b' '; 187], META),
        (b"a b", TEXT),
        (b"a\r\nflush_all", TEXT),
        (b"", META),
    ] {
        let message = fits(key, uri).unwrap_err();
        assert!(
            message.contains("1 to 250") && message.contains(&format!("{} bytes", key.len())),
            "{message}"
        );
    }
    let (mut driver, mut x) = (with(b"a b", META).unwrap(), Exchange::default());
    driver.begin(&mut x, &request(Verb::Read));
    assert_eq!(written(&mut driver, &mut x, 0), "mg YSBi v b\r\n");
    // The greeting says that the server knows no meta protocol: nothing is sent.
    assert_eq!(
        driver.greeted(0, 0, 0, b"ERROR\r\n", &mut Vec::new()),
        GreetingStep::Reply { used: 7, more: false }
    );
    driver.begin(&mut x, &request(Verb::Read));
    assert_eq!(driver.route(&x, 0), UNSENDABLE);
    assert!(driver.last_error().contains("a b"), "{}", driver.last_error());
}

#[test]
fn each_server_is_spoken_to_as_it_greets() {
    let (mut driver, mut x) = (driver("memcached://a,b?hash=modulo"), Exchange::default());
    driver.greeted(1, 0, 0, b"ERROR\r\n", &mut Vec::new());
    driver.greeted(0, 0, 0, b"MN\r\n", &mut Vec::new());
    let mut seen = [0, 0];
    for key in 0..10 {
        driver.begin(&mut x, &Request { key, ..request(Verb::Read) });
        let server = driver.route(&x, 0);
        let expected = [format!("mg user{key} v\r\n"), format!("get user{key}\r\n")];
        assert_eq!(written(&mut driver, &mut x, 0), expected[usize::from(server)]);
        seen[usize::from(server)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn what_memcached_cannot_do_is_refused_before_the_load() {
    let refused = |uri: &str, verbs: &[Verb]| made(uri, rows(), verbs).map(drop).unwrap_err().to_string();
    assert!(refused(META, &[Verb::Read, Verb::Scan]).contains("no scans"));
    assert!(refused("memcached://h?layout=string", &[Verb::Update]).contains("fieldcount=1"));
    assert!(made(META, rows(), &[Verb::Read, Verb::Insert, Verb::Update, Verb::Delete]).is_ok());
    let options = MemcachedOptions::from_uri("memcached://a,b").unwrap();
    assert!(
        Servers::new(&options, endpoints(1))
            .unwrap_err()
            .to_string()
            .contains("2 memcached servers are named and 1 found")
    );
}

#[test]
fn late_replies_are_discarded_one_by_one() {
    let mut driver = driver(META);
    let stream = b"HD\r\nEN\r\nVA 2\r\n\r\n\r\nSERVER_ERROR no\r\nNS\r\n";
    let mut at = 0;
    for length in [4, 4, 10, 17, 4] {
        let reply = Decoded::Reply { used: length, then: Then::Wait };
        assert_eq!(driver.skip(&stream[at..]), reply, "at {at}");
        at += length;
    }
    assert_eq!(driver.skip(&stream[at..]), Decoded::Need);
    assert_eq!(driver.skip(b"CLIENT_ERROR bad data chunk\r\nERROR\r\n"), Decoded::Broken);
}

#[test]
fn nothing_is_allocated_once_buffers_have_grown() {
    let (mut driver, mut x) = (driver(META), Exchange::default());
    let mut round = |driver: &mut MemcachedDriver| {
        driver.begin(&mut x, &request(Verb::Insert));
        written(driver, &mut x, 0);
        driver.begin(&mut x, &UPDATE);
        then(driver, &mut x, 0, "VA 2 c1\r\n{}\r\n");
        written(driver, &mut x, 1);
        (x.keys.as_ptr(), x.more.merged.as_ptr(), driver.value.as_ptr(), driver.scratch[0].as_ptr())
    };
    round(&mut driver);
    let grown = round(&mut driver);
    assert_eq!(round(&mut driver), grown);
}

#[test]
fn modulo_is_javas_hash_without_its_sign() {
    let servers = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("h{n}")).collect();
        let options =
            MemcachedOptions::from_uri(&format!("memcached://{}?hash=modulo", names.join(","))).unwrap();
        Servers::new(&options, endpoints(count)).unwrap()
    };
    // hashCode of user6284781860667377211 is -594971599, of user8517097267634966620 -314243905: as 32 bits without a sign
    // 3699995697 and 3980723391.
    for (key, hash) in
        [("user6284781860667377211", 3_699_995_697u32), ("user8517097267634966620", 3_980_723_391), ("a", 97)]
    {
        for count in 1..8 {
            assert_eq!(
                u32::from(servers(count).server_of(key.as_bytes())),
                hash % count as u32,
                "{key} of {count}"
            );
        }
    }
}

#[test]
fn ketama_spreads_keys_and_moves_few() {
    let names = ["10.0.0.1:11211", "10.0.0.2:11211", "10.0.0.3:11211", "10.0.0.4:11211"];
    let (three, four) = (Ring::new(names[..3].iter().copied()), Ring::new(names));
    let keys: Vec<String> = (0..30_000).map(|n| format!("user{n}")).collect();
    let mut counts = [0u32; 4];
    let mut moved = 0;
    for key in &keys {
        let (before, after) = (three.server_of(key.as_bytes()), four.server_of(key.as_bytes()));
        counts[usize::from(after)] += 1;
        if before != after {
            assert_eq!(after, 3, "a key moves to the new server or stays");
            moved += 1;
        }
    }
    // 160 points for each server: shares differ by about 1 / sqrt(160), 8 %; three times that is allowed.
    assert!(counts.iter().all(|count| (5_600..9_400).contains(count)), "{counts:?}");
    assert_eq!(moved, counts[3]);
    // Names decide, not the order of ports or addresses that they resolve to.
    let options = MemcachedOptions::from_uri("memcached://10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4").unwrap();
    assert_eq!(options.addresses[0], Address::Tcp("10.0.0.1".into(), 11211));
    let servers = Servers::new(&options, endpoints(4)).unwrap();
    assert!(keys.iter().all(|key| servers.server_of(key.as_bytes()) == four.server_of(key.as_bytes())));
}
