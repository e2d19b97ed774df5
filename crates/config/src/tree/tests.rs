use crate::tree::*;
use crate::values::{Bytes, Cores, Span};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToyKind {
    Plain,
    Sized(Bytes),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    cache: Option<Bytes>,
    #[serde(default)]
    cores: Option<Cores>,
    kind: Option<ToyKind>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    name: String,
    time: Span,
    #[serde(default)]
    inner: Vec<Inner>,
}

const TEXT: &str = "name: 7\ntime: 1m\ninner:\n  - cache: 8GiB\n    cores: 0-3\n  - {kind: plain}\n";

#[test]
fn trees_become_values() {
    let tree = Node::parse(TEXT, "x.yaml").unwrap();
    let read: Outer = tree.read().unwrap();
    assert_eq!((read.name.as_str(), read.time), ("7", Span(60_000_000_000)));
    assert_eq!(read.inner[0].cache, Some(Bytes(8 << 30)));
    assert_eq!(read.inner[1].kind, Some(ToyKind::Plain));
}

#[test]
fn errors_say_where_the_value_was_written() {
    let error =
        |text: &str| Node::parse(text, "x.yaml").and_then(|t| t.read::<Outer>()).unwrap_err().to_string();
    assert_eq!(
        error("name: a\ntime: 1m\ninner:\n  - cache: lots\n"),
        "x.yaml:4:12: inner.1.cache: \"lots\": expected a size such as 512MiB or 8GiB"
    );
    let unknown = error("name: a\ntime: 1m\ninner:\n  - cach: 1GiB\n");
    assert!(unknown.starts_with("x.yaml:4:11: inner.1: unknown key \"cach\"; did you mean"), "{unknown}");
    assert!(error("name: a\n").contains("key \"time\" is missing"));
    assert!(error("name: a\ntime: 1m\ntime: 2m\n").contains("x.yaml:3"));
    assert!(error("name: [a\n").starts_with("x.yaml:"));
    let variant = error("name: a\ntime: 1m\ninner: [{kind: plan}]\n");
    assert!(variant.contains("expected one of plain, sized"), "{variant}");
}

#[test]
fn a_value_keeps_its_origin_wherever_it_is_put() {
    let mut tree = Node::parse(TEXT, "x.yaml").unwrap();
    tree.set_path("time", Node::from_option("time=soon", "--set"));
    let error = tree.read::<Outer>().unwrap_err().to_string();
    assert_eq!(error, "--set time=soon: time: \"soon\": expected a duration such as 500ms, 30s or 2h");
    tree.set_path("a.b.c", Node::from_option("a.b.c=[1, 2]", "--set"));
    assert_eq!(tree.find_path("a.b.c").unwrap().items().unwrap().len(), 2);
    assert_eq!(tree.find_path("a.b.c").unwrap().to_label(), "1,2");
    assert!(tree.find_path("a.x").is_none());
    let leaves = tree.list_leaves();
    assert!(leaves.iter().any(|(path, label, _)| path == "a.b.c" && label == "1,2"));
    assert_eq!(tree.take_key("a").unwrap().list_leaves().len(), 1);
}

/// Every form in which YAML writes a text: what is kept reads as the tree with its secrets masked, and nothing of them is left.
#[test]
fn secrets_are_masked_however_they_are_written() {
    let text = r#"# the password is hunt"er2, once kind: redis
variables: {pw: hunter2-v, kind: redis}
server:
  kind: redis
  options:
    requirepass: "hunt\x22er2"   # redis
    masterauth: 'hunt"er2'
    key-file-pass: >-
      folded-1
      secret
    token: |
      block-1-secret
    user: 'other on >{pw} ~*'
    secret: &anchored anchored-1
    other_secret: *anchored
    plain_password: plain-1
      over-lines
target: redis://me:{pw}@h:1/0
hooks:
  before_run: [[redis-cli, -a, hook-1, ping], [sh, -c, 'redis-cli -a "hook-2" ping']]
factors:
  auth: {path: server.options.requirepass, values: [level-1, redis]}
"#;
    let tree = Node::parse(text, "x.yaml").unwrap();
    let kept = tree.mask_secrets("", text);
    for secret in [
        "hunt",
        "er2\"",
        "hunter2-v",
        "folded-1",
        "block-1",
        "anchored-1",
        "plain-1",
        "over-lines",
        "hook-",
        "level-1",
    ] {
        assert!(!kept.contains(secret), "{secret}: {kept}");
    }
    let again = Node::parse(&kept, "x.yaml").unwrap();
    let flat = |tree: &Node| {
        tree.list_leaves()
            .into_iter()
            .map(|(key, value, _)| (key, value.trim_end().to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(flat(&again), flat(&tree.with_masked_secrets("")));
    for (path, shown) in [
        ("server.kind", "redis"),
        ("variables.kind", "redis"),
        ("variables.pw", "***"),
        ("server.options.requirepass", "***"),
        ("server.options.user", "other ***"),
        ("target", "redis://me:***@h:1/0"),
        ("hooks.before_run", "redis-cli,-a,***,ping,sh,-c,redis-cli -a *** ping"),
        ("factors.auth.path", "server.options.requirepass"),
        ("factors.auth.values", "***,***"),
    ] {
        assert_eq!(again.find_path(path).unwrap().to_label(), shown, "{path}");
    }
    assert!(kept.contains("# the password is ***, once kind: redis") && kept.contains("# redis"), "{kept}");
}

/// A password that is an everyday word is hidden where it stands, and takes nothing else with it.
#[test]
fn a_password_that_is_a_word_masks_nothing_else() {
    let text = "server: {kind: redis, options: {requirepass: redis}}\n";
    let tree = Node::parse(text, "x.yaml").unwrap();
    assert_eq!(tree.mask_secrets("", text), "server: {kind: redis, options: {requirepass: '***'}}\n");
    tree.remember_secrets();
    assert_eq!(dyno_types::secret::conceal("kind: redis"), "kind: redis");
}

#[test]
fn secrets_of_options_are_masked() {
    for (option, shown) in [
        ("server.options.requirepass=hunter2", "server.options.requirepass='***'"),
        ("server.options={requirepass: hunter2, port: 1}", "server.options={requirepass: '***', port: 1}"),
        (
            "server={options: {\"requirepass\": \"hun\\x74er2\"}}",
            "server={options: {\"requirepass\": '***'}}",
        ),
        ("server.options={requirepass: hunter2", "server.options={requirepass: ***"),
        ("target=redis:/:hunter2@h", "target='redis:/:***@h'"),
        ("hooks.before_run=[[redis-cli, -a, hunter2]]", "hooks.before_run=[[redis-cli, -a, '***']]"),
        ("server.kind=redis", "server.kind=redis"),
        ("redis.password", "redis.password"),
    ] {
        assert_eq!(masked_option(option), shown);
        let node = Node::from_option(option, "--set");
        assert!(!node.origin.to_string().contains("hun"), "{}", node.origin);
    }
}
