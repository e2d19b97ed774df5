//! Facts that the controller itself knows and asks of a worker pool's targets.

use dyno_db::collections::CollectionStats;
use dyno_db::probe::NEVER;
use dyno_db::target::Target;
use dyno_record::Totals;
use dyno_rundir::schema::CollectionFigures;
use std::sync::OnceLock;

/// Part of one worker in the last phase.
#[derive(Clone, Debug)]
pub struct WorkerPart {
    /// Users.
    pub users: usize,
    /// Everything measured; of a worker that was lost, its counts.
    pub totals: Totals,
    /// Length without the warm-up, nanoseconds.
    pub measured_ns: u64,
}

/// Targets whose collections the controller asks for itself, with what it needs for that once it is known.
#[derive(Default)]
pub struct WatchedCollections(Vec<(Box<dyn Target>, OnceLock<Option<Box<dyn CollectionStats>>>)>);

impl WatchedCollections {
    /// Of these, in the order of the pairs.
    pub fn of_targets(targets: Vec<Box<dyn Target>>) -> Self {
        WatchedCollections(targets.into_iter().map(|target| (target, OnceLock::new())).collect())
    }

    /// Reads the statistics of all collections; of several the names begin with the pair's number.
    pub fn read_collections(&self) -> CollectionFigures {
        let mut all = CollectionFigures::new();
        for (at, (target, stats)) in self.0.iter().enumerate() {
            // Workers speak to it: that it does not answer here is an accident, and its figures are absent.
            let stats = stats.get_or_init(|| target.open_for_look(NEVER).ok()?.collection_stats());
            let named = |name: String| match self.0.len() {
                1 => name,
                _ => format!("pair {}: {name}", at + 1),
            };
            let found = stats.as_ref().map(|stats| stats.read_stats()).unwrap_or_default();
            all.extend(found.into_iter().map(|(name, figures)| (named(name), figures)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_databases::registry;
    use dyno_db_mongodb::protocol::message::{self, code};
    use dyno_types::bson::{self, kind};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// One answer for all commands: of a server alone, whose only collection has so many documents.
    fn answer(documents: i32, out: &mut Vec<u8>) {
        let whole = bson::open(out);
        bson::put_boolean(out, "ismaster", true);
        bson::put_int32(out, "maxWireVersion", 21);
        bson::put_string(out, "version", "7.0.0");
        bson::put_head(out, kind::DOCUMENT, "cursor");
        let cursor = bson::open(out);
        bson::put_head(out, kind::ARRAY, "firstBatch");
        let list = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let one = bson::open(out);
        bson::put_string(out, "name", "usertable");
        bson::close(out, one);
        bson::close(out, list);
        bson::put_int64(out, "id", 0);
        bson::put_string(out, "ns", "a.$cmd.listCollections");
        bson::close(out, cursor);
        bson::put_int32(out, "count", documents);
        bson::put_double(out, "ok", 1.0);
        bson::close(out, whole);
    }

    fn talk(mut stream: TcpStream, documents: i32) -> Option<()> {
        loop {
            let mut head = [0; 16];
            stream.read_exact(&mut head).ok()?;
            let number = |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            stream.read_exact(&mut vec![0; number(0) as usize - head.len()]).ok()?;
            let mut out = Vec::new();
            let begun = message::begin(&mut out, 1);
            if number(12) == code::QUERY {
                // Flags, cursor, position, and one document.
                out.truncate(head.len());
                out[12..].copy_from_slice(&code::REPLY.to_le_bytes());
                out.extend_from_slice(&[[0; 4], [0; 4], [0; 4], [0; 4], 1i32.to_le_bytes()].concat());
            }
            out[8..12].copy_from_slice(&head[4..8]);
            answer(documents, &mut out);
            message::end(&mut out, begun);
            stream.write_all(&out).ok()?;
        }
    }

    fn server(documents: i32) -> Box<dyn Target> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || talk(stream, documents));
            }
        });
        registry::parse(&format!("mongodb://127.0.0.1:{port}/a")).unwrap()
    }

    #[test]
    fn collections_have_the_number_of_their_pair_before_their_name_where_there_are_several() {
        let counts = |targets: Vec<Box<dyn Target>>| -> Vec<(String, f64)> {
            let all = WatchedCollections::of_targets(targets).read_collections();
            all.into_iter().map(|(name, figures)| (name, figures["count"])).collect()
        };
        assert_eq!(counts(Vec::new()), []);
        assert_eq!(counts(vec![server(7)]), [("usertable".to_owned(), 7.0)]);
        let two = [("pair 1: usertable".to_owned(), 7.0), ("pair 2: usertable".to_owned(), 8.0)];
        assert_eq!(counts(vec![server(7), server(8)]), two);
        // The first target has no server to ask.
        assert_eq!(counts(vec![registry::parse("null:").unwrap(), server(8)]), two[1..]);
    }
}
