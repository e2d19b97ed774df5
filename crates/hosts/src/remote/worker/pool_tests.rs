//! Pools whose workers are the test's own: what each is told is heard at once, what it says is said beforehand or in answer.

use crate::protocol::frame::{Packed, read_frame, read_packed};
use crate::remote::channel::{CarriedProgram, Running};
use crate::remote::ssh::SshHost;
use crate::remote::transport::Transport;
use crate::remote::worker::pool::*;
use dyno_config::experiment::read_plan;
use dyno_config::inventory::InventoryHost;
use dyno_record::Scale;
use dyno_session::work;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::mpsc::Sender;

type Says = Sender<(usize, WorkerEvent)>;

/// Answer of a worker to a word.
type WorkerAnswer = fn(&ToWorker) -> Option<FromWorker>;

/// A worker's end of the pipe.
struct Ear {
    at: usize,
    heard: Arc<Mutex<Vec<ToWorker>>>,
    says: Says,
    answer: WorkerAnswer,
}

impl Write for Ear {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Ok(Frame::Message(word)) = read_frame::<ToWorker>(&mut &bytes[..]) else { panic!("no frame") };
        if let Some(answer) = (self.answer)(&word) {
            self.says.send((self.at, WorkerEvent::Message(answer))).unwrap();
        }
        held(&self.heard).push(word);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A worker pool and what its workers have heard.
struct Rehearsal {
    pool: WorkerPool,
    says: Says,
    heard: Vec<Arc<Mutex<Vec<ToWorker>>>>,
    control: Control,
    seconds: Vec<(u64, bool, u64)>,
}

fn silent(_: &ToWorker) -> Option<FromWorker> {
    None
}

impl Rehearsal {
    /// One worker for each host; those without a name are here.
    fn of(hosts: &[Option<&str>], answer: WorkerAnswer) -> Self {
        let (says, told) = channel();
        let heard: Vec<Arc<Mutex<Vec<ToWorker>>>> = hosts.iter().map(|_| Arc::default()).collect();
        let member = |(at, host): (usize, &Option<&str>)| {
            let ear = Ear { at, heard: heard[at].clone(), says: says.clone(), answer };
            let mut child = Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            PoolMember {
                group: None,
                party: at,
                running: Mutex::new(Running::Process(child)),
                input: Arc::new(Mutex::new(Some(Box::new(ear)))),
                instance: at,
                number: 0,
                pid: AtomicU32::new(at as u32 + 7),
                transport: host.map(|name| {
                    Transport::Ssh(SshHost::new(&InventoryHost::named_host(name), None).unwrap())
                }),
                log: PathBuf::new(),
                clock: Arc::default(),
                began_ns: AtomicU64::new(0),
                on: OnceLock::new(),
                host_cpu: Mutex::default(),
                unheard_ns: AtomicU64::new(0),
            }
        };
        let pool = WorkerPool {
            members: hosts.iter().enumerate().map(member).collect(),
            told: Mutex::new(told),
            ending: Arc::default(),
            target_info: TargetInfo::default(),
            facts: BTreeMap::new(),
            shown: Vec::new(),
            prepared: Mutex::new(vec![Prepared::default(); hosts.len()]),
            parts: Mutex::default(),
            instances: Mutex::default(),
            lost: Mutex::default(),
            cut_short: AbortReason::default(),
            lease: Duration::from_secs(60),
            collection_stats: WatchedCollections::default(),
            taking_part: [0..usize::MAX, 0..usize::MAX],
        };
        Rehearsal { pool, says, heard, control: Control::default(), seconds: Vec::new() }
    }

    /// So many workers on this host.
    fn here(workers: usize, answer: WorkerAnswer) -> Self {
        Self::of(&vec![None; workers], answer)
    }

    fn says(&self, worker: usize, word: FromWorker) {
        self.says.send((worker, WorkerEvent::Message(word))).unwrap();
    }

    /// A worker's second with so many arrivals.
    fn second(&self, worker: usize, number: u64, warmup: bool, arrivals: u64) {
        self.packed(worker, &sum_frame(number, warmup, arrivals));
    }

    fn whole(&self, worker: usize, totals: &Totals) {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Frame::<&FromWorker>::Whole(Box::new(totals.clone()))).unwrap();
        let Ok(Packed::Whole(packed)) = read_packed::<FromWorker>(&mut &bytes[..]) else { panic!() };
        self.says.send((worker, WorkerEvent::Whole(packed))).unwrap();
    }

    fn packed(&self, worker: usize, bytes: &[u8]) {
        let Ok(Packed::Second(packed)) = read_packed::<FromWorker>(&mut &bytes[..]) else { panic!() };
        self.says.send((worker, WorkerEvent::Second(packed))).unwrap();
    }

    fn gather(&mut self, active: &[usize]) -> Result<Vec<Option<PhaseDone>>, WorkerPoolError> {
        let seconds = &mut self.seconds;
        let mut take = |one: Second| seconds.push((one.number, one.warmup, one.totals.arrivals));
        self.pool.gather(active, &self.control, &mut take)
    }

    fn heard(&self, worker: usize) -> Vec<ToWorker> {
        held(&self.heard[worker]).clone()
    }

    /// Of each worker: number of the target, users, arrivals, measured nanoseconds.
    fn parts(&self) -> Vec<(usize, usize, u64, u64)> {
        let parts = held(&self.pool.parts);
        let part = |own: &OwnPart| (own.worker, own.users, own.open().totals.arrivals, own.measured_ns);
        parts.iter().map(part).collect()
    }
}

/// The frame of a second with so many arrivals.
fn sum_frame(number: u64, warmup: bool, arrivals: u64) -> Vec<u8> {
    let mut totals = Totals::new(1, Scale::Ns64);
    totals.arrivals = arrivals;
    let mut bytes = Vec::new();
    let second = Frame::<&FromWorker>::Second(Box::new(Second { number, warmup, totals }));
    write_frame(&mut bytes, &second).unwrap();
    bytes
}

fn done() -> PhaseDone {
    PhaseDone {
        users: 2,
        epoch_ns: 5_000,
        late_ns: 30,
        elapsed_ns: 2_500_000_000,
        measured_ns: 1_500_000_000,
        ..PhaseDone::default()
    }
}

/// A measured job whose warm-up is a second long.
fn job() -> Job {
    let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 10}}\n\
                phases: {measure: {users: 4, warmup: 1s, duration: 2s}}\n";
    work::read(&read_plan(text, "x.yaml", &[]).unwrap().cells[0].spec).unwrap().measure().unwrap()
}

#[test]
fn seconds_of_all_who_take_part_are_added_up_and_what_each_did_is_kept() {
    let mut rehearsal = Rehearsal::here(3, silent);
    held(&rehearsal.pool.members[1].clock).ns = 400;
    for (worker, arrivals) in [(0, 1), (1, 10)] {
        rehearsal.second(worker, 0, true, 3 * arrivals);
        rehearsal.second(worker, 1, false, arrivals);
        rehearsal.second(worker, 2, false, arrivals);
        rehearsal.says(worker, FromWorker::Done(done()));
        // It has said that there are no more.
        rehearsal.second(worker, 3, false, 99);
    }
    let told = rehearsal.gather(&[0, 1]).unwrap();
    // On our clock.
    let other = PhaseDone { epoch_ns: 4_600, ..done() };
    assert_eq!(told, [Some(done()), Some(other), None]);
    assert_eq!(rehearsal.seconds, [(0, true, 33), (1, false, 11), (2, false, 11)]);
    // Counts of the warm-up are none of it.
    assert_eq!(rehearsal.parts(), [(0, 2, 2, 1_500_000_000), (1, 2, 20, 1_500_000_000)]);
    // On their clocks: a load thread of each began 30 ns after the epoch.
    let began = rehearsal.pool.members.iter().map(|member| member.began_ns.load(Ordering::Relaxed));
    assert_eq!(began.collect::<Vec<_>>(), [5_030, 5_030, 0]);
    assert_eq!((rehearsal.pool.start_skew(), rehearsal.pool.lost_workers()), (Some(400), Vec::new()));
    assert!((0..3).all(|worker| rehearsal.heard(worker).is_empty()), "no worker was told to stop");
}

/// What a worker says it has measured in the whole phase: so many arrivals, each with its latency.
fn whole(arrivals: u64) -> Totals {
    let mut totals = Totals::new(1, Scale::Ns64);
    totals.arrivals = arrivals;
    (0..arrivals).for_each(|_| totals.lag.record(1_000));
    totals
}

#[test]
fn what_a_worker_has_measured_is_what_it_says_at_its_end() {
    let mut rehearsal = Rehearsal::here(2, silent);
    for worker in 0..2 {
        rehearsal.second(worker, 0, false, 5);
    }
    rehearsal.whole(0, &whole(5));
    rehearsal.says(0, FromWorker::Done(done()));
    rehearsal.says.send((1, WorkerEvent::Lost("gone".into()))).unwrap();
    rehearsal.gather(&[0, 1]).unwrap();
    let parts = held(&rehearsal.pool.parts);
    let latencies: Vec<u64> = parts.iter().map(|own| own.open().totals.lag.count()).collect();
    assert_eq!(latencies, [5, 0], "of one that is lost only the counts are known");
    let arrivals: Vec<u64> = parts.iter().map(|own| own.open().totals.arrivals).collect();
    assert_eq!(arrivals, [5, 5]);
}

#[test]
fn the_seconds_of_a_group_come_as_sums_and_wait_for_all_its_workers() {
    let mut rehearsal = Rehearsal::here(4, silent);
    for worker in 1..3 {
        rehearsal.pool.members[worker].party = 1;
    }
    // Two workers alone, and two of a group between them, of which one is lost.
    rehearsal.second(0, 0, false, 1);
    rehearsal.second(1, 0, false, 10);
    rehearsal.second(3, 0, false, 100);
    rehearsal.says(1, FromWorker::Done(done()));
    rehearsal.second(1, 1, false, 20);
    // What has waited for a worker comes before its end, and after that of the others.
    rehearsal.second(1, 2, false, 40);
    rehearsal.says.send((2, WorkerEvent::Lost("gone".into()))).unwrap();
    for worker in [0, 3] {
        rehearsal.says(worker, FromWorker::Done(done()));
    }
    let told = rehearsal.gather(&[0, 1, 2, 3]).unwrap();
    assert_eq!(told.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(rehearsal.seconds, [(0, false, 111), (1, false, 20), (2, false, 40)]);
}

/// A worker of a group that hangs; killed, it lets its group hand over what has waited for it.
struct Hung {
    says: Says,
    waiting: Mutex<Vec<(usize, WorkerEvent)>>,
}

impl CarriedProgram for Hung {
    fn end_status(&self) -> Option<String> {
        None
    }

    fn abort(&self) {
        held(&self.waiting).drain(..).for_each(|event| self.says.send(event).unwrap());
    }
}

#[test]
fn a_worker_that_hangs_holds_back_no_second_of_the_others_for_good() {
    let mut rehearsal = Rehearsal::here(2, silent);
    rehearsal.pool.lease = Duration::from_secs(2);
    rehearsal.pool.members[1].party = 0;
    rehearsal.second(0, 0, false, 5);
    rehearsal.says(0, FromWorker::Done(done()));
    let mut waiting = vec![(1, WorkerEvent::Lost("signal: 9".into()))];
    for number in [2, 1] {
        let Ok(Packed::Second(sum)) = read_packed::<FromWorker>(&mut &sum_frame(number, false, 7)[..]) else {
            panic!()
        };
        waiting.insert(0, (0, WorkerEvent::Second(sum)));
    }
    let hung = Hung { says: rehearsal.says.clone(), waiting: Mutex::new(waiting) };
    rehearsal.pool.members[1].running = Mutex::new(Running::Carried(Box::new(hung)));
    let told = rehearsal.gather(&[0, 1]).unwrap();
    assert!(told[0].is_some() && told[1].is_none());
    assert_eq!(rehearsal.seconds, [(0, false, 5), (1, false, 7), (2, false, 7)]);
    let why = "worker 2 (process 8) was lost: it says nothing for 2 s";
    assert_eq!(rehearsal.pool.lost_workers(), [why], "once, and why");
}

#[test]
fn what_each_target_has_done_is_the_sum_of_its_seconds_although_a_worker_is_lost() {
    let mut rehearsal = Rehearsal::here(3, silent);
    rehearsal.pool.shown = vec!["a".into(), "b".into()];
    rehearsal.pool.members[2].instance = 1;
    for (worker, arrivals) in [(0, 1), (1, 10), (2, 100)] {
        rehearsal.second(worker, 0, true, 1_000);
        rehearsal.second(worker, 1, false, arrivals);
    }
    rehearsal.says.send((2, WorkerEvent::Lost("gone".into()))).unwrap();
    (0..2).for_each(|worker| rehearsal.says(worker, FromWorker::Done(done())));
    rehearsal.gather(&[0, 1, 2]).unwrap();
    let parts = LoadGenerator::parts(&rehearsal.pool);
    let parts: Vec<(&str, u64, u64)> =
        parts.iter().map(|(name, sum, ns)| (&**name, sum.arrivals, *ns)).collect();
    // The second worker's target is its own in this rehearsal.
    assert_eq!(parts, [("a", 1, 1_500_000_000), ("b", 110, 1_500_000_000)]);
}

#[test]
fn beginnings_lie_apart_only_where_two_have_begun() {
    let rehearsal = Rehearsal::here(2, silent);
    assert_eq!(rehearsal.pool.start_skew(), None);
    rehearsal.pool.members[1].began_ns.store(5_000, Ordering::Relaxed);
    assert_eq!(rehearsal.pool.start_skew(), None);
    rehearsal.pool.members[0].began_ns.store(4_993, Ordering::Relaxed);
    assert_eq!(rehearsal.pool.start_skew(), Some(7));
    // The clock of the later one is ahead of ours.
    held(&rehearsal.pool.members[1].clock).ns = 4;
    assert_eq!(rehearsal.pool.start_skew(), Some(3));
}

#[test]
fn a_worker_that_is_lost_ends_the_others_and_what_has_come_is_kept() {
    let stopped: WorkerAnswer = |word| (*word == ToWorker::Stop).then(|| FromWorker::Done(done()));
    let mut rehearsal = Rehearsal::here(2, stopped);
    rehearsal.second(0, 0, false, 1);
    rehearsal.second(1, 0, false, 10);
    rehearsal.second(0, 1, false, 1);
    rehearsal.says.send((1, WorkerEvent::Lost("the other end has closed".into()))).unwrap();
    let told = rehearsal.gather(&[0, 1]).unwrap();
    assert_eq!(told[0], Some(done()));
    assert_eq!(rehearsal.seconds, [(0, false, 11), (1, false, 1)]);
    assert_eq!(rehearsal.parts(), [(0, 2, 2, 1_500_000_000), (1, 0, 10, 1_500_000_000)]);
    let why = "worker 2 (process 8) was lost: the other end has closed (exit status: 0)";
    assert_eq!(rehearsal.pool.lost_workers(), [why]);
    assert_eq!(rehearsal.heard(0), [ToWorker::Stop]);
}

#[test]
fn what_has_come_is_kept_of_all_although_one_does_not_end() {
    let mut rehearsal = Rehearsal::here(2, silent);
    rehearsal.second(0, 0, false, 1);
    rehearsal.says(0, FromWorker::Done(done()));
    // The pool no longer hears the second worker.
    rehearsal.pool.members[1].input = Arc::default();
    rehearsal.pool.members[0].input = Arc::default();
    rehearsal.says = channel().0;
    let told = rehearsal.gather(&[0, 1]).unwrap();
    assert_eq!((told, rehearsal.seconds), (vec![Some(done()), None], vec![(0, false, 1)]));
}

#[test]
fn a_second_that_cannot_be_read_is_the_end_of_its_worker() {
    let mut rehearsal = Rehearsal::here(2, silent);
    rehearsal.packed(0, &[3, 0, 0, 0, 2, 1, 2]);
    rehearsal.says(1, FromWorker::Done(PhaseDone { ended_early: Some("the lease".into()), ..done() }));
    let told = rehearsal.gather(&[0, 1]).unwrap();
    assert!(told[0].is_none() && told[1].is_some());
    let why = [
        "worker 1 (process 7) was lost: a second of too few bytes (exit status: 0)",
        "worker 2 (process 8) ended early: the lease",
    ];
    assert_eq!(rehearsal.pool.lost_workers(), why);
}

#[test]
fn a_worker_that_cannot_do_its_part_aborts_all() {
    let mut rehearsal = Rehearsal::here(2, silent);
    rehearsal.says(1, FromWorker::Failed { unreachable: true, cause: "no way".into() });
    let why = rehearsal.gather(&[0, 1]).unwrap_err();
    assert!(
        matches!(&why, WorkerPoolError::Unreachable(message) if message == "worker 2 (process 8): no way"),
        "{why}"
    );
    assert_eq!([rehearsal.heard(0), rehearsal.heard(1)], [[ToWorker::Abort], [ToWorker::Abort]]);
}

#[test]
fn workers_are_told_once_to_stop_and_once_to_abort() {
    let ends: WorkerAnswer =
        |word| matches!(word, ToWorker::Stop | ToWorker::Abort).then(|| FromWorker::Done(done()));
    let aborts: WorkerAnswer = |word| (*word == ToWorker::Abort).then(|| FromWorker::Done(done()));
    // Ended by control, at once, or by the watchdog of the servers.
    let stop = Rehearsal::here(2, ends);
    stop.control.stop();
    let abort = Rehearsal::here(2, aborts);
    abort.control.abort_run();
    let cut_short = Rehearsal::here(2, aborts);
    cut_short.pool.cut_short().cut_for("the server is gone".into());
    let gone = vec!["the server is gone".to_owned()];
    for (mut rehearsal, words, why) in [
        (stop, vec![ToWorker::Stop], Vec::new()),
        (abort, vec![ToWorker::Stop, ToWorker::Abort], Vec::new()),
        (cut_short, vec![ToWorker::Abort], gone),
    ] {
        let told = rehearsal.gather(&[0, 1]).unwrap();
        assert_eq!(told, [Some(done()), Some(done())]);
        assert_eq!([rehearsal.heard(0), rehearsal.heard(1)], [words.clone(), words]);
        // No worker is accused of not having ended.
        assert_eq!(rehearsal.pool.lost_workers(), why);
        assert_eq!(rehearsal.pool.cut_short.take_reason(), None, "it is said once");
    }
}

#[test]
fn workers_on_other_hosts_are_known_by_their_host_and_asked_for_their_clock() {
    let told: WorkerAnswer =
        |word| (*word == ToWorker::Clock).then(|| FromWorker::Clock { now_ns: unix_ns() + 5_000_000_000 });
    let rehearsal = Rehearsal::of(&[None, Some("far"), Some("further"), Some("far")], told);
    assert_eq!((rehearsal.pool.pids_on("far"), rehearsal.pool.pids_on("further")), (vec![8, 10], vec![9]));
    assert!(rehearsal.pool.pids_on("nowhere").is_empty());
    let widest_ns = rehearsal.pool.ask_clocks(&rehearsal.control).unwrap();
    let clocks = rehearsal.pool.worker_clocks();
    let names: Vec<&str> = clocks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["worker-2", "worker-3", "worker-4"]);
    for (name, clock) in &clocks {
        assert!(clock.ns.abs_diff(5_000_000_000) < 2_000_000_000, "{name}: {clock:?}");
    }
    assert_eq!(Some(widest_ns), clocks.iter().map(|(_, clock)| clock.bound_ns).max());
    assert!(widest_ns > 1 && rehearsal.heard(0).is_empty());
}

#[test]
fn a_phase_is_run_as_what_it_is_called_and_all_begin_at_the_same_instant() {
    let runs: WorkerAnswer = |word| match word {
        ToWorker::Clock => Some(FromWorker::Clock { now_ns: unix_ns() + 5_000_000_000 }),
        ToWorker::Start { .. } => Some(FromWorker::Connected),
        ToWorker::Begin { .. } => Some(FromWorker::Done(done())),
        _ => None,
    };
    let rehearsal = Rehearsal::of(&[None, None, Some("far")], runs);
    for stage in [Stage::Load, Stage::Measure] {
        let control = Arc::default();
        rehearsal.pool.run(stage.name(), &[job()], &control, &mut |_| panic!("no second")).unwrap();
        let begun = |worker: usize| {
            let mut heard = std::mem::take(&mut *held(&rehearsal.heard[worker]));
            heard.retain(|word| *word != ToWorker::Clock);
            match heard.as_slice() {
                [ToWorker::Start { stage, .. }, ToWorker::Begin { at_ns }] => (*stage, *at_ns),
                other => panic!("{other:?}"),
            }
        };
        let (here, near, far) = (begun(0), begun(1), begun(2));
        assert_eq!((here.0, far.0, here), (stage, stage, near));
        // On its own clock.
        let ahead_ns = rehearsal.pool.worker_clocks()[0].1.ns;
        assert_eq!(far.1, here.1.saturating_add_signed(ahead_ns));
    }
    let names = [Stage::Load, Stage::Measure].map(Stage::name);
    assert_eq!(names, ["load", "measure"], "as session and run directory have them");
}
