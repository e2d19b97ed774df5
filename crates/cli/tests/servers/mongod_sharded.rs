//! A sharded cluster of real `mongod`s behind two real `mongos`, where they are on PATH: what POCDriver shards, loads through
//! several routers, and a router that dies.

use crate::mongod_failover::{
    OPEN, admin, await_election, check_seconds, check_seconds_but, form, form_as, primary, step_down,
};
use dyno_testkit::lab::Lab;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, arrivals, finish, outcome, phase, signal, skip_because};
use dyno_types::bson::{self, kind};
use jiff::Timestamp;
use std::process::Child;
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
    initiate(&member, name, role);
    Some(member)
}

/// Makes a replica set of a member.
fn initiate(member: &Mongo, name: &str, role: &str) {
    let host = member.host();
    let direct = admin(&format!("mongodb://{host}/t?directConnection=true")).unwrap();
    let initiated = direct.run_on("admin", &|out| {
        bson::put_head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::put_string(out, "_id", name);
        bson::put_boolean(out, "configsvr", role == "--configsvr");
        bson::put_head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let one = bson::open(out);
        bson::put_int32(out, "_id", 0);
        bson::put_string(out, "host", &host);
        bson::close(out, one);
        bson::close(out, list);
        bson::close(out, config);
    });
    initiated.unwrap();
    soon("no primary", || admin(&format!("mongodb://{host}/t?replicaSet={name}")));
}

/// A cluster; dropped routers first.
pub(crate) struct Cluster {
    pub(crate) routers: Vec<Mongo>,
    _shards: Vec<Mongo>,
    _configuration: Mongo,
    pub(crate) uri: String,
}

pub(crate) fn cluster() -> Option<Cluster> {
    let configuration = set("conf", "--configsvr")?;
    let shards: Vec<Mongo> = ["red", "green"].iter().map(|name| set(name, "--shardsvr").unwrap()).collect();
    let place = format!("conf/127.0.0.1:{}", configuration.port);
    let router = || Mongo::from_path("mongos", &["--configdb", &place]);
    let routers = vec![router()?, router()?];
    let one = soon("no router", || admin(&routers[0].uri("t")));
    for (name, shard) in ["red", "green"].iter().zip(&shards) {
        let place = format!("{name}/127.0.0.1:{}", shard.port);
        soon("no shard", || one.run_on("admin", &|out| bson::put_string(out, "addShard", &place)));
    }
    let hosts: Vec<String> = routers.iter().map(|router| format!("127.0.0.1:{}", router.port)).collect();
    let uri = format!("mongodb://{}/t", hosts.join(","));
    Some(Cluster { routers, _shards: shards, _configuration: configuration, uri })
}

/// Documents of a collection on each shard.
fn on_shards(uri: &str, collection: &str) -> Vec<i64> {
    let answer = admin(uri).unwrap().run(&|out| bson::put_string(out, "collStats", collection)).unwrap();
    let count =
        |name: &str| bson::element_at_path(&answer, &format!("shards.{name}.count")).and_then(|e| e.as_i64());
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

/// Starts a load of a database with or without retries.
fn start(uri: &str, retries: bool, words: &[&str]) -> (Dyno, Child) {
    let dyno = Dyno::new();
    let separator = if uri.contains('?') { '&' } else { '?' };
    let uri = format!("{uri}{separator}retryReads={retries}&retryWrites={retries}");
    let pace = ["--rate", "40", "--connections", "4", "--warmup", "0"];
    let common = ["run", &uri, "--records", "100", "--quiet", "--out", "d"];
    let child = dyno.start(&[&common[..], &pace, words].concat());
    (dyno, child)
}

/// Routers follow the primary of a shard themselves; dyno's loads go on as soon as they have.
#[test]
fn a_shard_whose_primary_is_lost_goes_on() {
    let shard = || Mongo::from_path("mongod", &["--replSet", "dyno", "--shardsvr"]);
    let Some(mut members) = (0..3).map(|_| shard()).collect::<Option<Vec<Mongo>>>() else {
        return skip_because("a shard that loses its primary", "mongod or mongos is not on PATH");
    };
    let place = format!("dyno/{}", form(&members));
    let configuration = set("conf", "--configsvr").unwrap();
    let conf = format!("conf/127.0.0.1:{}", configuration.port);
    let routers = [0, 1].map(|_| Mongo::from_path("mongos", &["--configdb", &conf]).unwrap());
    let one = soon("no router", || admin(&routers[0].uri("t")));
    soon("no shard", || one.run_on("admin", &|out| bson::put_string(out, "addShard", &place)));
    let hosts = routers.each_ref().map(Mongo::host).join(",");
    for fault in [Fault::StepDown, Fault::Death] {
        let loads = [false, true].map(|retries| {
            let (dyno, child) =
                start(&format!("mongodb://{hosts}/{fault:?}{retries}"), retries, &["--duration", "24s"]);
            (format!("{fault:?}, retries {retries}"), dyno, child)
        });
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

/// What says nothing any more for a while, and keeps its connections.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Silence {
    FrozenPrimary,
    CutPrimary,
    CutRouter,
}

/// A mongos of 3.6.8 waits for a shard's primary that is frozen or cut off, and sends it what follows, too: dyno's time-out ends
/// those operations. Operations of another shard never fail. A router that is cut off is left as one that is frozen.
#[test]
fn shards_and_routers_that_fall_silent() {
    let what = "shards and routers that fall silent";
    let Some(lab) = Lab::new(&["db1", "db2", "db3", "far", "near"]) else {
        return skip_because(what, "no network namespaces or no sshd");
    };
    let launch = |program: &str, host: &str, options: &[&str]| {
        Mongo::from_path_in(program, &lab.namespace(host), &lab.address(host), options)
    };
    let hosts = ["db1", "db2", "db3"];
    let members = hosts.map(|host| launch("mongod", host, &["--replSet", "red", "--shardsvr"]));
    let Some(members) = members.into_iter().collect::<Option<Vec<Mongo>>>() else {
        return skip_because(what, "mongod or mongos is not on PATH");
    };
    form_as("red", &members);
    let [green, configuration] = [("green", "--shardsvr"), ("conf", "--configsvr")].map(|(name, role)| {
        let member = launch("mongod", "near", &["--replSet", name, role]).unwrap();
        initiate(&member, name, role);
        member
    });
    let conf = format!("conf/{}", configuration.host());
    let routers = ["far", "near"].map(|host| launch("mongos", host, &["--configdb", &conf]).unwrap());
    let one = soon("no router", || admin(&format!("mongodb://{}/t", routers[1].host())));
    for place in [format!("red/{}", members[0].host()), format!("green/{}", green.host())] {
        soon("no shard", || one.run_on("admin", &|out| bson::put_string(out, "addShard", &place)));
    }
    let routed = routers.each_ref().map(Mongo::host).join(",");
    for silence in [Silence::CutRouter, Silence::FrozenPrimary, Silence::CutPrimary] {
        let all = [("red", false), ("red", true), ("green", false), ("green", true)];
        let loads = all.map(|(shard, retries)| {
            let database = format!("{shard}{silence:?}{retries}");
            soon("no database", || {
                one.run_on("admin", &|out| bson::put_string(out, "enableSharding", &database))
            });
            soon("not moved", || {
                one.run_on("admin", &|out| {
                    bson::put_string(out, "movePrimary", &database);
                    bson::put_string(out, "to", shard);
                })
            });
            let checks = "heartbeatFrequencyMS=500&connectTimeoutMS=1000&serverSelectionTimeoutMS=10000";
            let duration = if silence == Silence::CutRouter { "14s" } else { "26s" };
            let words = ["--timeout", "2s", "--duration", duration];
            let (dyno, child) = start(&format!("mongodb://{routed}/{database}?{checks}"), retries, &words);
            (shard, format!("{silence:?}, {shard}, retries {retries}"), dyno, child)
        });
        for (_, _, dyno, _) in &loads {
            dyno.await_phase("d", "measure");
        }
        std::thread::sleep(Duration::from_secs(3));
        let (old, since) = (primary(&members), Timestamp::now());
        match silence {
            Silence::FrozenPrimary => signal(members[old].pid(), "STOP"),
            Silence::CutPrimary => assert!(lab.cut(hosts[old], true)),
            Silence::CutRouter => assert!(lab.cut("far", true)),
        }
        if silence == Silence::CutRouter {
            std::thread::sleep(Duration::from_secs(5));
        } else {
            await_election(&members, old, since);
            // It is waited for also after another is there.
            std::thread::sleep(Duration::from_secs(2));
        }
        let healed = Timestamp::now();
        match silence {
            Silence::FrozenPrimary => signal(members[old].pid(), "CONT"),
            Silence::CutPrimary => assert!(lab.cut(hosts[old], false)),
            Silence::CutRouter => assert!(lab.cut("far", false)),
        }
        for (number, (shard, name, dyno, child)) in loads.into_iter().enumerate() {
            let retries = all[number].1;
            dyno.assert_ran_but(&finish(child), &OPEN);
            let measured = phase(&dyno.summary("d"), "measure").clone();
            // Each arrival has one outcome.
            assert!(arrivals(&measured) > 0, "{name}");
            match (silence, shard) {
                // A heartbeat, and the time that its answer has. The router comes back with connections to the shards that
                // were cut off, too: it may answer one operation of a connection with an error, and retries go to the other.
                (Silence::CutRouter, _) => {
                    let open: &[&str] = if retries { &[] } else { &["server_error"] };
                    let left = since + Duration::from_millis(1_500);
                    let settled = check_seconds_but(&name, &dyno, left, open).settled;
                    let errors = settled.get("server_error").copied().unwrap_or(0);
                    assert!(errors <= 4, "{name}: {settled:?}");
                }
                (_, "green") => drop(check_seconds(&name, &dyno, Timestamp::UNIX_EPOCH)),
                _ => {
                    assert!(outcome(&measured, "timed_out") > 0, "{name}: {measured}");
                    check_seconds(&name, &dyno, healed + Duration::from_secs(5));
                }
            }
        }
    }
}
