//! The way between a run's target and persistent servers: a run's place on them, and what is written down where they are left.

use crate::dataset_key::key;
use crate::experiment_error::{ExperimentError, of_server};
use crate::persistent_servers::{PersistentServers, StartedProcess, same};
use crate::pods::on_persistent;
use crate::provisioned_target::{DescribedServer, OwnedResources, ProvisionedTarget, SharedServers};
use crate::volumes;
use crate::volumes::Volume;
use dyno_config::experiment::Experiment;
use dyno_config::server::ServerSpec;
use dyno_engine::Control;
use dyno_hosts::kubernetes::manifests::server::server_image;
use dyno_hosts::kubernetes::persistent_pods::PersistentPods;
use dyno_hosts::servers::server::Server;
use dyno_hosts::servers::server::fault_preparation::FaultPreparation;
use dyno_hosts::servers::volume::Loaded;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl PersistentServers {
    /// A run's place on them; otherwise why a run cannot use them: they are other servers, hold other data, or not all of them.
    pub(super) fn target(
        self,
        spec: &Experiment,
        (work_dir, experiment_dir): (&Path, &Path),
        (machine, control): (&Machine, &Arc<Control>),
    ) -> Result<ProvisionedTarget, ExperimentError> {
        self.check(spec, machine)?;
        match (&self.pods, &spec.kubernetes) {
            (None, None) => {
                self.is_whole(self.counted()?)?;
                let target = ProvisionedTarget::new(
                    self.uris.clone(),
                    self.cores.clone(),
                    true,
                    OwnedResources::Nothing,
                );
                Ok(ProvisionedTarget { persistent: Some(Box::new(self)), ..target })
            }
            (Some((there, persistent)), Some(asked)) if same(there, asked) => {
                let target = on_persistent(
                    spec,
                    asked,
                    (&self.secured, persistent),
                    (work_dir, experiment_dir),
                    control,
                )?;
                let count = target.counted_in_pods(false, control);
                let whole = count.and_then(|count| self.is_whole(count.unwrap_or(0)));
                match whole {
                    Ok(()) => Ok(ProvisionedTarget { persistent: Some(Box::new(self)), ..target }),
                    Err(failed) => {
                        target.end(spec, &mut SharedServers::default())?;
                        Err(failed)
                    }
                }
            }
            _ => Err(ExperimentError::other(format!(
                "{}: its servers are somewhere else",
                self.directory.display()
            ))),
        }
    }
}

impl ProvisionedTarget {
    /// A server that was started for being left.
    pub(super) fn of_server(
        spec: &ServerSpec,
        own: ServerSpec,
        server: Server,
        volume: Option<Volume>,
    ) -> Self {
        let (uris, taken) = (server.client_uris(), server.given_cores());
        let preparation = FaultPreparation::default();
        let owned = DescribedServer { spec: spec.clone(), own, preparation, server, copied: false };
        ProvisionedTarget {
            volume,
            ..ProvisionedTarget::new(uris, taken, true, OwnedResources::Server(Box::new(owned)))
        }
    }

    /// Leaves its servers running, and says what they are and what `run` has loaded in so many seconds.
    pub(super) fn leave(
        self,
        spec: &Experiment,
        (experiment_dir, control): (&Path, &Control),
        (run, seconds): (&Path, Option<f64>),
    ) -> Result<(), ExperimentError> {
        let of_volume = self.volume.as_ref().and_then(Volume::loaded_record).cloned();
        let counted = self.counted_in_pods(false, control)?;
        // Agents end before what they are in, and the way to pods before the pods.
        drop((self.beside, self.clients));
        match self.owned {
            OwnedResources::Server(owned) => {
                note(
                    (&owned.spec, &owned.own),
                    &owned.server,
                    spec,
                    (of_volume, run, seconds),
                    experiment_dir,
                )?;
                owned.server.leave_running();
                Ok(())
            }
            OwnedResources::Pods(Some(own), pods) => {
                let facts = pods.pod_facts();
                let persistent =
                    pods.leave_servers().map_err(|e| LocalError::failed_step("kubernetes", e))?;
                note_pods(spec, (&own, persistent, facts), (of_volume, run, seconds, counted), experiment_dir)
            }
            _ => Err(ExperimentError::other("there is nothing to leave")),
        }
    }
}

/// Writes down which servers are left running.
fn note(
    (described, secured): (&ServerSpec, &ServerSpec),
    server: &Server,
    spec: &Experiment,
    (of_volume, run, seconds): (Option<Loaded>, &Path, Option<f64>),
    experiment_dir: &Path,
) -> Result<(), ExperimentError> {
    let machine = Machine::default();
    let version = server.server_facts().get("version").cloned().unwrap_or_default();
    let key = key(spec, described, &version)?;
    let loaded = match (of_volume, seconds) {
        (None, Some(seconds)) => {
            let count = server.count_records().map_err(of_server)?;
            Some(volumes::record(key.clone(), count, run, seconds)?)
        }
        (loaded, _) => loaded,
    };
    let process = |(name, pid): (String, u32)| StartedProcess {
        started: process::start_ticks(&machine, pid).unwrap_or(0),
        name,
        pid,
    };
    let facts = server.server_facts().into_iter().map(|(key, value)| (format!("server.{key}"), value));
    let persistent = PersistentServers {
        directory: experiment_dir.to_owned(),
        described: described.clone(),
        secured: secured.clone(),
        key,
        uris: server.client_uris(),
        sockets: server.process_sockets(),
        processes: server.running_processes().into_iter().map(process).collect(),
        cores: server.given_cores(),
        facts: facts.collect(),
        since: jiff::Timestamp::now().to_string(),
        loaded,
        pods: None,
    };
    Ok(persistent.write()?)
}

/// The same of servers in pods.
fn note_pods(
    spec: &Experiment,
    (secured, persistent, facts): (&ServerSpec, PersistentPods, BTreeMap<String, String>),
    (of_volume, run, seconds, counted): (Option<Loaded>, &Path, Option<f64>, Option<u64>),
    experiment_dir: &Path,
) -> Result<(), ExperimentError> {
    let (Some(described), Some(asked)) = (&spec.server, &spec.kubernetes) else {
        return Err(ExperimentError::other("there is nothing to leave"));
    };
    let key = key(spec, described, &server_image(described, asked))?;
    let loaded = match (of_volume, seconds, counted) {
        (None, Some(seconds), Some(count)) => Some(volumes::record(key.clone(), count, run, seconds)?),
        (loaded, ..) => loaded,
    };
    let persistent = PersistentServers {
        directory: experiment_dir.to_owned(),
        described: described.clone(),
        secured: secured.clone(),
        key,
        uris: Vec::new(),
        sockets: Vec::new(),
        processes: Vec::new(),
        cores: Vec::new(),
        facts,
        since: jiff::Timestamp::now().to_string(),
        loaded,
        pods: Some((asked.clone(), persistent)),
    };
    Ok(persistent.write()?)
}
