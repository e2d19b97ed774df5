//! A controller's half of the conversation, word by word, with a worker in a thread.

use crate::remote::worker::serve::*;
use dyno_config::experiment::read_plan;
use dyno_engine::{End, Second};
use dyno_session::work;
use dyno_types::{Content, Outcome};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// The other end of a worker's pipe.
struct Controller {
    pipe: UnixStream,
    worker: Option<JoinHandle<Result<(), FrameError>>>,
}

impl Controller {
    /// Greets a worker with a version of the protocol.
    fn greeting(protocol: u32) -> Self {
        Self::of(protocol, work::read)
    }

    fn of(protocol: u32, read: fn(&Experiment) -> Result<Box<dyn Work>, Refused>) -> Self {
        let (pipe, theirs) = UnixStream::pair().unwrap();
        // A worker that says nothing fails the test instead of holding it up.
        pipe.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let input = theirs.try_clone().unwrap();
        let worker = std::thread::spawn(move || serve_controller(input, theirs, &read));
        let mut controller = Controller { pipe, worker: Some(worker) };
        controller.say(&ToWorker::Hello { protocol, now_ns: 7, log: Vec::new() });
        controller
    }

    fn new() -> Self {
        Self::greeting(PROTOCOL).greeted()
    }

    fn greeted(mut self) -> Self {
        let before = unix_ns();
        let FromWorker::Hello { protocol, pid, heard_ns, now_ns, .. } = self.word() else { panic!() };
        assert_eq!((protocol, pid, heard_ns), (PROTOCOL, std::process::id(), 7));
        assert!(now_ns.abs_diff(before) < 60_000_000_000, "{now_ns} and {before}");
        self
    }

    fn say(&mut self, word: &ToWorker) {
        write_frame(&mut self.pipe, &Frame::Message(word)).unwrap();
    }

    fn word(&mut self) -> FromWorker {
        loop {
            match read_frame(&mut self.pipe).unwrap() {
                Frame::Message(FromWorker::Alive) => {}
                Frame::Message(word) => return word,
                other => panic!("a second of load: {other:?}"),
            }
        }
    }

    fn failed(&mut self) -> (bool, String) {
        match self.word() {
            FromWorker::Failed { unreachable, cause } => (unreachable, cause),
            other => panic!("{other:?}"),
        }
    }

    fn assign(&mut self, text: &str, index: usize, total: usize, lease_ms: u64) {
        self.say(&ToWorker::Assign(Box::new(assignment(text, index, total, lease_ms))));
    }

    /// Makes everything ready for a phase.
    fn prepared(&mut self) -> Prepared {
        let FromWorker::Ready { cores, .. } = self.word() else { panic!() };
        assert_eq!(cores, [0]);
        self.say(&ToWorker::Prepare);
        match self.word() {
            FromWorker::Prepared(prepared) => prepared,
            other => panic!("{other:?}"),
        }
    }

    /// Starts a phase, and begins it once all users have connected.
    fn begin(&mut self, stage: Stage, prepared: &Prepared) {
        self.say(&ToWorker::Start { stage, prepared: prepared.clone() });
        let word = self.word();
        assert_eq!(word, FromWorker::Connected);
        self.say(&ToWorker::Begin { at_ns: unix_ns() });
    }

    /// The seconds of a phase and its end.
    fn end(&mut self) -> (Vec<Second>, PhaseDone) {
        let mut seconds: Vec<Second> = Vec::new();
        loop {
            match read_frame(&mut self.pipe).unwrap() {
                Frame::Second(second) => seconds.push(*second),
                Frame::Message(FromWorker::Done(done)) => return (seconds, done),
                Frame::Message(FromWorker::Alive) => {}
                Frame::Whole(whole) => {
                    let mut sum = whole.empty_like();
                    let measured = seconds.iter().filter(|second| !second.warmup);
                    measured.for_each(|second| sum.merge(&second.totals));
                    (sum.gaps, sum.pauses) = (Vec::new(), Vec::new());
                    assert_eq!(*whole, sum, "the whole is the sum of its seconds");
                }
                Frame::Message(other) => panic!("{other:?}"),
            }
        }
    }

    fn over(mut self) -> Result<(), FrameError> {
        self.worker.take().unwrap().join().unwrap()
    }
}

fn assignment(text: &str, index: usize, total: usize, lease_ms: u64) -> Assignment {
    let spec = Box::new(read_plan(text, "x.yaml", &[]).unwrap().cells[0].spec.clone());
    let target = spec.target.clone().unwrap_or_default();
    let (instance, cores, local, spin) = (0, vec![0], true, false);
    Assignment { target, spec, index, total, instance, cores, local, spin, lease_ms }
}

const PHASES: &str = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 1000}}\nphases:\n  \
                      load: {users: 2}\n  measure: {users: 4, warmup: 0s, ";

fn ok(seconds: &[Second]) -> u64 {
    seconds.iter().map(|second| second.totals.ended[Outcome::Ok as usize]).sum()
}

#[test]
fn a_worker_loads_measures_and_says_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/records.db", folder.path().display());
    let text = format!("{PHASES}operations: 5000}}\n").replace("null:", &store);
    let mut controller = Controller::new();
    controller.assign(&text, 0, 1, 60_000);
    let prepared = controller.prepared();
    assert!(prepared.load, "the store is empty");
    let before = unix_ns();
    controller.say(&ToWorker::Clock);
    let FromWorker::Clock { now_ns } = controller.word() else { panic!() };
    assert!(now_ns.abs_diff(before) < 60_000_000_000, "{now_ns}");
    controller.begin(Stage::Load, &prepared);
    let (seconds, done) = controller.end();
    // Each user of an embedded store has a thread.
    assert_eq!((ok(&seconds), done.users, done.threads), (1_000, 2, 2));
    controller.begin(Stage::Measure, &prepared);
    let (seconds, done) = controller.end();
    assert_eq!((ok(&seconds), done.users, done.threads, done.rest), (5_000, 4, 4, (0, 0)));
    assert!(done.epoch_ns.abs_diff(before) < 60_000_000_000 && done.elapsed_ns > 0, "{done:?}");
    assert_eq!((done.ended_early, done.errors.len()), (None, 0));
    controller.say(&ToWorker::Bye);
    controller.over().unwrap();
}

#[test]
fn a_worker_takes_its_part_of_the_work() {
    let part = |number| {
        let mut controller = Controller::new();
        controller.assign(&format!("{PHASES}operations: 5001}}\n"), number, 2, 60_000);
        let prepared = controller.prepared();
        controller.begin(Stage::Measure, &prepared);
        let (seconds, done) = controller.end();
        assert_eq!(done.threads, 1);
        (ok(&seconds), done.users)
    };
    let (one, other) = (part(0), part(1));
    assert_eq!((one.0 + other.0, one.1, other.1), (5_001, 2, 2));
    assert!(one.0 > 1_000 && other.0 > 1_000, "{one:?} {other:?}");
    let mut controller = Controller::new();
    controller.assign(&format!("{PHASES}operations: 5001}}\n"), 2, 2, 60_000);
    let prepared = controller.prepared();
    controller.say(&ToWorker::Start { stage: Stage::Measure, prepared });
    assert_eq!(controller.failed(), (false, "this worker takes no part in the phase".into()));
}

#[test]
fn a_phase_ends_when_it_is_told_and_the_worker_goes_on() {
    for word in [ToWorker::Stop, ToWorker::Abort] {
        let mut controller = Controller::new();
        controller.assign(&format!("{PHASES}duration: 10m}}\n"), 0, 1, 60_000);
        let prepared = controller.prepared();
        controller.begin(Stage::Measure, &prepared);
        controller.say(&word);
        let (_, done) = controller.end();
        assert_eq!(done.ended_early, None, "the controller that said so knows");
        controller.say(&ToWorker::Clock);
        assert!(matches!(controller.word(), FromWorker::Clock { .. }));
    }
}

#[test]
fn a_worker_that_hears_nothing_for_a_while_is_still_there() {
    let mut controller = Controller::new();
    // Longer than it waits for a word at once; no lease has begun.
    std::thread::sleep(Duration::from_millis(500));
    controller.say(&ToWorker::Clock);
    assert!(matches!(controller.word(), FromWorker::Clock { .. }));
}

#[test]
fn a_phase_begins_at_the_instant_that_it_is_told() {
    let mut controller = Controller::new();
    controller.assign(&format!("{PHASES}operations: 5000}}\n"), 0, 1, 60_000);
    let prepared = controller.prepared();
    controller.say(&ToWorker::Start { stage: Stage::Measure, prepared });
    assert_eq!(controller.word(), FromWorker::Connected);
    let at_ns = unix_ns() + 300_000_000;
    controller.say(&ToWorker::Begin { at_ns });
    let (seconds, done) = controller.end();
    assert!(done.epoch_ns + 50_000_000 >= at_ns, "{} before {at_ns}", done.epoch_ns);
    assert_eq!((ok(&seconds), done.ended_early), (5_000, None), "its lease is longer than that");
}

/// Reads after which seven requests are still queued.
struct QueuedReads(Box<dyn Work>);

impl QueuedReads {
    fn read(spec: &Experiment) -> Result<Box<dyn Work>, Refused> {
        Ok(Box::new(QueuedReads(work::read(spec)?)))
    }
}

impl Work for QueuedReads {
    fn name(&self) -> String {
        self.0.name()
    }

    fn content(&self) -> Arc<dyn Content> {
        self.0.content()
    }

    fn prepare(&mut self, opened: &dyn OpenTarget, control: &Arc<Control>) -> Result<Prepared, RunError> {
        self.0.prepare(opened, control)
    }

    fn adopt(&mut self, prepared: &Prepared) -> Result<(), Refused> {
        self.0.adopt(prepared)
    }

    fn load(&self) -> Result<Option<Job>, Refused> {
        self.0.load()
    }

    fn measure(&self) -> Result<Job, Refused> {
        self.0.measure()
    }

    fn rest(&self) -> Option<Job> {
        let end = End { operations: Some(7), duration_ns: None };
        // The worker chooses the load threads itself.
        Some(Job { end, cores: Vec::new(), ..self.measure().ok()? })
    }
}

#[test]
fn what_is_still_queued_is_sent_after_a_measured_phase_that_came_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/records.db", folder.path().display());
    let (count, minutes) = ("operations: 100", "duration: 10m");
    for (stage, target, end, lease_ms, rest) in [
        (Stage::Load, store.as_str(), count, 60_000, (0, 0)),
        (Stage::Measure, "null:", count, 60_000, (7, 0)),
        // It is told to stop; or its controller speaks to it no more.
        (Stage::Measure, "null:", minutes, 60_000, (0, 7)),
        (Stage::Measure, "null:", minutes, 1_000, (0, 7)),
    ] {
        let mut controller = Controller::of(PROTOCOL, QueuedReads::read).greeted();
        controller.assign(&format!("{PHASES}{end}}}\n").replace("null:", target), 0, 1, lease_ms);
        let prepared = controller.prepared();
        controller.begin(stage, &prepared);
        if end == minutes && lease_ms == 60_000 {
            controller.say(&ToWorker::Stop);
        }
        let (seconds, done) = controller.end();
        assert_eq!(done.rest, rest, "sent and not sent: {stage:?}, {end}, a lease of {lease_ms} ms");
        if end == count {
            let counted = if stage == Stage::Load { 1_000 } else { 100 };
            assert_eq!(ok(&seconds), counted, "what was queued is not measured");
        }
    }
}

#[test]
fn what_was_queued_and_does_not_succeed_does_not_count_as_sent() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/records.db", folder.path().display());
    let loaded = format!("{PHASES}operations: 100}}\n").replace("null:", &store);
    // Half of the records that it reads are not there.
    let measured =
        loaded.replace("records: 1000", "records: 2000").replace("load: {users", "load: {when: never, users");
    for (stage, text) in [(Stage::Load, loaded), (Stage::Measure, measured)] {
        let mut controller = Controller::of(PROTOCOL, QueuedReads::read).greeted();
        controller.assign(&text, 0, 1, 60_000);
        let prepared = controller.prepared();
        controller.begin(stage, &prepared);
        let (sent, not_sent) = controller.end().1.rest;
        if stage == Stage::Measure {
            assert!(sent > 0 && not_sent > 0 && sent + not_sent == 7, "{sent} and {not_sent}");
        }
    }
}

/// The measured job of a worker that may spin.
fn job(text: &str, stage: Stage, number: usize) -> Result<Job, Refused> {
    let (output, (_tell, told)) = (Outbox::start(Vec::new()).unwrap(), channel());
    let shared = Arc::new(ServeState::new());
    let worker = WorkerLoop { output, shared, told, read_work: &work::read };
    let assignment = Assignment { spin: true, ..assignment(text, number, 2, 60_000) };
    let Ok((_, place)) = worker.assign(assignment) else { panic!("{text}") };
    place.jobs(place.work.measure()?, stage, &Arc::default()).map(|mut jobs| jobs.remove(0))
}

#[test]
fn load_threads_are_pinned_and_spin_where_that_is_asked_for_and_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}/records.db", folder.path().display());
    for (target, pin, cores, spin, pipeline) in [
        ("null:", true, [Some(0)], true, 3),
        ("null:", false, [None], false, 3),
        ("sim:?service=1ms", true, [None], false, 3),
        (store.as_str(), true, [Some(0)], true, 1),
    ] {
        let text = format!("{PHASES}operations: 100, pipeline: 3}}\nclient: {{pin: {pin}}}\n")
            .replace("null:", target);
        let job = job(&text, Stage::Measure, 0).unwrap();
        assert_eq!(
            (job.cores.as_slice(), job.spin, job.pipeline),
            (&cores[..], spin, pipeline),
            "{target}, pin: {pin}"
        );
    }
}

#[test]
fn workers_take_part_in_the_phases_that_the_file_gives_them() {
    let text = format!("{PHASES}operations: 100}}\n").replace("load: {users", "load: {workers: 1, users");
    let users = |stage, number| job(&text, stage, number).map(|job| job.users);
    assert_eq!((users(Stage::Measure, 0), users(Stage::Measure, 1)), (Ok(2), Ok(2)));
    assert_eq!(users(Stage::Load, 0), Ok(4));
    let refused = users(Stage::Load, 1).unwrap_err();
    assert_eq!(refused.to_string(), "this worker takes no part in the phase");
}

#[test]
fn a_silent_controller_ends_the_load_and_is_told_why() {
    let mut controller = Controller::new();
    controller.assign(&format!("{PHASES}duration: 10m}}\n"), 0, 1, 300);
    let prepared = controller.prepared();
    controller.begin(Stage::Measure, &prepared);
    let (_, done) = controller.end();
    assert_eq!(done.ended_early.as_deref(), Some("the controller was silent for longer than the lease"));
    // The controller did not come back: the worker ends by itself, although the pipe is open.
    controller.over().unwrap();
}

#[test]
fn what_cannot_be_done_is_said_and_the_worker_goes_on() {
    let mut controller = Controller::new();
    controller.say(&ToWorker::Prepare);
    assert_eq!(controller.failed(), (false, "a word that comes before the assignment".into()));
    controller.say(&ToWorker::Start { stage: Stage::Load, prepared: Prepared::default() });
    assert_eq!(controller.failed().1, "a word that comes before the assignment");
    // Nothing listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    controller.assign(&format!("target: redis://127.0.0.1:{port}\n"), 0, 1, 60_000);
    let (unreachable, message) = controller.failed();
    assert!(unreachable && message.contains(&port.to_string()), "{message}");
    controller.say(&ToWorker::Bye);
    controller.over().unwrap();
}

#[test]
fn the_first_word_is_hello_in_the_same_version() {
    let mut controller = Controller::greeting(PROTOCOL + 1);
    // The answer tells the controller which version the worker has.
    assert!(matches!(controller.word(), FromWorker::Hello { protocol: PROTOCOL, .. }));
    let why = controller.over().unwrap_err().to_string();
    assert!(why.contains(&format!("speaks protocol {}, this worker {PROTOCOL}", PROTOCOL + 1)), "{why}");
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &Frame::Message(&ToWorker::Ping)).unwrap();
    let why = serve_controller(std::io::Cursor::new(bytes), Vec::new(), &work::read).unwrap_err().to_string();
    assert_eq!(why, "the first word must be hello");
}

#[test]
fn a_controller_that_goes_ends_the_worker() {
    let mut controller = Controller::new();
    // No lease ends it within ten minutes.
    controller.assign(&format!("{PHASES}duration: 10m}}\n"), 0, 1, 600_000);
    let prepared = controller.prepared();
    controller.begin(Stage::Measure, &prepared);
    let worker = controller.worker.take().unwrap();
    controller.pipe.shutdown(std::net::Shutdown::Both).unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !worker.is_finished() {
        assert!(std::time::Instant::now() < end, "the worker does not notice");
        std::thread::sleep(Duration::from_millis(10));
    }
}
