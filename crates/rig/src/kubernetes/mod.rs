//! Servers and workers in pods of a cluster, by kubectl.
//!
//! `manifests` says what is made, `kubectl` speaks to the cluster, `pods` reads what becomes of it, `place` brings a run about.
//! Everything belongs to the workers' Job, which ends by itself when nobody speaks to its pods any more, and then takes all
//! with it: a controller that is killed leaves nothing for long.

mod error;
mod kubectl;
mod kubelet;
mod looking;
mod manifests;
mod place;
mod pods;
mod replace;
mod rights;
mod servers;
mod signals;
mod standing;
pub(crate) mod volumes;

pub use error::PodsError;
pub use kubectl::{Kubectl, KubectlError};
pub(crate) use kubelet::Kubelets;
pub use looking::running_pods;
pub(crate) use manifests::everywhere;
pub(crate) use manifests::server_image;
pub use manifests::{Manifests, NO_TOKEN, TOKEN, manifests, shown, yaml};
pub(crate) use place::clean;
pub use place::{InPods, wait_for_words};
pub use replace::{Given, RUN, read as read_manifests};
pub(crate) use replace::{objects as objects_of_a_file, unknown as unknown_keys};
pub use rights::{role, role_for_kubelets};
pub(crate) use servers::ServerPods;
pub(crate) use signals::{PodSignal, SignalError};
pub(crate) use standing::Stood;
