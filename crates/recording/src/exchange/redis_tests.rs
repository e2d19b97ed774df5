use super::after_gap::{IDLE_NS, REST_NS};
use super::redis::{RedisExchange, is_command_head};
use super::{ExchangeSink, reason};
use crate::entry::{Entry, LongValue, RecordedKind, RecordedReply};
use crate::format::RecordingError;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Keeps everything.
#[derive(Default, PartialEq, Debug)]
pub(super) struct CollectedExchanges {
    pub entries: Vec<(Entry, bool)>,
    pub left_out: BTreeMap<String, u64>,
    pub other_servers: u64,
}

impl ExchangeSink for CollectedExchanges {
    fn take_entry(&mut self) -> Entry {
        Entry::default()
    }

    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        self.entries.push((entry, awaits));
        Ok(self.entries.len() as u64 - 1)
    }

    fn push_reply(&mut self, ticket: u64, reply: RecordedReply) -> Result<(), RecordingError> {
        let place = &mut self.entries[ticket as usize];
        assert!(place.1 && place.0.reply.is_none(), "one reply to a command that awaits one");
        place.0.reply = Some(reply);
        Ok(())
    }

    fn give_up(&mut self, ticket: u64) {
        self.entries[ticket as usize].1 = false;
    }

    fn leave_out(&mut self, reason: &str, count: u64) {
        if count > 0 {
            *self.left_out.entry(reason.to_owned()).or_default() += count;
        }
    }

    fn note_other_servers(&mut self) {
        self.other_servers += 1;
    }
}

/// A connection that is fed texts: `>` what the client sends, `<` what the server sends, each a millisecond after the one before.
struct Fed {
    exchange: RedisExchange,
    kept: CollectedExchanges,
    now_ns: u64,
}

impl Fed {
    fn new(is_begin: bool) -> Self {
        Fed { exchange: RedisExchange::new(0, 64, is_begin), kept: CollectedExchanges::default(), now_ns: 0 }
    }

    fn client(&mut self, bytes: &[u8]) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_request(self.now_ns, bytes, &mut self.kept).unwrap();
        self
    }

    fn server(&mut self, bytes: &[u8]) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_reply(self.now_ns, bytes, &mut self.kept).unwrap();
        self
    }

    /// A command and its reply.
    fn both(&mut self, command: &str, reply: &[u8]) -> &mut Self {
        self.client(&resp(command)).server(reply)
    }

    fn finish(&mut self) -> (Vec<String>, Vec<(&str, u64)>) {
        self.exchange.finish(&mut self.kept).unwrap();
        let shown = self.kept.entries.iter().map(|(entry, _)| show(entry)).collect();
        (shown, self.kept.left_out.iter().map(|(name, count)| (name.as_str(), *count)).collect())
    }
}

fn resp(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    bytes
}

pub(super) fn show(entry: &Entry) -> String {
    let words: Vec<_> = entry.arguments.words().map(String::from_utf8_lossy).collect();
    let reply = match &entry.reply {
        None => "none".to_owned(),
        Some(RecordedReply { kind: RecordedKind::Error, error, .. }) => format!("error {error}"),
        Some(RecordedReply { kind: RecordedKind::Reply(kind), size, .. }) => {
            format!("{} {size}", kind.kind_name())
        }
    };
    let after = entry.reply.as_ref().and_then(|reply| reply.after_ns).map_or(0, |ns| ns / 1_000_000);
    format!("{}{} -> {reply} {after}", if entry.overlaps { "& " } else { "" }, words.join(" "))
}

#[test]
fn replies_of_all_kinds_go_to_their_commands() {
    let mut fed = Fed::new(true);
    let long_error = b"!21\r\nSYNTAX invalid syntax\r\n";
    fed.both("set a b", b"+OK\r\n")
        .both("get a", b"$1\r\nb\r\n")
        .both("get n", b"$-1\r\n")
        .both("get n", b"_\r\n")
        .both("incr a", b"-WRONGTYPE it is a text\r\n")
        .both("x", long_error)
        .both("lrange l 0 9", b"*2\r\n$1\r\na\r\n*1\r\n-ERR x\r\n")
        .both("hgetall h", b"%1\r\n+a\r\n:7\r\n")
        .both("smembers s", b"~3\r\n:1\r\n:2\r\n_\r\n")
        .both("llen l", b":12\r\n")
        .both("zscore z m", b",1.5\r\n")
        .both("info", b"=9\r\ntxt:abcde\r\n")
        .both("ttl a", b"|1\r\n+ttl\r\n:3\r\n*1\r\n|1\r\n+k\r\n+v\r\n:12\r\n")
        .both("get e", b"$0\r\n\r\n")
        .both("lrange e 0 1", b"*0\r\n")
        .both("exec", b"*-1\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "set a b -> status 0 1",
            "get a -> string 1 1",
            "get n -> nil 0 1",
            "get n -> nil 0 1",
            "incr a -> error WRONGTYPE 1",
            "x -> error SYNTAX 1",
            "lrange l 0 9 -> array 2 1",
            "hgetall h -> array 2 1",
            "smembers s -> array 3 1",
            "llen l -> integer 0 1",
            "zscore z m -> string 3 1",
            "info -> string 5 1",
            "ttl a -> array 1 1",
            "get e -> string 0 1",
            "lrange e 0 1 -> array 0 1",
            "exec -> nil 0 1"
        ]
    );
    assert_eq!(left, []);
}

#[test]
fn pipelines_transactions_and_inline_commands_keep_their_order() {
    let mut fed = Fed::new(true);
    fed.client(&[resp("get a"), resp("get b"), b"ping\r\n\r\n*0\r\nset c 'd e'\n".to_vec()].concat());
    fed.server(b"$-1\r\n$2\r\n").client(&resp("multi")).server(b"xx\r\n+PONG\r\n+OK\r\n+OK\r\n");
    fed.both("incr n", b"+QUEUED\r\n").both("monitor", b"+QUEUED\r\n").both("exec", b"*2\r\n:1\r\n+OK\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "get a -> nil 0 1",
            "& get b -> string 2 3",
            "& ping -> status 0 3",
            "& set c d e -> status 0 3",
            "& multi -> status 0 1",
            "incr n -> status 0 1",
            "monitor -> status 0 1",
            "exec -> array 2 1"
        ]
    );
    assert_eq!(left, []);
}

#[test]
fn subscriptions_of_both_versions_are_no_replies_to_others() {
    let mut fed = Fed::new(true);
    let confirm = |name: &str, channel: &str, count: u32| {
        format!("*3\r\n${}\r\n{name}\r\n${}\r\n{channel}\r\n:{count}\r\n", name.len(), channel.len())
    };
    let message = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n";
    fed.both("lrange l 0 2", message);
    fed.both("subscribe a b", &[confirm("subscribe", "a", 1).into_bytes(), message.to_vec()].concat());
    fed.server(confirm("subscribe", "b", 2).as_bytes()).server(message);
    fed.client(&resp("ping")).server(message).server(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    fed.both(
        "unsubscribe",
        &[confirm("unsubscribe", "a", 1), confirm("unsubscribe", "b", 0)].concat().into_bytes(),
    );
    fed.both("lrange l 0 2", message);
    let third = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n";
    fed.both("hello 3", b"%1\r\n+proto\r\n:3\r\n").both("subscribe a", third);
    fed.both("get a", b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n$1\r\nv\r\n");
    fed.both("subscribe", b"-ERR wrong number of arguments\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "lrange l 0 2 -> array 3 1",
            "subscribe a b -> array 3 2",
            "ping -> array 2 2",
            "unsubscribe -> array 3 1",
            "lrange l 0 2 -> array 3 1",
            "hello 3 -> array 2 1",
            "subscribe a -> array 3 1",
            "get a -> string 1 1",
            "subscribe -> error ERR 1"
        ]
    );
    assert_eq!(left, [(reason::PUSHES, 6)]);
}

#[test]
fn a_client_may_ask_for_no_replies() {
    let mut fed = Fed::new(true);
    fed.client(&resp("client reply skip")).client(&resp("set a 1")).both("get a", b"$1\r\n1\r\n");
    fed.client(&resp("CLIENT REPLY OFF")).client(&resp("set a 2")).both("client reply on", b"+OK\r\n");
    fed.client(&resp("client reply off")).both("reset", b"").both("get b", b"$-1\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "client reply skip -> none 0",
            "set a 1 -> none 0",
            "get a -> string 1 1",
            "CLIENT REPLY OFF -> none 0",
            "set a 2 -> none 0",
            "client reply on -> status 0 1",
            "client reply off -> none 0",
            "reset -> none 0",
            "get b -> nil 0 1"
        ]
    );
    assert_eq!(left, []);
}

#[test]
fn replicas_monitors_and_errors_of_the_server_are_counted() {
    let mut fed = Fed::new(true);
    fed.server(b"-ERR max number of clients reached\r\n");
    fed.both("ping", b"+PONG\r\n")
        .both("psync ? -1", b"+FULLRESYNC x 0\r\n$5\r\nREDIS")
        .server(b"\r\n*1\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["ping -> status 0 1"]);
    assert_eq!(left, [(reason::REPLICATION, 1), (reason::UNASKED_ERRORS, 1)]);
}

#[test]
fn after_a_gap_a_connection_is_read_from_an_idle_moment_on() {
    let mut fed = Fed::new(true);
    fed.both("get a", b"$-1\r\n").client(&resp("get b"));
    fed.exchange.note_gap(&mut fed.kept);
    // What was under way when bytes were lost has no reply, and what comes soon after is not believed.
    fed.server(b"$1\r\nx\r\n").client(&resp("get c")).server(b"$1\r\nc\r\n");
    assert!(!fed.exchange.is_idle());
    fed.now_ns += IDLE_NS;
    fed.both("get d", b"$1\r\nd\r\n");
    assert!(fed.exchange.is_idle());
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["get a -> nil 0 1", "get b -> none 0", "get d -> string 1 1"]);
    let lost = 7 + resp("get c").len() as u64 + 7;
    assert_eq!(left, [(reason::BYTES_AFTER_GAPS, lost), (reason::GAPS, 1)]);
}

#[test]
fn replies_that_were_under_way_at_a_quiet_moment_are_found_out() {
    let mut fed = Fed::new(false);
    // Two commands are under way, one of them is answered; the other takes its time.
    fed.client(&[resp("get p"), resp("get q")].concat()).server(b"$1\r\np\r\n");
    fed.now_ns += IDLE_NS;
    fed.client(&resp("get a")).server(b"$2\r\nqq\r\n").client(&resp("get b")).server(b"$3\r\naaa\r\n");
    // More replies than commands: none of them is where it belongs.
    fed.server(b"$4\r\nbbbb\r\n").client(&resp("get c")).server(b"$5\r\nccccc\r\n");
    fed.now_ns += IDLE_NS;
    fed.both("get d", b"$6\r\ndddddd\r\n");
    fed.now_ns += IDLE_NS;
    // What comes now without a command does not undo what two quiet moments have shown.
    fed.both("get e", b"$7\r\neeeeeee\r\n").server(b"-ERR idle\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["get a -> none 0", "get b -> none 0", "get d -> string 6 1", "get e -> string 7 1"]);
    let lost = 2 * resp("get p").len() + 7 + resp("get c").len() + 11;
    assert_eq!(
        left,
        [(reason::BYTES_AFTER_GAPS, lost as u64), (reason::UNASKED_ERRORS, 1), (reason::GAPS, 1)]
    );
}

#[test]
fn after_a_long_rest_nothing_is_under_way() {
    let mut fed = Fed::new(false);
    fed.server(b"+OK\r\n");
    fed.now_ns += REST_NS;
    fed.both("get a", b"$1\r\na\r\n").server(b"$1\r\nx\r\n").client(&resp("get b"));
    assert_eq!(fed.finish().0, ["get a -> string 1 1"]);
}

#[test]
fn a_refused_command_changes_nothing() {
    let mut fed = Fed::new(true);
    fed.both("monitor", b"-NOPERM no\r\n").both("get a", b"$1\r\na\r\n");
    fed.client(&[resp("replconf x"), resp("get b"), resp("psync ? -1")].concat());
    fed.server(b"-ERR x\r\n$1\r\nb\r\n-ERR y\r\n");
    // No transaction has begun.
    fed.both("multi", b"-LOADING wait\r\n").client(&resp("client reply skip")).client(&resp("set a 1"));
    fed.both("get a", b"$1\r\n1\r\n");
    // The data of a replica are no reply.
    fed.both("sync", b"\n\n$EOF:x\r\n").both("get c", b"$1\r\nc\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "get a -> string 1 1",
            "& get b -> string 1 1",
            "multi -> error LOADING 1",
            "client reply skip -> none 0",
            "set a 1 -> none 0",
            "get a -> string 1 1"
        ]
    );
    assert_eq!(left, [(reason::REFUSED_REPLICATION, 3), (reason::REPLICATION, 1)]);
}

#[test]
fn a_connection_that_began_before_is_read_when_it_is_idle() {
    // The reply to a command that was not seen is pending through the silence: nothing is read before it has come.
    let mut fed = Fed::new(false);
    fed.client(&resp("blpop q 0"));
    fed.now_ns += IDLE_NS;
    fed.client(&resp("get a")).server(b"*2\r\n+q\r\n+v\r\n").server(b"$1\r\na\r\n");
    fed.now_ns += IDLE_NS;
    fed.both("get b", b"$2\r\nbb\r\n");
    assert_eq!(fed.finish().0, ["get b -> string 2 1"]);
    // One that never rests, but sends one command after another.
    let mut fed = Fed::new(false);
    fed.server(b"xx\r\n");
    for n in 0..30 {
        fed.both(&format!("get {n}"), b"$2\r\nbb\r\n");
    }
    let (shown, left) = fed.finish();
    assert_eq!((shown.len(), shown[0].as_str()), (14, "get 16 -> string 2 1"));
    assert_eq!(left.len(), 1, "{left:?}");
    // One that sends two commands at a time: how many are under way is unknown.
    let mut fed = Fed::new(false);
    let pipelined = [resp("get a"), resp("get a")].concat();
    for _ in 0..40 {
        fed.client(&pipelined).server(b"$2\r\nbb\r\n$2\r\nbb\r\n");
    }
    assert_eq!(fed.finish().0.len(), 0);
    // A subscriber of RESP 2.
    let mut fed = Fed::new(false);
    let message = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n";
    fed.server(message);
    fed.now_ns += IDLE_NS;
    fed.client(&resp("ping")).server(message).server(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    assert_eq!(fed.finish().0, ["ping -> array 2 2"]);
}

#[test]
fn what_is_no_redis_is_lost_and_counted() {
    for (client, server) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &b""[..]),
        (b"*1\r\n$4\r\nPING\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"*1\r\n$4\r\nPINGxx", b""),
        (b"*1\r\n:4\r\n", b""),
        (b"", b"+OK\r\n"),
    ] {
        let mut fed = Fed::new(true);
        if !client.is_empty() {
            fed.client(client);
        }
        if !server.is_empty() {
            fed.server(server);
        }
        fed.client(&[b'x'; 70_000]);
        assert_eq!(fed.finish().1.last().map(|(name, count)| (*name, *count)), Some((reason::GAPS, 1)));
    }
    assert!(is_command_head(b"*3\r\n$3\r\nSET") && is_command_head(b"*1") && is_command_head(b"*12\r"));
    for wrong in [&b""[..], b"*", b"*0\r\n", b"+OK\r\n", b"*3\r\n:1\r\n", b"*-1\r\n", b"get a\r\n"] {
        assert!(!is_command_head(wrong), "{wrong:?}");
    }
}

#[test]
fn values_above_the_limit_are_hashed_as_they_pass() {
    let value: Vec<u8> = (0..100_000u64).map(|n| (n * n) as u8).collect();
    let command = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n", &value[..], b"\r\n"].concat();
    let mut fed = Fed::new(true);
    for part in command.chunks(999) {
        assert!(fed.kept.entries.is_empty());
        fed.client(part);
    }
    fed.server(b"+OK\r\n").client(&resp(&format!("set k {}", "x".repeat(64))));
    let _ = fed.finish();
    let arguments = &fed.kept.entries[0].0.arguments;
    assert_eq!((arguments.long_value(2), arguments.word(2)), (Some(LongValue::of_bytes(&value)), &b""[..]));
    assert_eq!((arguments.kept_bytes(), fed.kept.entries[1].0.arguments.word(2).len()), (4, 64));
}

/// A unit of traffic: what the client sends, and what the server answers.
fn units() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let word = prop::collection::vec(any::<u8>(), 0..100);
    let command = prop::collection::vec(word, 1..5).prop_map(|words| {
        let mut bytes = Vec::new();
        let name = [b"c".to_vec()];
        let words: Vec<&[u8]> = name.iter().chain(&words).map(Vec::as_slice).collect();
        dyno_db_redis::protocol::resp::put_command(&mut bytes, &words);
        bytes
    });
    let reply = prop_oneof![
        Just(b"+OK\r\n".to_vec()),
        Just(b"-ERR no\r\n".to_vec()),
        Just(b":-17\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        Just(b"|1\r\n+a\r\n$1\r\nb\r\n%1\r\n#t\r\n*2\r\n,1\r\n_\r\n".to_vec()),
        Just(b">2\r\n+x\r\n+y\r\n!5\r\nA b c\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(|value| [
            format!("${}\r\n", value.len()).as_bytes(),
            &value,
            b"\r\n"
        ]
        .concat()),
    ];
    prop_oneof![
        4 => (command, reply),
        1 => Just((b"get 'a b'\r\n".to_vec(), b"$-1\r\n".to_vec())),
        1 => Just((resp("client reply skip"), Vec::new())),
        1 => Just((resp("subscribe a"), b"*3\r\n+subscribe\r\n+a\r\n:1\r\n".to_vec())),
        1 => Just((resp("unsubscribe a"), b"*3\r\n+unsubscribe\r\n+a\r\n:0\r\n".to_vec())),
        1 => Just((resp("nonsense"), b"?\r\n".to_vec())),
    ]
}

/// Parts of bytes, cut after these lengths again and again.
pub(super) fn parts<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> Vec<&'a [u8]> {
    let mut all = Vec::new();
    for length in lengths.iter().cycle() {
        if bytes.is_empty() {
            return all;
        }
        let (part, rest) = bytes.split_at((*length).min(bytes.len()));
        all.push(part);
        bytes = rest;
    }
    all
}

fn fed_in_parts(turns: &[(Vec<u8>, Vec<u8>)], lengths: &[usize]) -> CollectedExchanges {
    let (mut exchange, mut kept) = (RedisExchange::new(3, 50, true), CollectedExchanges::default());
    for (turn, (client, server)) in turns.iter().enumerate() {
        let at_ns = 1_000 * turn as u64;
        for part in parts(client, lengths) {
            exchange.feed_request(at_ns, part, &mut kept).unwrap();
        }
        for part in parts(server, lengths) {
            exchange.feed_reply(at_ns + 7, part, &mut kept).unwrap();
        }
    }
    exchange.finish(&mut kept).unwrap();
    kept
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(
        units in prop::collection::vec(units(), 1..12),
        lengths in prop::collection::vec(1usize..40, 1..5),
        pipelined in 1usize..4,
    ) {
        // Several commands go out before the replies to them come.
        let turns: Vec<(Vec<u8>, Vec<u8>)> = units
            .chunks(pipelined)
            .map(|some| {
                let client = some.iter().flat_map(|unit| unit.0.clone()).collect();
                (client, some.iter().flat_map(|unit| unit.1.clone()).collect())
            })
            .collect();
        let whole = fed_in_parts(&turns, &[usize::MAX]);
        let cut = fed_in_parts(&turns, &lengths);
        // After a gap the begin of a part matters, and so do the counts.
        if whole.left_out.contains_key(reason::GAPS) {
            prop_assert_eq!(&whole.entries[0], &cut.entries[0]);
        } else {
            prop_assert_eq!(whole, cut);
        }
    }

    #[test]
    fn any_bytes_are_taken(
        parts in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..60)), 0..12),
        is_begin in any::<bool>(),
    ) {
        let mut fed = Fed::new(is_begin);
        for (is_client, bytes) in parts {
            if is_client { fed.client(&bytes) } else { fed.server(&bytes) };
            fed.now_ns += IDLE_NS / 2;
        }
        fed.finish();
    }
}
