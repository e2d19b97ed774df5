//! Files of commands: what they become, and what is refused with its line.

use crate::template::*;
use dyno_types::command::ReplyKind;
use dyno_workload::command_mix::{CommandStep, MissRule, NumberedText, StepCondition, StepMode, TextPart};
use dyno_workload::template::{NumberDistribution, ValueTemplate};

const CART: &str = "
seed: 9
keys:
  users: { count: 2k, format: 'user:%{n:6}', distribution: zipfian }
  plain: 10
data:
  products: { file: p.csv, order: in_order }
scripts:
  limit: { text: 'return 1' }
load:
  - { for: users, command: [HSET, { $key: users }, name, { $string: [8, 24] }] }
  - { once: true, command: 'XGROUP CREATE jobs g $ MKSTREAM' }
commands:
  ping: PING
  top: { weight: 50, command: [ZREVRANGE, board, 0, 9], expect: { type: array, length: [0, 20] } }
  allow: { weight: 2.5, script: limit, keys: [{ $key: users }], args: [100, '%{user}'] }
  cart:
    let: { u: { $key: users }, sku: { $row: products.sku } }
    different: true
    steps:
      - { command: [GET, 'cart:{%{u}}'], as: old, miss: ok }
      - { when: miss, command: [SET, 'cart:{%{u}}', '%{old}%{sku}%%{x}', PX, 60000] }
      - [GET, a]
  both: { mode: multi, steps: [INCR a, INCR b] }
  many: { command: [MGET, { $array: { length: 3, of: { $key: plain } } }], keys: [1, 2, 3], miss: not_found }
";

fn read(text: &str) -> Result<CommandMix, String> {
    let files = |name: &str| match name {
        "p.csv" => Ok(b"sku,name\na1,x\nb2,y\n".to_vec()),
        _ => Err(std::io::Error::other("no such file").into()),
    };
    parse_commands(text, "cart.yaml", &files).map_err(|error| error.to_string())
}

fn literal(text: &str) -> TextPart {
    TextPart::Literal(text.as_bytes().to_vec())
}

#[test]
fn a_file_of_commands_is_read() {
    let mix = read(CART).unwrap();
    let users = &mix.keys[0];
    assert_eq!((users.count, mix.keys[1].count, mix.seed), (2_000, 10, 9));
    let number = |digits| NumberedText::Number(digits);
    assert_eq!(users.format, [NumberedText::Literal(b"user:".to_vec()), number(6)]);
    assert_eq!(mix.keys[1].format, [NumberedText::Literal(b"plain:".to_vec()), number(0)]);
    assert!(mix.tables[0].in_order);
    assert_eq!((mix.load[0].each, mix.load[1].each), (Some(0), None));
    let step = |operation: usize, step: usize| -> &CommandStep { &mix.operations[operation].steps[step] };
    assert_eq!(step(0, 0).arguments, [[literal("PING")]]);
    let expect = &step(1, 0).expect;
    assert_eq!((expect.kind, expect.length), (Some(ReplyKind::Array), Some((0, 20))));
    assert_eq!(step(1, 0).arguments[2..], [[literal("0")], [literal("9")]]);
    // The SHA-1 of `return 1`, as `SCRIPT LOAD` of Redis answers.
    let allow = step(2, 0);
    assert_eq!(allow.arguments[1], [literal("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")]);
    assert_eq!(
        (allow.keys.as_deref(), allow.script, mix.operations[2].weight),
        (Some(&[3][..]), Some(0), 2.5)
    );
    assert_eq!(allow.arguments[2..3], [[literal("1")]]);
    assert_eq!(allow.arguments[5], [TextPart::User]);
    let cart = &mix.operations[3];
    let names: Vec<&str> = cart.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!((names, cart.mode), (vec!["get", "set", "get2"], StepMode::Ordered));
    assert_eq!(cart.steps[0].arguments[1], [literal("cart:{"), TextPart::Bound(0), literal("}")]);
    assert_eq!(cart.steps[1].arguments[2], [TextPart::Reply(0), TextPart::Bound(1), literal("%{x}")]);
    assert_eq!((cart.steps[0].miss, cart.steps[1].when), (MissRule::Accepted, Some(StepCondition::Miss)));
    assert!(cart.different && !mix.operations[0].different);
    assert_eq!(cart.bound[1], [TextPart::Value(ValueTemplate::Row(0, 0))]);
    assert_eq!(mix.operations[4].mode, StepMode::Atomic);
    let many = step(5, 0);
    assert_eq!(
        (many.arguments.len(), many.keys.as_deref(), many.miss),
        (4, Some(&[1, 2, 3][..]), MissRule::NotFound)
    );
    let spread = |part: &TextPart| match part {
        TextPart::Value(ValueTemplate::Key(keys)) => (keys.collection, keys.spread),
        other => panic!("{other:?}"),
    };
    assert_eq!(spread(&many.arguments[1][0]), (1, NumberDistribution::Uniform));
    assert_eq!(spread(&cart.bound[0][0]), (0, NumberDistribution::with_exponent(0.99)));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (before, after, message) in [
        ("distribution: zipfian", "distribution: 'active:5'", "expected active:KEYS:OPERATIONS"),
        ("distribution: zipfian", "distribution: 'active:0:9'", "expected active:KEYS:OPERATIONS"),
        ("PING", "[{ $key: users }]", "cart.yaml:14: command: expected a literal word first"),
        ("PING", "''", "cart.yaml:14: command: nothing"),
        ("board, 0, 9", "board, ~, 9", "an argument is missing"),
        ("{ $key: users }, name", "{ $key: user }, name", "no key space \"user\"; did you mean users?"),
        ("board, 0, 9", "board, on, 9", "true: put the word into quotes"),
        ("for: users", "for: usres", "no keys \"usres\"; did you mean users?"),
        ("once: true", "once: false", "expected `for: KEYS` or `once: true`"),
        ("p.csv", "q.csv", "cart.yaml:7: q.csv: no such file"),
        ("p.csv", "p.txt", "expected a file that ends in .csv"),
        ("products.sku", "products.suk", "no column \"suk\"; did you mean sku?"),
        ("script: limit", "script: limits", "no script \"limits\"; did you mean limit?"),
        ("script: limit", "script: limit, function: f", "which has none"),
        ("as: old", "as: u", "\"u\" is taken"),
        ("%{old}", "%{odl}", "unknown name \"odl\"; did you mean old?"),
        ("miss: ok }", "miss: fine }", "expected ok or not_found"),
        ("type: array", "type: list", "expected one of status, string, integer, array, nil"),
        ("mode: multi", "mode: multy", "expected ordered, pipelined or multi"),
        ("[INCR a, INCR b]", "[]", "steps: nothing"),
        ("length: 3,", "length: [1, 3],", "expected a fixed length"),
        ("keys: [1, 2, 3]", "keys: [1, 2, 9]", "9: expected a whole number, 1 to 3"),
        ("ping: PING", "pi.ng: PING", "without a dot"),
        ("weight: 50", "wieght: 50", "unknown key \"wieght\"; did you mean weight?"),
        ("%{n:6}", "x", "expected %{n} in it"),
        ("%{n:6}", "%{m}", "the form of keys has %{n}"),
        ("plain: 10", "plain: 0", "count 0: expected 1 or more"),
        ("[8, 24]", "[8, 600000000]", "600000000: expected a whole number, 0 to 536870912"),
    ] {
        assert!(CART.contains(before), "{before}");
        let why = read(&CART.replacen(before, after, 1)).unwrap_err();
        assert!(why.contains(message), "{after}: {why}");
    }
    for (own, message) in [
        ("users: 2, weight: 3", "weight: an operation with users or a rate of its own"),
        ("rate: 0", "rate 0: expected operations per second"),
        ("blocking: true", "blocking: expected `users: N`"),
        ("blocking: true, users: 2, rate: 1", "blocking: expected `users: N`"),
        ("users: 0", "0: expected a whole number, 1 to"),
    ] {
        let why = read(&format!("commands: {{ a: GET a, b: {{ command: GET b, {own} }} }}")).unwrap_err();
        assert!(why.contains(message), "{own}: {why}");
    }
    let alone = "commands: { b: { command: GET b, users: 2 } }";
    assert!(read(alone).unwrap_err().contains("at least one command without users or a rate of its own"));
    let early = "commands: { a: { mode: pipelined, steps: [{ command: GET a, as: x }, 'SET b %{x}'] } }";
    assert!(read(early).unwrap_err().contains("only in mode: ordered"));
    assert!(
        read("commands: { a: { command: GET a, as: x } }").unwrap_err().contains("only a step of several")
    );
    assert!(read("keys: { a: 1 }").unwrap_err().contains("commands is missing"));
}

#[test]
fn documents_and_commands_are_told_apart() {
    assert!(has_commands(CART) && has_commands("commands : {}\n"));
    assert!(!has_commands("collections: {}\noperations: {}\n# commands:\n  commands: 1\n"));
}
