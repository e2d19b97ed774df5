//! How each kind of server is configured.

use dyno_config::server::{ServerSpec, Topology};
use dyno_databases::registry::{self, server};
use dyno_db::servers::{LaunchConfig, ServerNode};
use dyno_localhost::error::LocalError;

fn node(kind: &str) -> ServerNode {
    ServerNode {
        name: format!("{kind}-7000"),
        address: std::net::Ipv4Addr::LOCALHOST.into(),
        port: 7000,
        home: "/run/h".into(),
        data: "/data/d".into(),
        instance: 1,
        number: 0,
        cores: Some(2),
        config: None,
    }
}

fn config_of(json: &str) -> Result<LaunchConfig, LocalError> {
    config_by(json, "")
}

fn config_by(json: &str, version: &str) -> Result<LaunchConfig, LocalError> {
    let spec: ServerSpec = serde_json::from_str(json).unwrap();
    spec.check().unwrap();
    server(spec.kind).launch_config(&spec, &node("x"), version)
}

fn text(told: &LaunchConfig) -> Vec<&str> {
    told.configuration.as_ref().unwrap().1.lines().collect()
}

#[test]
fn redis_and_its_kin_read_a_file() {
    for kind in ["redis", "valkey", "keydb"] {
        let json = format!(
            r#"{{"kind": "{kind}", "cache": "64MiB", "journal": true, "arguments": ["--loglevel", "debug"],
            "options": {{"maxmemory-policy": "allkeys-lru", "activedefrag": true, "maxclients": 99, "save": "60 1"}}}}"#
        );
        let told = config_of(&json).unwrap();
        assert_eq!(told.arguments, ["/run/h/redis.conf", "--loglevel", "debug"]);
        let lines = text(&told);
        for line in [
            "bind 127.0.0.1",
            "port 7000",
            "dir \"/data/d\"",
            "appendonly yes",
            "maxmemory 67108864",
            "maxmemory-policy allkeys-lru",
            "activedefrag yes",
            "maxclients 99",
            "save 60 1",
        ] {
            assert!(lines.contains(&line), "{line}: {lines:?}");
        }
        assert_eq!(lines.iter().filter(|line| line.starts_with("maxclients")).count(), 1);
        assert!(!lines.iter().any(|line| line.starts_with("cluster")));
    }
}

#[test]
fn a_cluster_node_keeps_its_cluster_in_its_data() {
    let told =
        config_of(r#"{"kind": "redis", "topology": "cluster", "options": {"requirepass": "a\"b"}}"#).unwrap();
    let lines = text(&told);
    for line in [
        "cluster-enabled yes",
        "cluster-config-file nodes.conf",
        r#"masterauth "a\"b""#,
        r#"requirepass "a\"b""#,
    ] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
}

#[test]
fn dragonfly_reads_flags() {
    let told =
        config_of(r#"{"kind": "dragonfly", "cache": "1GiB", "options": {"cache_mode": true}}"#).unwrap();
    assert_eq!(told.arguments, ["--flagfile=/run/h/dragonfly.flags"]);
    let lines = text(&told);
    for line in [
        "--bind=127.0.0.1",
        "--port=7000",
        "--dbfilename=",
        "--maxmemory=1073741824",
        "--proactor_threads=2",
        "--cache_mode=true",
    ] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    for (json, most) in [
        (r#"{"kind": "dragonfly", "limits": {"memory": "1GiB"}}"#, "--maxmemory=858993456"),
        // Not less than its threads demand.
        (r#"{"kind": "dragonfly", "limits": {"memory": "600MiB"}}"#, "--maxmemory=536870912"),
    ] {
        assert!(text(&config_of(json).unwrap()).contains(&most), "{json}");
    }
    let error = config_of(r#"{"kind": "dragonfly", "cache": "300MiB"}"#).unwrap_err().to_string();
    assert!(error.contains("256 MiB that Dragonfly wants for each of 2 threads"), "{error}");
}

#[test]
fn memcached_reads_its_command_line() {
    let told = config_of(
        r#"{"kind": "memcached", "cache": "64MiB", "arguments": ["-v"],
            "options": {"conn-limit": 99, "threads": 1}}"#,
    )
    .unwrap();
    assert!(told.configuration.is_none());
    let expected = [
        "--listen=127.0.0.1",
        "--port=7000",
        "--udp-port=0",
        "--user=root",
        "--memory-limit=64",
        "--conn-limit=99",
        "--threads=1",
        "-v",
    ];
    assert_eq!(told.arguments, expected);
    let own = config_of(r#"{"kind": "memcached"}"#).unwrap().arguments;
    assert!(
        own.contains(&"--threads=2".to_owned()) && !own.iter().any(|one| one.contains("memory")),
        "{own:?}"
    );
    let error = config_of(r#"{"kind": "memcached", "options": {"port": 3}}"#).unwrap_err().to_string();
    assert!(error.contains("options.port: dyno sets it; use port"), "{error}");
}

#[test]
fn mongod_reads_yaml() {
    let json = r#"{"kind": "mongod", "cache": "1536MiB", "journal": true, "compressor": "zstd", "sync_delay": "900s",
        "engine": "wiredTiger", "journal_compressor": "none", "topology": "replica_set",
        "options": {"setParameter.ttlMonitorEnabled": false, "operationProfiling.mode": "off"}}"#;
    let told = config_by(json, "db version v4.4.1").unwrap();
    assert_eq!(told.arguments, ["--config", "/run/h/mongod.conf"]);
    let expected = r#"# Written by dyno for this run.
net:
  bindIp: "127.0.0.1"
  port: 7000
  unixDomainSocket:
    enabled: false
operationProfiling:
  mode: "off"
replication:
  replSetName: "rs1"
setParameter:
  ttlMonitorEnabled: false
storage:
  dbPath: "/data/d"
  directoryPerDB: false
  engine: "wiredTiger"
  journal:
    enabled: true
  syncPeriodSecs: 900
  wiredTiger:
    collectionConfig:
      blockCompressor: "zstd"
    engineConfig:
      cacheSizeGB: 1.5
      journalCompressor: "none"
"#;
    assert_eq!(told.configuration.unwrap().1, expected);
}

#[test]
fn the_journal_of_a_new_mongod_is_mandatory() {
    let json = |on: bool| format!(r#"{{"kind": "mongod", "journal": {on}}}"#);
    let written = |told: &LaunchConfig| text(told).contains(&"  journal:");
    assert!(written(&config_by(&json(false), "db version v6.0.4").unwrap()));
    assert!(!written(&config_by(&json(true), "db version v6.1.0").unwrap()));
    assert!(!written(&config_by(&json(true), "db version v10.0").unwrap()));
    let error = config_by(&json(false), "db version v7.0.14").unwrap_err().to_string();
    assert!(error.contains("mandatory from mongod 6.1"), "{error}");
    // One that is unknown, as that of an image, is told what was asked for.
    assert!(written(&config_by(&json(false), "unknown").unwrap()));
}

#[test]
fn other_engines_have_other_caches() {
    let memory = config_of(r#"{"kind": "mongod", "engine": "inMemory", "cache": "1GiB"}"#).unwrap();
    assert!(text(&memory).contains(&"      inMemorySizeGB: 1"), "{memory:?}");
}

#[test]
fn processes_of_a_sharded_cluster_have_parts() {
    let json = r#"{"kind": "mongod", "topology": "sharded", "members": 2, "replicas": 1, "routers": 2,
        "engine": "mmapv1", "arguments": ["--quiet"],
        "options": {"setParameter.ttlMonitorEnabled": false, "net.maxIncomingConnections": 50, "storage.syncPeriodSecs": 5}}"#;
    let json = json.replace(r#", "storage.syncPeriodSecs": 5"#, r#", "storage.mmapv1.smallFiles": true"#);
    let spec: ServerSpec = serde_json::from_str(&json).unwrap();
    spec.check().unwrap();
    assert_eq!((spec.processes_each(), spec.processes()), (7, 7));
    let part = |number: usize| {
        let node = ServerNode { number, port: 7000 + number as u16, ..node("x") };
        let told = server(spec.kind).launch_config(&spec, &node, "db version v3.6.8").unwrap();
        (told.configuration.unwrap(), told.arguments)
    };
    let has = |number: usize, words: &[&str]| {
        let ((name, text), arguments) = part(number);
        words.iter().for_each(|word| assert!(text.contains(word), "{number} {name}: {word}: {text}"));
        assert!(text.contains("maxIncomingConnections: 50"), "{text}");
        // Parameters of mongod and its arguments would end a router.
        assert_eq!(text.contains("ttlMonitorEnabled"), number < 5, "{number}: {text}");
        assert_eq!(arguments.contains(&"--quiet".to_owned()), (1..5).contains(&number), "{number}");
        name
    };
    has(0, &["configsvr", "replSetName: \"cfg1\"", "ttlMonitorEnabled: false"]);
    assert!(!part(0).0.1.contains("mmapv1"), "{}", part(0).0.1);
    for (number, set) in [(1, "rs1-0"), (2, "rs1-0"), (3, "rs1-1"), (4, "rs1-1")] {
        has(
            number,
            &["shardsvr", "engine: \"mmapv1\"", "smallFiles: true", &format!("replSetName: \"{set}\"")],
        );
    }
    for number in [5, 6] {
        // The config server is the first of the instance's ports.
        let name = has(number, &["configDB: \"cfg1/127.0.0.1:7000\"", &format!("port: {}", 7000 + number)]);
        assert_eq!(name, "mongos.conf");
        assert!(!part(number).0.1.contains("storage"), "{}", part(number).0.1);
    }
}

#[test]
fn nodes_of_dragonfly_have_a_port_for_administration() {
    let told = config_of(r#"{"kind": "dragonfly", "topology": "cluster", "options": {"requirepass": "pw"}}"#)
        .unwrap();
    let lines = text(&told);
    for line in ["--cluster_mode=yes", "--admin_port=17000", "--admin_bind=127.0.0.1", "--masterauth=pw"] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    let refused = config_of(r#"{"kind": "dragonfly", "topology": "cluster", "options": {"admin_port": 1}}"#);
    assert!(refused.unwrap_err().to_string().contains("10,000 above port"));
}

#[test]
fn ferretdb_has_flags_alone() {
    let told = config_of(r#"{"kind": "ferretdb", "options": {"log-level": "ERROR"}, "arguments": ["--x"]}"#)
        .unwrap();
    assert_eq!(told.configuration, None);
    let flags = ["--sqlite-url=file:/data/d/", "--listen-addr=127.0.0.1:7000", "--log-level=ERROR", "--x"];
    assert!(flags.iter().all(|flag| told.arguments.iter().any(|a| a == flag)), "{told:?}");
    assert_eq!(told.arguments.iter().filter(|a| a.starts_with("--log-level")).count(), 1);
}

#[test]
fn what_dyno_sets_is_not_an_option() {
    for (json, expected) in [
        (r#"{"kind": "redis", "options": {"port": 1}}"#, "options.port: dyno sets it; use port"),
        (r#"{"kind": "dragonfly", "options": {"maxmemory": "1gb"}}"#, "use cache"),
        (r#"{"kind": "mongod", "options": {"storage.dbPath": "/x"}}"#, "use data.path"),
        (r#"{"kind": "ferretdb", "options": {"handler": "pg"}}"#, "options.handler"),
        (r#"{"kind": "mongod", "options": {"net": "x"}}"#, "another key is above or below it"),
        (r#"{"kind": "redis", "options": {"a": "b\nport 1"}}"#, "a value is one line"),
        (r#"{"kind": "redis", "options": {"a\nport": 1}}"#, "is no name of a setting"),
    ] {
        let error = config_of(json).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn uris_are_those_that_targets_are_read_from() {
    let uri = |json: &str| {
        let spec: ServerSpec = serde_json::from_str(json).unwrap();
        let (a, mut b) = (node("a"), node("b"));
        b.port = 7001;
        let nodes = if spec.topology == Topology::Single { vec![&a] } else { vec![&a, &b] };
        let uri = server(spec.kind).uri(&spec, &nodes);
        registry::parse(&uri).unwrap();
        uri
    };
    assert_eq!(uri(r#"{"kind": "redis"}"#), "redis://127.0.0.1:7000");
    assert_eq!(
        uri(r#"{"kind": "redis", "options": {"requirepass": "p@s s"}}"#),
        "redis://:p%40s%20s@127.0.0.1:7000"
    );
    assert_eq!(
        uri(r#"{"kind": "valkey", "topology": "cluster"}"#),
        "redis://127.0.0.1:7000,127.0.0.1:7001?cluster=true"
    );
    assert_eq!(uri(r#"{"kind": "ferretdb"}"#), "mongodb://127.0.0.1:7000/");
    let set = uri(r#"{"kind": "mongod", "topology": "replica_set"}"#);
    assert_eq!(set, "mongodb://127.0.0.1:7000,127.0.0.1:7001/?replicaSet=rs1");
}
