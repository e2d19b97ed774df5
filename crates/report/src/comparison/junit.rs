//! A comparison as JUnit XML: a suite for each pair, a case for each figure.

use crate::comparison::Pairing;
use crate::comparison::text::describe_with_noise;
use crate::junit::{Case, Document, End, Suite};
use dyno_analysis::compare::Conclusion;

/// All of it. `fails` says which conclusions fail.
pub fn build_junit(all: &[Pairing], fails: impl Fn(Conclusion) -> bool) -> Document {
    let nothing = all.iter().all(|pairing| pairing.figures.is_empty());
    let suite = |pairing: &Pairing| {
        let mut cases: Vec<Case> = pairing
            .figures
            .iter()
            .map(|figure| {
                let message = describe_with_noise(figure);
                let end = match figure.found.decision.conclusion {
                    conclusion if fails(conclusion) => End::Failure("compare", message.clone()),
                    Conclusion::Unclear(_) => End::Skipped(message.clone()),
                    _ => End::Passed,
                };
                let (first, second) = figure.found.means;
                let number = super::format_number;
                let unit = figure.shown_unit();
                let output = format!("{message}\nfirst {}, second {} {unit}", number(first), number(second));
                Case { output, ..Case::new(figure.name.clone(), end) }
            })
            .collect();
        if cases.is_empty() {
            let message = pairing.verdict_sentence();
            let end = if nothing { End::Error("nothing", message) } else { End::Skipped(message) };
            cases.push(Case::new("figures".into(), end));
        }
        cases[0].output.extend(pairing.warnings.iter().map(|warning| format!("\nnote: {warning}")));
        // A CI system shows a suite without what it is beside.
        let name = match &pairing.experiment {
            Some(experiment) => format!("{experiment}: {}", pairing.title()),
            None => pairing.title(),
        };
        Suite { name, cases, ..Suite::default() }
    };
    Document { name: "dyno compare".into(), suites: all.iter().map(suite).collect() }
}
