use super::after_gap::IDLE_NS;
use super::memcached::MemcachedExchange;
use super::reason;
use super::redis_tests::{CollectedExchanges, show};
use crate::credentials::CREDENTIALS;

/// A connection that is fed texts, each a millisecond after the one before.
struct Fed {
    exchange: MemcachedExchange,
    kept: CollectedExchanges,
    now_ns: u64,
}

impl Fed {
    fn new(is_begin: bool) -> Self {
        Fed {
            exchange: MemcachedExchange::new(0, 64, is_begin),
            kept: CollectedExchanges::default(),
            now_ns: 0,
        }
    }

    fn client(&mut self, text: &str) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_request(self.now_ns, text.as_bytes(), &mut self.kept).unwrap();
        self
    }

    fn server(&mut self, text: &str) -> &mut Self {
        self.now_ns += 1_000_000;
        self.exchange.feed_reply(self.now_ns, text.as_bytes(), &mut self.kept).unwrap();
        self
    }

    fn finish(&mut self) -> (Vec<String>, Vec<(&str, u64)>) {
        self.exchange.finish(&mut self.kept).unwrap();
        let shown = self.kept.entries.iter().map(|(entry, _)| show(entry)).collect();
        (shown, self.kept.left_out.iter().map(|(name, count)| (name.as_str(), *count)).collect())
    }
}

#[test]
fn replies_go_to_their_commands_in_pipelines_too() {
    let mut fed = Fed::new(true);
    fed.client("set k 0 60 2\r\nab\r\n").server("STORED\r\n");
    fed.client("get k\r\nget m\r\ngets k l\r\nincr n 2\r\n");
    fed.server("VALUE k 0 2\r\nab\r\nEND\r\nEND\r\nVALUE k 0 2 7\r\n");
    fed.server("ab\r\nEND\r\nNOT_FOUND\r\n");
    fed.client("set k 0 0 1 noreply\r\nc\r\ndelete k\r\n").server("DELETED\r\n");
    fed.client("mg k v t\r\nms k 2\r\nxy\r\n").server("EN\r\nHD\r\n");
    fed.client("incr n x\r\n").server("CLIENT_ERROR invalid numeric delta argument\r\n");
    fed.client("quit\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "set k 0 60 ab -> status 0 1",
            "get k -> string 2 1",
            "& get m -> nil 0 1",
            "& gets k l -> array 1 2",
            "& incr n 2 -> nil 0 2",
            "set k 0 0 noreply c -> none 0",
            "delete k -> status 0 1",
            "mg k v t -> nil 0 1",
            "& ms k xy -> status 0 1",
            "incr n x -> error CLIENT_ERROR 1",
            "quit -> none 0",
        ]
    );
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn quiet_commands_are_answered_where_their_flags_say_so() {
    let mut fed = Fed::new(true);
    fed.client("mg a v q k\r\nmg b v q k\r\nmg c v q k\r\nmn\r\n");
    fed.server("VA 1 kb\r\nx\r\nMN\r\n");
    fed.client("ms a 1 q O1\r\nx\r\nms b 1 q O2 MA\r\ny\r\nmd c q\r\nmn\r\n");
    fed.server("NS O2\r\nMN\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(
        shown,
        [
            "mg a v q k -> nil 0 0",
            "& mg b v q k -> string 1 1",
            "& mg c v q k -> nil 0 0",
            "& mn -> status 0 1",
            "ms a q O1 x -> status 0 0",
            "& ms b q O2 MA y -> nil 0 1",
            // Done, or nothing there: it does not say.
            "& md c q -> none 0",
            "& mn -> status 0 1",
        ]
    );
    assert!(left.is_empty(), "{left:?}");
    // Without such flags nothing tells whose value came: no reply is better than a wrong one.
    let mut fed = Fed::new(true);
    fed.client("mg a v q\r\nmg b v q\r\nmn\r\n").server("VA 1\r\nx\r\nMN\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["mg a v q -> none 0", "& mg b v q -> none 0", "& mn -> none 0"]);
    assert_eq!(left, [(reason::GAPS, 1)]);
    // A single one is no riddle.
    let mut fed = Fed::new(true);
    fed.client("mg a v q\r\nmn\r\n").server("VA 1\r\nx\r\nMN\r\n");
    assert_eq!(fed.finish().0, ["mg a v q -> string 1 1", "& mn -> status 0 1"]);
}

#[test]
fn a_login_is_never_kept() {
    let mut fed = Fed::new(true);
    fed.client("version\r\n").server("CLIENT_ERROR unauthenticated\r\n");
    fed.client("set auth 0 0 10\r\nuser wrong\r\n").server("CLIENT_ERROR authentication failure\r\n");
    fed.client("set auth 0 0 15\r\nuser my s\u{e9}cret\r\n").server("STORED\r\n");
    fed.client("set k 0 0 7\r\nnot one\r\n").server("STORED\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["version -> error CLIENT_ERROR 1", "set k 0 0 not one -> status 0 1"]);
    assert_eq!(left, [(CREDENTIALS, 2)]);
}

#[test]
fn an_error_behind_a_silent_command_may_be_its_own() {
    let mut fed = Fed::new(true);
    fed.client("set k 0 0 1 noreply\r\nx\r\nget a\r\n").server("SERVER_ERROR out of memory\r\nEND\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["set k 0 0 noreply x -> none 0", "get a -> none 0"]);
    assert_eq!(left.iter().find(|(name, _)| *name == reason::GAPS), Some(&(reason::GAPS, 1)));
}

#[test]
fn what_cannot_be_its_reply_is_a_gap() {
    let mut fed = Fed::new(true);
    fed.client("get k\r\n").server("STORED\r\n");
    // Not idle yet: the server has not answered.
    fed.client("get l\r\n").server("END\r\n");
    fed.now_ns += IDLE_NS;
    fed.client("get m\r\n").server("END\r\n");
    fed.now_ns += IDLE_NS;
    fed.client("get n\r\n").server("END\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["get k -> none 0", "get m -> nil 0 1", "get n -> nil 0 1"]);
    assert_eq!(left, [(reason::BYTES_AFTER_GAPS, 12), (reason::GAPS, 1)]);
}

#[test]
fn a_connection_that_began_before_is_read_from_its_first_pause_on() {
    let mut fed = Fed::new(false);
    fed.server("0123456789\r\nEND\r\n").client("get a\r\n").server("END\r\n");
    fed.now_ns += IDLE_NS;
    fed.client("get b\r\n").server("VALUE b 0 1\r\nx\r\nEND\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["get b -> string 1 1"]);
    assert_eq!(left, [(reason::BYTES_AFTER_GAPS, 29)]);
}

#[test]
fn the_log_of_a_server_is_left_out() {
    let mut fed = Fed::new(true);
    fed.client("get a\r\n").server("END\r\n").client("watch fetchers\r\n").server("OK\r\n");
    fed.server("ts=1.2 gid=1 type=item_get key=a\r\n").client("get b\r\n");
    let (shown, left) = fed.finish();
    assert_eq!(shown, ["get a -> nil 0 1"]);
    assert_eq!(left, [(reason::WATCHERS, 1)]);
}
