//! Benchmarks of dyno itself.
