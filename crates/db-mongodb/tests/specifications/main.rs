//! The tests that MongoDB's driver specifications bring along (`data/README.md` says where they come from), each suite
//! against the part of dyno that it is about. What dyno does otherwise on purpose stands in `data/deviations.json`.

mod auth;
mod bson_corpus;
mod choice;
mod concerns;
mod conversations;
mod discovery;
mod documentation;
mod documents;
mod harness;
mod retries;
mod seedlist;
mod uris;
