//! Facts about a host that one crate records and another reads, by group and name.

/// Bytes that files on the filesystem at `/` take up.
pub const ROOT_USED: (&str, &str) = ("filesystems", "root_used");

/// The kernel's release, as `uname -r` has it.
pub const KERNEL_RELEASE: (&str, &str) = ("kernel", "release");

/// Number of processors.
pub const CPUS: (&str, &str) = ("cpu", "cpus");

/// Processors that the process which read the facts may run on.
pub const CPUS_ALLOWED: (&str, &str) = ("limits", "cpus");

/// The fact of a process or a pod that lists the processors it may run on.
pub const PROCESS_CPUS: &str = "cpus_allowed";

/// The fact of a node of Kubernetes that says how many bytes its filesystem has in use.
pub const NODE_DISK_USED: &str = "disk_used_bytes";
