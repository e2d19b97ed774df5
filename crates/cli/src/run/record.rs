//! The run directory of `dyno run`: where it is and what it says at the start.

use super::applied::settings_of;
use super::resolve::Resolved;
use crate::exit::Failure;
use crate::options::RunArgs;
use crate::run_directory::create;
use crate::run_directory::new_directory;
use dyno_config::settings::Settings;
use dyno_databases::target::OpenTarget;
use dyno_record::Scale;
use dyno_rundir::Writer;
use dyno_rundir::schema::{Environment, Setting};
use dyno_session::session::SessionPlan;
use dyno_types::secret::mask_value;

/// Every setting with its source, secrets masked.
pub fn settings_list(settings: &Settings) -> Vec<Setting> {
    let defaults = dyno_workload::ycsb::known_properties().iter().map(|p| (p.name, p.default));
    let list = settings.provenance(defaults, mask_value).into_iter();
    list.map(|p| Setting { key: p.key, value: p.value, source: p.source }).collect()
}

/// Opens the run directory of `dyno run`, if one is wanted.
pub(super) fn writer(
    args: &RunArgs,
    resolved: &Resolved,
    plan: &SessionPlan,
    opened: &dyn OpenTarget,
    environment: &Environment,
) -> Result<Option<Writer>, Failure> {
    if args.no_out {
        return Ok(None);
    }
    let path = args.out.clone().unwrap_or_else(|| new_directory(&resolved.work.name()));
    create(&path, settings_of(args, resolved)?, plan, opened, environment, Scale::Ns64).map(Some)
}
