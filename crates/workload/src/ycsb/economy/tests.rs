use super::*;
use std::collections::HashMap;

fn config(pairs: &[(&str, &str)]) -> Result<EconomyConfig, BadProperty> {
    EconomyConfig::from_lookup(&mut |key| pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()))
}

/// Accounts in memory: what a store would do, one request at a time.
#[derive(Default)]
struct Accounts(HashMap<u64, Vec<u8>>);

impl Accounts {
    fn execute(&mut self, content: &dyn Content, request: &Request) -> Outcome {
        let mut value = Vec::new();
        match request.verb {
            Verb::Insert | Verb::Update => {
                content.value(request, 0, &mut value);
                assert_eq!(value.len(), content.value_len(request, 0));
                self.0.insert(request.key, value);
            }
            Verb::Read => match self.0.get(&request.key) {
                Some(value) => drop(content.verify(request, b"field0", value)),
                None => return Outcome::NotFound,
            },
            _ => {}
        }
        Outcome::Ok
    }
}

const MIX: [(&str, &str); 8] = [
    ("recordcount", "50"),
    ("totalcash", "1000"),
    ("operationcount", "5000"),
    ("readproportion", "1"),
    ("updateproportion", "1"),
    ("insertproportion", "0.5"),
    ("scanproportion", "0.5"),
    ("readmodifywriteproportion", "3"),
];

fn loaded(config: &EconomyConfig) -> Accounts {
    let load = EconomyWorkload::load_phase(config);
    let mut accounts = Accounts::default();
    let frontier = load.frontier();
    for index in 0..config.core.insert_count {
        let request = load.bind(&load.draw(index), &frontier);
        assert_eq!(accounts.execute(load.content().as_ref(), &request), Outcome::Ok);
    }
    accounts
}

fn audited(workload: &EconomyWorkload, accounts: &mut Accounts) -> Audit {
    let count = workload.count();
    for index in 0..count.count_accounts() {
        let request = count.bind(&count.draw(index), &count.frontier());
        accounts.execute(count.content().as_ref(), &request);
    }
    workload.audit_after(5000)
}

#[test]
fn money_is_kept_where_nothing_interleaves() {
    let config = config(&MIX).unwrap();
    assert_eq!((config.initial, config.total_cash), (20, 1000));
    let mut accounts = loaded(&config);
    let workload = EconomyWorkload::run(&config).unwrap();
    let frontier = workload.frontier();
    let mut moved = 0;
    for index in 0..5000 {
        let mut request = workload.bind(&workload.draw(index), &frontier);
        loop {
            let outcome = accounts.execute(workload.content().as_ref(), &request);
            workload.settled(&request, &frontier);
            moved += u32::from(request.verb == Verb::Update);
            match workload.next(&request, outcome) {
                Some(next) => request = next,
                None => break,
            }
        }
    }
    assert!(moved > 3000, "{moved}");
    let audit = audited(&workload, &mut accounts);
    assert!(audit.has_passed(), "{audit:?}");
    assert_eq!(audit.anomaly_score(), 0.0);
}

#[test]
fn interleaved_transfers_make_or_lose_money_and_the_audit_says_so() {
    let config = config(&MIX).unwrap();
    let mut accounts = loaded(&config);
    let workload = EconomyWorkload::run(&config).unwrap();
    let frontier = workload.frontier();
    let mut under_way: Vec<Request> = Vec::new();
    let mut index = 0;
    while index < 5000 || !under_way.is_empty() {
        while under_way.len() < 16 && index < 5000 {
            under_way.push(workload.bind(&workload.draw(index), &frontier));
            index += 1;
        }
        let request = under_way.remove(0);
        let outcome = accounts.execute(workload.content().as_ref(), &request);
        workload.settled(&request, &frontier);
        under_way.extend(workload.next(&request, outcome));
    }
    let audit = audited(&workload, &mut accounts);
    assert!(!audit.has_passed() && audit.anomaly_score() > 0.0, "{audit:?}");
}

#[test]
fn a_failed_first_update_moves_nothing_and_a_balance_that_is_no_number_is_counted() {
    let config = config(&MIX).unwrap();
    let mut accounts = loaded(&config);
    let workload = EconomyWorkload::run(&config).unwrap();
    let frontier = workload.frontier();
    for index in 0..1000 {
        let mut request = workload.bind(&workload.draw(index), &frontier);
        loop {
            // Every write fails.
            let outcome = match request.verb {
                Verb::Read => accounts.execute(workload.content().as_ref(), &request),
                _ => Outcome::OutOfMemory,
            };
            match workload.next(&request, outcome) {
                Some(next) => request = next,
                None => break,
            }
        }
    }
    assert!(audited(&workload, &mut accounts).has_passed());
    let workload = EconomyWorkload::run(&config).unwrap();
    accounts.0.insert(7, b"gold".to_vec());
    let audit = audited(&workload, &mut accounts);
    assert_eq!((audit.unreadable, audit.counted, audit.has_passed()), (1, 980, false));
}

#[test]
fn metrics_are_those_of_transactions_and_of_their_parts() {
    let workload = EconomyWorkload::run(&config(&MIX).unwrap()).unwrap();
    for name in ["READ", "UPDATE", "TX-READ", "TX-UPDATE", "TX-INSERT", "TX-SCAN", "TX-READMODIFYWRITE"] {
        assert!(workload.metrics().iter().any(|m| m == name), "{name}: {:?}", workload.metrics());
    }
}

#[test]
fn contradictory_properties_are_refused_and_odd_ones_noted() {
    assert!(config(&[("recordcount", "1")]).unwrap_err().to_string().contains("at least 2"));
    let deletes = [("recordcount", "10"), ("deleteproportion", "0.1")];
    assert!(config(&deletes).unwrap_err().to_string().contains("no deletes"));
    let uneven = config(&[("recordcount", "3"), ("totalCash", "1000")]).unwrap();
    assert_eq!((uneven.initial, uneven.total_cash, uneven.warnings.len()), (1, 3, 1));
}
