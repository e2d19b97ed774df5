//! Which cores load threads run on where nobody says.

use dyno_engine::affinity;
use dyno_types::Refused;

/// Cores for load threads: the last ones that are allowed, but not the server's (`taken`). A core is left to a target on
/// this host whose core is not known.
pub fn choose_cores(
    wanted: Option<usize>,
    users: usize,
    local: bool,
    taken: Option<usize>,
) -> Result<Vec<usize>, Refused> {
    let mut cores = affinity::allowed_cores();
    if cores.len() > 1 {
        cores.retain(|core| Some(*core) != taken);
    }
    let spare = usize::from(local && taken.is_none() && cores.len() > 1);
    let most = wanted.unwrap_or(cores.len() - spare).min(users.max(1));
    if most == 0 {
        return Err(Refused("--threads 0: expected 1 or more".into()));
    }
    // More threads than cores share cores in turn.
    let from = cores.len().saturating_sub(most);
    Ok((0..most).map(|i| cores[(from + i) % cores.len()]).collect())
}
