//! Growth of throughput with users: models fitted to a sweep, chosen by the data, and where the curve bends.

pub mod fit;
pub mod knee;
pub mod models;

pub use fit::{Fitted, ModelChoice, choose_model};
pub use models::{Model, Parameters, describe_parameter};
