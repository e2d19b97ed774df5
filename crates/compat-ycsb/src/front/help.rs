//! The usage text of `dyno ycsb`.

use crate::bindings::Binding;
use crate::known;
use std::fmt::Write;

const USAGE: &str = "\
dyno ycsb <load|run|shell> <binding> [options]      drop-in for YCSB's bin/ycsb

  load     insert the records          run     apply the workload's mix of operations
  shell    talk to the database: read, scan, insert, update, delete

Options of YCSB, values in the next argument:
  -P FILE          properties file, or a built-in workload such as workloads/workloada; later ones win
  -p KEY=VALUE     a property; the command line wins over files, wherever it stands
  -threads N       users, one operation of each under way; default 1
  -target N        operations per second over all threads (open loop); default: as fast as it goes
  -s               status lines on standard error, every status.interval seconds
  -l LABEL         a label for the status lines
  -db CLASS        the binding by its class, such as site.ycsb.db.RedisClient
  -table NAME      shell only: the table
Options of dyno:
  --client NAME    MongoDB: wire (dyno's own codec) or official (the official driver, where this build has it)
  --out DIR        write a run directory (see dyno report, dyno merge)
  --no-monitor     do not watch host, processes and database beside the run (with --out they are watched)
  --json           summary.json on standard output instead of the report
  --quiet          nothing on standard error but errors
  --compat-exit    be exactly YCSB: its exit codes and messages, nothing of dyno's own in the report

Exit codes: 0 done, 1 internal error, 2 usage, 3 target unreachable, 5 run invalid, 130 interrupted.
";

/// Usage, bindings and every property with its default.
pub(super) fn text() -> String {
    let mut out = USAGE.to_owned();
    let names: Vec<&str> = Binding::all().map(Binding::name).collect();
    let _ = writeln!(out, "\nBindings: {}", names.join(", "));
    let mut group = "";
    for property in known::all() {
        if property.group != group {
            group = property.group;
            let _ = writeln!(out, "\nProperties ({group}):");
        }
        let set = format!("{}={}", property.name, property.default);
        let _ = writeln!(out, "  {set:<44} {}", property.doc);
    }
    out
}
