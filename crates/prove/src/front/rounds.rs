//! Rounds of a proof of failover: tables for the page, lines for the terminal.

use super::certificate::figure;
use crate::failover::curve::Curve;
use crate::failover::{Disruption, OutcomeCounts, Round};
use dyno_report::html::plain::PageBlock;
use std::collections::BTreeMap;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rounds, and what became of all records.
pub struct Rounds<'a> {
    pub rounds: &'a [Round],
    pub outcomes: Option<OutcomeCounts>,
}

fn done(by: Disruption) -> &'static str {
    match by {
        Disruption::Kill => "killed",
        Disruption::Cut => "cut off",
        Disruption::Freeze => "frozen",
    }
}

/// A round in a line.
pub fn line(round: &Round) -> String {
    let cut = round.cut_s.map_or(String::new(), |s| format!(", healed after {s:.2} s"));
    format!(
        "{:>6.1} s  {} {}, {} promoted after {:.2} s{cut}, back as a replica {:.2} s later",
        round.at_s,
        round.primary,
        done(round.by),
        round.promoted,
        round.elected_s,
        round.back_s
    )
}

/// A character for each window, the highest one being full.
fn bars(curve: &Curve) -> String {
    let most = curve.acknowledged.iter().copied().max().unwrap_or(0).max(1);
    let bar = |n: &u64| match n {
        0 => ' ',
        n => BARS[((n * BARS.len() as u64 / most).max(1) - 1).min(7) as usize],
    };
    curve.acknowledged.iter().map(bar).collect()
}

impl Rounds<'_> {
    /// For the terminal.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        if let Some(outcomes) = self.outcomes {
            let duplicated =
                outcomes.duplicated.map_or("a name is there once".into(), |n| format!("{n} duplicated"));
            out += &format!(
                "{} lost, {} wrong, {duplicated}; without an acknowledgement {}: {} there, {} not\n",
                figure(outcomes.lost as f64),
                figure(outcomes.wrong as f64),
                figure((outcomes.indeterminate_found + outcomes.indeterminate_not_found) as f64),
                figure(outcomes.indeterminate_found as f64),
                figure(outcomes.indeterminate_not_found as f64)
            );
        }
        for round in self.rounds {
            let recovered = round.curve.as_ref().and_then(|curve| curve.recovered_s);
            let recovered = recovered.map_or("not recovered".into(), |s| format!("recovered after {s:.1} s"));
            out += &format!(
                "{:>6.1} s  {}: {:.2} s without an acknowledgement, {recovered}  |{}|\n",
                round.at_s,
                done(round.by),
                round.without_acks_s,
                round.curve.as_ref().map_or(String::new(), bars)
            );
        }
        out
    }

    /// For the page.
    pub fn parts(&self) -> Vec<PageBlock> {
        let mut all = vec![PageBlock::Heading("Every time the primary was taken away".into()), self.table()];
        if let Some(outcomes) = self.outcomes {
            all.push(PageBlock::Heading("What became of the records".into()));
            all.push(outcome_table(outcomes));
        }
        all.push(PageBlock::Heading("Recovery".into()));
        all.push(self.recovery());
        all
    }

    fn table(&self) -> PageBlock {
        let heads = [
            "after s",
            "what was done",
            "primary",
            "promoted",
            "elected after s",
            "cut for s",
            "back as a replica after s",
            "settled after s",
            "without acknowledgements s",
            "recovered after s",
        ];
        let known = |value: Option<f64>| value.map_or("-".to_owned(), |s| format!("{s:.2}"));
        let row = |round: &Round| {
            vec![
                format!("{:.1}", round.at_s),
                done(round.by).into(),
                round.primary.clone(),
                round.promoted.clone(),
                format!("{:.2}", round.elected_s),
                known(round.cut_s),
                format!("{:.2}", round.back_s),
                format!("{:.2}", round.settled_s),
                format!("{:.2}", round.without_acks_s),
                known(round.curve.as_ref().and_then(|curve| curve.recovered_s)),
            ]
        };
        let rows = self.rounds.iter().map(row).collect();
        PageBlock::Table("Rounds".into(), heads.map(str::to_owned).to_vec(), rows, 0)
    }

    /// Acknowledged records a second in each window, a column for each round.
    fn recovery(&self) -> PageBlock {
        let mut windows: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let none = || vec!["-".to_owned(); self.rounds.len()];
        for (number, curve) in self.rounds.iter().enumerate() {
            let Some(curve) = &curve.curve else { continue };
            for (at, records) in curve.acknowledged.iter().enumerate() {
                let begin_ms = ((curve.from_s + at as f64 * curve.window_s) * 1e3).round() as i64;
                let rate = *records as f64 / curve.window_s;
                windows.entry(begin_ms).or_insert_with(none)[number] = figure(rate);
            }
        }
        let heads = std::iter::once("from s after the fault".to_owned());
        let heads = heads.chain(self.rounds.iter().map(|round| format!("at {:.1} s: records/s", round.at_s)));
        let row = |(begin_ms, cells): (i64, Vec<String>)| {
            let begin = std::iter::once(format!("{:.1}", begin_ms as f64 / 1e3));
            begin.chain(cells).collect()
        };
        PageBlock::Table(
            "Acknowledged records".into(),
            heads.collect(),
            windows.into_iter().map(row).collect(),
            0,
        )
    }
}

fn outcome_table(outcomes: OutcomeCounts) -> PageBlock {
    let heads = [
        "lost",
        "wrong",
        "duplicated",
        "unacknowledged and there",
        "unacknowledged and not there",
        "refused and there",
    ];
    let row = vec![
        outcomes.lost.to_string(),
        outcomes.wrong.to_string(),
        outcomes.duplicated.map_or("a name is there once".into(), |n| n.to_string()),
        outcomes.indeterminate_found.to_string(),
        outcomes.indeterminate_not_found.to_string(),
        outcomes.refused_found.to_string(),
    ];
    PageBlock::Table("Records by outcome".into(), heads.map(str::to_owned).to_vec(), vec![row], 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round() -> Round {
        let curve = Curve {
            from_s: -0.5,
            window_s: 0.5,
            acknowledged: vec![800, 0, 100, 800],
            before_per_s: Some(1_600.0),
            recovered_s: Some(1.5),
        };
        Round {
            by: Disruption::Cut,
            at_s: 3.0,
            primary: "a".into(),
            promoted: "b".into(),
            elected_s: 1.25,
            cut_s: Some(2.5),
            back_s: 8.0,
            settled_s: 11.0,
            without_acks_s: 1.5,
            curve: Some(curve),
        }
    }

    #[test]
    fn a_round_is_said_in_words_and_in_tables() {
        let both = [round(), Round { at_s: 20.0, curve: None, ..round() }];
        let rounds =
            Rounds { rounds: &both, outcomes: Some(OutcomeCounts { lost: 7, ..OutcomeCounts::default() }) };
        assert!(line(&both[0]).contains("a cut off, b promoted after 1.25 s, healed after 2.50 s"));
        let message = rounds.describe();
        assert!(message.starts_with("7 lost, 0 wrong, a name is there once;"), "{message}");
        assert!(
            message.contains("recovered after 1.5 s  |█ ▁█|") && message.contains("not recovered"),
            "{message}"
        );
        let PageBlock::Table(_, heads, rows, _) = rounds.recovery() else { panic!("a table") };
        assert_eq!((heads.len(), rows.len()), (3, 4));
        assert_eq!(rows[0], ["-0.5", "1,600", "-"]);
        assert_eq!(rows[2], ["0.5", "200", "-"]);
        assert_eq!(rounds.parts().len(), 6);
        let titled =
            |part: &PageBlock| matches!(part, PageBlock::Table(title, ..) if title == "Records by outcome");
        assert!(rounds.parts().iter().any(titled));
    }
}
