use super::*;
use crate::values::{Bytes, Cores, Span};
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    Sized(Bytes),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    cache: Option<Bytes>,
    #[serde(default)]
    cores: Option<Cores>,
    kind: Option<Kind>,
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
    assert_eq!(read.inner[1].kind, Some(Kind::Plain));
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
    tree.set("time", Node::from_option("time=soon", "--set"));
    let error = tree.read::<Outer>().unwrap_err().to_string();
    assert_eq!(error, "--set time=soon: time: \"soon\": expected a duration such as 500ms, 30s or 2h");
    tree.set("a.b.c", Node::from_option("a.b.c=[1, 2]", "--set"));
    assert_eq!(tree.find("a.b.c").unwrap().items().unwrap().len(), 2);
    assert_eq!(tree.find("a.b.c").unwrap().label(), "1,2");
    assert!(tree.find("a.x").is_none());
    let leaves = tree.leaves();
    assert!(leaves.iter().any(|(path, label, _)| path == "a.b.c" && label == "1,2"));
    assert_eq!(tree.take("a").unwrap().leaves().len(), 1);
}
