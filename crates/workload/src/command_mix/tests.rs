//! Draws of mixes: functions of seed and index, shares, steps.

use super::*;
use crate::template::{AddressableDocuments, NumberDistribution, ValueTemplate};
use crate::{Frontier, Workload};
use dyno_types::command::{CommandArgument, CommandFacts};
use dyno_types::{Content, Outcome, Request};
use std::sync::Arc;

fn literal(text: &str) -> ArgumentText {
    vec![TextPart::Literal(text.as_bytes().to_vec())]
}

fn value(value: ValueTemplate) -> TextPart {
    TextPart::Value(value)
}

fn key() -> TextPart {
    value(ValueTemplate::Key(AddressableDocuments { collection: 0, spread: NumberDistribution::Uniform }))
}

fn users(count: u64) -> NamedKeys {
    NamedKeys {
        name: "users".into(),
        count,
        first: 5,
        format: vec![NumberedText::Literal(b"u:".to_vec()), NumberedText::Number(4)],
        spread: NumberDistribution::Uniform,
    }
}

fn operation(name: &str, weight: f64, steps: Vec<CommandStep>) -> MixOperation {
    let has_steps = steps.len() > 1;
    MixOperation {
        name: name.into(),
        group: None,
        weight,
        bound: Vec::new(),
        different: false,
        steps,
        mode: StepMode::Ordered,
        has_steps,
        own: None,
    }
}

fn step(arguments: Vec<ArgumentText>) -> CommandStep {
    let name = format!("s{}", arguments.len());
    CommandStep { name, arguments, ..CommandStep::default() }
}

fn mix() -> CommandMix {
    let steps = vec![
        CommandStep { miss: MissRule::Accepted, ..step(vec![literal("GET"), vec![key()]]) },
        CommandStep {
            when: Some(StepCondition::Miss),
            ..step(vec![literal("SET"), literal("a"), vec![TextPart::Reply(0), key()]])
        },
        CommandStep { name: "last".into(), ..step(vec![literal("PING")]) },
    ];
    CommandMix {
        keys: vec![users(100)],
        operations: vec![
            operation("get", 3.0, vec![step(vec![literal("GET"), vec![key()]])]),
            operation("aside", 1.0, steps),
        ],
        load: vec![LoadItem { each: Some(0), step: step(vec![literal("SET"), vec![key()], literal("1")]) }],
        seed: 7,
        ..CommandMix::default()
    }
}

fn run(mix: &CommandMix) -> MixRun {
    MixRun::new(&Arc::new(mix.clone()), &[], 7, (1, 0)).unwrap()
}

fn words(run: &MixRun, request: &Request) -> Vec<String> {
    let content = MixContent::new(&Arc::new(mix()), &[]);
    assert_eq!(run.content().commands().len(), content.commands().len());
    content.words_of(request, 0).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
}

#[test]
fn shares_are_exact_and_draws_are_functions_of_the_index() {
    let (one, other) = (run(&mix()), run(&mix()));
    let frontier = Frontier::new(0);
    let asides = (0..1024).filter(|index| one.draw(*index).kind == 1).count();
    assert_eq!(asides, 256);
    assert_eq!(one.metrics(), ["get", "aside", "aside.s2", "aside.s3", "aside.last"]);
    let shares: Vec<f64> = one.asked().into_iter().filter(|share| !share.is_nan()).collect();
    assert_eq!(shares, [0.75, 0.25]);
    let accepted: Vec<bool> = (0..5).map(|metric| one.accepts_misses(metric)).collect();
    assert_eq!(accepted, [false, false, true, false, false]);
    for index in [0, 5, 99, 1 << 63 | 5] {
        let request = one.request(index, &frontier);
        assert_eq!(request, other.request(index, &frontier));
        assert_eq!(words(&one, &request), words(&other, &request));
    }
}

#[test]
fn keys_are_those_of_the_key_space() {
    let load = MixLoad::new(&Arc::new(mix()), &[]);
    assert_eq!(load.count_commands(), 100);
    let frontier = Frontier::new(0);
    let run = run(&mix());
    let loaded: Vec<Vec<String>> = (0..100).map(|n| words(&run, &load.request(n, &frontier))).collect();
    assert_eq!(
        (loaded[0].clone(), loaded[99][1].as_str()),
        (vec!["SET".into(), "u:0005".into(), "1".into()], "u:0104")
    );
    for index in 0..200 {
        let request = run.request(index, &frontier);
        if request.script == 0 {
            let asked = words(&run, &request);
            assert!(loaded.iter().any(|one| one[1] == asked[1]), "{asked:?}");
        }
    }
}

#[test]
fn keys_of_the_load_are_looked_for_as_they_were_sent() {
    let other = AddressableDocuments { collection: 1, spread: NumberDistribution::Uniform };
    let drawn = vec![value(ValueTemplate::Key(other))];
    let mut mix = mix();
    mix.keys.push(NamedKeys { name: "others".into(), first: 1_000, ..users(50) });
    mix.load.push(LoadItem { each: Some(0), step: step(vec![literal("SADD"), drawn, vec![key()]]) });
    let mix = Arc::new(mix);
    let (load, content) = (MixLoad::new(&mix, &[]), MixContent::new(&mix, &[]));
    assert_eq!(load.count_commands(), 200);
    for (item, first) in [(4, 0), (5, 100)] {
        for number in 0..100 {
            let sent = load.request(first + number, &Frontier::new(0));
            let (looked_for, command) = content.sample_request(item, number);
            assert_eq!(
                content.words_of(&looked_for, command),
                content.words_of(&sent, 0),
                "{item}: {number}"
            );
        }
    }
}

#[test]
fn steps_follow_each_other_as_their_conditions_say() {
    let run = run(&mix());
    let index = (0..).find(|index| run.draw(*index).kind == 1).unwrap();
    let first = run.request(index, &Frontier::new(0));
    assert_eq!((first.metric, first.script, run.script(&first)), (2, 2, Some(1)));
    let after_miss = run.next(&first, Outcome::NotFound).unwrap();
    assert_eq!((after_miss.step, after_miss.metric), (1, 3));
    let after_hit = run.next(&first, Outcome::Ok).unwrap();
    assert_eq!((after_hit.step, after_hit.metric), (2, 4));
    assert_eq!(run.next(&after_hit, Outcome::Ok), None);
    assert_eq!(run.next(&first, Outcome::TimedOut), None);
    assert!(!run.spoils(&first, Outcome::NotFound) && run.spoils(&after_hit, Outcome::NotFound));
    // A value of an earlier reply is bound when the step is sent.
    let content = run.content();
    let mut out = Vec::new();
    content.argument_after(&after_miss, 0, 2, &[b"old".to_vec()], &mut out);
    assert!(out.starts_with(b"oldu:"), "{out:?}");
    assert_eq!(content.commands()[2].commands[0].arguments[2], CommandArgument::Follows);
}

#[test]
fn facts_of_the_server_decide_keys_reads_and_misses() {
    let facts = [1, 1, 1, 0, 1].map(|keys| CommandFacts {
        keys: (1..=keys).collect(),
        reads: keys == 1,
        blocks: false,
    });
    let content = MixContent::new(&Arc::new(mix()), &facts);
    let form = |template: usize| &content.commands()[template].commands[0];
    assert_eq!((form(0).key, form(0).writes, form(0).not_found), (Some(1), false, true));
    assert_eq!((form(3).key, form(3).writes, form(3).not_found), (None, true, false));
    let unknown = MixContent::new(&Arc::new(mix()), &[]);
    let form = &unknown.commands()[0].commands[0];
    assert_eq!((form.key, form.writes, form.misses), (None, true, false));
}

#[test]
fn transactions_and_values_of_one_draw() {
    let mut mix = mix();
    let twice =
        step(vec![literal("SET"), vec![TextPart::Bound(0)], vec![TextPart::Bound(0), TextPart::User]]);
    mix.operations[0] = MixOperation {
        bound: vec![vec![key()]],
        mode: StepMode::Atomic,
        has_steps: true,
        ..operation("pair", 1.0, vec![twice.clone(), twice])
    };
    let run = MixRun::new(&Arc::new(mix), &[], 7, (4, 0)).unwrap();
    let content = run.content();
    let template = &content.commands()[0];
    let named: Vec<&[u8]> = template.commands.iter().map(|form| form.name()).collect();
    assert_eq!((named, template.atomic), (vec![&b"MULTI"[..], b"SET", b"SET", b"EXEC"], true));
    assert!(run.is_per_user());
    let index = (0..).find(|index| run.draw(*index).kind == 0).unwrap();
    let request = run.request(index, &Frontier::new(0));
    assert_eq!(u64::from(request.collection), index % 4);
    let rendered = |command: u32, argument: u16| {
        let mut out = Vec::new();
        run.content().argument(&request, command, argument, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        (rendered(1, 1), rendered(1, 2)),
        (rendered(2, 1), format!("{}{}", rendered(1, 1), index % 4))
    );
}

#[test]
fn values_that_differ_are_drawn_until_they_do() {
    let drawn = |count: u64, different: bool| -> Vec<Vec<String>> {
        let mut mix = mix();
        mix.keys = vec![users(count)];
        let words: Vec<ArgumentText> = (0..3).map(|number| vec![TextPart::Bound(number)]).collect();
        let all = step(std::iter::once(literal("MGET")).chain(words).collect());
        mix.operations =
            vec![MixOperation { bound: vec![vec![key()]; 3], different, ..operation("all", 1.0, vec![all]) }];
        let run = run(&mix);
        let rendered = |index: u64| {
            let request = run.request(index, &Frontier::new(0));
            let word = |argument: u16| {
                let mut out = Vec::new();
                run.content().argument(&request, 0, argument, &mut out);
                String::from_utf8(out).unwrap()
            };
            (1..4).map(word).collect()
        };
        (0..3_000).map(rendered).collect()
    };
    let twice = |keys: &&Vec<String>| keys[0] == keys[1] || keys[0] == keys[2] || keys[1] == keys[2];
    // Of four keys three draws are 4 * 3 * 2 / 64 of the time all different.
    let same = drawn(4, false).iter().filter(twice).count();
    assert!((1_770..1_980).contains(&same), "{same} of 3,000, five of eight expected");
    let four = drawn(4, true);
    assert_eq!(four.iter().filter(twice).count(), 0);
    // Each of the four is the third one as often as the others.
    let third = four.iter().filter(|keys| keys[2] == "u:0005").count();
    assert!((680..820).contains(&third), "{third} of 3,000");
    // Of two keys the third one cannot differ.
    assert!(drawn(2, true).iter().all(|keys| keys[0] != keys[1]));
}

#[test]
fn rows_are_taken_in_order_by_all_workers_together() {
    let mut mix = mix();
    let rows = (0..10u8).map(|n| vec![vec![b'0' + n]]).collect();
    mix.tables = vec![DataTable { name: "t".into(), columns: vec!["n".into()], rows, in_order: true }];
    let row = vec![value(ValueTemplate::Row(0, 0))];
    mix.operations = vec![operation("row", 1.0, vec![step(vec![literal("GET"), row])])];
    let mix = Arc::new(mix);
    let taken = |run: &MixRun, count: u64| -> String {
        (0..count)
            .map(|index| {
                let mut out = Vec::new();
                run.content().argument(&run.request(index, &Frontier::new(0)), 0, 1, &mut out);
                String::from_utf8(out).unwrap()
            })
            .collect()
    };
    let run = MixRun::new(&mix, &[], 7, (1, 0)).unwrap();
    let parts = [0, 1].map(|index| taken(&run.of_worker((1, 0), index, 2).unwrap(), 5));
    assert_eq!((taken(&run, 12), parts), ("012345678901".into(), ["02468".into(), "13579".into()]));
}

#[test]
fn what_cannot_be_run_is_refused() {
    let wrong = |change: &dyn Fn(&mut CommandMix)| {
        let mut mix = mix();
        change(&mut mix);
        mix.check().unwrap_err().key
    };
    assert_eq!(wrong(&|mix| mix.operations.clear()), "commands");
    assert_eq!(wrong(&|mix| mix.operations.iter_mut().for_each(|one| one.weight = 0.0)), "weight");
    assert_eq!(wrong(&|mix| mix.operations[1].name = "get".into()), "name");
    assert_eq!(wrong(&|mix| mix.operations[0].steps.clear()), "command");
}

#[test]
fn operations_beside_the_mix_are_drawn_alone() {
    let mut mix = mix();
    let own = OwnLoad { users: Some(2), rate: None, blocking: true };
    mix.operations.push(MixOperation {
        own: Some(own),
        ..operation("work", 9.0, vec![step(vec![literal("BLPOP"), vec![TextPart::User], literal("1")])])
    });
    let run = run(&mix);
    assert_eq!(run.metrics().last().map(String::as_str), Some("work.wait"));
    // It takes no part in the mix, nor in its shares.
    assert_eq!((0..1024).filter(|index| run.draw(*index).kind == 2).count(), 0);
    assert_eq!((run.asked()[0], run.is_beside()), (0.75, false));
    let alone = run.beside(2, (2, 10)).unwrap();
    assert!(alone.is_beside());
    let requests: Vec<Request> = (0..4).map(|index| alone.request(index, &Frontier::new(0))).collect();
    assert!(requests.iter().all(|request| request.metric == 5));
    let users: Vec<u32> = requests.iter().map(|request| request.collection).collect();
    assert_eq!(users, [10, 11, 10, 11]);
    mix.operations.drain(..2);
    assert_eq!(mix.check().unwrap_err().key, "commands");
}

#[test]
fn operations_of_one_group_share_a_name_and_are_chosen_by_weight() {
    let mut mix = mix();
    let get = |name: &str, weight: f64, key: &str| MixOperation {
        group: Some("GET".into()),
        ..operation(name, weight, vec![step(vec![literal("GET"), literal(key)])])
    };
    mix.operations = vec![get("GET", 1.0, "a"), get("GET2", 3.0, "b")];
    mix.operations.push(operation("PING", 4.0, vec![step(vec![literal("PING")])]));
    let run = run(&mix);
    assert_eq!(run.metrics(), ["GET", "PING"]);
    assert_eq!(run.asked(), [0.5, 0.5]);
    let requests: Vec<Request> = (0..16_384).map(|index| run.request(index, &Frontier::new(0))).collect();
    let of = |shape: u16| requests.iter().filter(|one| one.shape == shape).count();
    assert_eq!((of(0) + of(1), of(2)), (8_192, 8_192), "each name has its exact share");
    assert!((5_900..6_400).contains(&of(1)), "{} of 8,192 are the heavier line", of(1));
    assert!(requests.iter().all(|one| one.metric == u16::from(one.shape == 2)));
    // What is dropped before it is sent is counted under the same name.
    assert!((0..1_024).all(|index| run.draw(index).kind == run.request(index, &Frontier::new(0)).metric));
}

#[test]
fn elements_are_counted_under_names_of_their_own() {
    let mut mix = mix();
    let several = |name: &str| CommandStep { name: name.into(), ..step(vec![literal("mget"), literal("a")]) };
    mix.operations.push(operation("some", 1.0, vec![several("")]));
    mix.operations.push(operation("both", 1.0, vec![several("one"), several("two")]));
    let together = operation("pipe", 1.0, vec![several("one"), several("two")]);
    mix.operations.push(MixOperation { mode: StepMode::Pipelined, ..together });
    let run = run(&mix);
    let names = &run.metrics()[5..];
    let both = [
        "both",
        "both.one",
        "both.two",
        "both.one.hits",
        "both.one.misses",
        "both.two.hits",
        "both.two.misses",
    ];
    assert_eq!(names, [&["some", "some.hits", "some.misses"][..], &both, &["pipe"]].concat());
    let frontier = Frontier::new(0);
    let requests: Vec<Request> = (0..1_024).map(|index| run.request(index, &frontier)).collect();
    let of = |metric: u16| requests.iter().find(|one| one.metric == metric).expect("each kind is drawn");
    assert_eq!(run.element_metrics(of(5)), Some((6, 7)));
    let first = of(9);
    assert_eq!(run.element_metrics(first), Some((11, 12)));
    assert_eq!(run.element_metrics(&run.next(first, Outcome::Ok).unwrap()), Some((13, 14)));
    assert_eq!(run.element_metrics(of(15)), None);
    assert!(run.own_metrics().elements);
}

#[test]
fn names_beyond_those_that_are_recorded_are_other() {
    let mut mix = mix();
    let script = mix.operations.swap_remove(1);
    mix.operations.clear();
    let ping = |number: usize| operation(&format!("p{number}"), 1.0, vec![step(vec![literal("PING")])]);
    mix.operations.extend((0..100).map(ping));
    mix.operations[90].weight = 5.0;
    mix.operations.push(MixOperation { name: "script".into(), weight: 0.5, ..script });
    let own = OwnLoad { users: Some(2), rate: None, blocking: false };
    mix.operations.push(MixOperation { own: Some(own), ..ping(200) });
    let run = run(&mix);
    let names = run.metrics();
    assert_eq!((names.len(), names[59].as_str()), (62, "p200.own"));
    assert_eq!((names[57].as_str(), names[58].as_str()), ("p57", "p90"));
    assert_eq!((names[60].as_str(), names[61].as_str()), ("other", "other.step"));
    // 41 of weight 1 and the script.
    assert!((run.asked()[60] - 41.5 / 104.5).abs() < 1e-9, "{:?}", run.asked());
    assert!((run.asked().iter().filter(|share| !share.is_nan()).sum::<f64>() - 1.0).abs() < 1e-9);
    let frontier = Frontier::new(0);
    let requests: Vec<Request> = (0..10_450).map(|index| run.request(index, &frontier)).collect();
    let script = requests.iter().find(|one| one.script != 0).expect("the script is drawn");
    assert_eq!((script.metric, run.script(script)), (61, Some(60)));
    assert_eq!(run.next(script, Outcome::NotFound).map(|next| (next.metric, next.step)), Some((61, 1)));
    let kinds: std::collections::HashSet<u16> = requests.iter().map(|one| one.shape).collect();
    assert_eq!(kinds.len(), 101, "every operation of the mix is drawn");
    assert!(run.accepts_misses(61) && !run.accepts_misses(60));
}
