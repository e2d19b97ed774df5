//! A sharded cluster of real `mongod`s behind two real `mongos`, where they are on PATH: what POCDriver shards, loads through
//! several routers, and a router that dies.

use crate::mongod_failover::{OPEN, admin, await_election, check_seconds, form, primary, step_down};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, arrivals, finish, outcome, phase, signal, skip_because};
use dyno_types::bson::{self, kind};
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// What succeeds soon: an election takes its time.
fn soon<T, E: std::fmt::Display>(what: &str, attempt: impl Fn() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(why) => assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {why}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A replica set of one member.
fn set(name: &str, role: &str) -> Option<Mongo> {
    let member = Mongo::from_path("mongod", &["--replSet", name, role])?;
    let host = format!("127.0.0.1:{}", member.port);
    let direct = admin(&format!("mongodb://{host}/t?directConnection=true")).unwrap();
    let initiated = direct.run_on("admin", &|out| {
        bson::head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::string(out, "_id", name);
        bson::boolean(out, "configsvr", role == "--configsvr");
        bson::head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        bson::item(out, kind::DOCUMENT, 0);
        let one = bson::open(out);
        bson::int32(out, "_id", 0);
        bson::string(out, "host", &host);
        bson::close(out, one);
        bson::close(out, list);
        bson::close(out, config);
    });
    initiated.unwrap();
    soon("no primary", || admin(&format!("mongodb://{host}/t?replicaSet={name}")));
    Some(member)
}

/// A cluster; dropped routers first.
struct Cluster {
    routers: Vec<Mongo>,
    _shards: Vec<Mongo>,
    _configuration: Mongo,
    uri: String,
}

fn cluster() -> Option<Cluster> {
    let configuration = set("conf", "--configsvr")?;
    let shards: Vec<Mongo> = ["red", "green"].iter().map(|name| set(name, "--shardsvr").unwrap()).collect();
    let place = format!("conf/127.0.0.1:{}", configuration.port);
    let router = || Mongo::from_path("mongos", &["--configdb", &place]);
    let routers = vec![router()?, router()?];
    let one = soon("no router", || admin(&routers[0].uri("t")));
    for (name, shard) in ["red", "green"].iter().zip(&shards) {
        let place = format!("{name}/127.0.0.1:{}", shard.port);
        soon("no shard", || one.run_on("admin", &|out| bson::string(out, "addShard", &place)));
    }
    let hosts: Vec<String> = routers.iter().map(|router| format!("127.0.0.1:{}", router.port)).collect();
    let uri = format!("mongodb://{}/t", hosts.join(","));
    Some(Cluster { routers, _shards: shards, _configuration: configuration, uri })
}

/// Documents of a collection on each shard.
fn on_shards(uri: &str, collection: &str) -> Vec<i64> {
    let answer = admin(uri).unwrap().run(&|out| bson::string(out, "collStats", collection)).unwrap();
    let count = |name: &str| bson::path(&answer, &format!("shards.{name}.count")).and_then(|e| e.as_i64());
    ["red", "green"].iter().filter_map(|name| count(name)).collect()
}

#[test]
fn collections_are_split_over_shards_and_routers_take_turns() {
    let Some(mut cluster) = cluster() else {
        return skip_because("a sharded cluster of mongod", "mongod or mongos is not on PATH");
    };
    let dyno = Dyno::new();
    // POCDriver shards its collection and cuts it where its threads write.
    let poc =
        ["pocdriver", "-c", &cluster.uri, "-n", "t.poc", "-e", "-t", "2", "-d", "3", "-b", "20", "-k", "20"];
    dyno.assert_ran(&dyno.run(&poc));
    let parts = on_shards(&cluster.uri, "poc");
    assert_eq!(parts.len(), 2, "{parts:?}");
    assert!(parts.iter().all(|count| *count > 0), "{parts:?}");

    // A router that dies takes what it had under way with it; the other goes on.
    let words =
        ["--records", "2000", "--rate", "500", "--connections", "8", "--duration", "10s", "--warmup", "0"];
    let run = dyno.start(&[&["run", &cluster.uri, "--out", "d"][..], &words].concat());
    let begun = Instant::now();
    let measures = || {
        let events = std::fs::read_to_string(dyno.path("d/events.jsonl")).unwrap_or_default();
        events.contains(r#""event":"begin","text":"measure""#)
    };
    while !measures() {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is measured");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(3));
    cluster.routers[1].kill();
    dyno.assert_ran_but(&finish(run), dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let sum: u64 = measured["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, arrivals(measured));
    // Three seconds with both, seven with one; a host that is busy with other things is given half.
    assert!(outcome(measured, "ok") > 2_500, "{measured}");
    let record = std::fs::read_to_string(dyno.path("d").join("run.json")).unwrap();
    assert!(record.contains("\"mongos\""), "{record}");
}

/// A router that freezes is left when it has not answered a check for `connectTimeoutMS`, and used again when it answers.
#[test]
fn a_router_that_freezes_is_left() {
    let Some(cluster) = cluster() else {
        return skip_because("a frozen mongos", "mongod or mongos is not on PATH");
    };
    let start = |(number, (preference, retries)): (usize, (&str, bool))| {
        let dyno = Dyno::new();
        let checks = "heartbeatFrequencyMS=500&connectTimeoutMS=1000&serverSelectionTimeoutMS=10000";
        let again = format!("retryReads={retries}&retryWrites={retries}");
        let uri = format!("{}{number}?readPreference={preference}&{checks}&{again}", cluster.uri);
        let pace = ["--rate", "40", "--connections", "4", "--warmup", "0", "--duration", "16s"];
        let common = ["run", &uri, "--records", "100", "--quiet", "--out", "d"];
        let child = dyno.start(&[&common[..], &pace].concat());
        (format!("{preference} retries {retries}"), dyno, child)
    };
    let all = ["primary", "secondaryPreferred", "nearest"].map(|mode| [(mode, false), (mode, true)]);
    let loads: Vec<_> = all.into_iter().flatten().enumerate().map(start).collect();
    for (_, dyno, _) in &loads {
        dyno.await_phase("d", "measure");
    }
    std::thread::sleep(Duration::from_secs(3));
    let frozen = Timestamp::now();
    signal(cluster.routers[1].pid(), "STOP");
    std::thread::sleep(Duration::from_secs(7));
    signal(cluster.routers[1].pid(), "CONT");
    // A heartbeat, and the time that its answer has.
    let left = frozen + Duration::from_millis(1_500);
    for (name, dyno, child) in loads {
        dyno.assert_ran_but(&finish(child), &OPEN);
        check_seconds(&name, &dyno, left);
    }
}

/// What happens to the primary of a shard.
#[derive(Clone, Copy, Debug)]
enum Fault {
    StepDown,
    Death,
}

/// Routers follow the primary of a shard themselves; dyno's loads go on as soon as they have. One that freezes is not tried: a
/// mongos of 3.6.8 waits for it longer than a run.
#[test]
fn a_shard_whose_primary_is_lost_goes_on() {
    for fault in [Fault::StepDown, Fault::Death] {
        let shard = || Mongo::from_path("mongod", &["--replSet", "dyno", "--shardsvr"]);
        let Some(mut members) = (0..3).map(|_| shard()).collect::<Option<Vec<Mongo>>>() else {
            return skip_because("a shard that loses its primary", "mongod or mongos is not on PATH");
        };
        let place = format!("dyno/{}", form(&members));
        let configuration = set("conf", "--configsvr").unwrap();
        let conf = format!("conf/127.0.0.1:{}", configuration.port);
        let routers = [0, 1].map(|_| Mongo::from_path("mongos", &["--configdb", &conf]).unwrap());
        let one = soon("no router", || admin(&routers[0].uri("t")));
        soon("no shard", || one.run_on("admin", &|out| bson::string(out, "addShard", &place)));
        let hosts = routers.each_ref().map(Mongo::host).join(",");
        let start = |retries: bool| {
            let dyno = Dyno::new();
            let uri = format!("mongodb://{hosts}/t{retries}?retryReads={retries}&retryWrites={retries}");
            let pace = ["--rate", "40", "--connections", "4", "--warmup", "0", "--duration", "24s"];
            let common = ["run", &uri, "--records", "100", "--quiet", "--out", "d"];
            let child = dyno.start(&[&common[..], &pace].concat());
            (format!("{fault:?}, retries {retries}"), dyno, child)
        };
        let loads = [start(false), start(true)];
        for (_, dyno, _) in &loads {
            dyno.await_phase("d", "measure");
        }
        std::thread::sleep(Duration::from_secs(4));
        let (old, since) = (primary(&members), Timestamp::now());
        match fault {
            Fault::StepDown => step_down(&members[old]),
            Fault::Death => members[old].kill(),
        }
        // A mongos of 3.6.8 asks the members of a shard again within five seconds.
        let followed = await_election(&members, old, since) + Duration::from_secs(5);
        for (name, dyno, child) in loads {
            dyno.assert_ran_but(&finish(child), &OPEN);
            check_seconds(&name, &dyno, followed);
        }
    }
}
