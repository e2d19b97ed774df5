//! Where things run: targets, servers started for a run, the run itself.
