//! The course of a proof on two members that are maps: a cut that loses what one of them has acknowledged, and one that
//! does not.

use crate::failover::*;
use dyno_config::server::ServerKind;
use dyno_db::copies::database::{
    DatabaseError, IngestClient, PreCheck, RecordSpan, ReplicatedStore, WriteOutcome,
};
use dyno_db::copies::plan::{Durability, IngestPlan};
use dyno_db::copies::records::Records;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct ScriptedState {
    held: [BTreeMap<String, String>; 2],
    primary: usize,
    cut: bool,
    /// Connections to who was primary before end with it.
    epoch: u64,
    /// Records that are there twice.
    twice: u64,
}

#[derive(Clone, Default)]
struct ScriptedPair(Arc<Mutex<ScriptedState>>);

impl ScriptedPair {
    fn state(&self) -> MutexGuard<'_, ScriptedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(member: &str) -> usize {
    usize::from(member == "m1")
}

struct ScriptedLine(ScriptedPair, usize, u64);

impl IngestClient for ScriptedLine {
    fn put(&mut self, records: &Records, part: RecordSpan, plan: &IngestPlan) -> WriteOutcome {
        let mut state = self.0.state();
        if self.2 != state.epoch {
            return WriteOutcome::Indeterminate("the connection is lost".into());
        }
        for number in part.from..part.to {
            let (key, value) =
                (records.record_key(part.worker, number), records.record_value(part.worker, number));
            if !state.cut {
                state.held[1 - self.1].insert(key.clone(), value.clone());
            }
            state.held[self.1].insert(key, value);
        }
        match state.cut && plan.copies > 1 {
            true => WriteOutcome::Indeterminate("one copy".into()),
            false => WriteOutcome::Acknowledged(Instant::now()),
        }
    }

    fn get(&mut self, records: &Records, part: RecordSpan) -> Result<Vec<Option<Vec<u8>>>, DatabaseError> {
        let state = self.0.state();
        let of = |number| {
            state.held[self.1]
                .get(&records.record_key(part.worker, number))
                .map(|value| value.clone().into_bytes())
        };
        Ok((part.from..part.to).map(of).collect())
    }

    fn indexed(&mut self, _: &Records, _: usize) -> Result<u64, DatabaseError> {
        Ok(0)
    }

    fn held(&mut self, _: &Records) -> Result<Option<u64>, DatabaseError> {
        let state = self.0.state();
        Ok(Some(state.held[self.1].len() as u64 + state.twice))
    }
}

impl ReplicatedStore for ScriptedPair {
    fn primary(&self) -> Result<String, DatabaseError> {
        Ok(format!("m{}", self.state().primary))
    }

    fn replicas(&self) -> Result<Vec<String>, DatabaseError> {
        Ok(vec![format!("m{}", 1 - self.state().primary)])
    }

    fn pre_checks(&self, _: usize, _: Durability) -> Result<Vec<PreCheck>, DatabaseError> {
        Ok(Vec::new())
    }

    fn connect(&self, member: &str, _: Duration) -> Result<Box<dyn IngestClient>, DatabaseError> {
        Ok(Box::new(ScriptedLine(self.clone(), number(member), self.state().epoch)))
    }

    fn caught_up(&self, _: &str) -> Result<bool, DatabaseError> {
        Ok(true)
    }

    fn remove(&self, _: &Records, _: Option<&Ledger>) -> Result<(), DatabaseError> {
        Ok(())
    }
}

impl FailoverCluster for ScriptedPair {
    fn version(&self) -> String {
        "two maps".into()
    }

    fn database(&self) -> Arc<dyn ReplicatedStore> {
        Arc::new(self.clone())
    }

    fn inject(&mut self, _: &str) -> Result<Instant, FailoverError> {
        self.state().cut = true;
        Ok(Instant::now())
    }

    fn new_primary(&self, of: &str) -> Option<String> {
        let mut state = self.state();
        state.primary = 1 - number(of);
        Some(format!("m{}", state.primary))
    }

    fn heal(&mut self, old: &str, new: &str) -> Result<Instant, FailoverError> {
        let mut state = self.state();
        state.held[number(old)] = state.held[number(new)].clone();
        (state.cut, state.epoch) = (false, state.epoch + 1);
        Ok(Instant::now())
    }

    fn is_replica(&self, _: &str, _: &str) -> bool {
        true
    }

    fn await_healthy(&self) -> Result<String, FailoverError> {
        Ok(ReplicatedStore::primary(self)?)
    }
}

fn plan(copies: usize) -> FailoverPlan {
    let ms = Duration::from_millis;
    FailoverPlan {
        ingest: IngestPlan {
            workers: 2,
            batch: 5,
            record_bytes: 20,
            indexes: 0,
            copies,
            durability: Durability::Memory,
            wait: IngestPlan::ELECTION,
            patience: ms(100),
            duration: None,
            records: None,
            rate: Some(2_000.0),
            seed: 1,
            run: "r".into(),
            documents: None,
        },
        by: Disruption::Cut,
        rounds: 2,
        replicas: 1,
        isolate: ms(50),
        heal_after: ms(100),
        down_after: ms(100),
        between: ms(100),
        kind: ServerKind::Redis,
        election: Election::Sentinels,
    }
}

fn proven(copies: usize, twice: u64) -> FailoverProof {
    let mut pair = ScriptedPair::default();
    pair.state().twice = twice;
    let mut heard = 0;
    let proof = prove(&plan(copies), &mut pair, &Control::default(), &mut |_| heard += 1).unwrap();
    assert_eq!((proof.rounds.len(), heard), (2, 2));
    for round in &proof.rounds {
        assert_ne!(round.primary, round.promoted);
        assert!(round.cut_s.is_some_and(|s| s >= 0.1) && round.settled_s >= 0.1, "{round:?}");
        assert!(round.curve.is_some());
    }
    proof
}

#[test]
fn what_one_member_has_acknowledged_goes_with_it() {
    let outcomes = proven(1, 0).outcomes().unwrap();
    assert!(outcomes.lost > 0, "{outcomes:?}");
    assert_eq!((outcomes.wrong, outcomes.duplicated), (0, Some(0)));
}

#[test]
fn what_both_have_acknowledged_stays() {
    let proof = proven(2, 0);
    let outcomes = proof.outcomes().unwrap();
    assert!(proof.acknowledged() > 0);
    assert_eq!((outcomes.lost, outcomes.wrong, outcomes.refused_found), (0, 0, 0));
    // Records that were written into the cut are not there.
    assert!(outcomes.indeterminate_not_found > 0, "{outcomes:?}");
}

#[test]
fn what_is_there_twice_is_counted() {
    assert_eq!(proven(2, 3).outcomes().unwrap().duplicated, Some(3));
}

#[test]
fn who_is_told_to_stop_stops() {
    let control = Control::default();
    control.stop();
    let proof = prove(&plan(2), &mut ScriptedPair::default(), &control, &mut |_| ()).unwrap();
    assert!(proof.rounds.is_empty());
}

#[test]
fn every_record_of_a_plan_is_written_once_whatever_its_rate() {
    // Shares of 335, 334 and 334 records are no whole batches; no rate, one that a map cannot reach, and one that takes 100 ms.
    for rate in [None, Some(1e12), Some(10_000.0)] {
        let pair = ScriptedPair::default();
        let records = Some(1_003);
        let plan = IngestPlan { workers: 3, batch: 10, records, rate, ..plan(1).ingest };
        let written = ingest(Arc::new(pair.clone()), &plan, &Arc::default(), &mut |_, _| ()).unwrap();
        let ranges: Vec<_> =
            written.ledger.merged_ranges().iter().map(|range| (range.worker, range.from, range.to)).collect();
        assert_eq!(ranges, [(0, 0, 335), (1, 0, 334), (2, 0, 334)], "{rate:?}");
        assert_eq!(written.ledger.count(RecordStatus::Acknowledged), 1_003, "{rate:?}");
        assert_eq!((written.history.acknowledged_records(), pair.state().held[0].len()), (1_003, 1_003));
        // The last batches are due at 330 records of each of three workers, and none is written before.
        let due_s = rate.map_or(0.0, |rate| 330.0 * 3.0 / rate);
        assert!(written.history.seconds() >= due_s, "{} s at {rate:?}", written.history.seconds());
    }
}

#[test]
fn nothing_is_written_after_a_stop_and_a_wait_for_a_batch_ends_with_it() {
    // The second batches are due after an hour.
    let plan = IngestPlan { workers: 2, batch: 5, records: Some(100), rate: Some(0.002), ..plan(1).ingest };
    let (pair, control) = (ScriptedPair::default(), Arc::new(Control::default()));
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| ingest(Arc::new(pair.clone()), &plan, &control, &mut |_, _| ()));
        while pair.state().held[0].len() < 10 {
            std::thread::yield_now();
        }
        control.stop();
        writer.join().unwrap().unwrap()
    });
    assert_eq!((written.ledger.count(RecordStatus::Acknowledged), pair.state().held[0].len()), (10, 10));
}
