//! Each limit of `docs/concepts.md`, from both sides: one step below it nothing is said, or less; one step above it is.

use super::*;
use crate::series::judge_stability;
use crate::verdict::client::compare_lag;
use crate::verdict::evidence::LoadFailures;
use crate::{PhaseFacts, summarise_phase};
use dyno_record::{Scale, ThreadInterval};
use dyno_rundir::schema::{
    Claim, Client, HostRole, HostUse, Monitored, OthersUse, Pause, Phase, PhaseHost, Silence,
};

/// Operations of the usual case, and how long they took.
const OPERATIONS: u64 = 20_000;
const SECONDS: f64 = 60.0;

/// A run without reproach, to be changed.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) phase: Phase,
    totals: Totals,
    observations: RunObservations,
    think_ns: Option<u64>,
    wire: bool,
    interrupted: bool,
    partial: bool,
    lost: Vec<String>,
    asked: Vec<(String, Vec<Claim>)>,
    responses: Vec<ResponseTime>,
}

impl Case {
    /// Operations of 1 ms.
    pub(super) fn usual_case() -> Case {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        for _ in 0..OPERATIONS {
            interval.arrivals += 1;
            interval.ended[Outcome::Ok as usize] += 1;
            interval.record_ended(0, Outcome::Ok, 1_000_000, 1_000_000);
        }
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.add_interval(&interval);
        let client = Client { pinned: true, users: 1, pipeline: 1, batch: 1, ..Client::default() };
        let facts = PhaseFacts { name: "measure".into(), seconds: SECONDS, client, ..PhaseFacts::default() };
        let mut phase = summarise_phase(facts, &["READ".to_owned()], &totals);
        let host =
            PhaseHost { local: true, role: HostRole::Both, clock_ns: Some(20), ..PhaseHost::default() };
        phase.hosts = vec![host];
        let observations = RunObservations::default();
        Case {
            phase,
            totals,
            observations,
            think_ns: None,
            wire: true,
            interrupted: false,
            partial: false,
            lost: Vec::new(),
            asked: Vec::new(),
            responses: Vec::new(),
        }
    }

    /// So many of the operations ended as `outcome`.
    fn ended(mut self, outcome: Outcome, count: u64) -> Case {
        self.totals.ended[Outcome::Ok as usize] -= count;
        self.totals.ended[outcome as usize] += count;
        self
    }

    pub(super) fn judge_case(&self) -> Verdict {
        judge_run(&Evidence {
            phase: &self.phase,
            totals: &self.totals,
            think_ns: self.think_ns,
            wire: self.wire,
            interrupted: self.interrupted,
            partial: self.partial,
            lost: self.lost.clone(),
            asked: self.asked.clone(),
            responses: self.responses.clone(),
            observations: self.observations.clone(),
        })
    }

    /// The client was late: p99 of sending and of handling replies, nanoseconds.
    pub(super) fn with_lag(mut self, lag: Option<u64>, receive_lag: Option<u64>) -> Case {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        for _ in 0..1_000 {
            lag.iter().for_each(|ns| interval.lag.record(*ns));
            receive_lag.iter().for_each(|ns| interval.receive_lag.record(*ns));
        }
        self.totals.add_interval(&interval);
        self
    }

    /// Other programs took so much of the time of ten cores.
    pub(super) fn with_other_programs(mut self, share: f64) -> Case {
        let host = HostUse { cores: Some(10.0), ..HostUse::default() };
        self.phase.monitor = Some(Monitored { host: Some(host), ..Monitored::default() });
        self.phase.hosts[0].cores = Some(10.0);
        self.phase.hosts[0].others = Some(OthersUse { cpu_cores: share * 10.0, ..OthersUse::default() });
        self
    }

    /// The words of a check that says something.
    pub(super) fn reason_text(&self, check: &str) -> Option<String> {
        let reasons = self.judge_case().reasons.into_iter();
        reasons.filter(|reason| reason.check == check).map(|reason| reason.text).next()
    }

    /// Trust that a check gives, if it was made and says anything; it is what the whole is called by.
    pub(super) fn check_trust(&self, check: &str) -> Option<Trust> {
        let verdict = self.judge_case();
        let found = verdict.reasons.iter().find(|reason| reason.check == check)?;
        assert!(verdict.trust >= found.trust || !verdict.is_asked(found), "{:?}", verdict.reasons);
        Some(found.trust)
    }
}

/// Trust that a check gives the usual case with a change.
fn check_trust(check: &str, change: impl FnOnce(&mut Case)) -> Option<Trust> {
    let mut case = Case::usual_case();
    change(&mut case);
    case.check_trust(check)
}

pub(super) const SUSPECT: Option<Trust> = Some(Trust::Suspect);
pub(super) const INVALID: Option<Trust> = Some(Trust::Invalid);

#[test]
fn one_long_pause_of_the_client_spoils_throughput_by_its_share_of_the_time() {
    // Of a minute, between 100,000 turns of a microsecond: their mean stays below 200 us.
    let paused = |seconds: f64| {
        let mut case = Case::usual_case();
        case.think_ns = Some(0);
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        (0..100_000).for_each(|_| interval.turnaround.record(1_000));
        interval.turnaround.record((seconds * 1e9) as u64);
        case.totals.add_interval(&interval);
        let reasons = case.judge_case().reasons.into_iter();
        let own = reasons.filter(|one| one.check == CLIENT_SHARE && one.is_about(&[Claim::Throughput]));
        own.map(|one| one.trust).max()
    };
    assert_eq!([paused(1.0), paused(1.5), paused(6.5)], [None, SUSPECT, INVALID]);
}

#[test]
fn every_arrival_has_one_outcome() {
    let more = |arrivals: i64, change: fn(&mut Case)| {
        check_trust("invariants", |case| {
            case.totals.arrivals = case.totals.arrivals.checked_add_signed(arrivals).unwrap();
            change(case);
        })
    };
    assert_eq!([more(0, |_| ()), more(1, |_| ()), more(-1, |_| ())], [None, INVALID, INVALID]);
    // Where a part of the run is not there, what is under way has no outcome; none comes from nowhere.
    let partial: fn(&mut Case) = |case| case.partial = true;
    let lost: fn(&mut Case) = |case| case.lost.push("worker 1".into());
    for missing in [partial, lost] {
        assert_eq!([more(0, missing), more(1, missing), more(-1, missing)], [None, None, INVALID]);
    }
}

#[test]
fn a_worker_that_is_lost_is_named_and_others_are_counted() {
    let told = |lost: &[&str]| {
        let mut case = Case::usual_case();
        case.lost = lost.iter().map(|name| (*name).to_owned()).collect();
        let reason = case.judge_case().reasons.into_iter().find(|reason| reason.check == "workers")?;
        assert_eq!(reason.trust, Trust::Invalid);
        Some(reason.text)
    };
    assert_eq!(told(&[]), None);
    assert!(told(&["w1"]).is_some_and(|text| text.starts_with("w1: ")));
    assert!(told(&["w1", "w2", "w3"]).is_some_and(|text| text.starts_with("w1 (and 2 more): ")));
}

#[test]
fn the_usual_case_is_valid() {
    assert_eq!(Case::usual_case().judge_case().reasons, []);
}

#[test]
fn failures_up_to_a_twentieth_are_suspect() {
    let failed = |count| Case::usual_case().ended(Outcome::TimedOut, count).check_trust("errors");
    assert_eq!([failed(0), failed(1), failed(1_000), failed(1_001)], [None, SUSPECT, SUSPECT, INVALID]);
    // Failures of faults that were asked for do not count towards it.
    let mut asked = Case::usual_case().ended(Outcome::TimedOut, 1_001);
    asked.observations.failed_in_faults = 1;
    assert_eq!(asked.check_trust("errors"), SUSPECT);
}

#[test]
fn what_has_a_check_of_its_own_is_no_failure() {
    for outcome in [Outcome::Aborted, Outcome::Dropped, Outcome::Mismatch] {
        assert_eq!(Case::usual_case().ended(outcome, 3).check_trust("errors"), None, "{outcome:?}");
        let both = Case::usual_case().ended(outcome, 3).ended(Outcome::TimedOut, 1);
        let errors = both.reason_text("errors").unwrap();
        assert!(errors.starts_with("1 operations (0.005 %) failed, most as timed_out; "), "{errors}");
    }
}

#[test]
fn failures_are_named_by_the_most_frequent_and_by_what_was_said() {
    let mut case = Case::usual_case().ended(Outcome::TimedOut, 1).ended(Outcome::Disconnected, 2);
    let text = case.reason_text("errors").unwrap();
    assert!(text.contains("most as disconnected; "), "{text}");
    case.phase.errors.insert("disconnected".into(), String::new());
    case.phase.errors.insert("timed_out".into(), "no word".into());
    assert_eq!(case.reason_text("errors").unwrap(), text, "nothing was said of the most frequent");
    case.phase.errors.insert("disconnected".into(), "broken pipe".into());
    let text = case.reason_text("errors").unwrap();
    assert!(text.contains("most as disconnected (\"broken pipe\"); "), "{text}");
}

#[test]
fn drops_up_to_a_hundredth_are_suspect() {
    let dropped = |count| Case::usual_case().ended(Outcome::Dropped, count).check_trust("drops");
    assert_eq!([dropped(0), dropped(1), dropped(200), dropped(201)], [None, SUSPECT, SUSPECT, INVALID]);
}

#[test]
fn a_single_wrong_record_is_invalid() {
    let wrong = |count| Case::usual_case().ended(Outcome::Mismatch, count).check_trust("data");
    assert_eq!([wrong(0), wrong(1)], [None, INVALID]);
}

#[test]
fn requests_that_find_nothing_are_suspect_above_a_twentieth() {
    let missed = |count: u64| {
        check_trust("found", |case| {
            case.totals.outcomes[0][Outcome::Ok as usize] -= count;
            case.totals.outcomes[0][Outcome::NotFound as usize] += count;
        })
    };
    assert_eq!([missed(1_000), missed(1_001)], [None, SUSPECT]);
    // A miss that fails its operation counts as the step and as the whole, and is a failure.
    let failed = |operations: u64, missed: u64| {
        let mut case = Case::usual_case().ended(Outcome::NotFound, operations);
        case.observations.mix = ["pay", "pay.get"].map(|name| (name.to_owned(), f64::NAN)).to_vec();
        case.totals.outcomes[0][Outcome::Ok as usize] -= operations;
        case.totals.outcomes[0][Outcome::NotFound as usize] += operations;
        case.totals.outcomes.push([0; Outcome::COUNT]);
        case.totals.outcomes[1][Outcome::NotFound as usize] = operations + missed;
        case.check_trust("found")
    };
    // 0.05 x (20,000 + 500 + m) = m.
    assert_eq!([failed(500, 1_078), failed(500, 1_079), failed(500, 0)], [None, SUSPECT, None]);
    // So is one of a single request, which counts once; one beside the mix is expected to wait in vain.
    let plain = |name: &str, ended: u64| {
        let mut case = Case::usual_case().ended(Outcome::NotFound, ended);
        case.observations.mix = vec![(name.to_owned(), f64::NAN)];
        case.totals.outcomes[0][Outcome::NotFound as usize] += 5_000;
        case.check_trust("found")
    };
    assert_eq!([plain("get", 5_000), plain("poll.own", 0), plain("get", 0)], [None, None, SUSPECT]);
    let mut case = Case::usual_case();
    case.totals.outcomes[0][Outcome::Ok as usize] -= 5_000;
    case.totals.outcomes[0][Outcome::NotFound as usize] += 5_000;
    let text = case.reason_text("found").unwrap();
    assert!(text.starts_with("5,000 requests within transactions (25.0 %) found nothing"), "{text}");
}

#[test]
fn failures_beside_the_mix_are_suspect_and_above_a_twentieth_invalid() {
    let beside = |name: &str, outcome: Outcome, count: u64| {
        let mut case = Case::usual_case();
        case.observations.mix = ["READ", name].map(|name| (name.to_owned(), f64::NAN)).to_vec();
        case.totals.outcomes.push([0; Outcome::COUNT]);
        case.totals.outcomes[1][Outcome::Ok as usize] = 100 - count;
        case.totals.outcomes[1][outcome as usize] = count;
        case.check_trust("beside")
    };
    let of = |count| beside("poll.own", Outcome::Mismatch, count);
    assert_eq!([of(0), of(1), of(5), of(6)], [None, SUSPECT, SUSPECT, INVALID]);
    assert_eq!(beside("work.wait", Outcome::Dropped, 50), INVALID);
    // It waited when the run ended, or found nothing; and what is in the totals has checks of its own.
    assert_eq!(beside("work.wait", Outcome::Aborted, 50), None);
    assert_eq!(beside("poll.own", Outcome::NotFound, 50), None);
    assert_eq!(beside("poll.later", Outcome::Mismatch, 50), None);
}

#[test]
fn failures_of_the_load_up_to_a_twentieth_are_suspect() {
    let load = |failed, all| {
        check_trust("load", |case| {
            case.observations.load_failed = Some(LoadFailures { failed, all, most: None })
        })
    };
    assert_eq!([load(0, 100), load(1, 1_000), load(50, 1_000)], [None, SUSPECT, SUSPECT]);
    assert_eq!(load(51, 1_000), INVALID);
    let mut again = Case::usual_case();
    again.observations.load_failed = Some(LoadFailures { failed: 4, all: 4, most: Some(Outcome::Duplicate) });
    let text = again.judge_case().reasons.into_iter().find(|reason| reason.check == "load").unwrap().text;
    assert!(text.contains("failed, most because their records were there already: the data"), "{text}");
}

#[test]
fn interrupted_runs_and_missing_replies_are_suspect() {
    assert_eq!(check_trust("completed", |_| ()), None);
    assert_eq!(check_trust("completed", |case| case.interrupted = true), SUSPECT);
    let aborted = |count| Case::usual_case().ended(Outcome::Aborted, count).check_trust("completed");
    assert_eq!([aborted(0), aborted(1)], [None, SUSPECT]);
    let mut both = Case::usual_case().ended(Outcome::Aborted, 3);
    both.interrupted = true;
    let verdict = both.judge_case();
    let reason = verdict.reasons.iter().find(|reason| reason.check == "completed").unwrap();
    assert_eq!(reason.text, "interrupted after 60.0 s; 3 operations had not ended");
    // Of a run that was killed, operations without an end are known from the arrivals alone.
    let mut killed = Case::usual_case();
    (killed.interrupted, killed.partial) = (true, true);
    killed.totals.arrivals += 16;
    let verdict = killed.judge_case();
    let reason = verdict.reasons.iter().find(|reason| reason.check == "completed").unwrap();
    assert_eq!(reason.text, "cut off after 60.0 s; 16 operations had not ended");
}

/// Operations that were due and had not been sent when the time was over: they wait for no reply, and the rate was not kept.
#[test]
fn what_was_not_sent_is_of_the_rate_and_no_missing_reply() {
    let unsent = |count: u64, replies: u64, interrupted: bool| {
        let mut case = Case::usual_case().ended(Outcome::Aborted, count + replies);
        // Of the requests only those that were sent have a time.
        case.totals.outcomes[0][Outcome::Ok as usize] -= count;
        case.totals.outcomes[0][Outcome::Aborted as usize] += count;
        case.interrupted = interrupted;
        (case.check_trust("completed"), case.check_trust("offered_rate"))
    };
    assert_eq!(unsent(0, 0, false), (None, None));
    assert_eq!(unsent(3, 0, false), (None, SUSPECT));
    assert_eq!(unsent(3, 1, false), (SUSPECT, SUSPECT));
    assert_eq!(unsent(3, 0, true), (SUSPECT, None));
}

#[test]
fn a_thousand_operations_and_a_second_are_enough() {
    let samples = |operations: u64, seconds: f64| {
        check_trust("samples", |case| {
            case.totals.arrivals = operations;
            case.totals.ended[Outcome::Ok as usize] = operations;
            case.phase.seconds = seconds;
        })
    };
    assert_eq!([samples(1_000, 1.0), samples(999, 1.0), samples(1_000, 0.999)], [None, SUSPECT, SUSPECT]);
    assert_eq!(samples(0, SECONDS), INVALID);
    // A run that is too short is not judged by what compares percentiles.
    let judged = |operations: u64| {
        let mut case = Case::usual_case();
        case.totals.ended[Outcome::Ok as usize] = operations;
        case.judge_case().checks.contains(&"client_cpu".to_owned())
    };
    assert_eq!([judged(1_000), judged(999)], [true, false]);
}

/// 1,000 operations/s are due in whole seconds, of which so many are done.
fn offered(done: &[f64]) -> Case {
    let mut case = Case::usual_case();
    let sum: f64 = done.iter().sum();
    (case.phase.seconds, case.phase.offered) = (done.len() as f64, Some(1_000.0));
    case.totals.ended = [0; Outcome::COUNT];
    (case.totals.arrivals, case.totals.ended[Outcome::Ok as usize]) =
        (done.len() as u64 * 1_000, done.len() as u64 * 1_000);
    case.totals.crossed = sum as i64 - done.len() as i64 * 1_000;
    case.observations.series = done.to_vec();
    case
}

#[test]
fn a_rate_is_kept_to_a_hundredth_and_a_tenth_of_a_second() {
    let kept = |seconds: usize, done: f64| offered(&vec![done; seconds]).check_trust("offered_rate");
    assert_eq!([kept(60, 990.1), kept(60, 989.9)], [None, SUSPECT], "a hundredth of a minute");
    assert_eq!([kept(5, 980.2), kept(5, 979.8)], [None, SUSPECT], "a tenth of a second");
}

#[test]
fn one_stall_at_the_end_and_what_is_always_under_way_are_no_rate_that_is_not_kept() {
    let with = |at: usize, done: f64| {
        let mut all = vec![1_000.0; 10];
        all[at] = done;
        offered(&all).check_trust("offered_rate")
    };
    assert_eq!([with(9, 0.0), with(0, 0.0)], [None, None]);
    let mut steps = offered(&[500.0; 10]);
    assert_eq!(steps.check_trust("offered_rate"), SUSPECT);
    steps.observations.varied = true;
    assert_eq!(steps.check_trust("offered_rate"), None);
    // Merged runs, of which no single second is known.
    let mut merged = offered(&[500.0; 10]);
    merged.observations.series.clear();
    assert_eq!(merged.check_trust("offered_rate"), None);
}

#[test]
fn drops_have_their_true_reason() {
    let text = |dropped: u64, undrained: u64| {
        let mut case = Case::usual_case().ended(Outcome::Dropped, dropped);
        case.totals.undrained = undrained;
        let verdict = case.judge_case();
        verdict.reasons.into_iter().find(|reason| reason.check == "drops").unwrap().text
    };
    let queue = text(20, 0);
    assert!(queue.contains("from a queue that was full") && queue.contains("--queue"), "{queue}");
    let drain = text(20, 20);
    assert!(
        drain.contains("when the drain ended") && drain.contains("--drain") && !drain.contains("full"),
        "{drain}"
    );
    let both = text(20, 15);
    assert!(both.contains("5 were dropped from a queue") && both.contains("when the drain ended"), "{both}");
}

#[test]
fn users_that_have_run_out_of_operations_are_told_from_times_that_do_not_fit() {
    // One user and 20,000 operations of 1 ms: 20 s of work.
    let case = |seconds: f64, busy_rate| {
        let mut case = Case::usual_case();
        (case.think_ns, case.phase.seconds) = (Some(0), seconds);
        (case.observations.counted, case.observations.busy_rate) = (true, busy_rate);
        (case.check_trust("idle_users"), case.check_trust("littles_law"))
    };
    assert_eq!(case(20.4, Some(1_000.0)), (None, None));
    assert_eq!(case(20.5, Some(1_000.0)), (SUSPECT, None));
    assert_eq!(case(20.5, None), (None, SUSPECT));
    assert_eq!(case(19.5, Some(1_000.0)), (None, SUSPECT));
}

#[test]
fn lags_are_held_against_a_tenth_and_a_half() {
    let lag = |lag, of| compare_lag(lag, of, 99.0, ["lag", "time"]).map(|(trust, _)| trust);
    assert_eq!([lag(49_999, 100), lag(50_000, 499_999), lag(50_000, 500_000)], [None, SUSPECT, None]);
    assert_eq!([lag(200_000, 400_000), lag(200_000, 399_999)], [SUSPECT, INVALID]);
    assert_eq!(lag(199_999, 200_000), SUSPECT, "below 200 us nothing is worse");
}

/// Operations of the usual case take 1 ms.
#[test]
fn each_lag_is_judged_where_it_was_recorded() {
    for check in ["client_share", "receive_lag"] {
        let late = |ns| {
            let case = Case::usual_case();
            match check {
                "client_share" => case.with_lag(Some(ns), None),
                _ => case.with_lag(None, Some(ns)),
            }
        };
        let judged: Vec<_> =
            [90_000, 120_000, 600_000].iter().map(|ns| late(*ns).check_trust(check)).collect();
        assert_eq!(judged, [None, SUSPECT, INVALID], "{check}");
        let other = if check == "client_share" { "receive_lag" } else { "client_share" };
        assert_eq!(late(600_000).check_trust(other), None, "{other}");
    }
    assert_eq!(Case::usual_case().check_trust("receive_lag"), None, "nothing was recorded");
    // By the kernel's clock no service time has it in: all but one in 1,000.
    let by_kernel = |kernel: u64, client: u64| {
        let mut case = Case::usual_case().with_lag(None, Some(600_000));
        (case.totals.stamps.kernel, case.totals.stamps.client) = (kernel, client);
        case.check_trust("receive_lag")
    };
    assert_eq!([by_kernel(1_001, 1), by_kernel(1_000, 1), by_kernel(0, 0)], [None, INVALID, INVALID]);
}

/// Advice on a host whose CPU other programs take.
const OTHERS: &str = "other programs take this host's CPU: end them, or use a quiet host";

#[test]
fn advice_on_a_lag_is_of_its_maker() {
    let receive = |change: fn(&mut Case), others: f64| {
        let mut case = Case::usual_case().with_lag(None, Some(600_000)).with_other_programs(others);
        change(&mut case);
        case.reason_text("receive_lag").unwrap()
    };
    let alone = receive(|_| (), 0.25);
    assert!(
        alone.ends_with("the client is woken late: give its load thread a core that nothing else needs"),
        "{alone}"
    );
    let others = receive(|_| (), 0.26);
    assert!(others.ends_with(OTHERS), "{others}");
    let open = receive(|case| (case.phase.client.users, case.phase.offered) = (2, Some(1.0)), 0.0);
    assert!(open.ends_with("use a lower rate or more load threads"), "{open}");
    for several in
        [|case: &mut Case| case.phase.client.users = 2, |case: &mut Case| case.phase.client.pipeline = 2]
    {
        let closed = receive(several, 0.0);
        assert!(
            closed.ends_with("use fewer users, more load threads or an open loop below saturation"),
            "{closed}"
        );
    }
    let schedule = |busy: f64, others: f64| {
        let mut case = Case::usual_case().with_lag(Some(600_000), None).with_other_programs(others);
        case.phase.client.busy_share = Some(busy);
        case.reason_text("client_share").unwrap()
    };
    assert!(schedule(0.5, 0.0).ends_with("use fewer operations per second or more load threads"));
    let idle = schedule(0.4, 0.25);
    assert!(idle.contains("were idle 60 % of the time") && idle.contains("cores of its own"), "{idle}");
    assert!(schedule(0.4, 0.26).ends_with(OTHERS));
}

#[test]
fn neighbours_may_take_a_fiftieth() {
    let beside = |share| Case::usual_case().with_other_programs(share).check_trust("neighbours");
    assert_eq!([beside(0.0199), beside(0.0201)], [None, SUSPECT]);
    let mut elsewhere = Case::usual_case().with_other_programs(0.5);
    elsewhere.phase.monitor.as_mut().unwrap().host.as_mut().unwrap().elsewhere = Some("db".into());
    assert_eq!(elsewhere.check_trust("neighbours"), SUSPECT, "whichever host is watched for the target");
}

#[test]
fn a_client_is_busy_above_85_percent() {
    let busy = |share| check_trust("client_cpu", |case| case.phase.client.busy_share = Some(share));
    assert_eq!([busy(0.85), busy(0.8501)], [None, SUSPECT]);
}

#[test]
fn users_may_differ_by_a_fiftieth_from_littles_law() {
    // One user and 20,000 operations of 1 ms: 20 s.
    let law = |users: f64| {
        check_trust("littles_law", |case| (case.think_ns, case.phase.seconds) = (Some(0), 20.0 / users))
    };
    assert_eq!([law(1.0), law(1.0199), law(0.9801)], [None; 3]);
    assert_eq!([law(1.0201), law(0.9799)], [SUSPECT; 2]);
}

#[test]
fn clocks_are_slow_above_100_ns_and_set_above_a_quarter_of_a_second() {
    let clock = |ns| check_trust("clock", |case| case.phase.hosts[0].clock_ns = Some(ns));
    assert_eq!([clock(100), clock(101)], [None, SUSPECT]);
    let jump = |seconds| check_trust("clock_jump", |case| case.observations.clock_skew_s = seconds);
    assert_eq!([jump(0.25), jump(-0.25), jump(0.2501), jump(-0.2501)], [None, None, SUSPECT, SUSPECT]);
}

#[test]
fn a_mix_is_another_one_above_a_fiftieth() {
    let mix = |done: u64| {
        check_trust("mix", |case| {
            case.totals.outcomes[0] = [0; Outcome::COUNT];
            case.totals.outcomes[0][Outcome::Ok as usize] = done;
            case.observations.mix = vec![("READ".to_owned(), 0.5)];
        })
    };
    assert_eq!([mix(10_399), mix(9_601), mix(10_401), mix(9_599)], [None, None, SUSPECT, SUSPECT]);
}

#[test]
fn keys_are_few_below_a_twentieth_of_what_could_be_met() {
    let keys =
        |distinct, records| check_trust("keys", |case| case.observations.keys = Some((distinct, records)));
    assert_eq!([keys(100, 100_000), keys(99, 100_000)], [None, SUSPECT]);
    assert_eq!([keys(50, 1_000), keys(49, 1_000)], [None, SUSPECT]);
}

/// A level without noise.
fn level() -> Vec<f64> {
    vec![1_000.0; 60]
}

/// A run of so many seconds with these silences.
fn silent(seconds: f64, silences: &[(f64, f64)]) -> Case {
    let mut case = Case::usual_case();
    case.phase.seconds = seconds;
    case.phase.silences = silences.iter().map(|&(from_s, length_s)| Silence { from_s, length_s }).collect();
    case
}

#[test]
fn a_server_that_is_gone_for_more_than_a_twentieth_is_invalid() {
    let gone = |seconds: f64, silences: &[(f64, f64)]| silent(seconds, silences).check_trust("gone");
    let lost =
        |length_s: f64| silent(60.0, &[(30.0, length_s)]).ended(Outcome::Disconnected, 1).check_trust("gone");
    assert_eq!([lost(3.0), lost(3.1)], [SUSPECT, INVALID]);
    // Where nothing was lost the users of a closed loop have waited, each once.
    let waited = |length_s: f64| {
        let mut case = silent(60.0, &[(30.0, length_s)]);
        case.think_ns = Some(0);
        case.check_trust("gone")
    };
    assert_eq!([waited(6.0), waited(6.1)], [SUSPECT, INVALID]);
    // In an open loop all that was due has.
    assert_eq!([gone(60.0, &[(30.0, 29.9)]), gone(60.0, &[(20.0, 30.1)])], [SUSPECT, INVALID]);
    // An outage lasts two seconds, or a fifth of a short run: shorter silences leave figures of the rest.
    let users = |seconds: f64, silences: &[(f64, f64)]| {
        let mut case = silent(seconds, silences);
        case.think_ns = Some(0);
        case.check_trust("gone")
    };
    let many: Vec<(f64, f64)> = (0..10).map(|at| (f64::from(at) * 6.0, 1.9)).collect();
    assert_eq!(users(60.0, &many), SUSPECT);
    assert_eq!([users(8.0, &[(3.0, 1.5)]), users(8.0, &[(3.0, 1.61)])], [SUSPECT, INVALID]);
    assert_eq!([users(2.0, &[(0.0, 0.99)]), users(2.0, &[(0.0, 1.01)])], [SUSPECT, INVALID]);
    let lost =
        |length_s: f64| silent(2.0, &[(0.0, length_s)]).ended(Outcome::Disconnected, 1).check_trust("gone");
    assert_eq!([lost(0.49), lost(0.51)], [SUSPECT, INVALID]);
    // A hundredth of the time, or a second, is worth a doubt; less is named.
    assert_eq!([gone(60.0, &[(30.0, 0.59)]), gone(60.0, &[(30.0, 0.61)])], [Some(Trust::Valid), SUSPECT]);
    assert_eq!([gone(600.0, &[(30.0, 0.99)]), gone(600.0, &[(30.0, 1.0)])], [Some(Trust::Valid), SUSPECT]);
    assert_eq!(gone(60.0, &[]), None);
}

#[test]
fn users_without_a_connection_are_told() {
    let told = |connected: f64, silences: &[(f64, f64)]| {
        let mut case = silent(60.0, silences);
        (case.phase.client.users, case.phase.client.connected) = (100, Some(connected));
        case.check_trust("connections")
    };
    assert_eq!(
        [told(99.1, &[]), told(98.9, &[]), told(90.1, &[]), told(89.9, &[])],
        [None, SUSPECT, SUSPECT, INVALID]
    );
    // No user connects to a server that is not there: 3 of 60 s, and a little more.
    let gone = [(30.0, 3.0)];
    assert_eq!([told(94.1, &gone), told(93.9, &gone)], [None, SUSPECT]);
}

#[test]
fn a_stall_that_is_a_silence_is_said_once() {
    let stalls = |silences: &[(f64, f64)]| {
        let mut case = silent(60.0, silences);
        case.observations.series = level();
        case.observations.series[30] = 0.0;
        (case.check_trust("stalls"), case.check_trust("gone"))
    };
    assert_eq!(stalls(&[]), (SUSPECT, None));
    assert_eq!(stalls(&[(29.9, 1.05)]), (None, SUSPECT));
    assert_eq!(stalls(&[(20.0, 1.05)]), (SUSPECT, SUSPECT));
    assert_eq!(stalls(&[(30.1, 0.5)]), (SUSPECT, Some(Trust::Valid)));
}

#[test]
fn seconds_in_which_the_client_stood_still_say_nothing_of_the_target() {
    let told = |pauses: &[(f64, f64)]| {
        let mut case = Case::usual_case();
        case.phase.pauses = pauses.iter().map(|&(from_s, length_s)| Pause { from_s, length_s }).collect();
        case.observations.series = level();
        // It stands still for three seconds, and does in the fourth what was due in them.
        case.observations.series[20..23].fill(0.0);
        case.observations.series[23] = 4_000.0;
        ["level", "stalls", "gone"].map(|check| case.check_trust(check))
    };
    assert_eq!(told(&[(20.0, 3.0)]), [None; 3]);
    // Nothing else of the run is left out for that.
    assert_ne!(told(&[(50.0, 3.0)])[1], None, "another time");
    assert_ne!(told(&[(25.0, 3.0)])[1], None, "another time");
    let embedded = |total_s: f64| {
        let mut case = Case::usual_case();
        (case.wire, case.phase.seconds) = (false, 60.0);
        case.phase.pauses =
            [total_s / 3.0, total_s * 2.0 / 3.0].map(|length_s| Pause { from_s: 7.0, length_s }).to_vec();
        (case.check_trust("client_share"), case.reason_text("client_share"))
    };
    assert_eq!([embedded(1.1).0, embedded(1.3).0, embedded(6.1).0], [None, SUSPECT, INVALID]);
    // So do users of a server: whom the end finds waiting has not turned. Arrivals of an open loop are due all the same.
    let wire = |think_ns, length_s| {
        let mut case = Case::usual_case();
        (case.think_ns, case.phase.seconds) = (think_ns, 5.0);
        case.phase.pauses = vec![Pause { from_s: 5.0 - length_s, length_s }];
        case.check_trust("client_share")
    };
    assert_eq!([wire(Some(0), 0.09), wire(Some(0), 0.2), wire(Some(0), 2.8)], [None, SUSPECT, INVALID]);
    assert_eq!(wire(None, 2.8), None);
    let text = embedded(6.3).1.unwrap();
    assert!(text.contains("did not run for 6.3 of 60.0 s (at 7.0 s for 4.2 s)"), "{text}");
}

#[test]
fn strange_replies_are_told_and_more_than_one_in_a_thousand_leave_no_figure() {
    let told = |unexpected: u64, broken: u64| {
        check_trust("protocol", |case| {
            (case.phase.unexpected_replies, case.phase.broken_replies) = (unexpected, broken);
        })
    };
    // Of 20,000 operations.
    assert_eq!([told(0, 0), told(1, 0), told(10, 10), told(0, 21)], [None, SUSPECT, SUSPECT, INVALID]);
    let again = |failed: u64, count: u64| {
        let mut case = Case::usual_case().ended(Outcome::Disconnected, failed);
        case.phase.reconnects = count;
        case.check_trust("reconnects")
    };
    // Where operations failed by it, that is told.
    assert_eq!([again(0, 1), again(0, 2), again(2, 3)], [None, SUSPECT, None]);
}

#[test]
fn a_second_stalls_below_half_of_the_median() {
    let stalls = |left: f64| {
        check_trust("stalls", |case| {
            case.observations.series = level();
            case.observations.series[30] = left;
        })
    };
    assert_eq!([stalls(500.0), stalls(499.0)], [None, SUSPECT]);
    // A lower level has been named; a stop within it has not.
    let in_a_lower_level = |left: f64| {
        check_trust("stalls", |case| {
            case.observations.series = level();
            case.observations.series[20..].fill(400.0);
            case.observations.series[40..43].fill(left);
        })
    };
    assert_eq!([in_a_lower_level(400.0), in_a_lower_level(0.0)], [None, SUSPECT]);
    // Below it by more than four deviations of the noise, too.
    let noisy = |left: f64| {
        let mut all: Vec<f64> = (0..60).map(|at| if at % 2 == 0 { 850.0 } else { 1_150.0 }).collect();
        all[30] = left;
        judge_stability(&all).unwrap().stalls.len()
    };
    assert_eq!([noisy(400.0), noisy(40.0)], [0, 1]);
}

#[test]
fn a_drift_counts_from_a_tenth_on() {
    let drift = |change: f64| {
        check_trust("drift", |case| {
            case.observations.series =
                (0..60).map(|at| 1_000.0 * (1.0 + change * (f64::from(at) / 59.0 - 0.5))).collect();
        })
    };
    assert_eq!([drift(0.09), drift(-0.09), drift(0.11), drift(-0.11)], [None, None, SUSPECT, SUSPECT]);
}

#[test]
fn monitors_are_missed_from_three_seconds_on() {
    let lost = |seconds| {
        check_trust("monitors", |case| (case.observations.watched, case.phase.seconds) = (true, seconds))
    };
    assert_eq!([lost(2.999), lost(3.0)], [None, SUSPECT]);
    // The host of a target elsewhere was not to be watched, and all others were, to the end.
    let watched = check_trust("monitors", |case| {
        case.observations.watched = true;
        case.phase.monitor = Some(Monitored { cost_share: Some(0.01), ..Monitored::default() });
    });
    assert_eq!(watched, None);
}

#[test]
fn cores_may_be_taken_for_a_fiftieth() {
    let steal = |share| check_trust("steal", |case| case.phase.hosts[0].cpu_steal_share = Some(share));
    assert_eq!([steal(0.0199), steal(0.0201)], [None, SUSPECT]);
}

#[test]
fn a_level_changes_from_a_tenth_on() {
    let stepped = |share: f64| {
        check_trust("level", |case| {
            case.observations.series = level();
            case.observations.series[40..].iter_mut().for_each(|rate| *rate *= 1.0 - share);
        })
    };
    assert_eq!([stepped(0.08), stepped(0.12)], [None, SUSPECT]);
}

#[test]
fn a_warm_up_is_told_where_it_moves_the_mean_by_a_hundredth() {
    let warm = |first: f64| {
        check_trust("warm_up", |case| {
            case.observations.series = level();
            case.observations.series[..6].fill(first);
        })
    };
    // A tenth of the run: 8 % below moves the mean by 0.8 %, 12 % below by 1.2 %.
    assert_eq!([warm(920.0), warm(880.0)], [None, SUSPECT]);
}

#[test]
fn a_queue_is_an_overload_from_twice_its_length_on() {
    let grown = |times: f64| {
        check_trust("overload", |case| {
            let ramp = |from: f64, to: f64| {
                (0..60).map(move |at| from + (to - from) * f64::from(at) / 59.0).collect()
            };
            case.phase.offered = Some(1_000.0);
            case.observations.series = level();
            case.observations.backlog = ramp(1_000.0, 1_000.0 * times);
            case.observations.response_s = ramp(10.0, 10.0 * times);
        })
    };
    // Quarters: their means are 0.12 and 0.88 of the way, which makes 2.55 of the way twofold.
    assert_eq!([grown(2.5), grown(2.6)], [None, SUSPECT]);
}

#[path = "cases_tests.rs"]
mod cases;
