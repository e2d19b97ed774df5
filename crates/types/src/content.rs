//! Rendering of a request's keys, field names and values as bytes.
//!
//! A workload implements [`Content`]; drivers and stores call it while they encode. All methods are pure: the same
//! request gives the same bytes, so that a retry, a redirect or a verification can render them again.

use crate::command::{CommandTemplate, RecordedPlace, ReplyFacts, Traffic};
use crate::document::{Operand, OperationShape};
use crate::request::Request;

/// Renders the bytes of a request. Every method appends to `out` and never clears it.
pub trait Content: Send + Sync {
    /// The table, collection or key space the records belong to.
    fn table(&self) -> &str;

    /// The key of the record that `request` addresses (for a scan: the first key).
    fn key(&self, request: &Request, out: &mut Vec<u8>);

    /// Returns how many fields the request names or writes. 0 means "all fields" of a read or a scan.
    fn fields(&self, request: &Request) -> usize;

    /// The name of field number `field` of the request, `0..fields(request)`.
    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>);

    /// The length in bytes of what [`Content::value`] will append.
    fn value_len(&self, request: &Request, field: usize) -> usize;

    /// The value of field number `field` of a writing request.
    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>);

    /// The operations on documents, by [`Request::shape`].
    fn shapes(&self) -> &[OperationShape] {
        &[]
    }

    /// Returns whether an operation uses a shape. Shapes that no operation uses are not validated.
    fn uses(&self, _shape: u16) -> bool {
        true
    }

    /// The shapes that requests have.
    fn shapes_used(&self) -> Vec<&OperationShape> {
        self.shapes()
            .iter()
            .zip(0..)
            .filter(|(_, number)| self.uses(*number))
            .map(|(shape, _)| shape)
            .collect()
    }

    /// Returns whether a request changes data: what does goes to a primary.
    fn writes(&self, request: &Request) -> bool {
        match request.verb {
            crate::Verb::Document => self.shapes()[usize::from(request.shape)].action.changes_data(),
            crate::Verb::Command => {
                self.commands()[usize::from(request.shape)].commands.iter().any(|command| command.writes)
            }
            verb => verb.changes_data(),
        }
    }

    /// Secondary indexes of every collection, which are there before the first insert: name and field.
    fn indexes(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Appends the name of the collection that a document request addresses.
    fn collection(&self, _request: &Request, out: &mut Vec<u8>) {
        out.extend_from_slice(self.table().as_bytes());
    }

    /// Returns how many documents (insert) or statements (update, delete) a document request carries, at least 1.
    fn documents(&self, _request: &Request) -> u32 {
        1
    }

    /// Returns whether the request belongs to a transaction: the requests of its operation's script, of which the one at step 0
    /// begins it and one with [`crate::document::Action::Commit`] or `Abort` ends it.
    fn in_transaction(&self, _request: &Request) -> bool {
        false
    }

    /// Appends document number `number` of a document request, whole, as BSON.
    fn document(&self, _request: &Request, _number: u32, _out: &mut Vec<u8>) {
        unreachable!("this content has no documents");
    }

    /// Appends operand `operand` of statement number `number` of a document request, as a BSON element called `name`.
    fn operand(&self, _request: &Request, _number: u32, _operand: Operand, _name: &str, _out: &mut Vec<u8>) {
        unreachable!("this content has no operands");
    }

    /// The operations that are commands of one's own, by [`Request::shape`].
    fn commands(&self) -> &[CommandTemplate] {
        &[]
    }

    /// Appends argument number `argument` of command number `command` of a command request: one that is not literal.
    fn argument(&self, _request: &Request, _command: u32, _argument: u16, _out: &mut Vec<u8>) {
        unreachable!("this content has no commands");
    }

    /// The same for an argument that uses earlier replies of the operation; `replies` are those that were kept, by their numbers.
    fn argument_after(
        &self,
        request: &Request,
        command: u32,
        argument: u16,
        _replies: &[Vec<u8>],
        out: &mut Vec<u8>,
    ) {
        self.argument(request, command, argument, out);
    }

    /// Returns how many commands a recorded one is sent as, at least 1: it may be split over the slots of a cluster.
    fn recorded_commands(&self, _request: &Request) -> u32 {
        1
    }

    /// Appends command number `command` of a recorded one, as it goes over the wire.
    fn recorded_command(&self, _request: &Request, _command: u32, _out: &mut Vec<u8>) {
        unreachable!("this content was not recorded");
    }

    /// The nodes of a cluster that get command number `command` of a recorded one.
    fn recorded_place(&self, _request: &Request, _command: u32) -> RecordedPlace {
        RecordedPlace::AnyNode
    }

    /// Returns whether a recorded command belongs to a transaction: it goes to no other node than its begin.
    fn recorded_stays(&self, _request: &Request) -> bool {
        false
    }

    /// The reply to a recorded command is that of a cursor with this number; 0: of one that has no more to give.
    fn recorded_cursor(&self, _request: &Request, _cursor: i64) {}

    /// The reply to a recorded command has come; returns whether it is an error as it was then.
    fn compare_reply(&self, _request: &Request, _reply: &ReplyFacts<'_>) -> bool {
        false
    }

    /// The value that the reply to a command request must be, where one is expected.
    fn expected(&self, _request: &Request) -> Option<&[u8]> {
        None
    }

    /// Returns whether the next request of a user depends on where the reply to this one says that it ends.
    fn follows(&self, _request: &Request) -> bool {
        false
    }

    /// The reply to such a request has said where it ends; `None`: it has not, or was an error.
    fn ends_at(&self, _request: &Request, _cursor: Option<u64>) {}

    /// Returns whether what is exchanged is to be said for each request, too.
    fn counts_each(&self) -> bool {
        false
    }

    /// What has been exchanged for this request.
    fn exchanged_for(&self, _request: &Request, _traffic: Traffic) {}

    /// What has been exchanged for the operations of a template since this was said last.
    fn exchanged(&self, _template: u16, _traffic: Traffic) {}

    /// Returns whether values read back can be checked, that is, whether [`Content::verify`] means anything.
    fn verifies(&self) -> bool {
        false
    }

    /// Returns whether the records that scans find are shown to [`Content::scanned`]. Benchmarks have no use for it.
    fn watches_scans(&self) -> bool {
        false
    }

    /// A field of record number `record`, from 0, that a scan has found.
    fn scanned(&self, _record: u32, _field: &[u8], _value: &[u8]) {}

    /// Returns whether `value` is what `field` of the record of `request` must hold.
    fn verify(&self, _request: &Request, _field: &[u8], _value: &[u8]) -> bool {
        true
    }
}

/// A content of nothing, for those who send no records.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Content for Nothing {
    fn table(&self) -> &str {
        ""
    }

    fn key(&self, _request: &Request, _out: &mut Vec<u8>) {}

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}
}
