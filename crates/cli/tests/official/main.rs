//! The official MongoDB driver, beside dyno's own codec.

mod official;
mod official_logins;
mod wire_equality;
