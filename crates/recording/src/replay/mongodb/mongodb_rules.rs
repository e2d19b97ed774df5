//! Which commands of a MongoDB recording are sent.

use crate::entry::Arguments;
use crate::replay::options::{ReplayOnly, ReplayOptions};
use dyno_types::bson::{self, Element};

/// Commands that read, or change nothing that others see. Of `aggregate`, `mapReduce` and the like their bodies decide.
const READS: [&str; 36] = [
    "aggregate",
    "buildInfo",
    "buildinfo",
    "collStats",
    "collstats",
    "connectionStatus",
    "count",
    "currentOp",
    "dataSize",
    "dbHash",
    "dbStats",
    "dbstats",
    "distinct",
    "explain",
    "filemd5",
    "find",
    "geoNear",
    "geoSearch",
    "getLastError",
    "getMore",
    "getPrevError",
    "getlasterror",
    "group",
    "hostInfo",
    "killCursors",
    "listCollections",
    "listCommands",
    "listDatabases",
    "listIndexes",
    "mapReduce",
    "mapreduce",
    "parallelCollectionScan",
    "ping",
    "serverStatus",
    "top",
    "whatsmyuri",
];

/// Commands of applications that write.
const WRITES: [&str; 8] =
    ["bulkWrite", "create", "createIndexes", "delete", "findAndModify", "findandmodify", "insert", "update"];

/// Commands that begin or end what a session holds.
const SESSION: [&str; 5] =
    ["abortTransaction", "commitTransaction", "endSessions", "refreshSessions", "startSession"];

/// Databases of the servers' own.
const SYSTEM: [&[u8]; 3] = [b"admin", b"config", b"local"];

/// Stages of a pipeline that write.
const WRITING_STAGES: [&[u8]; 2] = [b"$out", b"$merge"];

/// First stages of pipelines whose results are never alike.
const UNLIKE_STAGES: [&[u8]; 5] =
    [b"$currentOp", b"$indexStats", b"$listLocalSessions", b"$listSessions", b"$planCacheStats"];

/// Longest body that servers take as one document, bytes.
const BODY: usize = 16 << 20;

/// Longest name of a database, bytes.
const DATABASE: usize = 255;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandRole {
    Reads,
    Writes,
    Session,
    /// It administers the server, or is not known.
    Other,
}

/// Stages of a pipeline: the first field of each.
fn stages(body: &[u8]) -> impl Iterator<Item = Element<'_>> {
    let pipeline = bson::find_element(body, "pipeline").and_then(|found| found.as_document());
    let all = bson::read_elements(pipeline.unwrap_or_default()).into_iter().flatten().flatten();
    all.filter_map(|stage| bson::read_elements(stage.as_document()?).ok()?.next()?.ok())
}

/// Where a `mapReduce` puts its result; `None` if it is the reply.
fn written_by_map_reduce(body: &[u8]) -> Option<Element<'_>> {
    let target = bson::find_element(body, "out")?;
    let inline = target.as_document().and_then(|target| bson::find_element(target, "inline"));
    if inline.is_some() { None } else { Some(target) }
}

fn role(name: &str, body: &[u8]) -> CommandRole {
    let writes = match name {
        "aggregate" => stages(body).any(|stage| WRITING_STAGES.contains(&stage.name)),
        "mapReduce" | "mapreduce" => written_by_map_reduce(body).is_some(),
        _ => WRITES.contains(&name),
    };
    match name {
        _ if writes => CommandRole::Writes,
        _ if READS.contains(&name) => CommandRole::Reads,
        _ if SESSION.contains(&name) => CommandRole::Session,
        _ => CommandRole::Other,
    }
}

/// Name, database and body of a command, where it is well-formed.
pub(super) fn parts_of(arguments: &Arguments) -> Option<(&str, &str, &[u8])> {
    if arguments.count() != 3 {
        return None;
    }
    let name = std::str::from_utf8(arguments.word(0)).ok()?;
    let database = std::str::from_utf8(arguments.word(1)).ok().filter(|name| name.len() <= DATABASE)?;
    Some((name, database, arguments.word(2)))
}

fn is_well_formed(name: &str, database: &str, body: &[u8]) -> bool {
    let first = || bson::read_elements(body).ok()?.next()?.ok();
    bson::check(body).is_ok()
        && !database.is_empty()
        && !database.contains('\0')
        && first().is_some_and(|first| first.name == name.as_bytes())
}

/// Returns whether a command's replies come when there are data, not when they are ready.
fn waits_for_data(name: &str, body: &[u8]) -> bool {
    match name {
        "find" => ["awaitData", "tailable"]
            .iter()
            .any(|option| bson::find_element(body, option).is_some_and(|value| value.is_true())),
        "aggregate" => stages(body).next().is_some_and(|stage| stage.name == b"$changeStream"),
        _ => false,
    }
}

/// Why a command is not sent; `None` if it is.
pub(in crate::replay) fn reason_against(
    options: &ReplayOptions,
    arguments: &Arguments,
) -> Option<&'static str> {
    if (0..arguments.count()).any(|number| arguments.long_value(number).is_some()) {
        return Some("commands whose body was too long to be kept (see --value-limit)");
    }
    let Some((name, database, body)) =
        parts_of(arguments).filter(|(name, database, body)| is_well_formed(name, database, body))
    else {
        return Some("commands that are no well-formed documents");
    };
    if body.len() > BODY {
        return Some("commands with a body that is longer than a document may be");
    }
    let role = role(name, body);
    let is_of_system = SYSTEM.contains(&database.as_bytes());
    if role == CommandRole::Other || (role == CommandRole::Writes && is_of_system) {
        if !options.includes(&arguments.command_name()) {
            return Some("commands that administer the server, or are not known (--include NAME sends them)");
        }
    } else if waits_for_data(name, body) {
        return Some("cursors that wait for data (tailable ones, change streams)");
    } else if uses_cursor(name) && bson::find_element(body, "_openedBy").is_none() {
        return Some("getMore and killCursors of cursors that were opened before the recording began");
    }
    match (options.only, role) {
        (Some(ReplayOnly::Reads), CommandRole::Writes | CommandRole::Other) => {
            Some("commands that may write (--only reads)")
        }
        (Some(ReplayOnly::Writes), CommandRole::Reads) => Some("commands that only read (--only writes)"),
        _ => None,
    }
}

/// Returns whether a command goes on with a cursor, or ends it.
pub(super) fn uses_cursor(name: &str) -> bool {
    name == "getMore" || name == "killCursors"
}

/// Returns whether the reply to a command may open a cursor.
pub(super) fn may_open_cursor(name: &str) -> bool {
    ["find", "aggregate", "listCollections", "listIndexes", "bulkWrite"].contains(&name)
}

/// Returns whether replies to a command can be compared.
pub(super) fn is_comparable(name: &str, body: &[u8]) -> bool {
    name != "aggregate" || !stages(body).next().is_some_and(|stage| UNLIKE_STAGES.contains(&stage.name))
}

/// What a command that is sent means for a look at the whole recording.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::replay) struct CommandFacts {
    /// It may change data.
    pub writes: bool,
    /// Databases that it names, but for those of the servers' own.
    pub databases: Vec<String>,
    /// It carries the number of a retryable write or of a transaction.
    pub numbered: bool,
    /// It reads from a time of then on, which is taken out.
    pub timed: bool,
}

/// Looks at a command that is sent.
pub(in crate::replay) fn facts_of(arguments: &Arguments) -> CommandFacts {
    let Some((name, database, body)) = parts_of(arguments) else { return CommandFacts::default() };
    let mut databases = vec![database.to_owned()];
    let other = |target: Option<Element<'_>>| {
        let found = bson::find_element(target?.as_document()?, "db")?;
        found.as_str().map(str::to_owned)
    };
    if name == "aggregate" {
        for stage in stages(body).filter(|stage| WRITING_STAGES.contains(&stage.name)) {
            // `$merge` has its target in a field of its own.
            let into = stage.as_document().and_then(|merge| bson::find_element(merge, "into"));
            databases.extend(other(Some(stage)).or_else(|| other(into)));
        }
    } else if matches!(name, "mapReduce" | "mapreduce") {
        databases.extend(other(written_by_map_reduce(body)));
    }
    let writes = matches!(role(name, body), CommandRole::Writes | CommandRole::Other);
    // A command that is sent to a database of the server's own, such as `renameCollection`, may write to any.
    databases.retain(|database| !database.is_empty() && (writes || !SYSTEM.contains(&database.as_bytes())));
    CommandFacts {
        writes,
        databases,
        numbered: bson::find_element(body, "txnNumber").is_some(),
        timed: bson::find_element(body, "readConcern")
            .and_then(|concern| concern.as_document())
            .is_some_and(|concern| TIMES.iter().any(|time| bson::find_element(concern, time).is_some())),
    }
}

/// Fields of a read concern that name times of then.
pub(super) const TIMES: [&str; 2] = ["afterClusterTime", "atClusterTime"];

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str, database: &str, more: impl FnOnce(&mut Vec<u8>)) -> Arguments {
        let body = bson::build_document(|out| {
            bson::put_string(out, name, "items");
            more(out);
        });
        Arguments::from_words([name.as_bytes(), database.as_bytes(), &body])
    }

    fn pipeline(stage: &str, target: &[u8]) -> Arguments {
        command("aggregate", "shop", |out| {
            bson::put_head(out, bson::kind::ARRAY, "pipeline");
            let list = bson::open(out);
            bson::put_item_head(out, bson::kind::DOCUMENT, 0);
            let at = bson::open(out);
            bson::put_document(out, stage, target);
            bson::close(out, at);
            bson::close(out, list);
        })
    }

    #[test]
    fn what_is_not_known_to_be_an_application_s_is_not_sent_unless_it_is_named() {
        let options = ReplayOptions::default();
        for name in [
            "dropDatabase",
            "drop",
            "dropIndexes",
            "createUser",
            "updateUser",
            "grantRolesToUser",
            "shutdown",
            "fsync",
            "replSetStepDown",
            "setParameter",
            "compact",
            "renameCollection",
            "FIND",
            "saslStart",
        ] {
            let why = reason_against(&options, &command(name, "shop", |_| {}));
            assert!(why.is_some_and(|why| why.contains("--include NAME")), "{name}: {why:?}");
        }
        for name in ["find", "insert", "commitTransaction", "createIndexes", "ping"] {
            assert_eq!(reason_against(&options, &command(name, "shop", |_| {})), None, "{name}");
        }
        assert!(reason_against(&options, &command("insert", "admin", |_| {})).is_some());
        assert_eq!(reason_against(&options, &command("ping", "admin", |_| {})), None);
        let options = ReplayOptions { include: vec!["DROP".into()], ..options };
        assert_eq!(reason_against(&options, &command("drop", "shop", |_| {})), None);
        assert!(reason_against(&options, &command("dropDatabase", "shop", |_| {})).is_some());
    }

    #[test]
    fn a_pipeline_writes_if_a_stage_does() {
        let only = |only| ReplayOptions { only: Some(only), ..ReplayOptions::default() };
        let (reads, writes) = (only(ReplayOnly::Reads), only(ReplayOnly::Writes));
        let into = bson::build_document(|out| {
            bson::put_document(
                out,
                "into",
                &bson::build_document(|out| bson::put_string(out, "db", "other")),
            );
        });
        let nothing = bson::build_document(|_| {});
        for (arguments, expected) in [
            (pipeline("$match", &nothing), (true, false)),
            (pipeline("$merge", &into), (false, true)),
            (command("find", "shop", |_| {}), (true, false)),
            (command("insert", "shop", |_| {}), (false, true)),
            (command("abortTransaction", "admin", |_| {}), (true, true)),
        ] {
            let sent = |options: &ReplayOptions| reason_against(options, &arguments).is_none();
            assert_eq!((sent(&reads), sent(&writes)), expected, "{arguments:?}");
        }
        let facts = facts_of(&pipeline("$merge", &into));
        assert!(facts.writes && facts.databases == ["shop", "other"], "{facts:?}");
        let facts =
            facts_of(&command("commitTransaction", "admin", |out| bson::put_int64(out, "txnNumber", 1)));
        assert!(!facts.writes && facts.databases.is_empty() && facts.numbered, "{facts:?}");
    }

    #[test]
    fn what_waits_and_what_is_no_command() {
        let options = ReplayOptions::default();
        let why = |arguments: &Arguments| reason_against(&options, arguments).unwrap_or_default();
        let tails = command("find", "shop", |out| bson::put_boolean(out, "tailable", true));
        let watches = pipeline("$changeStream", &bson::build_document(|_| {}));
        for arguments in [tails, watches] {
            assert!(why(&arguments).contains("wait for data"), "{arguments:?}");
        }
        assert!(why(&command("getMore", "shop", |_| {})).contains("before the recording began"));
        let good = command("find", "shop", |_| {});
        let body = good.word(2);
        for words in [
            vec![b"find".as_slice(), b"shop"],
            vec![b"find", b"shop", &body[..body.len() - 1]],
            vec![b"insert", b"shop", body],
            vec![b"find", b"\xff", body],
            vec![b"find", b"shop", body, b"more"],
            vec![],
        ] {
            assert!(why(&Arguments::from_words(&words)).contains("no well-formed"), "{words:?}");
        }
        let mut long = Arguments::from_words(["insert", "shop"]);
        long.push_limited(body, 4);
        assert!(why(&long).contains("too long to be kept"));
    }
}
