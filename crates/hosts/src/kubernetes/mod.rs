//! Servers and workers in pods of a cluster, by kubectl.
//!
//! `manifests` says what is made, `kubectl` speaks to the cluster, `pods` reads what becomes of it, `run_pods` starts the pods
//! of a run, `fit` says beforehand which cannot have a node, `place` has privileged ones choose cores of theirs, `collect` keeps
//! what they have said, `pod_status` tells what runs. `controller` has an experiment conducted by a pod, whose results `transfer`
//! brings home; `job_events` tells its Job how it goes.
//!
//! Everything belongs to the workers' Job. It ends by itself when no controller speaks to its pods any more, and then takes all
//! with it: a controller that is killed leaves nothing for long. Where it was killed while workers wait for servers to have
//! their nodes, `dyno stop` removes the Job.

mod collect;
pub mod controller;
pub mod error;
mod fit;
mod image_pins;
mod in_pod;
pub mod job_events;
pub mod kubectl;
pub mod kubelet;
pub mod manifest_overrides;
pub mod manifests;
pub mod persistent_pods;
pub mod place;
pub mod pod_status;
pub mod pods;
pub mod rights;
pub mod run_pods;
pub mod servers;
pub mod signals;
pub mod transfer;
pub mod volumes;
