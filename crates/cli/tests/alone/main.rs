//! Tests that measure the host or take minutes: nothing else runs beside them.

mod chaos;
mod diagnosis;
mod fault_matrix;
mod soak;
