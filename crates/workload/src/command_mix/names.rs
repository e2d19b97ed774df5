//! Names under which operations are measured: there are fewer of these than there may be operations.

use super::config::{CommandMix, MixOperation};
use dyno_types::limits::METRICS;
use std::collections::HashMap;

/// Names that a mix may have: of the others the engine has need.
const NAMES: usize = METRICS - 2;
/// Name of the operations that have none of their own.
const OTHER: &str = "other";

/// Operations that are measured together, and chosen by the sum of their weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// Number of the metric of the whole operation.
    pub metric: u16,
    /// Numbers of its operations.
    pub operations: Vec<u16>,
    /// Weights up to each of them, as a share of their sum.
    pub upto: Vec<f64>,
    /// Weight of all of them in the mix; 0 of one beside it.
    pub weight: f64,
}

/// Numbers of the metrics of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OperationMetrics {
    /// The operation as a whole.
    pub whole: u16,
    /// Its steps, where these are requests by themselves.
    pub steps: Vec<u16>,
    /// Numbers of steps, and the metrics of elements that they found; those that they did not find have the next number.
    pub hits: Vec<(u16, u16)>,
    /// Times of messages from their stamp on.
    pub delivery: Option<u16>,
}

/// The metrics of a mix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricNames {
    /// Names, in the order of their numbers.
    pub names: Vec<String>,
    /// Of each operation: its metrics.
    pub of: Vec<OperationMetrics>,
    /// Groups in the order of their operations; one without a name is the last.
    pub groups: Vec<Group>,
}

/// Names of operations that are measured together.
struct Label {
    names: Vec<String>,
    operations: Vec<u16>,
    weight: f64,
    is_own: bool,
}

impl MetricNames {
    /// Of a checked mix. Where there are too many names, those of the greatest weight are kept, and the rest is `other`.
    pub fn of_mix(mix: &CommandMix) -> Self {
        let mut labels: Vec<Label> = Vec::new();
        let mut known: HashMap<Vec<String>, usize> = HashMap::new();
        for (number, operation) in (0u16..).zip(&mix.operations) {
            let (names, is_own) = (operation.metrics(), operation.own.is_some());
            let weight = if is_own { 0.0 } else { operation.weight };
            let at = *known.entry(names.clone()).or_insert_with(|| {
                labels.push(Label { names, operations: Vec::new(), weight: 0.0, is_own });
                labels.len() - 1
            });
            labels[at].operations.push(number);
            labels[at].weight += weight;
        }
        let kept = kept_labels(&labels);
        let mut found = MetricNames {
            names: Vec::new(),
            of: vec![OperationMetrics::default(); mix.operations.len()],
            groups: Vec::new(),
        };
        for (label, _) in labels.iter().zip(&kept).filter(|(_, kept)| **kept) {
            let first = found.names.len() as u16;
            found.names.extend(label.names.iter().cloned());
            found.add_group(mix, label.operations.clone(), &|operation| in_order(operation, first));
        }
        let rest: Vec<&Label> =
            labels.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(label, _)| label).collect();
        if !rest.is_empty() {
            let taken = |name: &str| found.names.iter().any(|one| one == name);
            let mut names = std::iter::once(OTHER.to_owned()).chain((2..).map(|n| format!("{OTHER}{n}")));
            let name = names.find(|name| !taken(name)).unwrap_or_default();
            let first = found.names.len() as u16;
            let is_script = |number: &u16| mix.operations[usize::from(*number)].is_script();
            let has_steps = rest.iter().any(|label| label.operations.iter().any(is_script));
            found.names.push(name.clone());
            found.names.extend(has_steps.then(|| format!("{name}.step")));
            let mut all: Vec<u16> = rest.iter().flat_map(|label| label.operations.iter().copied()).collect();
            all.sort_unstable();
            found.add_group(mix, all, &|operation| OperationMetrics {
                whole: first,
                steps: operation.steps.iter().filter(|_| operation.is_script()).map(|_| first + 1).collect(),
                ..OperationMetrics::default()
            });
        }
        debug_assert!(found.names.len() <= NAMES, "more metrics than are recorded");
        found
    }

    fn add_group(
        &mut self,
        mix: &CommandMix,
        operations: Vec<u16>,
        metrics: &dyn Fn(&MixOperation) -> OperationMetrics,
    ) {
        let weight = |number: &u16| {
            let operation = &mix.operations[usize::from(*number)];
            if operation.own.is_some() { 0.0 } else { operation.weight }
        };
        let sum: f64 = operations.iter().map(weight).sum();
        let mut before = 0.0;
        let share = |number: &u16| {
            before += weight(number);
            if sum > 0.0 { before / sum } else { 1.0 }
        };
        let upto = operations.iter().map(share).collect();
        for number in &operations {
            self.of[usize::from(*number)] = metrics(&mix.operations[usize::from(*number)]);
        }
        let metric = operations.first().map_or(0, |number| self.of[usize::from(*number)].whole);
        self.groups.push(Group { metric, operations, upto, weight: sum });
    }
}

/// The metrics of an operation whose names are all there, the first of them with the number `first`.
fn in_order(operation: &MixOperation, first: u16) -> OperationMetrics {
    let mut next = first..;
    let mut take = || next.next().unwrap_or(first);
    OperationMetrics {
        whole: take(),
        steps: operation.steps.iter().filter(|_| operation.is_script()).map(|_| take()).collect(),
        hits: operation
            .steps_by_element()
            .map(|(number, _)| {
                let hits = take();
                take();
                (number as u16, hits)
            })
            .collect(),
        delivery: operation.has_deliveries().then(take),
    }
}

/// Which labels keep their names: those beside the mix, then the heaviest.
fn kept_labels(labels: &[Label]) -> Vec<bool> {
    let all: usize = labels.iter().map(|label| label.names.len()).sum();
    if all <= NAMES {
        return vec![true; labels.len()];
    }
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&labels[*a], &labels[*b]);
        b.is_own.cmp(&a.is_own).then(b.weight.total_cmp(&a.weight))
    });
    // The rest has two names at most: of whole operations, and of their steps.
    let (mut left, mut kept) = (NAMES - 2, vec![false; labels.len()]);
    for at in order {
        let own = labels[at].names.len();
        if own > left {
            break;
        }
        left -= own;
        kept[at] = true;
    }
    kept
}
