//! Chooses the cores that load threads run on where the user does not.

use dyno_engine::affinity;
use dyno_types::{RefusalCode, Refused};

/// Cores for load threads: the last ones of those that are [`cores_left`] to the load. A core is left to a target on this host
/// whose core is not known.
pub fn choose_cores(
    wanted: Option<usize>,
    users: usize,
    local: bool,
    taken: Option<usize>,
) -> Result<Vec<usize>, Refused> {
    let cores = cores_left(affinity::allowed_cores(), taken.as_slice(), local);
    let most = wanted.unwrap_or(cores.len()).min(users.max(1));
    if most == 0 {
        return Err(Refused::new(RefusalCode::BadValue, "--threads", "--threads 0: expected 1 or more"));
    }
    // Threads that are asked for may take the core that is left to the target; more of them than cores share cores in turn.
    let cores = if most > cores.len() {
        cores_left(affinity::allowed_cores(), taken.as_slice(), false)
    } else {
        cores
    };
    let from = cores.len().saturating_sub(most);
    Ok((0..most).map(|i| cores[(from + i) % cores.len()]).collect())
}

/// Cores that are left to the load: those that are `allowed` and not the servers' (`taken`); without the first where a
/// server is on this host (`local`) and its cores are not known. Where the servers have all, the load shares theirs: never
/// none of at least one that is allowed.
pub fn cores_left(allowed: Vec<usize>, taken: &[usize], local: bool) -> Vec<usize> {
    let mut free: Vec<usize> = allowed.iter().copied().filter(|core| !taken.contains(core)).collect();
    if local && taken.is_empty() && free.len() > 1 {
        free.remove(0);
    }
    if free.is_empty() { allowed } else { free }
}

#[cfg(test)]
mod tests {
    use crate::cores::cores_left;

    #[test]
    fn the_load_has_what_servers_leave_and_shares_where_they_leave_nothing() {
        assert_eq!(cores_left(vec![0, 1, 2, 3], &[0, 1], true), [2, 3]);
        assert_eq!(cores_left(vec![0, 1], &[0, 1], true), [0, 1]);
        assert_eq!(cores_left(vec![0, 1], &[], true), [1], "a core for a server that may be anywhere");
        assert_eq!(cores_left(vec![0, 1], &[], false), [0, 1]);
        assert_eq!(cores_left(vec![5], &[], true), [5]);
        assert_eq!(cores_left(vec![5], &[5], true), [5]);
        assert_eq!(cores_left(vec![5], &[0, 1], false), [5]);
    }
}
