//! Redis's replies.

use crate::common::{Curious, endpoint, spoil, spoils};
use dyno_db::probe::FactsStep;
use dyno_db_redis::protocol::{ClusterTopology, RedisDriver, RedisExchange, RedisFacts, RedisOptions, resp};
use dyno_types::{Decoded, Driver, GreetingStep, Request, Verb};
use proptest::prelude::*;
use std::sync::Arc;

fn driver() -> RedisDriver {
    let content = Arc::new(Curious(Vec::new()));
    let verbs = [Verb::Read, Verb::Insert, Verb::Update, Verb::Scan, Verb::Delete];
    RedisDriver::new(
        Arc::new(RedisOptions::default()),
        content,
        ClusterTopology::single_node(endpoint()),
        &verbs,
    )
    .unwrap()
}

fn requests() -> impl Strategy<Value = Request> {
    let verbs = [Verb::Read, Verb::Insert, Verb::Update, Verb::Scan, Verb::Delete];
    prop::sample::select(verbs.to_vec()).prop_map(|verb| Request { verb, limit: 5, ..Request::default() })
}

/// Replies as servers send them: records, keys, acknowledgements, errors, pushes, all of RESP3.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let replies: [&[u8]; 16] = [
        b"*4\r\n$6\r\nfield0\r\n$5\r\nvalue\r\n$6\r\nfield1\r\n$5\r\nvalue\r\n",
        b"%2\r\n$6\r\nfield0\r\n$5\r\nvalue\r\n+field1\r\n=9\r\ntxt:value\r\n",
        b"*3\r\n$4\r\nkey1\r\n$4\r\nkey2\r\n$0\r\n\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"$-1\r\n",
        b"_\r\n",
        b"+OK\r\n",
        b":2\r\n",
        b"-ERR no\r\n",
        b"-MOVED 99999 127.0.0.1:1\r\n",
        b"-READONLY You can't write against a read only replica.\r\n",
        b"!9\r\nERR blob!\r\n",
        b">2\r\n+invalidate\r\n*1\r\n+key\r\n",
        b"|1\r\n+ttl\r\n:3\r\n*2\r\n$6\r\nfield0\r\n$5\r\nvalue\r\n",
        b"~2\r\n,1.5\r\n#t\r\n",
    ];
    prop::sample::select(replies.map(<[u8]>::to_vec).to_vec())
}

fn decode(request: &Request, command: u32, bytes: &[u8]) -> (Decoded, u32) {
    let (mut driver, mut x) = (driver(), RedisExchange::default());
    driver.begin(&mut x, request);
    let decoded = driver.decode(&mut x, command, bytes);
    (decoded, driver.records(&x))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn no_reply_leads_beyond_itself(request in requests(), mut bytes in messages(), spoils in spoils()) {
        // The address of a redirection would be looked up.
        let moved = bytes.starts_with(b"-MOVED");
        if !moved {
            spoil(&mut bytes, &spoils);
        }
        let (decoded, records) = decode(&request, 0, &bytes);
        match &decoded {
            Decoded::Reply { used, .. } | Decoded::Push { used } => {
                prop_assert!((1..=bytes.len()).contains(used));
                // What is complete for the driver is complete for the protocol, and of one length.
                prop_assert_eq!(resp::skip_reply(&bytes, 0), Ok(Some(*used)));
            }
            Decoded::Need => prop_assert!(!matches!(resp::skip_reply(&bytes, 0), Ok(Some(_))), "a complete reply is waited for"),
            Decoded::Broken => {}
            Decoded::Unexpected => prop_assert!(false, "replies have no numbers"),
        }
        if decoded != Decoded::Need {
            let mut longer = bytes.clone();
            longer.extend_from_slice(b"\r\n\xff*9\r\n+junk\r\n");
            prop_assert_eq!(decode(&request, 0, &longer), (decoded, records));
        }
    }

    #[test]
    fn a_good_reply_is_waited_for_to_its_last_byte(
        request in requests(), bytes in messages(), cut in any::<prop::sample::Index>(),
    ) {
        prop_assert_eq!(resp::skip_reply(&bytes, 0), Ok(Some(bytes.len())));
        let cut = cut.index(bytes.len());
        prop_assert_eq!(resp::skip_reply(&bytes[..cut], 0), Ok(None));
        let found = decode(&request, 0, &bytes[..cut]).0;
        // A reply of the wrong kind may be refused before it is complete.
        prop_assert!(matches!(found, Decoded::Need | Decoded::Broken), "{:?}", found);
    }

    #[test]
    fn a_stream_of_replies_comes_to_an_end(parts in prop::collection::vec((messages(), spoils()), 1..8)) {
        let mut stream = Vec::new();
        for (mut bytes, spoils) in parts {
            spoil(&mut bytes, &spoils);
            stream.extend_from_slice(&bytes);
        }
        let (mut driver, mut at) = (driver(), 0);
        while let Decoded::Reply { used, .. } | Decoded::Push { used } = driver.skip(&stream[at..]) {
            prop_assert!(used >= 1 && at + used <= stream.len());
            at += used;
        }
    }

    #[test]
    fn greetings_and_questions_stand_it_too(mut bytes in messages(), spoils in spoils(), reply in 0..3u16) {
        spoil(&mut bytes, &spoils);
        let (mut driver, mut out) = (driver(), Vec::new());
        if let GreetingStep::Reply { used, .. } = driver.greeted(0, 0, reply, &bytes, &mut out) {
            prop_assert!((1..=bytes.len()).contains(&used));
        }
        let mut topology = ClusterTopology::single_node(endpoint());
        let step = RedisFacts::read_answers(&RedisOptions::default(), &mut topology, &bytes, &mut RedisFacts::default());
        // A peer that is taken for a server has answered at least once in full.
        prop_assert!(!matches!(step, FactsStep::Done) || matches!(resp::skip_reply(&bytes, 0), Ok(Some(_))));
    }
}
