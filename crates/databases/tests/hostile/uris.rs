//! Connection strings: whatever stands in them, they are read or refused, and a refusal tells no password.

use dyno_db_memcached::protocol::MemcachedOptions;
use dyno_db_mongodb::protocol::MongoOptions;
use dyno_db_redis::protocol::RedisOptions;
use proptest::prelude::*;

fn piece() -> impl Strategy<Value = String> {
    let known = [
        "mongodb://",
        "mongodb+srv://",
        "redis://",
        "memcached://",
        "rediss://",
        "unix://",
        "@",
        ":",
        "/",
        "?",
        "&",
        "=",
        ",",
        "%",
        "%4",
        "%zz",
        "%00",
        "%ff",
        "[::1]",
        "[",
        "]",
        "localhost",
        "a.b.example.com",
        "27017",
        "65536",
        "0",
        "-1",
        "tls=true",
        "tls=",
        "w=0",
        "w=majority",
        "compressors=",
        "zlib",
        "authMechanism=MONGODB-X509",
        "authMechanism=PLAIN",
        "loadBalanced=true",
        "tlsInsecure=true",
        "apiVersion=1",
        "maxPoolSize=9",
        "authSource=",
        "replicaSet=rs",
        "readPreference=nearest",
        "readPreferenceTags=a:b",
        "maxStalenessSeconds=90",
        "wTimeoutMS=99999999999999999999",
        "srvMaxHosts=3",
        "srvServiceName=x",
        "retryWrites=true",
        "/tmp/x.sock",
        "%2Ftmp%2Fx.sock",
        "db=3",
        "protocol=3",
    ];
    prop_oneof![3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => any::<String>(), 1 => "[a-z]{1,5}"]
}

fn uri() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn any_text_is_read_or_refused(text in uri(), scheme in 0..4usize) {
        let text = format!("{}{text}", ["mongodb://", "mongodb+srv://", "redis://", ""][scheme]);
        if let Ok(options) = MongoOptions::from_uri(&text) {
            prop_assert!(options.check().is_ok());
            prop_assert!(!options.addresses.is_empty() || text.starts_with("mongodb+srv://"));
            let shown = options.redacted();
            prop_assert!(shown.starts_with("mongodb"), "{}", shown);
        }
        if let Ok(options) = MemcachedOptions::from_uri(&text) {
            prop_assert!(options.check().is_ok() && !options.addresses.is_empty());
            prop_assert!(options.redacted().starts_with("memcached"));
        }
        if let Ok(options) = RedisOptions::from_uri(&text) {
            prop_assert!(!options.addresses.is_empty());
            let _ = options.redacted();
        }
    }

    #[test]
    fn passwords_are_not_told(user in "[a-z]{1,4}", password in "[A-Z]{8,12}", rest in uri()) {
        for scheme in ["mongodb", "mongodb+srv", "redis", "memcached"] {
            let text = format!("{scheme}://{user}:{password}@host.example.com/{rest}");
            // A further @ makes the password's end a matter of taste, and what is no password may be repeated.
            if rest.contains('@') || rest.contains(&password) {
                continue;
            }
            let mongo = MongoOptions::from_uri(&text).map_or_else(|refused| refused.to_string(), |options| options.redacted());
            prop_assert!(!scheme.starts_with("mongodb") || !mongo.contains(&password), "{}", mongo);
            let redis = RedisOptions::from_uri(&text).map_or_else(|refused| refused.to_string(), |options| options.redacted());
            prop_assert!(scheme != "redis" || !redis.contains(&password), "{}", redis);
            let other =
                MemcachedOptions::from_uri(&text).map_or_else(|refused| refused.to_string(), |options| options.redacted());
            prop_assert!(scheme != "memcached" || !other.contains(&password), "{}", other);
        }
    }
}
