//! `--client official`: the same commands as by dyno's own codec, the same counts, the same documents.

use dyno_databases::registry;
use dyno_db::target::ClientDriver;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::fake_mongo::{Script, cursor, error, serve};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::mongo_proxy::MongoProxy;
use dyno_testkit::{Dyno, arrivals, assert_exit, finish, outcome, phase, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const CLIENTS: [&str; 2] = ["wire", "official"];

/// Every server there is, behind a proxy that makes all of them new enough for the driver.
fn servers(what: &str) -> Vec<(&'static str, Mongo, MongoProxy)> {
    let all = [("FerretDB", Mongo::ferretdb(&[])), ("mongo-java-server", Mongo::java())];
    let all = all.into_iter().filter_map(|(name, server)| Some((name, server?)));
    let all: Vec<_> = all.map(|(name, server)| (name, MongoProxy::start(server.port), server)).collect();
    if all.is_empty() {
        skip_because(what, "no server that speaks MongoDB's protocol is there (see scripts/need mongo)");
    }
    all.into_iter().map(|(name, proxy, server)| (name, server, proxy)).collect()
}

fn admin(server: &Mongo, database: &str) -> MongoAdmin {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = registry::parse(&server.uri(database)).unwrap().open(content, &|| false).unwrap();
    MongoAdmin::from_target(opened.as_ref()).unwrap()
}

/// Every document of a collection, as its bytes, by `_id`.
fn stored(server: &Mongo, database: &str, collection: &str) -> Vec<Vec<u8>> {
    let reply = admin(server, database).run(&|out| {
        bson::put_string(out, "find", collection);
        bson::put_head(out, kind::DOCUMENT, "sort");
        let sort = bson::open(out);
        bson::put_int32(out, "_id", 1);
        bson::close(out, sort);
        bson::put_int32(out, "batchSize", 10_000);
    });
    let reply = reply.unwrap();
    let batch = bson::element_at_path(&reply, "cursor.firstBatch").unwrap().as_document().unwrap();
    bson::read_elements(batch).unwrap().map(|e| e.unwrap().value.to_vec()).collect()
}

/// Both clients must have stored the same, and so much of it.
fn assert_same(server: &Mongo, name: &str, databases: [&str; 2], collection: &str, count: usize) {
    let [ours, theirs] = databases.map(|database| stored(server, database, collection));
    assert_eq!((ours.len(), theirs.len()), (count, count), "{name}: {collection}");
    assert!(ours == theirs, "{name}: {collection}: the documents differ");
}

#[test]
fn ycsb_a_stores_the_same_records_and_counts_exactly() {
    for (name, server, proxy) in &servers("YCSB by the official driver") {
        let dyno = Dyno::new();
        for client in CLIENTS {
            let url = format!("mongodb.url={}", proxy.uri(client));
            let common =
                ["-P", "workloads/workloada", "-p", &url, "-p", "recordcount=200", "--client", client];
            let more = ["-p", "dataintegrity=true", "-p", "operationcount=400", "-p", "dyno.seed=5"];
            let ycsb = |mode: &str, own: &[&str]| {
                dyno.run(&[&["ycsb", mode, "mongodb"][..], &common, &more, own].concat())
            };
            let load = ycsb("load", &["-threads", "4"]);
            assert_exit(&load, &[0]);
            assert!(stdout(&load).contains("[INSERT], Return=OK, 200"), "{name}: {}", stdout(&load));
            let run = ycsb("run", &["-threads", "1", "--out", client]);
            dyno.assert_ran(&run);
            let summary = dyno.summary(client);
            let measured = phase(&summary, "measure");
            assert_eq!((arrivals(measured), outcome(measured, "ok")), (400, 400), "{name} {client}");
            for failed in ["UNEXPECTED_STATE", "NOT_FOUND", "ERROR"] {
                assert!(!stdout(&run).contains(failed), "{name}: {}\n{}", stdout(&run), stderr(&run));
            }
            let driver = measured["client"]["driver"].as_str().unwrap();
            assert!(driver.starts_with(client), "{driver}");
            let run: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(dyno.path(client).join("run.json")).unwrap())
                    .unwrap();
            assert_eq!(run["facts"]["client"], driver);
            // Every record is there already: each is counted as a duplicate.
            let again = ycsb("load", &["-threads", "4"]);
            assert_exit(&again, &[5]);
            assert!(
                stdout(&again).contains("[INSERT-FAILED], Operations, 200"),
                "{name}: {}",
                stdout(&again)
            );
            assert_exit(&ycsb("load", &["-p", "mongodb.upsert=true"]), &[0]);
        }
        assert_same(server, name, CLIENTS, "usertable", 200);
        let mix = "readproportion=0.2 updateproportion=0.2 scanproportion=0.3 insertproportion=0.1 \
                   readmodifywriteproportion=0.2 maxscanlength=120";
        let mix: Vec<&str> = mix.split_whitespace().flat_map(|pair| ["-p", pair]).collect();
        let url = format!("mongodb.url={}", proxy.uri("official"));
        let common =
            ["ycsb", "run", "mongodb", "-P", "workloads/workloada", "-p", &url, "-p", "recordcount=200"];
        let own = ["-p", "dyno.client=official", "-p", "operationcount=200", "-threads", "4"];
        let run = dyno.run(&[&common[..], &own, &mix].concat());
        dyno.assert_ran(&run);
        for metric in ["READ", "UPDATE", "SCAN", "INSERT"] {
            assert!(stdout(&run).contains(&format!("[{metric}], Return=OK, ")), "{name}: {}", stdout(&run));
        }
    }
}

#[test]
fn sysbench_loads_the_same_documents_and_runs_the_same_transactions() {
    for (name, server, proxy) in &servers("sysbench-mongodb by the official driver") {
        let dyno = Dyno::new();
        let databases = ["sbwire", "sbofficial"];
        for (client, database) in CLIENTS.into_iter().zip(databases) {
            let (uri, base) = (format!("URI={}", proxy.uri("")), format!("DB_NAME={database}"));
            let small = "NUM_COLLECTIONS=2 NUM_DOCUMENTS_PER_INSERT=70 NUM_LOADER_THREADS=2 NUM_WRITER_THREADS=1 \
                         NUM_SECONDS_PER_FEEDBACK=1 SEED=1 NUM_DOCUMENTS_PER_COLLECTION=200";
            let mut common = vec!["sysbench-mongodb", "--client", client, &uri, &base];
            common.extend(small.split_whitespace());
            assert_exit(&dyno.run(&[&common[..], &["DOQUERY=no"]].concat()), &[0]);
        }
        assert_same(server, name, databases, "sbtest1", 200);
        assert_same(server, name, databases, "sbtest2", 200);
        let (uri, out) = (format!("URI={}", proxy.uri("")), ["--client", "official", "--out", "d"]);
        let common =
            ["sysbench-mongodb", &uri, "DB_NAME=sbofficial", "NUM_COLLECTIONS=2", "NUM_WRITER_THREADS=1"];
        let own = ["NUM_DOCUMENTS_PER_COLLECTION=200", "DOLOAD=no", "RUN_TIME_SECONDS=3"];
        let run = dyno.run(&[&common[..], &own, &out].concat());
        dyno.assert_ran(&run);
        let summary = dyno.summary("d");
        let measured = phase(&summary, "measure");
        assert_eq!(arrivals(measured), outcome(measured, "ok"), "{name}");
        let count = |metric: &str| {
            let all = measured["metrics"].as_array().unwrap();
            all.iter().find(|m| m["name"] == metric).map_or(0, |m| m["service"]["count"].as_u64().unwrap())
        };
        let transactions = count("TRANSACTION");
        assert!(transactions > 0 && count("POINT-SELECT") == 10 * transactions, "{name}: {measured}");
        for command in ["SUM-RANGE", "ORDER-RANGE", "DISTINCT-RANGE", "INDEX-UPDATE", "DELETE", "INSERT"] {
            assert_eq!(count(command), transactions, "{name}: {command}");
        }
        // Deleted and inserted again, one for one.
        assert_eq!(admin(server, "sbofficial").count("sbtest1").unwrap(), 200, "{name}");
    }
}

/// The number after `After N seconds, ` in the last summary, and the collection's total.
fn inserted(text: &str) -> (u64, u64) {
    let line = text.lines().rfind(|l| l.contains(" new documents inserted - collection has ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str, offset: usize| {
        let at = words.iter().position(|w| *w == word).unwrap();
        words[at + offset].replace(',', "").parse().unwrap()
    };
    (after("seconds,", 1), after("has", 1))
}

#[test]
fn pocdriver_counts_what_the_server_holds() {
    for (name, server, proxy) in &servers("POCDriver by the official driver") {
        let dyno = Dyno::new();
        let uri = proxy.uri("");
        let run = |more: &[&str]| {
            let common =
                ["pocdriver", "-c", &uri, "-n", "poc.c", "--client", "official", "-d", "2", "-b", "37"];
            dyno.run(&[&common[..], &["-t", "2", "-q", "150", "-x", "2"], more].concat())
        };
        // FerretDB knows no arrays in arrays. mongo-java-server answers the drop of a collection that is not there
        // by an error without a code, which the driver cannot read.
        let own: &[&str] = if *name == "FerretDB" { &["-e"] } else { &["-a", "5:5", "-g", "5"] };
        let first = run(&[&["-k", "20", "-u", "30", "-r", "2"][..], own].concat());
        assert_exit(&first, &[0]);
        let (new, total) = inserted(&stdout(&first));
        assert!(new > 0 && new == total, "{name}: {}", stdout(&first));
        assert_eq!(admin(server, "poc").count("c").unwrap(), total, "{name}");
        // The sequences go on; bulks end at the first failure or do not; updates by findAndModify.
        let second = run(&["-u", "50", "-m", "--ordered", "false"]);
        assert_exit(&second, &[0]);
        let (more, sum) = inserted(&stdout(&second));
        assert_eq!((sum, admin(server, "poc").count("c").unwrap()), (total + more, total + more), "{name}");
    }
}

#[test]
fn passwords_are_proved_and_never_shown() {
    let options =
        ["--test-enable-new-auth", "--setup-database=lab", "--setup-username=u", "--setup-password=p%w"];
    let Some(server) = Mongo::ferretdb(&options) else {
        return skip_because("authentication by the official driver", "FerretDB is not there");
    };
    let proxy = MongoProxy::start(server.port);
    let dyno = Dyno::new();
    let run = |login: &str, query: &str| {
        let uri = format!("mongodb://{login}127.0.0.1:{}/lab{query}", proxy.port);
        let run =
            dyno.run(&["run", &uri, "--client", "official", "--records", "20", "--ops", "50", "--no-out"]);
        let shown = stdout(&run) + &stderr(&run);
        assert!(!shown.contains("p%25w") && !shown.contains("p%w"), "{shown}");
        run
    };
    for query in ["", "?authMechanism=SCRAM-SHA-1", "?authMechanism=SCRAM-SHA-256"] {
        dyno.assert_ran(&run("u:p%25w@", query));
    }
    let wrong = run("u:wrong@", "");
    assert_exit(&wrong, &[3]);
    assert!(stderr(&wrong).contains("SCRAM"), "{}", stderr(&wrong));
}

#[test]
fn a_server_that_dies_leaves_exact_counts() {
    let Some(mut server) = Mongo::ferretdb(&[]) else {
        return skip_because("a server that dies under the official driver", "FerretDB is not there");
    };
    let dyno = Dyno::new();
    let uri = server.uri("t");
    let run =
        ["run", &uri, "--client", "official", "--records", "200", "--duration", "8s", "--timeout", "1s"];
    let more = ["--warmup", "0s", "--users", "4", "--out", "d"];
    let run = dyno.start(&[&run[..], &more].concat());
    dyno.await_phase("d", "measure");
    server.kill();
    let ended = finish(run);
    dyno.assert_ran_but(&ended, dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let lost: u64 = ["timed_out", "unreachable", "disconnected"].map(|o| outcome(measured, o)).iter().sum();
    assert!(outcome(measured, "ok") > 0 && lost > 0, "{}", measured["outcomes"]);
    assert_eq!(arrivals(measured), outcome(measured, "ok") + lost, "{}", measured["outcomes"]);
}

#[test]
fn what_cannot_be_reached_or_meant_is_said_before_any_load() {
    let dyno = Dyno::new();
    for (uri, code, message) in [
        ("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300", 3, "Connection refused"),
        ("mongodb://127.0.0.1:1/?w=0", 2, "use w=1"),
        ("mongodb://h/?readPreference=best", 2, "best"),
        ("mongodb+srv://nowhere.invalid/", 3, "nowhere.invalid"),
        ("redis://127.0.0.1:1", 2, "mongodb+srv://"),
    ] {
        let run = dyno.run(&["run", uri, "--client", "official", "--no-out"]);
        assert_exit(&run, &[code]);
        assert!(stderr(&run).contains(message), "{uri}: {}", stderr(&run));
    }
    let (_, parsed) = (
        ClientDriver::Official,
        registry::parse_for("mongodb+srv://u:p@h/db", ClientDriver::Official).unwrap(),
    );
    assert_eq!(parsed.redacted(), "mongodb+srv://u:***@h/db");
}

const PAIR: &str = "
collections:
  a: { count: 5, document: { n: 1 } }
operations:
  pair:
    transaction:
      - { name: look, find: a, filter: { n: 1 } }
      - { name: take, update: a, filter: { _id: { $key: a } }, change: { $inc: { n: -1 } } }
      - { name: note, insert: a }
";

/// A member of a replica set of one, as the driver wants it; every third insert meets a conflict. `heard` gets the commands of
/// transactions.
fn member(heard: &Arc<Mutex<Vec<Vec<u8>>>>) -> String {
    let heard = heard.clone();
    let inserts = AtomicU64::new(0);
    serve(move |me| -> Script {
        Arc::new(move |command, out| {
            let name = command.name();
            if bson::find_element(&command.document, "autocommit").is_some() {
                heard.lock().unwrap().push(command.document.clone());
            }
            match name.as_str() {
                "hello" | "isMaster" | "ismaster" => {
                    for name in ["ismaster", "isWritablePrimary", "helloOk"] {
                        bson::put_boolean(out, name, true);
                    }
                    for (name, value) in [("setName", "rs"), ("primary", &*me), ("me", &*me)] {
                        bson::put_string(out, name, value);
                    }
                    bson::put_head(out, kind::ARRAY, "hosts");
                    let hosts = bson::open(out);
                    bson::put_string(out, "0", &me);
                    bson::close(out, hosts);
                    for (name, value) in [
                        ("maxBsonObjectSize", 16 << 20),
                        ("maxMessageSizeBytes", 48_000_000),
                        ("maxWriteBatchSize", 100_000),
                        ("logicalSessionTimeoutMinutes", 30),
                        ("minWireVersion", 0),
                        ("maxWireVersion", 21),
                    ] {
                        bson::put_int32(out, name, value);
                    }
                    bson::put_double(out, "ok", 1.0);
                }
                "insert" if inserts.fetch_add(1, Ordering::Relaxed) % 3 == 2 => {
                    error(112, "WriteConflict", out)
                }
                "insert" | "update" => {
                    bson::put_int32(out, "n", 1);
                    bson::put_int32(out, "nModified", 1);
                    bson::put_double(out, "ok", 1.0);
                }
                "find" => cursor(0, "firstBatch", 1, out),
                "commitTransaction" | "abortTransaction" | "ping" | "endSessions" => {
                    bson::put_double(out, "ok", 1.0)
                }
                "count" => {
                    bson::put_int32(out, "n", 0);
                    bson::put_double(out, "ok", 1.0);
                }
                name => error(59, &format!("no such command: {name}"), out),
            }
        })
    })
}

#[test]
fn a_transaction_is_one_session_and_one_number_and_equal_to_the_wire_clients() {
    let mut names = Vec::new();
    for client in CLIENTS {
        let heard: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let server = member(&heard);
        let dyno = Dyno::new();
        std::fs::write(dyno.path("pair.yaml"), PAIR).unwrap();
        let uri = format!("mongodb://{server}/t?replicaSet=rs&w=majority&readPreference=secondaryPreferred");
        let arguments = ["--no-load", "--workload", "pair.yaml", "--ops", "30", "--users", "1", "--out", "d"];
        dyno.assert_ran_but(
            &dyno.run(&[&["run", &uri, "--client", client][..], &arguments].concat()),
            &["errors"],
        );
        let summary = dyno.summary("d");
        let measured = phase(&summary, "measure");
        assert_eq!((outcome(measured, "ok"), outcome(measured, "busy")), (20, 10), "{client}: {measured}");
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 120, "{client}: four commands a transaction");
        for (number, transaction) in heard.chunks(4).enumerate() {
            let field = |command: usize, path: &str| bson::element_at_path(&transaction[command], path);
            for command in 0..4 {
                let at = |number: usize, path| field(number, path).map(|e| e.value.to_vec());
                assert_eq!(at(command, "lsid.id"), at(0, "lsid.id"), "{client}");
                assert_eq!(
                    field(command, "txnNumber").unwrap().as_i64(),
                    Some(number as i64 + 1),
                    "{client}"
                );
                assert!(!field(command, "autocommit").unwrap().is_true());
                assert_eq!(field(command, "startTransaction").is_some(), command == 0, "{client}");
                assert_eq!(field(command, "writeConcern").is_some(), command == 3, "{client}");
            }
            let end = if number % 3 == 2 { "abortTransaction" } else { "commitTransaction" };
            assert!(field(3, end).is_some(), "{client} {number}");
        }
        let name = |document: &Vec<u8>| {
            bson::read_elements(document).unwrap().next().unwrap().unwrap().name.to_vec()
        };
        names.push(heard.iter().map(name).collect::<Vec<_>>());
    }
    assert_eq!(names[0], names[1]);
}

#[test]
fn a_single_server_has_no_transactions() {
    for (name, _server, proxy) in &servers("a transaction by the official driver") {
        let dyno = Dyno::new();
        std::fs::write(dyno.path("pair.yaml"), PAIR).unwrap();
        let uri = proxy.uri("t");
        let refused = dyno.run(&["run", &uri, "--client", "official", "--workload", "pair.yaml", "--no-out"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains("need a replica set or a router"), "{name}: {}", stderr(&refused));
    }
}
