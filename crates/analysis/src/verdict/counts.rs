//! Checks of a run's counts: arrivals and outcomes, samples, errors, drops, and the offered rate.

use super::checks::CheckFinding;
use super::evidence::Evidence;
use dyno_rundir::schema::{ReplayFigures, Trust};
use dyno_rundir::{is_beside, is_element_count};
use dyno_types::Outcome;
use dyno_types::units::{Rate, Thousands, counted};

pub(super) fn check_invariants(e: &Evidence<'_>) -> CheckFinding {
    let (arrivals, ended) = (e.totals.arrivals, e.totals.ended_total());
    let lost = if e.partial || !e.lost.is_empty() { arrivals < ended } else { arrivals != ended };
    lost.then(|| {
        (
            Trust::Invalid,
            format!(
                "{} arrivals but {} outcomes: the engine lost count; please report this",
                Thousands(arrivals),
                Thousands(ended)
            ),
        )
    })
}

pub(super) fn check_workers(e: &Evidence<'_>) -> CheckFinding {
    let first = e.lost.first()?;
    let others = if e.lost.len() > 1 { format!(" (and {} more)", e.lost.len() - 1) } else { String::new() };
    Some((Trust::Invalid, format!("{first}{others}: what it did since its last second is missing")))
}

pub(super) fn check_completion(e: &Evidence<'_>) -> CheckFinding {
    let aborted = e.totals.ended[Outcome::Aborted as usize];
    let aborted = aborted - unsent(e).min(aborted);
    if e.interrupted {
        let how = if e.partial { "cut off" } else { "interrupted" };
        // Where the record ends before the run does, it holds no end of these operations.
        let open = aborted + e.totals.arrivals.saturating_sub(e.totals.ended_total());
        let text =
            format!("{how} after {:.1} s; {} operations had not ended", e.phase.seconds, Thousands(open));
        return Some((Trust::Suspect, text));
    }
    (aborted > 0).then(|| {
        (
            Trust::Suspect,
            format!("{aborted} operations had no reply when the run ended; see --timeout and --drain"),
        )
    })
}

/// Operations that were due and had not been sent when the time was over.
fn unsent(e: &Evidence<'_>) -> u64 {
    (0..e.totals.outcomes.len()).map(|metric| e.totals.unsent_operations(metric)).sum()
}

/// Too short for percentiles, and so for every check that compares them.
pub(super) fn too_short(e: &Evidence<'_>) -> bool {
    e.totals.count_ok() < 1_000 || e.phase.seconds < 1.0
}

pub(super) fn check_any_success(e: &Evidence<'_>) -> CheckFinding {
    (e.totals.count_ok() == 0).then(|| (Trust::Invalid, "no operation succeeded".into()))
}

pub(super) fn check_sample_count(e: &Evidence<'_>) -> CheckFinding {
    (e.totals.count_ok() > 0 && too_short(e)).then(|| {
        (
            Trust::Suspect,
            format!(
                "only {} operations in {:.2} s: too short for percentiles; let it run for 30 s or more",
                e.totals.count_ok(),
                e.phase.seconds
            ),
        )
    })
}

/// Records that were read and did not hold what was written: nothing that is measured on wrong data counts.
pub(super) fn check_data(e: &Evidence<'_>) -> CheckFinding {
    let wrong = e.totals.ended[Outcome::Mismatch as usize];
    (wrong > 0).then(|| {
        let text = format!(
            "{wrong} operations of {} read records that do not hold what was written (VERIFY): the server has changed them, \
             or they were loaded with other settings",
            e.totals.ended_total()
        );
        (Trust::Invalid, text)
    })
}

pub(super) fn check_errors(e: &Evidence<'_>) -> CheckFinding {
    // These have a check of their own; a conflict of two clients is no failure of the server.
    let apart = [Outcome::Aborted, Outcome::Dropped, Outcome::Mismatch, Outcome::Conflict];
    let aborted: u64 = apart.iter().map(|outcome| e.totals.ended[*outcome as usize]).sum();
    // Failures while an intended fault lasts are no surprise; the check of faults has them.
    let failed = (e.totals.count_failed() - aborted).saturating_sub(e.observations.failed_in_faults);
    if failed == 0 {
        return None;
    }
    let share = failed as f64 / e.totals.ended_total() as f64;
    let worst = Outcome::ALL
        .into_iter()
        .filter(|o| *o != Outcome::Ok && !apart.contains(o))
        .max_by_key(|o| e.totals.ended[*o as usize])?;
    let words = e.phase.errors.get(worst.name()).filter(|w| !w.is_empty());
    let message = words.map_or(String::new(), |w| format!(" (\"{w}\")"));
    let beside = if e.observations.faults.is_empty() { "" } else { " apart from those of the faults" };
    let text = format!(
        "{} operations ({:.3} %) failed{beside}, most as {}{message}; percentiles and thresholds count \
         them with at least the time after which they failed",
        Thousands(failed),
        share * 100.0,
        worst.name()
    );
    Some((if share > 0.05 { Trust::Invalid } else { Trust::Suspect }, text))
}

/// Share of strange replies among the operations from which on it is unknown which operations the figures belong to.
const STRANGE: f64 = 0.001;

/// Checks for replies that the client had not asked for, or that do not follow the protocol. A reply that came with another's
/// answer can be taken for the next one's.
pub(super) fn check_protocol(e: &Evidence<'_>) -> CheckFinding {
    let (unexpected, broken) = (e.phase.unexpected_replies, e.phase.broken_replies);
    let strange = unexpected + broken;
    if strange == 0 {
        return None;
    }
    let share = strange as f64 / e.totals.ended_total().max(1) as f64;
    let kinds = [(unexpected, "that no command had asked for"), (broken, "that do not follow the protocol")];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, what)| format!("{} {what}", Thousands(*count))).collect();
    let text = format!(
        "of the replies {} ({:.3} % of the operations): which reply belongs to which operation is not certain; look at what lies \
         between client and server",
        kinds.join(", and "),
        share * 100.0
    );
    Some((if share > STRANGE { Trust::Invalid } else { Trust::Suspect }, text))
}

/// Connections that were lost between operations and made anew: no operation failed by it, but some waited.
pub(super) fn check_reconnects(e: &Evidence<'_>) -> CheckFinding {
    let lost = [Outcome::Disconnected, Outcome::Unreachable, Outcome::TimedOut, Outcome::Protocol];
    let explained: u64 = lost.iter().map(|outcome| e.totals.ended[*outcome as usize]).sum();
    let quiet = e.phase.reconnects.saturating_sub(explained);
    // Those that were lost in the warm-up come back in the phase: one for each user.
    let users = (e.phase.client.users * e.phase.client.pipeline) as u64;
    (quiet > users && e.observations.faults.is_empty()).then(|| {
        let text = format!(
            "{} connections were lost and made anew without an operation that failed: the server, or what lies before it, closes \
             them; what waited for that is in the tail",
            Thousands(quiet)
        );
        (Trust::Suspect, text)
    })
}

/// Operations beside the mix that failed: they are in no total, so no other check has them.
pub(super) fn check_beside(e: &Evidence<'_>) -> CheckFinding {
    let apart = [Outcome::Ok, Outcome::NotFound, Outcome::Aborted];
    let failed = |(name, counts): &(&str, &[u64; Outcome::COUNT])| {
        let all: u64 = counts.iter().sum();
        let kinds = Outcome::ALL.into_iter().filter(|outcome| !apart.contains(outcome));
        let worst = kinds.clone().max_by_key(|outcome| counts[*outcome as usize])?;
        let failed: u64 = kinds.map(|outcome| counts[outcome as usize]).sum();
        let share = failed as f64 / all.max(1) as f64;
        (failed > 0).then(|| {
            (
                share,
                format!(
                    "{} of {} of {name} failed, most as {}",
                    Thousands(failed),
                    Thousands(all),
                    worst.name()
                ),
            )
        })
    };
    let beside: Vec<(&str, &[u64; Outcome::COUNT])> =
        named_outcomes(e).filter(|(name, _)| is_beside(name)).collect();
    let found: Vec<(f64, String)> = beside.iter().filter_map(failed).collect();
    let worst = found.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = format!(
        "of the operations beside the mix {}: what the others were measured with is not what was asked for",
        worst.1
    );
    Some((if worst.0 > 0.05 { Trust::Invalid } else { Trust::Suspect }, text))
}

/// Replies of a replay that differ from those of then: on other data it measures something else.
pub(super) fn check_divergence(replay: &ReplayFigures) -> CheckFinding {
    let differing = replay.count_differing();
    let share = differing as f64 / replay.compared.max(1) as f64;
    let trust = match share {
        share if share > 0.05 => Trust::Invalid,
        share if share > 0.01 => Trust::Suspect,
        _ => return None,
    };
    let example = replay.examples.first();
    let shown = example.map_or(String::new(), |one| {
        format!("; the first: {}: then {}, now {}", one.command, one.then, one.now)
    });
    let text = format!(
        "{} of {} replies ({:.1} %) are not as they were recorded, on {}: are the data those of then?{shown}",
        Thousands(differing),
        Thousands(replay.compared),
        share * 100.0,
        counted(replay.connections as usize, "connection")
    );
    Some((trust, text))
}

/// Replies of a replay that differ from those of another server to the same traffic.
pub(super) fn check_against(replay: &ReplayFigures) -> CheckFinding {
    let against = replay.against.as_ref()?;
    let differing = against.count_differing();
    let share = differing as f64 / against.compared.max(1) as f64;
    let trust = match share {
        share if share > 0.05 => Trust::Invalid,
        share if share > 0.01 => Trust::Suspect,
        _ => return None,
    };
    let example = against.examples.first();
    let shown = example.map_or(String::new(), |one| {
        format!("; the first: {}: there {}, here {}", one.command, one.then, one.now)
    });
    let text = format!(
        "{} of {} replies ({:.1} %) are not those of the server that it is compared with (--against): do both hold the same \
         data?{shown}",
        Thousands(differing),
        Thousands(against.compared),
        share * 100.0
    );
    Some((trust, text))
}

/// Commands of a replay that a cluster cannot carry out: without them it measures something else.
pub(super) fn check_cross_slot(replay: &ReplayFigures) -> CheckFinding {
    let crossing = replay.cross_slot.as_ref()?;
    let trust = match crossing.share {
        share if share > 0.05 => Trust::Invalid,
        share if share > 0.01 => Trust::Suspect,
        _ => return None,
    };
    let splits =
        ["MGET", "MSET", "DEL", "UNLINK", "EXISTS"].iter().any(|name| crossing.commands.contains_key(*name));
    let advice = if splits { "; --split sends MGET, MSET, DEL, UNLINK and EXISTS slot by slot" } else { "" };
    let text = format!(
        "{} recorded commands ({:.1} %) are not sent: their keys, or those of their transaction, are in several slots of the \
         cluster ({}){advice}",
        Thousands(crossing.count),
        crossing.share * 100.0,
        crossing.describe_most()
    );
    Some((trust, text))
}

/// Outcomes by the names of their metrics, as far as these are known.
fn named_outcomes<'a>(e: &'a Evidence<'_>) -> impl Iterator<Item = (&'a str, &'a [u64; Outcome::COUNT])> {
    e.observations.mix.iter().map(|(name, _)| name.as_str()).zip(&e.totals.outcomes)
}

/// Steps of transactions that have found nothing and have not failed them: a few race with other users, many mean other data.
pub(super) fn check_not_found(e: &Evidence<'_>) -> CheckFinding {
    let missed = |outcomes: &[u64; Outcome::COUNT]| outcomes[Outcome::NotFound as usize];
    let name = |metric: usize| e.observations.mix.get(metric).map_or("", |(name, _)| name.as_str());
    let is_request = |metric: usize| !is_beside(name(metric)) && !is_element_count(name(metric));
    let counted = || e.totals.outcomes.iter().enumerate().filter(|(metric, _)| is_request(*metric));
    let all: u64 = counted().flat_map(|(_, own)| own).sum();
    // An operation that has found nothing has failed, and the check of errors has it; so has that step of it.
    let has_steps = |whole: &str| {
        let of_whole = |name: &str| name.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'));
        let counts = |name: &str| is_element_count(name) || !of_whole(name);
        !whole.is_empty() && e.observations.mix.iter().any(|(name, _)| !counts(name))
    };
    let wholes: u64 =
        counted().filter(|(metric, _)| has_steps(name(*metric))).map(|(_, own)| missed(own)).sum();
    let asked = counted().filter(|(metric, _)| !e.observations.accepted_misses.contains(metric));
    let missed =
        asked.map(|(_, own)| missed(own)).sum::<u64>().saturating_sub(missed(&e.totals.ended) + wholes);
    let share = missed as f64 / all.max(1) as f64;
    (share > 0.05).then(|| {
        let share = share * 100.0;
        let text = format!(
            "{} requests within transactions ({share:.1} %) found nothing: are the data those that the run expects?",
            Thousands(missed)
        );
        (Trust::Suspect, text)
    })
}

pub(super) fn check_drops(e: &Evidence<'_>) -> CheckFinding {
    let dropped = e.totals.ended[Outcome::Dropped as usize];
    let share = dropped as f64 / e.totals.ended_total().max(1) as f64;
    let undrained = e.totals.undrained.min(dropped);
    let queued = "were dropped from a queue that was full, or after the time that they may wait there";
    let (how, rather) = match (undrained, dropped - undrained) {
        (0, _) => (queued.to_owned(), "--queue"),
        (_, 0) => ("still waited when the drain ended, and were never sent".to_owned(), "--drain"),
        (_, full) => {
            let full = Thousands(full);
            (
                format!("were never sent: {full} {queued}, the others still waited when the drain ended"),
                "--queue",
            )
        }
    };
    (dropped > 0).then(|| {
        (
            if share > 0.01 { Trust::Invalid } else { Trust::Suspect },
            format!(
                "{} arrivals ({:.3} %) {how}; percentiles count them as infinite: lower --rate, or raise \
                 --connections or {rather}",
                Thousands(dropped),
                share * 100.0
            ),
        )
    })
}

/// Share of the users that may be without a connection on average, and the one beyond which it is another load.
const UNCONNECTED: (f64, f64) = (0.01, 0.1);

/// Users without a connection do nothing: the load is that of fewer.
pub(super) fn check_connections(e: &Evidence<'_>) -> CheckFinding {
    let users = e.phase.client.users as f64;
    let connected = e.phase.client.connected.filter(|_| users > 0.0)?;
    let missing = 1.0 - connected / users;
    // While the server is silent no user can connect: that has a check of its own.
    let silent_s: f64 = e.phase.silences.iter().map(|silence| silence.length_s).sum();
    let missing_beside = missing - silent_s / e.phase.seconds;
    (missing_beside > UNCONNECTED.0).then(|| {
        let noun = if e.phase.offered.is_some() { "connections were open" } else { "users had a connection" };
        let text = format!(
            "{connected:.1} of {users} {noun} on average: the load is that of fewer; see the errors, the server's limit of \
             connections and its log"
        );
        (if missing_beside > UNCONNECTED.1 { Trust::Invalid } else { Trust::Suspect }, text)
    })
}

/// Returns whether the load had a rate and kept it: then who takes the CPU does not affect the throughput.
pub(super) fn keeps_rate(e: &Evidence<'_>) -> bool {
    e.phase.offered.is_some_and(|rate| rate > 0.0) && offered_rate(e).is_none()
}

pub(super) fn offered_rate(e: &Evidence<'_>) -> CheckFinding {
    let (unsent, due) = e.observations.missed.unwrap_or((unsent(e), e.totals.ended_total()));
    if unsent > 0 && !e.interrupted {
        let text = format!(
            "{} of {} operations that were due had not been sent when the time was over: the target or the \
             connections do not keep up with the rate",
            Thousands(unsent),
            Thousands(due)
        );
        return Some((Trust::Suspect, text));
    }
    let offered = e.phase.offered.filter(|offered| *offered > 0.0)?;
    let grown = backlog_growth(e, offered)?;
    let least = (e.totals.arrivals as f64 * GROWTH).max(offered * GROWTH_S);
    // What is under way all the time grows only in the beginning, and what one stall at the end has left only there.
    let in_second_half = grown.at_end - grown.at_half;
    let steady = grown.at_half.min(in_second_half) > grown.at_end / 4.0;
    (grown.at_end > least && steady).then(|| {
        (
            Trust::Suspect,
            format!(
                "{} operations/s were due and {} were done: at the end {} more waited than in the beginning; the target or the \
                 connections do not keep up, so response times grow with the length of the run",
                Rate(offered),
                Rate(e.phase.throughput),
                Thousands(grown.at_end as u64)
            ),
        )
    })
}

/// Share of the arrivals, and seconds' worth of them, by which a backlog may grow in a rate that is kept.
const GROWTH: f64 = 0.01;
const GROWTH_S: f64 = 0.1;

/// How many more operations were due and not done than at the beginning.
struct BacklogGrowth {
    at_half: f64,
    at_end: f64,
}

/// Arrivals less completions, in half of the whole seconds and in all of the phase; `None` where single seconds are not known, or
/// what a rate that changes asks for in them.
fn backlog_growth(e: &Evidence<'_>, offered: f64) -> Option<BacklogGrowth> {
    let seen = &e.observations;
    let half = seen.series.len() / 2;
    if half == 0 {
        return None;
    }
    // A failed operation waits no more. What never was sent does, in what it says of the target.
    let failed = e.totals.count_failed().saturating_sub(e.totals.undrained) as f64;
    let done = e.totals.count_completed() as f64;
    let (before, before_s) = seen.partial_seconds[0];
    let done_by_half = before + seen.series[..half].iter().sum::<f64>();
    let due_by_half = match seen.varied {
        true => seen.due_by_half?,
        false => offered * (before_s + half as f64),
    };
    let failed_by_half = failed * (before_s + half as f64) / e.phase.seconds;
    Some(BacklogGrowth {
        at_half: due_by_half - done_by_half - failed_by_half,
        at_end: e.totals.arrivals as f64 - done - failed,
    })
}
