//! A replay in the summary: its replies beside those of then, and how long commands were held back.

use crate::style::{Style, format_us};
use dyno_rundir::schema::{Latency, Phase, ReplayFigures, ThenLatency};
use dyno_types::metric::{HELD, MULTI_EXEC};
use dyno_types::units::Thousands;
use std::fmt::Write as _;

/// Commands whose times of then are shown without details.
const FEW: usize = 3;

/// Replies of a replay beside those of then, and how long commands were held back.
pub(crate) fn append_replay(out: &mut String, phase: &Phase, style: Style) {
    let Some(replay) = &phase.replay else { return };
    let differing = replay.count_differing();
    let share = differing as f64 * 100.0 / replay.compared.max(1) as f64;
    let compared = match replay.compared {
        0 => "no replies were recorded to compare with".to_owned(),
        all => format!("{} replies compared, {} differ ({share:.1} %)", Thousands(all), Thousands(differing)),
    };
    let held =
        phase.metrics.iter().find(|metric| metric.name == HELD).and_then(|held| held.response.as_ref());
    let held = held.map_or("no command had to wait for the one before".to_owned(), |held| {
        let share = held.count as f64 * 100.0 / count_commands(phase).max(1) as f64;
        let p99 = held.percentiles_us.get("p99").copied().flatten().or(held.max_us).unwrap_or(held.mean_us);
        format!(
            "{} commands ({share:.1} %) waited for the one before, p99 {}",
            Thousands(held.count),
            format_us(p99)
        )
    });
    let held = match replay.pace.as_str() {
        "think" => {
            "each command was due a pause of then behind the reply before it (--pace think)".to_owned()
        }
        _ => held,
    };
    let _ = writeln!(out, "{}", style.wrap_text(&format!("replay   {compared}; {held}"), 9));
    if let Some(whole) = phase.metrics.iter().find(|metric| metric.name == MULTI_EXEC) {
        let all: u64 = whole.outcomes.values().sum();
        let conflicts = whole.outcomes.get("conflict").copied().unwrap_or(0);
        let line = format!(
            "         {} transactions, of which {} ({:.1} %) were not carried out: a watched key had changed (conflict)",
            Thousands(all),
            Thousands(conflicts),
            conflicts as f64 * 100.0 / all.max(1) as f64
        );
        if conflicts > 0 {
            let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
        }
    }
    if let Some(against) = &replay.against {
        let differing = against.count_differing();
        let line = format!(
            "against  {} replies compared with those of the other server, {} differ ({:.1} %); {} not compared",
            Thousands(against.compared),
            Thousands(differing),
            differing as f64 * 100.0 / against.compared.max(1) as f64,
            Thousands(against.not_compared)
        );
        let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
        for one in against.examples.iter().filter(|_| style.details) {
            let line = format!("         {}: there {}, here {}", one.command, one.then, one.now);
            let _ = writeln!(out, "{}", style.wrap_text(&line.replace('\n', "\\n"), 11));
        }
    }
    if replay.cut_waits > 0 {
        let line = format!(
            "         {} commands waited for data twice as long as then and a second: they were ended, and their connections \
             made anew",
            Thousands(replay.cut_waits)
        );
        let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
    }
    if let Some(crossing) = &replay.cross_slot {
        let line = format!(
            "         {} recorded commands ({:.1} %) not sent: keys in several slots ({})",
            Thousands(crossing.count),
            crossing.share * 100.0,
            crossing.describe_most()
        );
        let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
    }
    if style.details {
        for one in &replay.examples {
            let line = format!("         {}: then {}, now {}", one.command, one.then, one.now);
            let _ = writeln!(out, "{}", style.wrap_text(&line.replace('\n', "\\n"), 11));
        }
        for (reason, count) in &replay.left_out {
            let _ = writeln!(
                out,
                "{}",
                style.wrap_text(&format!("         not sent: {} {reason}", Thousands(*count)), 11)
            );
        }
    }
    then_and_now(out, phase, replay, style);
}

/// Recorded commands that were due: those of a transaction are one operation.
fn count_commands(phase: &Phase) -> u64 {
    let is_command = |name: &str| name != HELD && name != MULTI_EXEC;
    let commands = phase.metrics.iter().filter(|metric| is_command(&metric.name));
    commands.flat_map(|metric| metric.outcomes.values()).sum()
}

/// Times from command to reply then and now, by command; those of then where they were taken.
fn then_and_now(out: &mut String, phase: &Phase, replay: &ReplayFigures, style: Style) {
    let mut rows: Vec<(&String, &ThenLatency, &Latency)> = Vec::new();
    for metric in &phase.metrics {
        let both = replay.then.get(&metric.name).zip(metric.service.as_ref());
        rows.extend(both.map(|(then, now)| (&metric.name, then, now)));
    }
    rows.sort_by_key(|(_, then, _)| std::cmp::Reverse(then.count));
    let most = if style.details { rows.len() } else { FEW };
    for (name, then, now) in rows.iter().take(most) {
        let percentile =
            |name: &str| now.percentiles_us.get(name).copied().flatten().map_or("-".into(), format_us);
        let line = format!(
            "then     {name}: p50 {}, p99 {} ({}); now p50 {}, p99 {}",
            format_us(then.p50_us),
            format_us(then.p99_us),
            replay.describe_point(),
            percentile("p50"),
            percentile("p99")
        );
        let _ = writeln!(out, "{}", style.wrap_text(&line, 9));
    }
}
