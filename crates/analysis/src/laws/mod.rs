//! Operational laws on measured runs: identities that hold whatever the workload, so that where one fails the measurement is
//! wrong; and what they say of a sweep over users.
//!
//! Sources: Denning and Buzen, "The operational analysis of queueing network models" (1978); Little (1961); Lazowska and
//! others, "Quantitative System Performance" (1984), chapters 3 and 5.

pub mod demand;
pub mod observe;
pub mod rates;
pub mod run;
pub mod sweep;
mod uncertain;
pub mod what_if;

pub use demand::Demand;
pub use observe::{Observed, Use, observe_rate, observe_run};
pub use rates::{OpenFit, RateLevel, Rates, analyse_rates};
pub use run::{Holds, LawCheck, check_laws};
pub use sweep::{
    Maximum, ObservedGroup, Sweep, analyse_sweep, factors_of_rates, factors_of_users, for_their_course,
};
pub use what_if::WhatIf;
