//! `dyno grafana`: dashboards as files.

use clap::Args;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_report::grafana::build_dashboards;
use dyno_rundir::files;
use std::path::PathBuf;

/// `dyno grafana`.
#[derive(Clone, Debug, Args)]
pub struct GrafanaArgs {
    /// Where the files are put; files of the same names are replaced
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// The command.
pub fn grafana(args: &GrafanaArgs) -> Result<Exit, Failure> {
    std::fs::create_dir_all(&args.out)?;
    for (name, dashboard) in build_dashboards() {
        let path = args.out.join(name);
        files::put_file(&path, format!("{dashboard:#}\n").as_bytes())
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        terminal::out(&format!("{}\n", path.display()));
    }
    Ok(Exit::Ok)
}
