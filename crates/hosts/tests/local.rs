//! Servers of experiment files, started for real: Redis where it is installed, FerretDB where it has been built, control
//! groups, images and placement of this machine where they are permitted.

#[path = "local/common.rs"]
mod common;
#[path = "local/confined.rs"]
mod confined;
#[path = "local/killed.rs"]
mod killed;
#[path = "local/topologies.rs"]
mod topologies;

use common::{Home, failure, redis, skip, start};
use std::net::TcpListener;
use std::time::Instant;

#[test]
fn instances_on_consecutive_ports_come_and_go() {
    let home = Home::new();
    let Some(mut server) = start(&home, r#"{"kind": "redis", "instances": 3, "cache": "32MiB"}"#) else {
        return;
    };
    let ports = home.ports(&server);
    assert_eq!(ports, [ports[0], ports[0] + 1, ports[0] + 2]);
    for (i, port) in ports.iter().enumerate() {
        assert_eq!(server.client_uris()[i], format!("redis://127.0.0.1:{port}"));
        assert_eq!(redis(*port, &["CONFIG", "GET", "maxmemory"]), "maxmemory\n33554432");
        redis(*port, &["SET", "i", &i.to_string()]);
    }
    assert_eq!(redis(ports[2], &["GET", "i"]), "2", "each has data of its own");
    let facts = server.server_facts();
    assert!(facts["version"].starts_with("Redis server v="), "{facts:?}");
    let command = &facts[&format!("redis-{}.command", ports[1])];
    assert!(command.contains("redis-server") && command.ends_with("redis.conf"), "{command}");
    assert!(
        server.describe_death().is_none() && server.given_cores().is_empty() && server.cgroups().is_empty()
    );
    let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
    assert_eq!(pids.len(), 3);
    let data = server.data_folders();
    server.stop().unwrap();
    home.assert_clear(&pids, &data);
    // Configuration and log stay for readers of the run.
    let own = home.path().join(format!("redis-{}", ports[0]));
    assert!(own.join("redis.conf").exists() && own.join("log").exists());
}

#[test]
fn a_port_in_use_is_refused_before_anything_starts() {
    let home = Home::new();
    let Some(free) =
        start(&home, r#"{"kind": "redis", "instances": 3}"#).map(|server| home.ports(&server)[0])
    else {
        return;
    };
    let taken = TcpListener::bind(("127.0.0.1", free + 2)).unwrap();
    let home = Home::new();
    let error = failure(&home, &format!(r#"{{"kind": "redis", "instances": 3, "port": {free}}}"#));
    assert!(error.contains(&format!("port: {} is in use", free + 2)), "{error}");
    drop(taken);
    let server = start(&home, &format!(r#"{{"kind": "redis", "instances": 3, "port": {free}}}"#)).unwrap();
    assert_eq!(home.ports(&server)[0], free);
}

#[test]
fn a_server_that_never_gets_ready_is_named_with_its_last_words() {
    let home = Home::new();
    let script = home.program(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho I am slow; echo still slow; exec sleep 600\n",
    );
    let begun = Instant::now();
    let error =
        failure(&home, &format!(r#"{{"kind": "redis", "program": "{script}", "ready_within": "1s"}}"#));
    assert!(error.contains("is not ready after 1s") && error.contains("I am slow | still slow"), "{error}");
    // Not only after sleep has ended: it was told to.
    assert!(begun.elapsed().as_secs() < 30);
    home.assert_clear(&[], &[]);
}

#[test]
fn a_server_that_dies_is_named_with_its_last_words() {
    let home = Home::new();
    let broken = r#"{"kind": "redis", "options": {"no-such-setting": "x"}}"#;
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let error = failure(&home, broken);
    assert!(error.contains("has ended (exit status: 1)") && error.contains("no-such-setting"), "{error}");
    home.assert_clear(&[], &[]);

    let mut server = start(&home, r#"{"kind": "redis", "instances": 2}"#).unwrap();
    assert_eq!(server.describe_death(), None);
    let (name, pid) = server.running_processes()[1].clone();
    common::kill(pid);
    let died = common::within(5, || server.describe_death()).unwrap();
    assert!(died.contains(&name) && died.contains("signal: 9") && died.contains("Ready to accept"), "{died}");
    assert!(server.describe_death().is_some(), "it stays dead");
    server.stop().unwrap();
    home.assert_clear(&[], &[]);
}

#[test]
fn programs_and_folders_that_are_not_there() {
    let home = Home::new();
    let error = failure(&home, r#"{"kind": "redis", "program": "no-such-server"}"#);
    assert!(error.contains("no-such-server is not on PATH"), "{error}");
    let error = failure(&home, r#"{"kind": "redis", "program": "/no/such/server"}"#);
    assert!(error.contains("/no/such/server is no program"), "{error}");
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let error = failure(&home, r#"{"kind": "redis", "data": {"path": "/no/such/folder"}}"#);
    assert!(error.contains("data.path: /no/such/folder"), "{error}");
    let error = failure(&home, r#"{"kind": "redis", "limits": {"memory": "1MiB"}}"#);
    assert!(error.contains("server.limits.memory: 1MiB is less than redis needs"), "{error}");
    home.assert_clear(&[], &[]);
}

#[test]
fn data_that_are_there_already_are_not_touched() {
    let home = Home::new();
    let data = tempfile::tempdir().unwrap();
    let spec =
        |port: u16| format!(r#"{{"kind": "redis", "port": {port}, "data": {{"path": {:?}}}}}"#, data.path());
    let port = dyno_localhost::port::free_port().unwrap();
    let theirs = data.path().join(format!("redis-{port}.data"));
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("dump.rdb"), "theirs").unwrap();
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let error = failure(&home, &spec(port));
    assert!(error.contains("is there already"), "{error}");
    assert_eq!(std::fs::read_to_string(theirs.join("dump.rdb")).unwrap(), "theirs");
}

#[test]
fn folders_are_used_in_turn() {
    let home = Home::new();
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spec = format!(
        r#"{{"kind": "redis", "instances": 3, "journal": true, "data": {{"path": [{:?}, {:?}]}}}}"#,
        a.path(),
        b.path()
    );
    let Some(server) = start(&home, &spec) else { return };
    let ports = home.ports(&server);
    ports.iter().for_each(|port| drop(redis(*port, &["SET", "k", "v"])));
    let names = |folder: &tempfile::TempDir| -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    // Each has its mark beside it.
    let (marks, folders): (Vec<String>, Vec<String>) =
        names(&a).into_iter().partition(|name| name.starts_with('.'));
    assert_eq!((folders.len(), marks.len(), names(&b).len()), (2, 2, 2));
    assert!(folders.iter().all(|name| marks.contains(&format!(".{name}.dyno"))), "{folders:?}, {marks:?}");
    assert!(server.data_folders()[2].starts_with(a.path().canonicalize().unwrap()));
    // The append-only file is there.
    assert!(
        server.data_folders()[1].join("appendonlydir").exists()
            || server.data_folders()[1].join("appendonly.aof").exists()
    );
    drop(server);
    assert_eq!((names(&a).len(), names(&b).len()), (0, 0));
}

#[test]
fn a_snapshot_is_put_back_as_often_as_wanted() {
    let home = Home::new();
    for journal in [false, true] {
        let spec = format!(r#"{{"kind": "redis", "journal": {journal}, "data": {{"snapshot": true}}}}"#);
        let Some(mut server) = start(&home, &spec) else { return };
        let port = home.ports(&server)[0];
        assert!(server.restore_snapshot().unwrap_err().to_string().contains("no snapshot"));
        redis(port, &["SET", "k", "loaded"]);
        server.take_snapshot().unwrap();
        for cell in 0..2 {
            assert_eq!(redis(port, &["GET", "k"]), "loaded");
            redis(port, &["SET", "k", &cell.to_string()]);
            redis(port, &["SET", "more", "x"]);
            server.restore_snapshot().unwrap();
        }
        assert_eq!(redis(port, &["DBSIZE"]), "1");
        let data = server.data_folders();
        server.stop().unwrap();
        home.assert_clear(&[], &data);
        assert!(!data[0].with_extension("snapshot").exists());
    }
    let mut server = start(&home, r#"{"kind": "redis"}"#).unwrap();
    assert!(server.take_snapshot().unwrap_err().to_string().contains("not asked for"));
}

#[test]
fn a_password_is_in_the_uri_and_in_no_command_line() {
    let home = Home::new();
    let Some(server) = start(&home, r#"{"kind": "redis", "options": {"requirepass": "s e/c"}}"#) else {
        return;
    };
    assert!(
        server.client_uris()[0].starts_with("redis://:s%20e%2Fc@127.0.0.1:"),
        "{:?}",
        server.client_uris()
    );
    assert!(server.server_facts().values().all(|fact| !fact.contains("s e/c")));
}

#[test]
fn other_servers_start_where_they_are_installed() {
    for kind in ["valkey", "keydb", "dragonfly", "mongod"] {
        let home = Home::new();
        let json = format!(
            r#"{{"kind": "{kind}", "instances": 2, "cache": "512MiB", "data": {{"snapshot": true}}}}"#
        );
        let Some(mut server) = start(&home, &json) else { continue };
        server.take_snapshot().unwrap();
        server.restore_snapshot().unwrap();
        server.client_uris().iter().for_each(|uri| assert!(!common::open(uri).product_name().is_empty()));
        let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
        let data = server.data_folders();
        server.stop().unwrap();
        home.assert_clear(&pids, &data);
    }
}

#[test]
fn a_stand_in_for_dragonfly_reads_its_flags() {
    let home = Home::new();
    // It takes from the file of flags what it needs, and is a redis-server.
    let script = home.program(
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo dragonfly v0; exit; }\nfile=${1#--flagfile=}\n\
         value() { sed -n \"s/^--$1=//p\" \"$file\"; }\n\
         exec redis-server --bind \"$(value bind)\" --port \"$(value port)\" --dir \"$(value dir)\" \\\n\
         --dbfilename \"$(value dbfilename)\"\n",
    );
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let json = format!(
        r#"{{"kind": "dragonfly", "program": {script:?}, "instances": 2, "data": {{"snapshot": true}}}}"#
    );
    let mut server = start(&home, &json).unwrap();
    assert_eq!(server.server_facts()["version"], "dragonfly v0");
    let port = home.ports(&server)[1];
    redis(port, &["SET", "k", "loaded"]);
    server.take_snapshot().unwrap();
    redis(port, &["SET", "k", "changed"]);
    server.restore_snapshot().unwrap();
    assert_eq!(redis(port, &["GET", "k"]), "loaded");
    let data = server.data_folders();
    assert!(data[1].join("dump").is_file());
    server.stop().unwrap();
    home.assert_clear(&[], &data);
}

#[test]
fn ferretdb_starts_keeps_a_snapshot_and_goes() {
    let home = Home::new();
    let Some(program) = common::ferretdb() else {
        return skip("FerretDB", "it has not been built (scripts/need mongo)");
    };
    let spec = format!(
        r#"{{"kind": "ferretdb", "program": {program:?}, "instances": 2, "data": {{"snapshot": true}}}}"#
    );
    let mut server = start(&home, &spec).unwrap();
    let uri = server.client_uris()[1].clone();
    common::insert(&uri, 3);
    server.take_snapshot().unwrap();
    common::insert(&uri, 2);
    assert_eq!(common::count(&uri), 5);
    server.restore_snapshot().unwrap();
    assert_eq!(common::count(&uri), 3);
    let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
    let data = server.data_folders();
    server.stop().unwrap();
    home.assert_clear(&pids, &data);
}
