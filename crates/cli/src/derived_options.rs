//! Options of `dyno run` that are no fields of an experiment, each with the key that it sets.

use crate::options::RunArgs;
use dyno_config::tree::Value;

/// The key below which YCSB's properties stand.
pub(crate) const PROPERTIES: &str = "workload.ycsb.properties";

/// Name of the option that sets a property.
pub(crate) const PROPERTY: &str = "-p";

/// An option and what it sets.
pub(crate) struct DerivedOption {
    /// The option as messages name it.
    pub option: &'static str,
    /// The key that it sets; `NAME` stands for what the option's value says.
    pub key: &'static str,
    is_typed: fn(&RunArgs) -> bool,
    /// The value that a switch sets.
    pub value: Option<fn() -> Value>,
}

/// All of them. What is a field of the experiment has its option there ([`dyno_config::experiment::flags`]).
#[rustfmt::skip]
pub(crate) const DERIVED_OPTIONS: [DerivedOption; 10] = [
    derived("--workload", "workload.ycsb.workload", |args| args.workload.is_some(), None),
    derived("--fields", "workload.ycsb.properties.fieldcount", |args| args.fields.is_some(), None),
    derived("--field-length", "workload.ycsb.properties.fieldlength", |args| args.field_length.is_some(), None),
    derived("--distribution", "workload.ycsb.properties.requestdistribution", |args| args.distribution.is_some(), None),
    derived(PROPERTY, "workload.ycsb.properties.NAME", |args| !args.properties.is_empty(), None),
    derived("--no-pin", "client.pin", |args| args.no_pin, Some(|| Value::Bool(false))),
    derived("--no-load", "phases.load.when", |args| args.no_load, Some(|| Value::Text("never".into()))),
    derived("--reload", "phases.load.when", |args| args.reload, Some(|| Value::Text("always".into()))),
    derived("--no-monitor", "monitors.enabled", |args| args.no_monitor, Some(|| Value::Bool(false))),
    derived("--prometheus", "monitors.prometheus.NAME", |args| !args.prometheus.is_empty(), None),
];

const fn derived(
    option: &'static str,
    key: &'static str,
    is_typed: fn(&RunArgs) -> bool,
    value: Option<fn() -> Value>,
) -> DerivedOption {
    DerivedOption { option, key, is_typed, value }
}

/// Those that were typed.
pub(crate) fn typed_options(args: &RunArgs) -> impl Iterator<Item = &'static DerivedOption> {
    DERIVED_OPTIONS.iter().filter(|one| (one.is_typed)(args))
}
