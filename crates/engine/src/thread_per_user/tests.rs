use super::*;
use crate::job::{Control, End};
use dyno_types::Content;
use dyno_workload::{Draw, Frontier, Workload};

const MS: u64 = 1_000_000;

/// One kind of request; nothing is ever executed.
struct NamedReads(Vec<String>);

impl Workload for NamedReads {
    fn metrics(&self) -> &[String] {
        &self.0
    }
    fn content(&self) -> Arc<dyn Content> {
        unreachable!("nothing is executed")
    }
    fn draw(&self, index: u64) -> Draw {
        Draw { index, kind: 0, seed: 0 }
    }
    fn bind(&self, _draw: &Draw, _frontier: &Frontier) -> Request {
        Request::default()
    }
    fn is_pure(&self) -> bool {
        true
    }
}

/// Two users of two cores after a success of each at 1,000 ms, and what they are told then; gaps of each in milliseconds.
fn gaps(told: impl FnOnce(&Users, u64)) -> Vec<Vec<(u64, u64)>> {
    let end = End { operations: None, duration_ns: Some(10_000 * MS) };
    let job = Job {
        cores: vec![None, None],
        ..Job::closed_loop(Arc::new(NamedReads(vec!["READ".into()])), 2, end)
    };
    let shared = RunState::new(job, Arc::new(Control::default()));
    let (full, _filled) = sync_channel(4);
    let (recorders, _empties): (Vec<_>, Vec<_>) = (0..2).map(|core| recorder(&shared, core, &full)).unzip();
    let epoch = 7 * MS;
    let users = Users::new(shared, epoch, recorders);
    tick(&users, epoch, 1_000);
    succeeded(&users, 0, epoch, 1_000);
    succeeded(&users, 1, epoch, 1_000);
    told(&users, epoch);
    let all = users.recorders.iter().map(|one| {
        let gaps = std::mem::take(&mut one.lock().unwrap().as_mut().unwrap().now.gaps);
        let longer = gaps.iter().map(|gap| (gap.from_ns / MS, gap.until_ns / MS));
        longer.filter(|(from_ms, _)| *from_ms >= 1_000).collect()
    });
    all.collect()
}

/// The ticking thread runs.
fn tick(users: &Users, epoch: u64, ms: u64) {
    users.note_pause(epoch + ms * MS);
    users.ticked_ns.fetch_max(epoch + ms * MS, Ordering::Relaxed);
}

fn succeeded(users: &Users, user: usize, epoch: u64, done_ms: u64) {
    let ended = Some((Outcome::Ok, epoch + (done_ms - 1) * MS, epoch + done_ms * MS));
    users.count_ended(user, false, ended, |_| {});
}

/// A pause of the process is no silence of the store, whether the ticking thread or a user comes back first.
#[test]
fn a_pause_of_the_process_is_no_gap() {
    let found = gaps(|users, epoch| {
        tick(users, epoch, 1_040);
        succeeded(users, 0, epoch, 3_500);
        tick(users, epoch, 3_501);
        succeeded(users, 1, epoch, 3_510);
    });
    assert_eq!(found, [[], []]);
}

#[test]
fn a_store_that_is_silent_while_the_process_runs_is_in_a_gap() {
    let found = gaps(|users, epoch| {
        (1_040..3_500).step_by(50).for_each(|ms| tick(users, epoch, ms));
        succeeded(users, 0, epoch, 3_500);
        succeeded(users, 1, epoch, 3_510);
    });
    assert_eq!(found, [[(1_000, 3_500)], [(1_000, 3_510)]]);
}

/// More users than cores keep the ticking thread waiting: as long as operations end, the process runs.
#[test]
fn a_ticking_thread_that_waits_for_a_core_is_no_pause() {
    let found = gaps(|users, epoch| {
        (1_010..3_500).step_by(120).for_each(|ms| succeeded(users, 0, epoch, ms));
        users.note_pause(epoch + 3_501 * MS);
        // The other user's operation took as long as that: it is the store's time.
        succeeded(users, 1, epoch, 3_502);
    });
    assert_eq!(found, [vec![], vec![(1_000, 3_502)]]);
}
