//! What this host and its processes did while the load ran.
