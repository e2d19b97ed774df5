//! Searches of an experiment file, typed. The doc comments are the descriptions of the published JSON Schema.

use crate::experiment::series::{SERIES, series};
use crate::server::Setting;
use crate::values::{
    Count, Number, PerSecond, Share, read_count, read_number, read_number_if_any, read_share,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A search instead of the grid; every cell of the factors is searched by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Strategy {
    /// More and more users until throughput no longer grows.
    Ladder(Ladder),
    /// The highest rate that keeps objectives.
    HighestRate(HighestRate),
    /// Repeats until the confidence interval of the throughput is narrow enough.
    RepeatUntil(RepeatUntil),
    /// Searches parameters for the best value of an objective.
    Tune(Tune),
}

/// More and more users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ladder {
    /// First number of users. Default: 1. Unit: users.
    #[serde(deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub from: usize,
    /// Last number of users. Default: 1024. Unit: users.
    #[serde(deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub to: usize,
    /// Growth from step to step. Default: 2. Unit: factor.
    #[serde(deserialize_with = "read_number")]
    #[schemars(with = "Number")]
    pub times: f64,
    /// The ladder ends when two steps in a row add less than this to the best throughput. Default: 0.02. Unit: share.
    #[serde(deserialize_with = "read_share")]
    #[schemars(with = "Share")]
    pub gain: f64,
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder { from: 1, to: 1_024, times: 2.0, gain: 0.02 }
    }
}

/// The highest rate that keeps objectives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HighestRate {
    /// Conditions that must hold, such as `p99(read) < 5ms`. Achieved rate within 1 % of the offered one is always an objective.
    pub objectives: Vec<String>,
    /// Lowest rate tried. Default: 1000. Unit: operations per second.
    #[serde(default = "first_rate")]
    pub from: PerSecond,
    /// Highest rate tried. Default: 10 million. Unit: operations per second.
    #[serde(default = "last_rate")]
    pub to: PerSecond,
    /// The search ends when it knows the rate this well. Default: 0.05. Unit: share.
    #[serde(default = "precision", deserialize_with = "read_share")]
    #[schemars(with = "Share")]
    pub precision: f64,
}

fn first_rate() -> PerSecond {
    PerSecond(1_000.0)
}

fn last_rate() -> PerSecond {
    PerSecond(10_000_000.0)
}

fn precision() -> f64 {
    0.05
}

/// Repeats until the confidence interval is narrow enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatUntil {
    /// Half width of the 95 % interval of the mean throughput over repetitions. Default: 0.02. Unit: share of the mean.
    #[serde(deserialize_with = "read_share")]
    #[schemars(with = "Share")]
    pub half_width: f64,
    /// Fewest repetitions. Default: 3. Unit: runs.
    #[serde(deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub at_least: u32,
    /// Most repetitions. Default: 30. Unit: runs.
    #[serde(deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub at_most: u32,
}

impl Default for RepeatUntil {
    fn default() -> Self {
        RepeatUntil { half_width: 0.02, at_least: 3, at_most: 30 }
    }
}

/// Values of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Levels {
    /// These.
    List(Vec<Setting>),
    /// A series, as of a factor.
    Range {
        /// First value.
        #[serde(deserialize_with = "read_number")]
        #[schemars(with = "Number")]
        from: f64,
        /// Last value.
        #[serde(deserialize_with = "read_number")]
        #[schemars(with = "Number")]
        to: f64,
        /// Distance of an arithmetic series.
        #[serde(default, deserialize_with = "read_number_if_any", skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Number>")]
        step: Option<f64>,
        /// Ratio of a geometric series.
        #[serde(default, deserialize_with = "read_number_if_any", skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Number>")]
        times: Option<f64>,
        /// Number of evenly spaced values.
        #[serde(default, deserialize_with = "read_number_if_any", skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Number>")]
        count: Option<f64>,
    },
}

/// Levels that are no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelsError {
    /// A list without values.
    #[error("an empty list")]
    Empty,
    /// A series without an end, or in two ways at once.
    #[error("{}", SERIES)]
    Series,
}

impl Levels {
    /// The values in words; an error if the series is invalid.
    pub fn level_values(&self) -> Result<Vec<String>, LevelsError> {
        match self {
            Levels::List(all) if all.is_empty() => Err(LevelsError::Empty),
            Levels::List(all) => Ok(all.iter().map(ToString::to_string).collect()),
            Levels::Range { from, to, step, times, count } => {
                let numbers = series(*from, *to, *step, *times, *count);
                let numbers = numbers.ok_or(LevelsError::Series)?;
                Ok(numbers.into_iter().map(|n| Setting::Number(n).to_string()).collect())
            }
        }
    }
}

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// More.
    #[default]
    Maximise,
    /// Less.
    Minimise,
}

/// Screens configurations that fill the space of parameters, halves the field with a repetition for all that are left, and
/// sets the best beside the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// Keys of the file and their values, such as `server.options.io-threads: [1, 2, 4]`.
    pub parameters: BTreeMap<String, Levels>,
    /// Objective: `throughput`, or a figure of a threshold such as `p99(read)`. Default: throughput.
    #[serde(default = "throughput")]
    pub objective: String,
    /// Direction of the goal: more or less. Default: maximise.
    #[serde(default)]
    pub goal: Goal,
    /// Conditions that must hold, as in `require`. Default: nothing.
    #[serde(default)]
    pub constraints: Vec<String>,
    /// Configurations that are screened, beside the defaults. Default: 8. Unit: configurations.
    #[serde(default = "eight", deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub configurations: u32,
    /// Runs that the best and the defaults have at least at the end. Default: 5. Unit: runs.
    #[serde(default = "five", deserialize_with = "read_count")]
    #[schemars(with = "Count")]
    pub repetitions: u32,
}

fn throughput() -> String {
    "throughput".into()
}

fn eight() -> u32 {
    8
}

fn five() -> u32 {
    5
}

impl Tune {
    /// The objective as a condition that measures it.
    pub fn objective_condition(&self) -> String {
        match self.objective.as_str() {
            "throughput" => "throughput > 1".into(),
            "errors" => "errors < 100%".into(),
            other => format!("{other} < 1h"),
        }
    }
}
