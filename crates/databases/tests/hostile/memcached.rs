//! memcached's replies.

use crate::common::{Curious, endpoint, spoil, spoils};
use dyno_db::probe::FactsStep;
use dyno_db_memcached::protocol::reply::read_reply;
use dyno_db_memcached::protocol::{Exchange, MemcachedDriver, MemcachedFacts, MemcachedOptions, Servers};
use dyno_types::{Decoded, Driver, Fields, GreetingStep, Request, Verb};
use proptest::prelude::*;
use std::sync::Arc;

const VERBS: [Verb; 4] = [Verb::Read, Verb::Insert, Verb::Update, Verb::Delete];

fn driver() -> MemcachedDriver {
    let options = MemcachedOptions::default();
    let servers = Servers::new(&options, vec![endpoint()]).unwrap();
    MemcachedDriver::new(Arc::new(options), Arc::new(Curious(Vec::new())), servers, &VERBS).unwrap()
}

fn requests() -> impl Strategy<Value = Request> {
    let fields = prop::sample::select(vec![Fields::All, Fields::One(1)]);
    (prop::sample::select(VERBS.to_vec()), fields).prop_map(|(verb, fields)| Request {
        verb,
        fields,
        ..Request::default()
    })
}

/// Replies of both protocols as servers send them.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let replies: [&[u8]; 18] = [
        b"VA 18 c5\r\n{\"field0\":\"value\"}\r\n",
        b"VA 38\r\n{\"field0\":\"value\",\"fi\\u0065ld1\":\"x\\n\"}\r\n",
        b"VALUE key 0 18 7\r\n{\"field0\":\"value\"}\r\nEND\r\n",
        b"VA 0\r\n\r\n",
        b"HD O7\r\n",
        b"EN\r\n",
        b"NS\r\n",
        b"NF\r\n",
        b"EX\r\n",
        b"MN\r\n",
        b"STORED\r\n",
        b"NOT_STORED\r\n",
        b"NOT_FOUND\r\n",
        b"END\r\n",
        b"VERSION 1.6.18\r\n",
        b"ERROR\r\n",
        b"CLIENT_ERROR bad data chunk\r\n",
        b"SERVER_ERROR out of memory storing object\r\n",
    ];
    prop::sample::select(replies.map(<[u8]>::to_vec).to_vec())
}

fn decode(request: &Request, bytes: &[u8]) -> (Decoded, u32) {
    let (mut driver, mut x) = (driver(), Exchange::default());
    driver.begin(&mut x, request);
    let decoded = driver.decode(&mut x, 0, bytes);
    (decoded, driver.records(&x))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn no_reply_leads_beyond_itself(request in requests(), mut bytes in messages(), spoils in spoils()) {
        spoil(&mut bytes, &spoils);
        let (decoded, records) = decode(&request, &bytes);
        match &decoded {
            Decoded::Reply { used, .. } => {
                prop_assert!((1..=bytes.len()).contains(used));
                prop_assert_eq!(read_reply(&bytes).unwrap().unwrap().1, *used);
            }
            Decoded::Need => prop_assert_eq!(read_reply(&bytes), Ok(None), "a complete reply is waited for"),
            other => prop_assert_eq!(other, &Decoded::Broken),
        }
        if decoded != Decoded::Need {
            let longer = [&bytes[..], b"\r\n\xffVA 9\r\nEND\r\n"].concat();
            prop_assert_eq!(decode(&request, &longer), (decoded, records));
        }
    }

    #[test]
    fn a_good_reply_is_waited_for_to_its_last_byte(
        request in requests(), bytes in messages(), cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(bytes.len());
        prop_assert_eq!(decode(&request, &bytes[..cut]).0, Decoded::Need);
        prop_assert_ne!(decode(&request, &bytes).0, Decoded::Need);
    }

    #[test]
    fn a_stream_of_replies_comes_to_an_end(parts in prop::collection::vec((messages(), spoils()), 1..8)) {
        let mut stream = Vec::new();
        for (mut bytes, spoils) in parts {
            spoil(&mut bytes, &spoils);
            stream.extend_from_slice(&bytes);
        }
        let (mut driver, mut at) = (driver(), 0);
        while let Decoded::Reply { used, .. } = driver.skip(&stream[at..]) {
            prop_assert!(used >= 1 && at + used <= stream.len());
            at += used;
        }
    }

    #[test]
    fn greetings_and_questions_stand_it_too(mut bytes in messages(), spoils in spoils(), reply in 0..2u16) {
        spoil(&mut bytes, &spoils);
        let (mut driver, mut out) = (driver(), Vec::new());
        if let GreetingStep::Reply { used, .. } = driver.greeted(0, 0, reply, &bytes, &mut out) {
            prop_assert!((1..=bytes.len()).contains(&used));
        }
        let answers = [&bytes[..], b"STAT version 1.6.18\r\nEND\r\nEND\r\n"].concat();
        for uri in ["memcached://h", "memcached://u:p@h", "memcached://h?protocol=text"] {
            let options = MemcachedOptions::from_uri(uri).unwrap();
            let (mut facts, mut again) = (MemcachedFacts::default(), MemcachedFacts::default());
            let step = MemcachedFacts::read_answers(&options, &answers, &mut facts);
            // A peer that is taken for a server has answered in full: what follows changes nothing.
            let longer = [&answers[..], b"STAT x"].concat();
            if step == FactsStep::Done {
                prop_assert_eq!(MemcachedFacts::read_answers(&options, &longer, &mut again), FactsStep::Done);
                prop_assert_eq!(again, facts);
            }
        }
    }
}
