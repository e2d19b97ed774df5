//! The load thread on a virtual clock: time-outs, drops, warm-up, and equality over threads and workers. Nothing here
//! depends on how fast the machine is.

use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::net::{Net, Ready, Received, Stamp, VirtualNet};
use dyno_engine::null::NullDriver;
use dyno_engine::sim::{ServiceTime, SimOptions};
use dyno_engine::{Clock, Control, End, Job, LateUsers, Pacing, Queue, Second, run_on, run_virtual};
use dyno_record::Totals;
use dyno_session::oracle::{ping_job, simulate_job};
use dyno_session::work::users::part_of_users;
use dyno_types::{Content, Endpoint, Outcome, Request};
use dyno_workload::{Draw, Frontier, Workload};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;

fn open(rate: f64) -> Pacing {
    Pacing::Open { profile: Profile::Constant { rate }, process: Process::Constant }
}

fn for_seconds(n: u64) -> End {
    End { operations: None, duration_ns: Some(n * SECOND_NS) }
}

fn server(service_ns: u64, capacity: Option<u32>) -> SimOptions {
    SimOptions { service: ServiceTime::Constant(service_ns), capacity, ..SimOptions::default() }
}

/// Totals of the warm-up and of the measured part.
fn both(job: Job, server: SimOptions) -> (Totals, Totals) {
    let mut warm = Totals::new(1, job.scale);
    let mut measured = Totals::new(1, job.scale);
    run_virtual(job, Arc::new(Control::default()), server, &mut |second| {
        if second.warmup { &mut warm } else { &mut measured }.merge(&second.totals);
    })
    .unwrap();
    (warm, measured)
}

#[test]
fn an_unanswered_operation_times_out_and_its_late_reply_is_counted() {
    // Unbounded capacity, 300 ms of service, 100 ms of patience: every operation times out, every reply is late.
    let mut job = ping_job(open(100.0), 50, 1, for_seconds(2));
    job.timeout_ns = Some(100_000_000);
    let (totals, _) = simulate_job(job, server(300_000_000, None)).unwrap();
    assert_eq!(totals.arrivals, 200);
    assert_eq!(totals.ended[Outcome::Ok as usize], 0);
    let lost = totals.ended[Outcome::Disconnected as usize] + totals.ended[Outcome::Unreachable as usize];
    assert_eq!(totals.ended[Outcome::TimedOut as usize] + lost, 200);
    assert!(totals.late > 0, "no late reply was seen");
}

#[test]
fn a_full_queue_drops_the_oldest_and_counts_every_arrival() {
    // One server at 100/s, 200/s due, at most 20 may wait.
    let mut job = ping_job(open(200.0), 1, 1, for_seconds(10));
    job.queue = Queue { length: 20, ..Queue::default() };
    let (totals, _) = simulate_job(job, server(10_000_000, Some(1))).unwrap();
    let dropped = totals.ended[Outcome::Dropped as usize];
    assert_eq!(totals.arrivals, 2_000);
    assert_eq!(totals.ended_total(), 2_000);
    assert!((900..=1_000).contains(&dropped), "{dropped} dropped");
    assert_eq!(totals.drops.iter().map(|(_, n)| n).sum::<u64>(), dropped);
    // An arrival that was served waited for at most 21 others.
    assert!(totals.ok_slot(0).unwrap().response.max_ns() <= 23 * 10_000_000);
}

#[test]
fn an_arrival_that_is_due_after_all_time_never_comes() {
    for process in [Process::Constant, Process::Poisson] {
        let profile = Profile::Constant { rate: 1e-300 };
        let job = ping_job(Pacing::Open { profile, process }, 4, 1, for_seconds(2));
        let (totals, seconds) = simulate_job(job, server(1_000_000, None)).unwrap();
        // The first one of evenly spaced arrivals is due at once.
        assert_eq!(totals.arrivals, u64::from(process == Process::Constant));
        assert!((2.0..2.1).contains(&seconds), "{seconds}");
    }
}

#[test]
fn an_arrival_that_waits_too_long_is_dropped() {
    let mut job = ping_job(open(200.0), 1, 1, for_seconds(5));
    job.queue = Queue { age_ns: Some(50_000_000), ..Queue::default() };
    let (totals, _) = simulate_job(job, server(10_000_000, Some(1))).unwrap();
    assert_eq!(totals.ended_total(), totals.arrivals);
    assert!(totals.ended[Outcome::Dropped as usize] > 400);
    assert!(totals.ok_slot(0).unwrap().response.max_ns() <= 70_000_000);
}

#[test]
fn the_warm_up_is_counted_apart_and_nothing_is_lost_at_its_end() {
    // Service of 250 ms: operations of the last quarter second of the warm-up end after it.
    let mut job = ping_job(open(1_000.0), 500, 1, for_seconds(3));
    job.warmup_ns = 2 * SECOND_NS;
    let (warm, measured) = both(job, server(250_000_000, None));
    assert_eq!(warm.arrivals, 2_000);
    assert_eq!(measured.arrivals, 3_000);
    assert_eq!(measured.ended_total(), 3_000);
    assert_eq!(warm.ended_total() + measured.carried, 2_000);
    assert!((240..=251).contains(&measured.carried), "{} carried", measured.carried);
    assert_eq!(measured.ok_slot(0).unwrap().service.count(), 3_000);
}

/// Of each four users one begins at once and one more each second: 2, 4, 6 and 8 users for a second each, 1,000 operations/s
/// each.
#[test]
fn users_that_begin_later_do_so_at_their_step() {
    for threads in [1, 2, 3] {
        let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 8, threads, for_seconds(4));
        job.late = Some(LateUsers { of: 4, first: 1, step: 1, every_ns: SECOND_NS });
        let (totals, seconds) = simulate_job(job, server(1_000_000, None)).unwrap();
        assert!((19_980..=20_008).contains(&totals.arrivals), "{} in {seconds} s", totals.arrivals);
        assert_eq!(totals.ended[Outcome::Ok as usize], totals.arrivals);
        assert_eq!((totals.reconnects, totals.broken), (0, 0), "a first connection is none that was lost");
    }
}

/// Connections that are made anew on purpose take no operation with them, and are none that were lost.
#[test]
fn a_connection_that_is_made_anew_loses_no_operation() {
    for (every, pipeline, threads) in [(1, 1, 1), (10, 1, 2), (10, 4, 1), (7, 3, 2)] {
        let mut job = ping_job(
            Pacing::Closed { think_ns: 0 },
            4,
            threads,
            End { operations: Some(1_000), duration_ns: None },
        );
        (job.reconnect_every, job.pipeline) = (Some(every), pipeline);
        let (content, connects) = (job.workload.content(), Arc::default());
        let net = || WatchedNet::new(server(1_000_000, None), &connects, false);
        let make = |_| Ok((NullDriver::new(content.clone()), net()));
        let mut totals = Totals::new(1, job.scale);
        let mut add = |second: Second| totals.merge(&second.totals);
        run_on(job, Arc::new(Control::default()), Some(0), make, &mut add).unwrap();
        let case = format!("anew after {every}, pipeline {pipeline}, {threads} threads");
        // Each of the 4 users has made one connection more than its operations fill, or as many.
        let made = connects.load(Ordering::Relaxed);
        assert!(
            (1_000_u64.div_ceil(every)..=1_000 / every + 4).contains(&made),
            "{case}: {made} connections"
        );
        assert_eq!(totals.arrivals, 1_000, "{case}");
        assert_eq!(totals.ended[Outcome::Ok as usize], 1_000, "{case}");
        assert_eq!((totals.reconnects, totals.broken, totals.late), (0, 0, 0), "{case}");
    }
}

#[test]
fn a_warm_up_may_have_fewer_users_or_another_rate() {
    for threads in [1, 3] {
        // Service of 1 ms, no operation waits: two users for two seconds, then eight for three.
        let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 8, threads, for_seconds(3));
        (job.warmup_ns, job.warm_users) = (2 * SECOND_NS, Some(2));
        let (warm, measured) = both(job, server(1_000_000, None));
        assert!((3_990..=4_002).contains(&warm.arrivals), "{} in the warm-up", warm.arrivals);
        assert!((23_980..=24_008).contains(&measured.arrivals), "{} measured", measured.arrivals);
        assert_eq!(measured.ended_total(), measured.arrivals);
    }
    let profile = Profile::first_then(
        Profile::Constant { rate: 100.0 },
        2 * SECOND_NS,
        Profile::Constant { rate: 1_000.0 },
    );
    for end in [for_seconds(3), End { operations: Some(3_000), duration_ns: None }] {
        let pacing = Pacing::Open { profile: profile.clone(), process: Process::Constant };
        let mut job = ping_job(pacing, 64, 2, end);
        job.warmup_ns = 2 * SECOND_NS;
        let (warm, measured) = both(job, server(1_000_000, None));
        assert_eq!((warm.arrivals, measured.arrivals), (200, 3_000));
    }
}

/// Pings of which each belongs to a user; users below `quit` end for ever with their first one.
struct Owned {
    pings: Arc<dyn Workload>,
    users: u64,
    quit: u64,
    given: std::sync::Mutex<Vec<u64>>,
}

impl Workload for Owned {
    fn metrics(&self) -> &[String] {
        self.pings.metrics()
    }
    fn content(&self) -> Arc<dyn Content> {
        self.pings.content()
    }
    fn draw(&self, index: u64) -> Draw {
        self.pings.draw(index)
    }
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        self.given.lock().unwrap()[(draw.index % self.users) as usize] += 1;
        self.pings.bind(draw, frontier)
    }
    fn is_pure(&self) -> bool {
        true
    }
    fn is_per_user(&self) -> bool {
        true
    }
    fn resume_ns(&self, first: &Request, now_ns: u64) -> u64 {
        if first.key % self.users < self.quit { u64::MAX } else { now_ns }
    }
}

fn shared_out(pings: Arc<dyn Workload>, users: usize, quit: u64) -> Owned {
    Owned { pings, users: users as u64, quit, given: std::sync::Mutex::new(vec![0; users]) }
}

fn owned(users: usize, quit: u64, end: End) -> Job {
    let mut job = ping_job(Pacing::Closed { think_ns: 0 }, users, 2, end);
    job.workload = Arc::new(shared_out(job.workload.clone(), users, quit));
    job
}

#[test]
fn users_do_their_own_share_after_any_warm_up() {
    for (operations, warm_users) in [(103, None), (103, Some(1)), (4, Some(2)), (2, None)] {
        let mut job = owned(4, 0, End { operations: Some(operations), duration_ns: None });
        (job.warmup_ns, job.warm_users) = (SECOND_NS / 2, warm_users);
        let (warm, measured) = both(job, server(1_000_000, None));
        assert!(warm.arrivals > 400, "{operations} {warm_users:?}: {}", warm.arrivals);
        assert_eq!((measured.arrivals, measured.count_ok()), (operations, operations), "{warm_users:?}");
    }
}

#[test]
fn arrivals_are_dealt_out_to_all_users_of_every_worker() {
    for (workers, threads) in [(1, 1), (2, 1), (2, 2), (3, 4)] {
        let whole = ping_job(open(1_000.0), 4 * workers, threads * workers, for_seconds(6));
        for number in 0..workers {
            let noted = Arc::new(shared_out(whole.workload.clone(), 4, 0));
            let part = part_of_users(&whole, noted.clone(), number, workers);
            let (totals, _) = simulate_job(part, server(100_000, None)).unwrap();
            let given = noted.given.lock().unwrap();
            assert_eq!(given.iter().sum::<u64>(), totals.arrivals);
            let (least, most) = (given.iter().min().unwrap(), given.iter().max().unwrap());
            assert!(
                most - least <= threads as u64,
                "worker {number} of {workers}, {threads} threads: {given:?}"
            );
        }
    }
}

#[test]
fn users_that_are_gone_delay_no_end() {
    for (quit, expected) in [(1, 76), (4, 4)] {
        let end = End { operations: Some(100), duration_ns: None };
        let (totals, _) = simulate_job(owned(4, quit, end), server(1_000_000, None)).unwrap();
        assert_eq!(totals.count_ok(), expected, "{quit} users have gone");
    }
}

/// Of more load threads than users some have nothing to do.
#[test]
fn a_thread_without_users_ends() {
    for operations in [1, 10, 1_000] {
        let end = End { operations: Some(operations), duration_ns: None };
        let (totals, elapsed_s) =
            simulate_job(ping_job(Pacing::Closed { think_ns: 0 }, 2, 4, end), server(1_000_000, None))
                .unwrap();
        assert_eq!(totals.count_ok(), operations);
        // A millisecond each: shared by two users, or all by one, since the threads' clocks do not wait for each other.
        let all_s = operations as f64 * 1e-3;
        let least_s = operations.div_ceil(2) as f64 * 1e-3;
        assert!((least_s - 1e-4..all_s + 0.2).contains(&elapsed_s), "{operations}: {elapsed_s} s");
    }
}

#[test]
fn a_load_that_ends_by_its_count_loses_no_late_answer() {
    let end = |operations| End { operations: Some(operations), duration_ns: None };
    let ended = |timeout_s: Option<u64>, service_s: u64, capacity: Option<u32>| {
        let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 4, 1, end(8));
        (job.drain_ns, job.timeout_ns) = (10 * SECOND_NS, timeout_s.map(|s| s * SECOND_NS));
        let (totals, _) = simulate_job(job, server(service_s * SECOND_NS, capacity)).unwrap();
        assert_eq!(totals.ended_total(), 8);
        totals.count_ok()
    };
    // As long as their time-out allows, longer than the drain of a load that ends by time.
    assert_eq!(ended(Some(60), 25, None), 8);
    // Without a time-out as long as answers go on coming.
    assert_eq!(ended(None, 100, Some(1)), 8);
    // But not for ever: the last four are never answered in time.
    assert_eq!(ended(None, 1_000, None), 4);
}

#[test]
fn workers_may_have_no_share_of_the_warm_up() {
    let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 8, 1, for_seconds(1));
    (job.warmup_ns, job.warm_users) = (SECOND_NS, Some(2));
    let parts = job.divide_among(4).unwrap();
    let shares: Vec<Option<usize>> = parts.iter().map(|part| part.warm_users).collect();
    assert_eq!(shares, [Some(1), Some(1), Some(0), Some(0)]);
    assert!(parts.iter().all(|part| part.check().is_ok()));
}

#[test]
fn a_count_of_operations_does_not_include_the_warm_up() {
    for pacing in [open(1_000.0), Pacing::Closed { think_ns: 1_000_000 }] {
        let mut job = ping_job(pacing, 8, 2, End { operations: Some(5_000), duration_ns: None });
        job.warmup_ns = SECOND_NS / 2;
        let (warm, measured) = both(job, server(100_000, Some(4)));
        assert!(warm.arrivals > 0);
        assert_eq!(measured.arrivals, 5_000);
        assert_eq!(measured.count_ok(), 5_000);
    }
}

#[test]
fn threads_and_workers_apply_the_same_load() {
    let poisson = Pacing::Open {
        profile: Profile::Ramp { from: 500.0, to: 4_000.0, over_ns: 5 * SECOND_NS },
        process: Process::Poisson,
    };
    let apply = |threads: usize, worker: u64, workers: u64| {
        let mut job = ping_job(poisson.clone(), 4_000, threads, for_seconds(6));
        job.stripe = (worker, workers);
        simulate_job(job, server(300_000, None)).unwrap().0
    };
    let one = apply(1, 0, 1);
    for (threads, workers) in [(3, 1), (1, 2), (2, 3)] {
        let mut all = Totals::new(1, one.slot_scale());
        for worker in 0..workers {
            all.merge(&apply(threads, worker, workers));
        }
        assert_eq!(all.arrivals, one.arrivals, "{threads} threads, {workers} workers");
        assert_eq!(all.slots, one.slots, "{threads} threads, {workers} workers");
    }
}

#[test]
fn a_pipeline_is_that_many_users() {
    let mut job =
        ping_job(Pacing::Closed { think_ns: 0 }, 2, 1, End { operations: Some(10_000), duration_ns: None });
    job.pipeline = 8;
    let (totals, seconds) = simulate_job(job, server(1_000_000, Some(4))).unwrap();
    // 16 users on four servers of 1 ms: 4,000/s, each waiting 4 ms.
    assert!((totals.count_ok() as f64 / seconds / 4_000.0 - 1.0).abs() < 0.01);
    let mean_ms = totals.ok_slot(0).unwrap().response.mean_ns() / 1e6;
    assert!((mean_ms - 4.0).abs() < 0.05, "{mean_ms} ms");
}

#[test]
fn the_ideal_client_waits_where_the_target_made_it_wait() {
    // Two places before a server that does one at a time: what is queued at the server stays in.
    let run = |client_stalls: Vec<(u64, u64)>| {
        let server = SimOptions { client_stalls, ..server(4_000_000, Some(1)) };
        let pacing = Pacing::Open { profile: Profile::Constant { rate: 200.0 }, process: Process::Poisson };
        let job = Job { stamps: Clock::Kernel, pipeline: 2, ..ping_job(pacing, 2, 1, for_seconds(10)) };
        simulate_job(job, server).unwrap().0
    };
    let (calm, stopped) = (run(Vec::new()), run(vec![(3 * SECOND_NS, SECOND_NS / 10)]));
    let plain = |totals: &Totals| totals.ok_slot(0).unwrap().response.clone();
    assert_eq!(calm.ideal, plain(&calm), "a client that is never late is ideal");
    assert!(calm.ideal.max_ns() > 8_000_000, "a queue that was there for the target's sake");
    // A burst behind the stop queues at the server, which is measured: never more than what was, never less than service.
    assert_eq!(stopped.ideal.count(), plain(&stopped).count());
    for percentile in [50.0, 90.0, 99.0, 99.9, 100.0] {
        let (ideal, was) =
            (stopped.ideal.percentile_ns(percentile), plain(&stopped).percentile_ns(percentile));
        assert!((4_000_000..=was).contains(&ideal), "p{percentile}: {ideal} of {was}");
    }
    assert!(plain(&stopped).max_ns() >= SECOND_NS / 10);
    // The stop itself is not in.
    assert!(stopped.ideal.max_ns() + SECOND_NS / 50 < plain(&stopped).max_ns(), "{}", stopped.ideal.max_ns());
}

#[test]
fn a_slow_server_behind_two_lags_is_the_servers() {
    // Two places, 200/s; service grows from 1 ms by 1 ms a second, so that from second 9 on a queue builds up.
    let run = |client_stalls: Vec<(u64, u64)>| {
        let server = SimOptions { client_stalls, growth: 1.0, ..server(1_000_000, None) };
        let pacing = Pacing::Open { profile: Profile::Constant { rate: 200.0 }, process: Process::Constant };
        let job = Job { stamps: Clock::Kernel, ..ping_job(pacing, 2, 1, for_seconds(30)) };
        let totals = simulate_job(job, server).unwrap().0;
        let was = totals.ok_slot(0).unwrap().response.percentile_ns(99.0);
        (totals.ideal.percentile_ns(99.0), was)
    };
    let (calm, was) = run(Vec::new());
    assert!(calm == was && was > 5 * SECOND_NS, "{calm} of {was}");
    let stops: Vec<(u64, u64)> =
        (0..2).map(|n| (9 * SECOND_NS + n * SECOND_NS / 2, SECOND_NS / 25)).collect();
    let (stopped, was) = run(stops);
    assert!(stopped * 20 > was * 19, "the client was late twice for 40 ms: {stopped} of {was}");
}

#[test]
fn by_the_clients_clock_a_stop_is_in_the_service_time_and_by_the_kernels_it_is_not() {
    let longest = |stamps: Clock| {
        // While an operation is under way.
        let client_stalls = vec![(SECOND_NS + 500_000, SECOND_NS / 20)];
        let server = SimOptions { client_stalls, ..server(1_000_000, None) };
        let job = Job { stamps, ..ping_job(open(500.0), 8, 1, for_seconds(2)) };
        let (totals, _) = simulate_job(job, server).unwrap();
        assert_eq!(totals.stamps.kernel > 0, stamps == Clock::Kernel);
        totals.ok_slot(0).unwrap().service.max_ns()
    };
    assert_eq!(longest(Clock::Kernel), 1_000_000);
    assert!(longest(Clock::Client) > SECOND_NS / 25);
}

/// A network that counts connections. Its stamps may be crooked: in turn as they should be, an hour early, an hour late, before
/// the one before, and missing.
struct WatchedNet {
    inner: VirtualNet,
    connects: Arc<AtomicU64>,
    is_crooked: bool,
    received: usize,
}

impl WatchedNet {
    fn new(server: SimOptions, connects: &Arc<AtomicU64>, is_crooked: bool) -> Self {
        let inner = VirtualNet::new(server);
        WatchedNet { inner, connects: connects.clone(), is_crooked, received: 0 }
    }
}

impl Net for WatchedNet {
    type Socket = <VirtualNet as Net>::Socket;
    const VIRTUAL: bool = true;

    fn now(&mut self) -> u64 {
        self.inner.now()
    }
    fn connect(&mut self, to: &Endpoint, token: u32, stamped: bool) -> io::Result<Self::Socket> {
        self.connects.fetch_add(1, Ordering::Relaxed);
        self.inner.connect(to, token, stamped)
    }
    fn established(&mut self, socket: &mut Self::Socket, token: u32) -> io::Result<bool> {
        self.inner.established(socket, token)
    }
    fn send(&mut self, socket: &mut Self::Socket, bytes: &[u8]) -> io::Result<usize> {
        self.inner.send(socket, bytes)
    }
    fn recv(&mut self, socket: &mut Self::Socket, into: &mut [u8]) -> io::Result<Received> {
        let hour = 3_600 * SECOND_NS;
        Ok(match self.inner.recv(socket, into)? {
            Received::Bytes { n, more, stamp: Stamp::At { at_ns, by_card } } if self.is_crooked => {
                self.received += 1;
                let at = |at_ns| Stamp::At { at_ns, by_card };
                let stamp = match self.received % 5 {
                    1 => at(at_ns),
                    2 => at(at_ns.saturating_sub(hour)),
                    3 => at(at_ns + hour),
                    // Before it was sent.
                    4 => at(at_ns - 1_000_000),
                    _ => Stamp::Missing,
                };
                Received::Bytes { n, more, stamp }
            }
            other => other,
        })
    }
    fn watch_write(&mut self, socket: &mut Self::Socket, token: u32, on: bool) -> io::Result<()> {
        self.inner.watch_write(socket, token, on)
    }
    fn close(&mut self, socket: Self::Socket) {
        self.inner.close(socket);
    }
    fn wait(&mut self, now_ns: u64, until_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.inner.wait(now_ns, until_ns, ready)
    }
}

#[test]
fn stamps_that_cannot_be_are_not_believed_and_are_counted() {
    let end = End { operations: Some(1_000), duration_ns: None };
    let job = Job { stamps: Clock::Kernel, ..ping_job(Pacing::Closed { think_ns: 0 }, 1, 1, end) };
    let content = job.workload.content();
    let make = |_| {
        let net = WatchedNet::new(server(1_000_000, None), &Arc::default(), true);
        Ok((NullDriver::new(content.clone()), net))
    };
    let mut totals = Totals::new(1, job.scale);
    run_on(job, Arc::new(Control::default()), Some(0), make, &mut |second| totals.merge(&second.totals))
        .unwrap();
    // One in five is as it should be; the others end by the client's clock, which is never late here.
    assert_eq!((totals.count_ok(), totals.stamps.kernel, totals.stamps.client), (1_000, 200, 800));
    let service = &totals.ok_slot(0).unwrap().service;
    // The first is sent at 0 ns, which stands for never: it counts as sent at 1.
    assert_eq!((service.min_ns(), service.max_ns()), (999_999, 1_000_000));
}

#[test]
fn a_closed_loop_has_no_ideal_client() {
    let end = End { operations: Some(100), duration_ns: None };
    let (totals, _) =
        simulate_job(ping_job(Pacing::Closed { think_ns: 0 }, 2, 1, end), server(1_000_000, None)).unwrap();
    assert_eq!((totals.count_ok(), totals.ideal.count()), (100, 0));
}

#[test]
fn an_operation_that_fails_has_no_ideal_response() {
    // Every reply takes longer than patience lasts.
    let mut job = ping_job(open(100.0), 1, 1, for_seconds(2));
    job.timeout_ns = Some(5_000_000);
    let (totals, _) = simulate_job(job, server(20_000_000, None)).unwrap();
    assert_eq!((totals.count_ok(), totals.ideal.count()), (0, 0));
}

/// Pings, each of which is followed by another in the same operation.
struct Twice(Arc<dyn Workload>);

impl Workload for Twice {
    fn metrics(&self) -> &[String] {
        self.0.metrics()
    }
    fn content(&self) -> Arc<dyn Content> {
        self.0.content()
    }
    fn draw(&self, index: u64) -> Draw {
        self.0.draw(index)
    }
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        Request { fields: dyno_types::Fields::One(0), ..self.0.bind(draw, frontier) }
    }
    fn is_pure(&self) -> bool {
        true
    }
    fn next(&self, request: &Request, _outcome: Outcome) -> Option<Request> {
        let first = request.fields == dyno_types::Fields::One(0);
        first.then_some(Request { fields: dyno_types::Fields::One(1), ..*request })
    }
}

#[test]
fn an_operation_of_two_requests_is_ideal_as_one_and_a_late_client_between_them_is_not_in() {
    let run = |client_stalls: Vec<(u64, u64)>| {
        let server = SimOptions { client_stalls, ..server(2_000_000, None) };
        let mut job = Job { stamps: Clock::Kernel, ..ping_job(open(100.0), 4, 1, for_seconds(2)) };
        job.workload = Arc::new(Twice(job.workload.clone()));
        simulate_job(job, server).unwrap().0
    };
    let calm = run(Vec::new());
    assert_eq!((calm.arrivals, calm.ok_slot(0).unwrap().service.count()), (200, 400));
    // Virtual time begins at 0, where nothing can be sent: that is 1 ns later.
    assert_eq!((calm.ideal.count(), calm.ideal.min_ns(), calm.ideal.max_ns()), (200, 3_999_999, 4_000_000));
    // Stopped while the first of two is under way: its second begins late, and no place is late for it.
    let stopped = run(vec![(SECOND_NS + 1_000_000, SECOND_NS / 20)]);
    assert_eq!((stopped.ideal.count(), stopped.ideal.max_ns()), (200, 4_000_000));
    assert!(stopped.ok_slot(0).unwrap().response.max_ns() > SECOND_NS / 25);
}

#[test]
fn places_of_a_warm_up_that_ends_late_are_free_in_time() {
    // Operations of 300 ms: those of the warm-up hold their places in the measured part, as the target made them.
    let job = Job { warmup_ns: SECOND_NS, ..ping_job(open(100.0), 20, 1, for_seconds(3)) };
    let (_, measured) = both(job, server(300_000_000, None));
    let plain = measured.ok_slot(0).unwrap().response.clone();
    for percentile in [0.0, 50.0, 99.0, 100.0] {
        let (ideal, was) = (measured.ideal.percentile_ns(percentile), plain.percentile_ns(percentile));
        assert!(
            ideal.abs_diff(was) <= was / 1_000,
            "p{percentile}: {ideal} of {was}, and the client was never late"
        );
    }
    assert!(plain.max_ns() > 2_000_000_000, "30 are due while one is under way, and 20 places");
}
