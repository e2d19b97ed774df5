//! Turns and arguments beside what the tools do whose commands these are.

use super::{ArgumentPart, Between, CommandOperation, CommandRun, Commands, DataSize, KeySpace, Pattern};
use crate::distributions::RejectionInversion;
use crate::{Frontier, Workload};

fn literal(text: &str) -> Vec<ArgumentPart> {
    vec![ArgumentPart::Literal(text.as_bytes().to_vec())]
}

fn operation(name: &str, turns: u64, arguments: Vec<Vec<ArgumentPart>>, space: KeySpace) -> CommandOperation {
    let mut commands = vec![literal(name)];
    commands.extend(arguments);
    CommandOperation {
        name: name.into(),
        turns,
        commands: vec![commands],
        keys: vec![Some(1)],
        writes: name == "SET",
        misses: name == "GET",
        space,
        goes_on: false,
    }
}

fn key() -> Vec<ArgumentPart> {
    vec![ArgumentPart::Literal(b"memtier-".to_vec()), ArgumentPart::Key(0)]
}

fn commands(pattern: Pattern, users: u64) -> Commands {
    let space = KeySpace { min: 1, max: 10, pattern };
    Commands {
        operations: vec![
            operation("SET", 1, vec![key(), vec![ArgumentPart::Data]], space),
            operation("GET", 3, vec![key()], space),
        ],
        between: None,
        users,
        size: DataSize::Uniform(4, 4),
        random: false,
        records: Default::default(),
        iterates: None,
        by_user: false,
        fixed: None,
        seed: 7,
        apart: false,
        stands_for: None,
    }
}

/// The commands of a user, words with blanks between them.
fn lines(commands: &Commands, user: u64, count: u64) -> Vec<String> {
    let run = CommandRun::new(commands).unwrap();
    let content = run.content();
    let line = |turn: u64| {
        let request = run.request(turn * commands.users + user, &Frontier::new(0));
        let all = &commands.operations[usize::from(request.shape)].commands;
        let mut out = Vec::new();
        for (number, arguments) in (0..).zip(all) {
            for (argument, parts) in (0..).zip(arguments) {
                if !out.is_empty() {
                    out.push(b' ');
                }
                match parts.as_slice() {
                    [ArgumentPart::Literal(bytes)] => out.extend_from_slice(bytes),
                    _ => content.argument(&request, number, argument, &mut out),
                }
            }
        }
        String::from_utf8(out).unwrap()
    };
    (0..count).map(line).collect()
}

#[test]
fn every_user_takes_its_turns_and_counts_for_each_operation() {
    let all = commands(Pattern::Sequential, 3);
    let expected = [
        "SET memtier-1 xxxx",
        "GET memtier-1",
        "GET memtier-2",
        "GET memtier-3",
        "SET memtier-2 xxxx",
        "GET memtier-4",
        "GET memtier-5",
        "GET memtier-6",
    ];
    (0..3).for_each(|user| assert_eq!(lines(&all, user, 8), expected));
    // It begins again behind the last.
    assert_eq!(lines(&all, 0, 17)[13], "GET memtier-10");
    assert_eq!(lines(&all, 0, 17)[14], "GET memtier-1");
}

#[test]
fn one_operation_comes_between_the_others() {
    // The MONITOR trace of memtier_benchmark 2.3.0: --ratio 3:2 --wait-ratio 2:1 -t 1 -c 1 -n 24.
    let trace = include_str!("../../tests/data/memtier-wait-ratio.txt");
    let mut all = commands(Pattern::Uniform, 2);
    (all.operations[0].turns, all.operations[1].turns) = (3, 2);
    let wait = vec![
        vec![ArgumentPart::Number { range: (0, 2), digits: 0, group: None }],
        vec![ArgumentPart::Middling(1, 9)],
    ];
    all.operations.push(operation("WAIT", 0, wait, all.operations[0].space));
    all.between = Some(Between { operation: 2, after: 0, every: 3 });
    let names = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let expected: Vec<&str> = trace.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(names(lines(&all, 1, expected.len() as u64)), expected);
    for line in lines(&all, 0, 4_000).iter().filter(|line| line.starts_with("WAIT")) {
        let numbers: Vec<u64> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
        assert!(numbers[0] <= 2 && (1..=9).contains(&numbers[1]), "{line}");
    }
}

#[test]
fn what_comes_between_does_so_after_each_so_many_for_ever() {
    for (sets, gets, every) in [(1, 10, 1), (1, 1, 2), (7, 3, 5), (10, 1, 3), (2, 0, 1), (5, 2, 1_000)] {
        let mut all = commands(Pattern::Uniform, 1);
        (all.operations[0].turns, all.operations[1].turns) = (sets, gets);
        all.operations.push(operation("WAIT", 0, vec![], all.operations[0].space));
        all.between = Some(Between { operation: 2, after: 0, every });
        let found = lines(&all, 0, 5_000);
        let (mut done, mut waits, mut turn) = (0, 0, 0);
        for (number, line) in found.iter().enumerate() {
            // As it is counted there: one WAIT first, and one whenever there are more sets to each than asked for.
            let expected = match () {
                () if waits == 0 || done / waits > every - 1 => "WAIT",
                () if turn % (sets + gets) < sets => "SET",
                () => "GET",
            };
            assert!(line.starts_with(expected), "{sets}:{gets} {every}: {number} {line}");
            (waits, done) = (waits + u64::from(expected == "WAIT"), done + u64::from(expected == "SET"));
            turn += u64::from(expected != "WAIT");
        }
    }
}

#[test]
fn operations_that_go_on_count_through_the_same_keys() {
    let mut all = commands(Pattern::Sequential, 1);
    let space = all.operations[0].space;
    let mut rest = operation("GET", 1, vec![key()], space);
    rest.goes_on = true;
    all.operations =
        vec![operation("SET", 1, vec![key()], space), operation("GET", 2, vec![key(), key()], space)];
    all.operations.push(rest);
    let expected = [
        "SET memtier-1",
        "GET memtier-1 memtier-2",
        "GET memtier-3 memtier-4",
        "GET memtier-5",
        "SET memtier-2",
        "GET memtier-6 memtier-7",
        "GET memtier-8 memtier-9",
        "GET memtier-10",
    ];
    assert_eq!(lines(&all, 0, 8), expected);
}

#[test]
fn parallel_users_have_parts_of_their_own() {
    let space = |min, max| KeySpace { min, max, pattern: Pattern::Parallel };
    let of =
        |space: KeySpace, users: u64| (0..users).map(|user| space.of_user(user, users)).collect::<Vec<_>>();
    // As memtier_benchmark's MONITOR has them: keys 1 to 400 and 0 to 400 of four clients.
    assert_eq!(of(space(1, 400), 4), [(1, 100), (101, 200), (201, 300), (301, 400)]);
    assert_eq!(of(space(0, 400), 4), [(0, 100), (101, 201), (202, 302), (303, 400)]);
    // More users than keys leave none without one.
    assert!(of(space(1, 2), 5).iter().all(|(min, max)| (1..=2).contains(min) && min <= max));
}

#[test]
fn users_draw_the_same_or_their_own() {
    let mut all = commands(Pattern::Uniform, 2);
    assert_eq!(lines(&all, 0, 40), lines(&all, 1, 40));
    all.apart = true;
    assert_ne!(lines(&all, 0, 40), lines(&all, 1, 40));
    for line in lines(&all, 0, 400) {
        let number: u64 = line.split(' ').nth(1).unwrap()["memtier-".len()..].parse().unwrap();
        assert!((1..=10).contains(&number), "{line}");
    }
}

#[test]
fn patterns_follow_their_distributions() {
    let numbers = |pattern: Pattern, max: u64| {
        let mut all = commands(pattern, 1);
        all.operations.iter_mut().for_each(|operation| operation.space.max = max);
        lines(&all, 0, 8_000)
            .iter()
            .map(|line| line.split(' ').nth(1).unwrap()["memtier-".len()..].parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    let normal = numbers(Pattern::Gaussian { median: 500.0, deviation: 50.0 }, 1_000);
    let mean = normal.iter().sum::<f64>() / normal.len() as f64;
    let deviation = (normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / normal.len() as f64).sqrt();
    assert!((mean - 499.5).abs() < 3.0 && (deviation - 50.0).abs() < 2.0, "{mean} {deviation}");
    // Of 100 keys the first has 1 / H(100) = 19.3 % of the draws.
    let zipf = numbers(Pattern::Zipfian(RejectionInversion::new(1.0)), 100);
    let first = zipf.iter().filter(|number| **number == 1.0).count() as f64 / zipf.len() as f64;
    assert!((first - 0.1928).abs() < 0.02, "{first}");
}

#[test]
fn lengths_of_values() {
    let mut all = commands(Pattern::Sequential, 1);
    all.operations.truncate(1);
    let lengths = |all: &Commands| -> Vec<usize> {
        lines(all, 0, 10).iter().map(|line| line.split(' ').nth(2).unwrap_or("").len()).collect()
    };
    all.size = DataSize::Turns(vec![(3, 2), (7, 1), (1, 3)]);
    assert_eq!(lengths(&all), [3, 3, 7, 1, 1, 1, 3, 3, 7, 1]);
    all.size = DataSize::ByKey(10, 100);
    assert_eq!(lengths(&all)[..2], [10, 20]);
    assert_eq!(lengths(&all)[9], 100);
    all.size = DataSize::Uniform(5, 6);
    assert!(lengths(&all).iter().all(|length| (5..=6).contains(length)));
}

#[test]
fn numbers_and_several_keys() {
    let space = KeySpace { min: 0, max: 99, pattern: Pattern::Sequential };
    let number = |group| ArgumentPart::Number { range: (0, 999), digits: 12, group };
    let arguments =
        vec![vec![ArgumentPart::Literal(b"key:".to_vec()), number(None)], vec![number(None)], key(), key()];
    let all = Commands {
        operations: vec![operation("MSET", 1, arguments, space)],
        ..commands(Pattern::Uniform, 1)
    };
    let found = lines(&all, 0, 2);
    let words: Vec<&str> = found[0].split(' ').collect();
    assert!(
        words[1].starts_with("key:000000000") && words[1].len() == 16 && words[1][4..] != *words[2],
        "{found:?}"
    );
    assert_eq!((words[3], words[4]), ("memtier-0", "memtier-1"));
    assert!(found[1].ends_with("memtier-2 memtier-3"), "{found:?}");
    let grouped = vec![vec![number(Some(1))], vec![number(Some(1))], vec![number(Some(2))]];
    let all = Commands { operations: vec![operation("MSET", 1, grouped, space)], ..all };
    let line = lines(&all, 0, 1).remove(0);
    let words: Vec<&str> = line.split(' ').collect();
    assert!(words[1] == words[2] && words[1] != words[3], "{line}");
}
