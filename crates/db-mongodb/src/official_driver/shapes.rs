//! Shapes that the driver's interface has no form for.

use dyno_types::document::{Action, Change, OperationShape};
use dyno_types::{RefusalCode, Refused};

/// Refuses shapes that the driver has no form for.
pub(crate) fn check(shapes: &[OperationShape]) -> Result<(), Refused> {
    for shape in shapes {
        let why = match &shape.action {
            Action::Find { limit: Some(0), single_batch: true, .. } => "one batch without a limit",
            Action::Update { change: Change::Replace, many: true, .. } => "a replacement of many documents",
            Action::Command { .. } => "form for commands of a workload",
            _ => continue,
        };
        return Err(Refused::new(
            RefusalCode::Unsupported,
            "workload",
            format!("{:?}: the official driver's interface has no {why}", shape.name),
        ));
    }
    Ok(())
}
