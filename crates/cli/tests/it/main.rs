//! Whole runs and whole commands that need no server of somebody else: simulated, embedded and scripted ones, files, pages.

mod bexhoma_config;
mod bexhoma_jupyter;
mod circles;
mod compare;
mod damaged;
mod doctor;
mod exchange;
mod files_that_are_named;
mod judgement;
mod log;
mod mongodb_members;
mod mongodb_routers;
mod mongodb_scripted;
mod mongodb_sessions;
mod mongodb_srv;
mod phases;
mod pocdriver_shards;
mod prove_embedded;
mod reports;
mod searches;
mod serve;
mod server_that_only_greets;
mod tidy;
mod traces;
mod untrusted_directory;
mod ycsb;
