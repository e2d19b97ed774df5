use super::*;

#[test]
fn settings_of_servers() {
    let text = "port 1\nrequirepass \"a b\"\nmasterauth x\n--requirepass=x\nsecurity:\n  keyPassword: x\n";
    let masked = "port 1\nrequirepass ***\nmasterauth ***\n--requirepass=***\nsecurity:\n  keyPassword:***\n";
    assert_eq!(mask_settings(text), masked);
    assert_eq!(mask_settings(""), "");
    let redis = "tls-key-file-pass x\nuser default on >pw ~* +@all\nUSER\ta on \">p w\"\nuser b off\nuse >x";
    let masked = "tls-key-file-pass ***\nuser default ***\nUSER\ta ***\nuser b off\nuse >x";
    assert_eq!(mask_settings(redis), masked);
}

#[test]
fn passwords_disappear() {
    assert_eq!(mask_text("redis://bob:hunter2@h:1/0"), "redis://bob:***@h:1/0");
    assert_eq!(mask_text("at redis://:p@ss:w/ord@h/0?x=1 now"), "at redis://:***@h/0?x=1 now");
    assert_eq!(mask_text("redis://h:6379"), "redis://h:6379");
    assert_eq!(mask_text("redis://:pa?ss@h:1/0?x=1"), "redis://:***@h:1/0?x=1");
    assert_eq!(mask_text("redis://:pa?x=ss@h:1"), "redis://:***@h:1");
    assert_eq!(mask_text("redis://u:p?a=b@c@h:1"), "redis://u:***@h:1");
    assert_eq!(mask_text("redis://h:1/a?b@u:p@h?x"), "redis://h:***@h?x");
    let plain = "mongodb://a:1,[::1]:2/db?appName=me@here";
    assert_eq!(mask_text(plain), plain);
    let odd = "m://me:se:1]:2,b/db?rm://me:secret@[::1]:t=a:x@[::12";
    assert_eq!(mask_text(odd), "m://me:***@[::12");
    let nested = "http://h/?to=redis://u:p@h:1/0?x=redis://:q@i";
    assert_eq!(mask_text(nested), "http://h/?to=redis://u:***@h:1/0?x=redis://:***@i");
    assert_eq!(mask_text("redis://h?password=abc&db=1"), "redis://h?password=***&db=1");
    let aws = "mongodb://u:p@h/?authMechanismProperties=A:b,AWS_SESSION_TOKEN:hunter2&w=1";
    assert_eq!(mask_text(aws), "mongodb://u:***@h/?authMechanismProperties=***&w=1");
    let arguments = ["-p", "redis.password=hunter2", "--password", "hunter2", "-threads", "4"];
    let masked = mask_arguments(&arguments.map(str::to_owned)).join(" ");
    assert_eq!(masked, "-p redis.password=*** --password *** -threads 4");
}

#[test]
fn of_a_rule_the_name_stays() {
    assert_eq!(mask_user("a on >pw ~* +@all"), "a ***");
    assert_eq!(mask_user("a on \">my secret\" ~*"), "a ***");
    assert_eq!(mask_user("a\ton\t#12ab"), "a ***");
    assert_eq!(mask_user("bob"), "bob");
    assert_eq!(mask_user("default off"), "default off");
    assert!(is_user("server.options.User") && is_user("user") && !is_user("users"));
}

#[test]
fn values_by_their_names() {
    for (key, value, shown) in [
        ("redis.password", "x", "***"),
        ("redis.password", "", ""),
        ("redis.uri", "redis://bob:se@c/ret@h:1/2?db=3", "redis://bob:***@h:1/2?db=3"),
        ("redis.uri", "redis://:a?b@h", "redis://:***@h"),
        ("redis.uri", "redis://h:1/2?x=a@b", "redis://h:1/2?x=a@b"),
        ("redis.uri", "redis://bob@h", "redis://bob@h"),
        ("redis.uri", " redis:bob:x@h", " redis:bob:***@h"),
        ("redis.uri", "unix:/run/r.sock", "unix:/run/r.sock"),
        ("target", "redis:/:hunter2@h:1", "redis:/:***@h:1"),
        ("target", "redis//:hunter2@h", "redis//:***@h"),
        ("target", "redis:hunter2@h", "redis:***@h"),
        // A file's name and a query are no logins; a secret of the query stays one.
        ("target", "sqlite:/x@y.db", "sqlite:/x@y.db"),
        ("target", "sqlite:x@y.db?password=hunter2", "sqlite:x@y.db?password=***"),
        ("target", "sqlite:/a/x@y.db?journal=wal", "sqlite:/a/x@y.db?journal=wal"),
        ("target", "null:?stall=1s@10s", "null:?stall=1s@10s"),
        ("target", "sim:?password=hunter2&stall=1s@10s", "sim:?password=***&stall=1s@10s"),
        ("target", "bob:hunter2@h:1/0", "bob:***@h:1/0"),
        ("target", "redis:\\\\u:hunter2@h", "redis:\\\\u:***@h"),
        ("mongodb.url", "mongodb://u:p@h|mongodb://u:q@h", "mongodb://u:***@h|mongodb://u:***@h"),
        ("redis.uri", "redis://h?password=x&db=1&token=", "redis://h?password=***&db=1&token="),
        (
            "target",
            "mongodb://h/?authMechanismProperties=A:b,AWS_SESSION_TOKEN:x&w=1",
            "mongodb://h/?authMechanismProperties=***&w=1",
        ),
        ("label", "a:b@c", "a:b@c"),
        ("server.options.user", "a on >pw ~*", "a ***"),
    ] {
        assert_eq!(mask_value(key, value), shown, "{value}");
    }
}

#[test]
fn command_lines() {
    for (line, shown) in [
        ("ycsb|-p|redis.password hunter2|-s", "ycsb|-p|redis.password ***|-s"),
        ("ycsb|-p|redis.password: hunter2", "ycsb|-p|redis.password:***"),
        (
            "run|--set|server.options={requirepass: hunter2, port: 1}",
            "run|--set|server.options={requirepass: ***, port: 1}",
        ),
        (
            "run|--set|server={options: {\"requirepass\": \"hun,ter2\"",
            "run|--set|server={options: {\"requirepass\": ***",
        ),
        ("run|redis//:hunter2@h:1", "run|redis//:***@h:1"),
        ("run|--set|target=redis:/:hunter2@h", "run|--set|target=redis:/:***@h"),
        ("redis-cli|-a|hunter2|ping", "redis-cli|-a|***|ping"),
        ("/usr/bin/mongosh|-u|me|-p|hunter2", "/usr/bin/mongosh|-u|me|-p|***"),
        (
            "load|mongodb|-P|a|-p|recordcount=5|-p|mongodb.url=mongodb://h/x",
            "load|mongodb|-P|a|-p|recordcount=5|-p|mongodb.url=mongodb://h/x",
        ),
        ("sh|-c|redis-cli -a hunter2 ping && echo  done", "sh|-c|redis-cli -a *** ping && echo  done"),
        ("env|REDISCLI_AUTH=x|MY_TOKEN=hunter2|redis-cli", "env|REDISCLI_AUTH=x|MY_TOKEN=***|redis-cli"),
        ("run|-p|threadcount=4|--users|8", "run|-p|threadcount=4|--users|8"),
        ("run|--password-from|env:NAME", "run|--password-from|env:NAME"),
        ("git|clone|x@y", "git|clone|x@y"),
        ("dyno|memtier|-a|hunter2|-p|7", "dyno|memtier|-a|***|-p|7"),
        ("dyno|memtier|-ahunter2|-p|7", "dyno|memtier|-a***|-p|7"),
        ("dyno|memtier|--authenticate|me:hunter2", "dyno|memtier|--authenticate|***"),
        ("dyno|memtier|--auth=hunter2|-n|5", "dyno|memtier|--auth=***|-n|5"),
        ("dyno|redis-benchmark|-a|hunter2|-t|set", "dyno|redis-benchmark|-a|***|-t|set"),
        ("dyno|redis-benchmark|-u|redis://hunter2@h:1/0", "dyno|redis-benchmark|-u|redis://***@h:1/0"),
        ("dyno|valkey-benchmark|-u|redis://me:hunter2@h", "dyno|valkey-benchmark|-u|redis://me:***@h"),
    ] {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        assert_eq!(mask_arguments(&words).join("|"), shown);
    }
}

#[test]
fn what_was_hidden_is_found() {
    for (name, value, found) in [
        ("redis.uri", "redis://u:hunter2@h?password=other7&db=1", &["hunter2", "other7"][..]),
        ("redis.password", "hunter2", &["hunter2"]),
        ("server.options.user", "a on >pw ~*", &["on >pw ~*", "pw"]),
        ("redis.uri", "redis://h", &[]),
        ("redis.password", "***", &[]),
    ] {
        assert_eq!(hidden(value, &mask_value(name, value)), found, "{value}");
    }
    assert_eq!(hidden("é", "***"), ["é"]);
    assert_eq!(hidden("abc", "x***"), Vec::<&str>::new());
}

#[test]
fn secrets_are_hidden_by_their_value_and_words_are_not() {
    let secret = "kn0wn \"S%cret";
    remember(secret);
    assert_eq!(conceal(&format!("a{secret}b")), "a***b");
    assert_eq!(conceal("at kn0wn%20%22S%25cret!"), "at ***!");
    assert_eq!(
        conceal_json(r#"{"kn0wn \"S%cret": ["kn0wn \"S%cret x", 1]}"#),
        r#"{"kn0wn \"S%cret": ["*** x", 1]}"#
    );
    for word in ["redis", "bench", "usertable", "12345678", "2026-11-25", "pw1", "a"] {
        remember(word);
        assert_eq!(conceal(&format!("kind: {word}")), format!("kind: {word}"));
    }
    remember_arguments(&["-p", "redis.password=qu1et-word"].map(str::to_owned));
    assert_eq!(mask_text("x qu1et-word"), "x ***");
    // None is dropped, however many there are.
    (0..1_200).for_each(|n| remember(&format!("numb3red-{n}.")));
    assert_eq!(conceal("numb3red-0. numb3red-1199. kn0wn \"S%cret"), "*** *** ***");
    assert_eq!(conceal_these("# th1rd word: th1rd", &["th1rd word"]), "# ***: th1rd");
}

#[test]
fn uris_of_a_list_are_hidden_one_by_one() {
    for (text, shown) in [
        ("mongodb://u:p@a/x?w=1|mongodb://v:q@b", "mongodb://u:***@a/x?w=1|mongodb://v:***@b"),
        ("mongodb+srv://u:p@a|mongodb+srv://v:q@b", "mongodb+srv://u:***@a|mongodb+srv://v:***@b"),
        ("mongodb://a|mongodb://v:q@b", "mongodb://a|mongodb://v:***@b"),
        // Of other schemes it is a character of the password.
        ("redis://u:p|redis://v:q@b", "redis://u:***@b"),
    ] {
        assert_eq!(mask_text(text), shown);
    }
    // A text whose secret is hidden by its value is looked at by place again, in each of them.
    remember("l1sted two");
    assert_eq!(mask_text("mongodb://u:l1sted two@a|mongodb://v:z@b"), "mongodb://u:***@a|mongodb://v:***@b");
}
