//! The program `dyno-worker`, started as a controller starts it.

use dyno_config::experiment::read_plan;
use dyno_hosts::protocol::frame::{
    Body, Frame, Packed, encode_frame, encode_member, read_body, read_frame, unpack, write_frame,
};
use dyno_hosts::protocol::group::{FromGroup, MemberPlace, ToGroup};
use dyno_hosts::protocol::worker::{Assignment, FromWorker, PROTOCOL, Stage, ToWorker};
use dyno_record::Totals;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno-worker"));
    command.args(words).stdin(Stdio::null()).output().expect("the program starts")
}

#[test]
fn it_ends_with_its_pipe_and_says_what_it_does_not_know() {
    let version = run(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).contains(env!("CARGO_PKG_VERSION")));
    for words in [&["worker", "--stdio"][..], &["host", "--stdio"]] {
        let ended = run(words);
        assert!(ended.status.success(), "{words:?}: {ended:?}");
    }
    let missing = run(&["relay", "--stdio", "--token", "/nowhere"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("error: "), "{missing:?}");
    let patience = run(&["pod", "--patience", "soon"]);
    assert_eq!(patience.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&patience.stderr).starts_with("error: --patience: "), "{patience:?}");
    assert_eq!(run(&["run"]).status.code(), Some(2), "nothing but what a controller starts");
}

#[test]
fn it_greets_a_controller() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyno-worker"))
        .args(["worker", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let hello = ToWorker::Hello { protocol: PROTOCOL, now_ns: 7, log: Vec::new() };
    write_frame(&mut input, &Frame::Message(&hello)).expect("it listens");
    let mut output = child.stdout.take().expect("a pipe");
    let Frame::Message(FromWorker::Hello { protocol, pid, heard_ns, .. }) =
        read_frame(&mut output).expect("it answers")
    else {
        panic!("it greets first");
    };
    assert_eq!((protocol, pid, heard_ns), (PROTOCOL, child.id(), 7));
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Pods that listen, and the token that they take.
struct Pods {
    children: Vec<Child>,
    addresses: Vec<SocketAddr>,
    folder: tempfile::TempDir,
}

impl Pods {
    fn start(count: usize) -> Pods {
        let folder = tempfile::tempdir().expect("a folder");
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN).expect("a file");
        let mut pods = Pods { children: Vec::new(), addresses: Vec::new(), folder };
        for _ in 0..count {
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
            let address = listener.local_addr().expect("an address");
            drop(listener);
            let mut command = Command::new(env!("CARGO_BIN_EXE_dyno-worker"));
            command.args(["pod", "--port", &address.port().to_string(), "--token"]).arg(&token);
            pods.children.push(command.spawn().expect("the program starts"));
            pods.addresses.push(address);
        }
        pods
    }

    /// A worker beside the group, and one in each pod.
    fn places(&self) -> Vec<MemberPlace> {
        let pods = self.addresses.iter().copied().map(MemberPlace::Pod);
        [MemberPlace::Here].into_iter().chain(pods).collect()
    }

    fn kill(&mut self, pod: usize) {
        self.children[pod].kill().expect("it runs");
        self.children[pod].wait().expect("it ends");
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        (0..self.children.len()).for_each(|pod| self.kill(pod));
    }
}

/// A controller of a group of workers.
struct GroupController {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Sums of measured seconds.
    sum: Option<Totals>,
    /// What each worker has measured, as the group says.
    whole: BTreeMap<u32, Totals>,
    seconds: usize,
    /// Workers that have ended: why, and how.
    ended: BTreeMap<u32, (String, String)>,
}

impl GroupController {
    fn start(pods: &Pods, text: &str) -> GroupController {
        let places = pods.places();
        let workers = places.len() as u32;
        let mut child = Command::new(env!("CARGO_BIN_EXE_dyno-worker"))
            .args(["worker", "--group", "--stdio", "--token"])
            .arg(pods.folder.path().join("token"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (whole, ended) = (BTreeMap::new(), BTreeMap::new());
        let mut own = GroupController { child, input, output, sum: None, whole, seconds: 0, ended };
        own.say(&ToGroup::Hello { protocol: PROTOCOL, workers: places });
        let spec = read_plan(text, "x.yaml", &[]).expect("it is read").cells[0].spec.clone();
        for worker in 0..workers {
            own.tell(worker, &ToWorker::Hello { protocol: PROTOCOL, now_ns: 7, log: Vec::new() });
            let assignment = Assignment {
                target: "null:".into(),
                spec: Box::new(spec.clone()),
                index: worker as usize,
                total: workers as usize,
                instance: 0,
                cores: Vec::new(),
                local: true,
                spin: false,
                lease_ms: 60_000,
            };
            own.tell(worker, &ToWorker::Assign(Box::new(assignment)));
        }
        own
    }

    fn say(&mut self, word: &ToGroup) {
        write_frame(self.input.as_mut().expect("it is open"), &Frame::Message(word)).expect("it listens");
    }

    fn tell(&mut self, worker: u32, word: &ToWorker) {
        let frame = encode_frame(&Frame::Message(word)).expect("a frame");
        let input = self.input.as_mut().expect("it is open");
        input.write_all(&encode_member(worker, &frame[4..])).expect("it listens");
    }

    /// What a worker says next; all else is taken in. None if the group has said something for itself.
    fn hear(&mut self) -> Option<(u32, FromWorker)> {
        match read_body(&mut self.output).expect("the group goes on") {
            Body::Own(body) => match unpack(body).expect("a frame") {
                Packed::Second(packed) => {
                    let second = packed.open().expect("a second");
                    assert!(!second.warmup);
                    self.seconds += 1;
                    match &mut self.sum {
                        Some(sum) => sum.merge(&second.totals),
                        None => self.sum = Some(second.totals.to_dense()),
                    }
                    None
                }
                Packed::Message(FromGroup::Ended { worker, why, status }) => {
                    self.ended.insert(worker, (why, status));
                    None
                }
                Packed::Message(FromGroup::Hello { protocol }) => {
                    assert_eq!(protocol, PROTOCOL);
                    None
                }
                Packed::Whole(_) => panic!("a group measures nothing itself"),
            },
            Body::Member(worker, body) => match unpack(body).expect("a frame") {
                Packed::Message(FromWorker::Alive | FromWorker::Log(_)) => None,
                Packed::Message(word) => Some((worker, word)),
                Packed::Whole(whole) => {
                    self.whole.insert(worker, whole.open().expect("totals").to_dense());
                    None
                }
                Packed::Second(_) => panic!("seconds of workers are added up"),
            },
        }
    }

    /// The answers of so many workers that `is` one.
    fn answers<T>(&mut self, count: usize, is: impl Fn(FromWorker) -> Option<T>) -> Vec<(u32, T)> {
        let mut answers = Vec::new();
        while answers.len() < count {
            let Some((worker, word)) = self.hear() else { continue };
            if let FromWorker::Failed { cause, .. } = &word {
                panic!("worker {worker}: {cause}");
            }
            answers.extend(is(word).map(|answer| (worker, answer)));
        }
        answers
    }

    /// Begins the measured phase on all workers; their process numbers.
    fn begin(&mut self, workers: u32) -> Vec<i32> {
        // One may be ready before another has said hello.
        let first_words = self.answers(2 * workers as usize, |word| match word {
            FromWorker::Hello { pid, .. } => Some(Some(pid as i32)),
            FromWorker::Ready { .. } => Some(None),
            _ => None,
        });
        let mut pids: Vec<(u32, i32)> =
            first_words.into_iter().filter_map(|(worker, pid)| Some((worker, pid?))).collect();
        pids.sort_unstable();
        self.tell(0, &ToWorker::Prepare);
        let prepared =
            self.answers(1, |word| if let FromWorker::Prepared(found) = word { Some(found) } else { None });
        for worker in 0..workers {
            self.tell(worker, &ToWorker::Start { stage: Stage::Measure, prepared: prepared[0].1.clone() });
        }
        self.answers(workers as usize, |word| (word == FromWorker::Connected).then_some(()));
        (0..workers).for_each(|worker| self.tell(worker, &ToWorker::Begin { at_ns: 0 }));
        pids.into_iter().map(|(_, pid)| pid).collect()
    }

    /// Sums of seconds, and of what all workers have said of the whole phase; stretches without a success are in the former only.
    fn sums(&self) -> (Totals, Totals) {
        let mut sum = self.sum.clone().expect("seconds have come");
        (sum.gaps, sum.pauses) = (Vec::new(), Vec::new());
        let mut whole = sum.empty_like();
        self.whole.values().for_each(|own| whole.merge(own));
        (sum, whole)
    }
}

#[test]
fn a_group_adds_up_the_seconds_of_its_workers() {
    let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {connections: 6, rate: 3k, operations: 4001, warmup: 0s}}\n";
    let pods = Pods::start(2);
    let mut group = GroupController::start(&pods, text);
    let pids = group.begin(3);
    assert!(!pids.contains(&(group.child.id() as i32)), "workers are processes of their own");
    group.answers(3, |word| if let FromWorker::Done(done) = word { Some(done) } else { None });
    let (sum, whole) = group.sums();
    assert_eq!((sum.arrivals, sum.count_ok(), group.whole.len()), (4_001, 4_001, 3));
    assert_eq!(sum, whole);
    assert_eq!(sum.ok_slot(0).expect("reads").service.count(), 4_001);
    drop(group.input.take());
    assert!(group.child.wait().expect("it ends").success());
}

/// The first one is the group's own, the others are in pods: one of these loses its process, the other its pod. Each second that
/// a lost worker has sent counts once, and of the one that goes on none is missing.
#[test]
fn a_group_goes_on_without_workers_that_are_lost_and_counts_all_that_they_have_sent() {
    let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {connections: 6, rate: 600, duration: 10m, warmup: 0s}}\n";
    let mut pods = Pods::start(2);
    let mut group = GroupController::start(&pods, text);
    let pids = group.begin(3);
    let go_on = |group: &mut GroupController, seconds: usize| {
        let before = group.seconds;
        while group.seconds < before + seconds {
            assert!(group.hear().is_none(), "no word is expected");
        }
    };
    go_on(&mut group, 1);
    kill_process(Pid::from_raw(pids[1]).expect("a process"), Signal::KILL).expect("it runs");
    while group.ended.is_empty() {
        assert!(group.hear().is_none(), "no word is expected");
    }
    let (why, status) = &group.ended[&1];
    assert!(why.contains("closed") && status.contains("signal: 9"), "{why}: {status}");
    // The sums of the others are not held up, for three of them.
    go_on(&mut group, 3);
    pods.kill(1);
    while group.ended.len() < 2 {
        assert!(group.hear().is_none(), "no word is expected");
    }
    assert!(group.ended[&2].1.contains("connection"), "{:?}", group.ended[&2]);
    go_on(&mut group, 3);
    group.tell(0, &ToWorker::Stop);
    group.answers(1, |word| matches!(word, FromWorker::Done(_)).then_some(()));
    let (sum, whole) = group.sums();
    assert_eq!((sum.arrivals, sum.ended), (whole.arrivals, whole.ended));
    let reads = |totals: &Totals| totals.ok_slot(0).map_or(0, |slot| slot.service.count());
    for lost in [1, 2] {
        assert!(group.whole[&lost].arrivals > 0);
        assert_eq!(reads(&group.whole[&lost]), 0, "its histograms are lost with it");
    }
    // A worker that is to be killed is, and the group ends with its pipe.
    group.say(&ToGroup::Kill { worker: 0 });
    while group.ended.len() < 3 {
        group.hear();
    }
    assert!(group.ended[&0].1.contains("signal: 9"));
    drop(group.input.take());
    assert!(group.child.wait().expect("it ends").success());
}

/// A pod that does not answer costs its own worker, which is named, and nothing else.
#[test]
fn a_worker_whose_pod_cannot_be_reached_has_ended() {
    let mut pods = Pods::start(2);
    pods.kill(1);
    let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 100}}\n";
    let mut group = GroupController::start(&pods, text);
    let mut ready = 0;
    while ready < 2 || group.ended.is_empty() {
        ready += usize::from(matches!(group.hear(), Some((_, FromWorker::Ready { .. }))));
    }
    let (address, (_, status)) = (pods.addresses[1].to_string(), &group.ended[&2]);
    assert!(status.starts_with(&address), "{status}");
    // Without the token there is no way to any pod.
    drop(group.input.take());
    assert!(group.child.wait().expect("it ends").success());
    std::fs::remove_file(pods.folder.path().join("token")).expect("it is there");
    let mut group = Command::new(env!("CARGO_BIN_EXE_dyno-worker"))
        .args(["worker", "--group", "--stdio", "--token", "/nowhere"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let hello = ToGroup::Hello { protocol: PROTOCOL, workers: pods.places() };
    let mut input = group.stdin.take().expect("a pipe");
    write_frame(&mut input, &Frame::Message(&hello)).expect("it listens");
    assert!(!group.wait().expect("it ends").success());
}
