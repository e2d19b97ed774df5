//! What the event loop sends, byte by byte beside what the official driver sends for the same requests.

mod sequence;

use dyno_databases::registry;
use dyno_db::target::ClientDriver;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::mongo_proxy::{MongoProxy, WireCommand};
use dyno_testkit::skip_because;

/// The commands that are compared; the others belong to connections, sessions and questions before the run.
const COMPARED: [&str; 8] =
    ["insert", "find", "getMore", "update", "delete", "aggregate", "distinct", "findAndModify"];

/// Elements that may differ; `docs/mongodb.md` says why. Request ids stand in the header, which is not compared.
const LEFT_OUT: [&str; 3] = ["lsid", "$clusterTime", "$readPreference"];

/// What travels in sections of kind 1 on one side and may be an array of the command's document on the other.
const LISTS: [&str; 2] = ["updates", "deletes"];

/// The compared commands of a lane, without what may differ, and how its requests ended.
fn record(
    proxy: &MongoProxy,
    client: ClientDriver,
    database: &str,
    query: &str,
) -> (Vec<WireCommand>, Vec<sequence::Ended>) {
    let target = registry::parse_for(&format!("{}{query}", proxy.uri(database)), client).unwrap();
    let opened = target.open(sequence::content(), &|| false).unwrap();
    proxy.take();
    let ended = sequence::run(opened.as_ref());
    let commands = proxy.take().into_iter().filter_map(|message| WireCommand::parse(&message));
    let mut commands: Vec<WireCommand> = commands.filter(|c| COMPARED.contains(&c.name())).collect();
    for command in &mut commands {
        for list in LISTS {
            command.array_as_sequence(list);
        }
        command.body.retain(|(_, name, _)| !LEFT_OUT.contains(&name.as_str()));
        // The driver sends the write concern with aggregations that write nothing, too.
        if command.name() == "aggregate" {
            command.body.retain(|(_, name, _)| name != "writeConcern");
        }
        // Several statements in one command: the driver has no form for it and passes a whole command on, behind whose
        // elements it appends the database.
        if command.sequences.iter().any(|(name, list)| LISTS.contains(&name.as_str()) && list.len() > 1) {
            command.body.sort_by_key(|(_, name, _)| name == "$db");
        }
    }
    (commands, ended)
}

/// Says what differs, for the reader of a failure.
fn shown(command: &WireCommand) -> String {
    let element = |(kind, name, value): &(u8, String, Vec<u8>)| {
        format!("{name}:{kind:02x}:{}", String::from_utf8_lossy(value).escape_debug())
    };
    let body: Vec<String> = command.body.iter().map(element).collect();
    let documents = |list: &[Vec<u8>]| -> Vec<String> {
        list.iter().take(3).map(|d| String::from_utf8_lossy(d).escape_debug().to_string()).collect()
    };
    let lists: Vec<_> = command.sequences.iter().map(|(n, list)| (n, documents(list))).collect();
    format!("{{ {} }} {lists:?}", body.join(", "))
}

fn compare(name: &str, server: &Mongo, query: &str) {
    let proxy = MongoProxy::start(server.port);
    // The same database, so that no byte has to be left out for its name.
    let database = format!("equal{}", query.len());
    let (ours, our_ends) = record(&proxy, ClientDriver::Wire, &database, query);
    let opened =
        registry::parse(&server.uri(&database)).unwrap().open(sequence::content(), &|| false).unwrap();
    let admin = MongoAdmin::from_target(opened.as_ref()).unwrap();
    for collection in ["records", "documents"] {
        admin.drop_collection(collection).unwrap();
    }
    let (theirs, their_ends) = record(&proxy, ClientDriver::Official, &database, query);
    for (ours, theirs) in our_ends.iter().zip(&their_ends) {
        assert_eq!((ours.0, ours.1), (theirs.0, theirs.1), "{name}{query}");
        // mongo-java-server counts documents that it has refused among those it has written.
        assert!(!ours.1.is_ok() || ours.2 == theirs.2, "{name}{query}: {ours:?} {theirs:?}");
    }
    assert_eq!(our_ends.len(), their_ends.len(), "{name}{query}");
    let differing: Vec<String> = ours
        .iter()
        .zip(&theirs)
        .map(|(ours, theirs)| (without_cursor(ours), without_cursor(theirs)))
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("ours   {}\ntheirs {}", shown(&ours), shown(&theirs)))
        .collect();
    assert!(differing.is_empty(), "{name}{query}: {} differ\n{}", differing.len(), differing.join("\n\n"));
    assert_eq!(ours.len(), theirs.len(), "{name}{query}");
    // mongo-java-server answers in one batch, however many documents there are.
    for command in COMPARED.into_iter().filter(|c| name == "FerretDB" || *c != "getMore") {
        assert!(ours.iter().any(|c| c.name() == command), "{name}{query}: no {command} was compared");
    }
}

/// The server names each cursor anew.
fn without_cursor(command: &WireCommand) -> WireCommand {
    let mut command = command.clone();
    if command.name() == "getMore" {
        command.body[0].2.clear();
    }
    command
}

#[test]
fn the_event_loop_sends_what_the_official_driver_sends() {
    let servers = [("FerretDB", Mongo::ferretdb(&[])), ("mongo-java-server", Mongo::java())];
    let servers: Vec<_> = servers.into_iter().filter_map(|(name, server)| Some((name, server?))).collect();
    if servers.is_empty() {
        return skip_because(
            "the event loop beside the official driver",
            "no server (see scripts/need mongo)",
        );
    }
    for (name, server) in &servers {
        compare(name, server, "");
        compare(name, server, "?w=1&journal=true&wTimeoutMS=900&readConcernLevel=local");
    }
}
