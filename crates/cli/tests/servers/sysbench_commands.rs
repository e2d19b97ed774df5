//! The 18 commands of sysbench-mongodb's transaction, as they go over the wire.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::mongo_proxy::{MongoProxy, WireCommand, WireElement, elements};
use dyno_testkit::{Dyno, skip_because, stderr};
use dyno_types::bson::kind;

/// What belongs to connections and sessions.
const LEFT_OUT: [&str; 3] = ["lsid", "$clusterTime", "$readPreference"];

/// An element as text: keys and ends of ranges are `#`, texts their length. Projections keep their numbers.
fn shown(parent: &str, (kind, name, value): &WireElement) -> String {
    let list = |open: &str, close: &str, named: bool| {
        let of = |element: &WireElement| {
            let text = shown(name, element);
            if named { format!("{}: {text}", element.1) } else { text }
        };
        let all: Vec<String> = elements(value).iter().map(of).collect();
        format!("{open}{}{close}", all.join(", "))
    };
    let number = |value: i64| match name.as_str() {
        "_id" | "$gte" | "$lte" | "k" if !matches!(parent, "projection" | "$project" | "$inc") => "#".into(),
        _ => value.to_string(),
    };
    match *kind {
        kind::DOCUMENT => list("{", "}", true),
        kind::ARRAY => list("[", "]", false),
        kind::INT32 => number(i32::from_le_bytes(value[..4].try_into().unwrap()).into()),
        kind::INT64 => number(i64::from_le_bytes(value[..8].try_into().unwrap())),
        kind::BOOLEAN => (value[0] == 1).to_string(),
        kind::NULL => "null".into(),
        kind::STRING => {
            let text = String::from_utf8(value[4..value.len() - 1].to_vec()).unwrap();
            if text.len() > 50 { format!("text of {}", text.len()) } else { text }
        }
        other => panic!("{name}: an element of kind {other}"),
    }
}

/// A command as text; the order of what follows its name says nothing.
fn text(command: &WireCommand) -> String {
    let mut parts: Vec<String> = command
        .body
        .iter()
        .filter(|(_, name, _)| !LEFT_OUT.contains(&name.as_str()))
        .map(|element| format!("{}: {}", element.1, shown("", element)))
        .collect();
    for (name, documents) in &command.sequences {
        let of = |document: &Vec<u8>| shown("", &(kind::DOCUMENT, name.clone(), document.clone()));
        parts.push(format!("{name}: [{}]", documents.iter().map(of).collect::<Vec<_>>().join(", ")));
    }
    parts[1..].sort();
    parts.join(", ")
}

#[test]
fn a_transaction_is_these_commands() {
    let Some(server) = Mongo::java() else {
        return skip_because(
            "the commands of a transaction",
            "mongo-java-server is not there (see scripts/need mongo)",
        );
    };
    let (dyno, proxy) = (Dyno::new(), MongoProxy::start(server.port));
    let uri = format!("URI={}", proxy.uri(""));
    let words = [
        "sysbench-mongodb",
        &uri,
        "NUM_COLLECTIONS=1",
        "NUM_DOCUMENTS_PER_COLLECTION=300",
        "NUM_DOCUMENTS_PER_INSERT=300",
        "NUM_WRITER_THREADS=1",
        "RUN_TIME_SECONDS=5",
        "DB_NAME=sbtest",
        "SEED=1",
    ];
    let ran = dyno.run(&words);
    dyno.assert_ran(&ran);
    let sent: Vec<WireCommand> =
        proxy.take().iter().filter_map(|message| WireCommand::parse(message)).collect();
    let first = sent
        .iter()
        // The sample of what is there has no filter.
        .position(|command| command.name() == "find" && text(command).contains("filter: "))
        .unwrap_or_else(|| panic!("{}", stderr(&ran)));
    let range = "_id: {$gte: #, $lte: #}";
    let find = |filter: &str, more: &str| format!("find: sbtest1, $db: sbtest, filter: {{{filter}}}, {more}");
    let mut expected = vec![find("_id: #", "limit: 1, projection: {c: 1, _id: 0}, singleBatch: true"); 10];
    expected.extend([
        find(range, "projection: {c: 1, _id: 0}"),
        format!(
            "aggregate: sbtest1, $db: sbtest, cursor: {{}}, pipeline: [{{$match: {{{range}}}}}, {{$project: {{k: 1, _id: 0}}}}, \
             {{$group: {{_id: null, average: {{$sum: $k}}}}}}]"
        ),
        find(range, "projection: {c: 1, _id: 0}, sort: {c: 1}"),
        format!("distinct: sbtest1, $db: sbtest, key: c, query: {{{range}}}"),
        "update: sbtest1, $db: sbtest, ordered: true, updates: [{q: {_id: #}, u: {$inc: {k: 1}}}]".into(),
        "update: sbtest1, $db: sbtest, ordered: true, updates: [{q: {_id: #}, u: {$set: {c: text of 119}}}]".into(),
        "delete: sbtest1, $db: sbtest, deletes: [{q: {_id: #}, limit: 0}], ordered: true".into(),
        "insert: sbtest1, $db: sbtest, documents: [{_id: #, k: #, c: text of 119, pad: text of 59}], ordered: true".into(),
    ]);
    let commands: Vec<String> =
        sent[first..].iter().map(text).filter(|text| !text.starts_with("serverStatus")).collect();
    assert!(commands.len() >= 18, "five seconds are enough for a transaction: {commands:#?}");
    // Whole transactions: the last one may have been cut off.
    let whole = commands.len() / 18 * 18;
    for (number, (command, expected)) in commands.iter().zip(expected.iter().cycle()).take(whole).enumerate()
    {
        assert_eq!(command, expected, "command {} of a transaction", number % 18 + 1);
    }
}
