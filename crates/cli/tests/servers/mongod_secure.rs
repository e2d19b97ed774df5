//! A real `mongod`, where it is on PATH, behind TLS and with logins: SCRAM, X.509, and messages that are compressed.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::cluster::Certificates;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, outcome, phase, skip_because, stderr};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

fn admin(uri: &str) -> MongoAdmin {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    MongoAdmin::from_target(registry::parse(uri).unwrap().open(content, &|| false).unwrap().as_ref()).unwrap()
}

/// A user that may do everything; without a password in the database of certificates.
fn create(admin: &MongoAdmin, user: &str, password: Option<&str>) {
    create_with_role(admin, user, password, "root");
}

fn create_with_role(admin: &MongoAdmin, user: &str, password: Option<&str>, role_name: &str) {
    let database = if password.is_some() { "admin" } else { "$external" };
    let created = admin.run_on(database, &|out| {
        bson::put_string(out, "createUser", user);
        if let Some(password) = password {
            bson::put_string(out, "pwd", password);
        }
        bson::put_head(out, kind::ARRAY, "roles");
        let list = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let role = bson::open(out);
        bson::put_string(out, "role", role_name);
        bson::put_string(out, "db", "admin");
        bson::close(out, role);
        bson::close(out, list);
    });
    created.unwrap();
}

#[test]
fn logins_by_password_and_by_certificate_over_tls() {
    let Some(certificates) = Certificates::make() else {
        return skip_because("logins of mongod", "openssl is not installed");
    };
    let dyno = Dyno::new();
    // Certificate and key in one file, as mongod and drivers want them.
    let both = |name: &str| {
        let parts =
            ["pem", "key"].map(|end| std::fs::read(certificates.path(&format!("{name}.{end}"))).unwrap());
        let file = dyno.path(&format!("{name}-both.pem"));
        std::fs::write(&file, parts.concat()).unwrap();
        file.display().to_string()
    };
    let (server, client) = (both("server"), both("client"));
    let ca = certificates.path("ca.pem").display().to_string();
    let options = ["--auth", "--sslMode", "requireSSL", "--sslPEMKeyFile", &server, "--sslCAFile", &ca];
    let more = ["--networkMessageCompressors", "snappy,zlib"];
    let Some(mongod) = Mongo::from_path("mongod", &[&options[..], &more].concat()) else {
        return skip_because("logins of mongod", "mongod is not on PATH");
    };
    let host = format!("127.0.0.1:{}", mongod.port);
    let tls = format!("tlsCAFile={ca}&tlsCertificateKeyFile={client}");
    // The first user is made without being one, the second by the first.
    create(&admin(&format!("mongodb://{host}/t?{tls}")), "bench", Some("planted-pw"));
    let root = format!("mongodb://bench:planted-pw@{host}/t?authSource=admin&{tls}");
    create(&admin(&root), "CN=localhost", None);

    let run = |login: &str, query: &str| {
        let uri = format!("mongodb://{login}{host}/t?{tls}{query}");
        let _ = std::fs::remove_dir_all(dyno.path("d"));
        dyno.run(&["run", &uri, "--records", "200", "--reload", "--ops", "500", "--users", "4", "--out", "d"])
    };
    let x509 = "&authMechanism=MONGODB-X509";
    for (login, query) in [
        ("bench:planted-pw@", "&authSource=admin"),
        ("bench:planted-pw@", "&authSource=admin&authMechanism=SCRAM-SHA-1&compressors=snappy"),
        ("", x509),
        ("CN%3Dlocalhost@", &format!("{x509}&compressors=zlib")),
    ] {
        let ran = run(login, query);
        dyno.assert_ran(&ran);
        assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 500, "{query}");
    }
    for (login, query, message) in [
        ("bench:wrong@", "&authSource=admin", "AuthenticationFailed"),
        ("CN%3Dsomebody@", x509, "AuthenticationFailed"),
    ] {
        let refused = run(login, query);
        assert_exit(&refused, &[2, 3]);
        let said = stderr(&refused);
        assert!(said.contains(message) && !said.contains("wrong@"), "{query}: {said}");
    }
    // A client that has not logged in may do nothing, and every operation says so.
    let anonymous = run("", "");
    assert_exit(&anonymous, &[5]);
    assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "forbidden"), 500);
    // By the server's own count both kinds of compression were spoken.
    let status = admin(&root).run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    for name in ["snappy", "zlib"] {
        let path = format!("network.compression.{name}.decompressor.bytesIn");
        let bytes = bson::element_at_path(&status, &path).and_then(|e| e.as_i64()).unwrap_or(0);
        assert!(bytes > 10_000, "{name}: {bytes}");
    }
}

#[test]
fn a_user_who_may_not_ask_for_the_write_concern_is_told_so() {
    let what = "a user of mongod without clusterMonitor";
    let dyno = Dyno::new();
    let key = dyno.path("key");
    std::fs::write(&key, "cGxhbnRlZCBrZXkgb2YgYSB0ZXN0\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let options = ["--auth", "--replSet", "dyno", "--keyFile", &key.display().to_string()];
    let Some(mongod) = Mongo::from_path("mongod", &options) else {
        return skip_because(what, "mongod is not on PATH");
    };
    let host = format!("127.0.0.1:{}", mongod.port);
    let alone = admin(&format!("mongodb://{host}/t?directConnection=true"));
    let initiated = alone.run_on("admin", &|out| {
        bson::put_head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::put_string(out, "_id", "dyno");
        bson::put_head(out, kind::ARRAY, "members");
        let members = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let member = bson::open(out);
        bson::put_int32(out, "_id", 0);
        bson::put_string(out, "host", &host);
        bson::close(out, member);
        bson::close(out, members);
        bson::close(out, config);
    });
    initiated.unwrap();
    let is_primary = || {
        let told = alone.run_on("admin", &|out| bson::put_int32(out, "isMaster", 1)).unwrap();
        bson::find_element(&told, "ismaster").is_some_and(|e| e.is_true())
    };
    let begun = Instant::now();
    while !is_primary() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no primary is elected");
        std::thread::sleep(Duration::from_millis(100));
    }
    create(&alone, "root", Some("planted-pw"));
    let of = |user: &str| format!("mongodb://{user}:planted-pw@{host}/t?authSource=admin&replicaSet=dyno");
    create_with_role(&admin(&of("root")), "plain", Some("planted-pw"), "readWriteAnyDatabase");
    let durability = |user: &str| {
        let _ = std::fs::remove_dir_all(dyno.path("d"));
        let run = ["run", &of(user), "--records", "100", "--reload", "--ops", "200", "--out", "d"];
        dyno.assert_ran(&dyno.run(&run));
        let text = std::fs::read(dyno.path("d/run.json")).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let fact = |name: &str| said["facts"][name].as_str().unwrap_or_default().to_owned();
        (fact("durability"), fact("refused"))
    };
    let (told, refused) = durability("root");
    assert_eq!(told, "write concern w: 1", "a set of 3.6 whose configuration names no other");
    assert_eq!(refused, "");
    let (told, refused) = durability("plain");
    assert!(
        told.starts_with("write concern: not told by the server (replSetGetConfig was refused"),
        "{told}"
    );
    assert!(refused.contains("serverStatus: Unauthorized (13)"), "{refused}");
}
