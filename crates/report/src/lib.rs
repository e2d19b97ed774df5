//! Every output format.
