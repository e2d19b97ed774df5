//! Servers and workers in pods of a cluster, by kubectl.
//!
//! `manifests` says what is made, `kubectl` speaks to the cluster, `pods` reads what becomes of it, `place` brings a run about.
//! Everything belongs to the workers' Job, which ends by itself when nobody speaks to its pods any more, and then takes all
//! with it: a controller that is killed leaves nothing for long.

pub mod error;
pub mod kubectl;
pub mod kubelet;
pub mod looking;
pub mod manifests;
pub mod place;
pub mod pods;
pub mod replace;
pub mod rights;
pub mod servers;
pub mod signals;
pub mod standing;
pub mod volumes;
