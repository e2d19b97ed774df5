use crate::server::placement::Policy;
use crate::server::tuning::HostTuning;
use crate::server::tuning::Rps;
use crate::server::tuning::RpsWord;
use crate::server::*;

fn read(text: &str) -> Result<ServerSpec, String> {
    serde_saphyr::from_str(text).map_err(|e| e.to_string())
}

fn complaint(text: &str) -> String {
    read(text).unwrap().check().unwrap_err().to_string()
}

#[test]
fn a_file_with_everything_is_read_and_written_back() {
    let text = "
kind: mongod
program: /opt/mongod
options: { setParameter.ttlMonitorEnabled: false, net.maxIncomingConnections: 500 }
arguments: [--quiet]
instances: 2
port: 27017
topology: replica_set
members: 1
placement: { policy: 4, cores_each: 2, node: 1 }
limits: { memory: 2GiB, cpus: 1.5, read_bytes_per_s: 100MiB, write_iops: 500 }
cache: 1GiB
journal: true
compressor: zstd
journal_compressor: none
sync_delay: 900s
engine: wiredTiger
data:
  path: [/a, /b]
  snapshot: true
drop_caches: true
if_not_permitted: continue
";
    let spec = read(text).unwrap();
    spec.check().unwrap();
    assert_eq!(spec.placement.policy, Policy::CoresEachSmt);
    assert_eq!(spec.processes(), 2);
    assert_eq!(spec.data.path.as_ref().unwrap().of_process(3), std::path::Path::new("/b"));
    let written = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<ServerSpec>(&written).unwrap(), spec);
}

#[test]
fn defaults_are_a_single_server_without_limits() {
    let spec = read("kind: redis").unwrap();
    assert_eq!(spec, ServerSpec::of(ServerKind::Redis));
    assert!(spec.placement.is_nothing() && spec.limits.is_nothing());
    spec.check().unwrap();
    let image =
        read("kind: redis\ndata: { image: { filesystem: ext4, size: 64MiB } }").unwrap().data.image.unwrap();
    assert_eq!((image.members, image.mount_options), (1, vec!["noatime".to_owned()]));
}

#[test]
fn policies_have_names_and_numbers() {
    for (number, (name, policy)) in [
        (0, ("interleave", Policy::Interleave)),
        (3, ("cores_each", Policy::CoresEach)),
        (5, ("none", Policy::None)),
    ] {
        for word in [format!("{number}"), name.to_owned(), format!("\"{number}\"")] {
            let read: Placement = serde_saphyr::from_str(&format!("policy: {word}")).unwrap();
            assert_eq!(read.policy, policy, "{word}");
        }
    }
    let wrong = serde_saphyr::from_str::<Placement>("policy: 6").unwrap_err().to_string();
    assert!(wrong.contains("bind_by_port (1)"), "{wrong}");
}

#[test]
fn what_cannot_be_meant_is_named_by_its_key() {
    let wrong = [
        (
            "kind: redis\nlimits: { memory: 4MiB }",
            "limits.memory: 4MiB is less than redis needs, at least 8MiB",
        ),
        (
            "kind: mongod\ncache: 1GiB\nlimits: { memory: 1GiB }",
            "limits.memory: 1GiB is less than mongod with a cache",
        ),
        ("kind: mongod\ncache: 100KiB", "cache: 100KiB: expected 1MiB or more"),
        ("kind: mongod\nengine: inMemory\ncache: 100MiB", "cache: 100MiB: expected 256MiB or more"),
        ("kind: mongod\nengine: rocksdb\ncache: 1536MiB", "cache: 1536MiB: expected whole GiB"),
        ("kind: redis\ntopology: replica_set", "topology: replica_set is for mongod, not redis"),
        ("kind: mongod\ntopology: cluster", "topology: cluster is for redis"),
        ("kind: redis\ntopology: cluster\nmembers: 2", "members: a cluster needs 3"),
        ("kind: redis\ninstances: 0", "instances"),
        ("kind: redis\ninstances: 4000000000", "at most 512"),
        ("kind: redis\nport: 65535\ninstances: 2", "port: 65535"),
        ("kind: redis\nport: 60000\ntopology: cluster", "port: 60000"),
        ("kind: redis\nengine: wiredTiger", "engine: is for mongod, not redis"),
        ("kind: mongod\ncompressor: lz4", "compressor: \"lz4\""),
        ("kind: mongod\nsync_delay: 500ms", "sync_delay"),
        ("kind: redis\ntopology: replication", "replicas: expected 1 or more"),
        ("kind: redis\nreplicas: 1", "replicas: a single server has none"),
        (
            "kind: redis\ntopology: replication\nmembers: 2\nreplicas: 1",
            "members: a replication has one primary",
        ),
        ("kind: redis\ntopology: sharded", "topology: sharded is for mongod, not redis"),
        ("kind: mongod\ntopology: replication\nreplicas: 1", "topology: replication is for redis"),
        ("kind: mongod\ntopology: sharded\nrouters: 0", "routers: expected 1"),
        ("kind: mongod\nrouters: 1", "routers: only a sharded cluster"),
        ("kind: redis\nreads: replica", "reads: there are no copies"),
        ("kind: dragonfly\ntopology: cluster\nreplicas: 1\nreads: any", "reads: clusters of dragonfly"),
        ("kind: mongod\nengine: mmapv1\ncache: 1GiB", "cache: engine mmapv1 has no cache"),
        ("kind: ferretdb\njournal: true", "FerretDB"),
        ("kind: redis\nplacement: { policy: cores_each }", "placement.cores_each"),
        ("kind: redis\nplacement: { policy: interleave, cores: 1 }", "placement.cores"),
        ("kind: redis\nplacement: { cores: '1,0-2' }", "1 is listed twice"),
        ("kind: redis\nplacement: { policy: 1, numactl: -l }", "placement.numactl"),
        ("kind: redis\nlimits: { swap: 1MiB }", "limits.swap"),
        ("kind: redis\nlimits: { cpus: 0 }", "limits.cpus"),
        ("kind: redis\nlimits: { read_iops: 0 }", "limits.read_iops: 0 would stop everything"),
        (
            "kind: redis\ndata: { image: { filesystem: xfs, size: 100MiB } }",
            "data.image.size: 100MiB is too small for xfs",
        ),
        ("kind: redis\ndata: { image: { filesystem: ext4, size: 1GiB, members: 0 } }", "data.image.members"),
        ("kind: redis\ndata: { path: [] }", "data.path"),
    ];
    for (text, expected) in wrong {
        let found = complaint(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    assert!(read("kind: redis\ncash: 1GiB").unwrap_err().contains("cash"));
    assert!(read("kind: oracle").is_err());
}

#[test]
fn host_settings_are_words_that_the_kernel_knows() {
    let tuning: HostTuning = serde_saphyr::from_str(
        "transparent_huge_pages: never\nrps: { eth0: local, eth1: 0-3, eth2: none }\nswappiness: 1",
    )
    .unwrap();
    tuning.check().unwrap();
    assert_eq!(tuning.rps["eth0"], Rps::Word(RpsWord::Local));
    assert_eq!(tuning.rps["eth1"], Rps::Cores(crate::values::Cores(vec![0, 1, 2, 3])));
    let wrong = HostTuning { swappiness: Some(300), ..HostTuning::default() };
    assert!(wrong.check().unwrap_err().key == "swappiness");
    let wrong = HostTuning { defrag: Some("yes".into()), ..HostTuning::default() };
    assert!(wrong.check().unwrap_err().problem.contains("defer+madvise"));
    let wrong = HostTuning { read_ahead_kib: [("../x".to_owned(), 1)].into(), ..HostTuning::default() };
    assert!(wrong.check().is_err());
}

#[test]
fn the_schema_knows_units_and_defaults() {
    let schema = serde_json::to_value(schemars::schema_for!(ServerSpec)).unwrap();
    let text = schema.to_string();
    assert!(
        text.contains("bytes per second") && text.contains("Default: 60s") && text.contains("bind_by_port")
    );
    assert_eq!(schema["additionalProperties"], false);
    let described = schema["properties"].as_object().unwrap().values();
    assert!(described.into_iter().all(|key| key.get("description").is_some()), "{text}");
}
