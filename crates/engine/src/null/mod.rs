//! The driver that sends nothing and answers at once: what the engine itself costs.
//!
//! It renders keys and values as a real driver would, so that generating is measured too, and answers from the
//! bytes that the engine's echo network hands back: one byte a request.

use dyno_types::command::CommandArgument;
use dyno_types::document::Operand;
use dyno_types::{Content, Decoded, Driver, Endpoint, GreetingStep, Outcome, Request, Then, Verb};
use std::sync::Arc;

/// A protocol of one byte each way.
pub struct NullDriver {
    endpoints: [Endpoint; 1],
    content: Arc<dyn Content>,
    /// Of each shape: whether it renders documents, and its operands.
    shapes: Vec<(bool, Vec<Operand>)>,
    scratch: Vec<u8>,
}

impl NullDriver {
    /// Renders with `content`.
    pub fn new(content: Arc<dyn Content>) -> Self {
        let shapes =
            content.shapes().iter().map(|s| (s.action.renders_documents(), s.action.rendered_operands()));
        NullDriver { endpoints: [inside_process()], shapes: shapes.collect(), content, scratch: Vec::new() }
    }

    fn render_commands(&mut self, request: &Request) {
        let (content, out) = (self.content.as_ref(), &mut self.scratch);
        let Some(template) = content.commands().get(usize::from(request.shape)) else { return };
        for (command, form) in (0..).zip(&template.commands) {
            for (argument, kind) in (0..).zip(&form.arguments) {
                match kind {
                    CommandArgument::Literal(bytes) => out.extend_from_slice(bytes),
                    CommandArgument::Rendered => content.argument(request, command, argument, out),
                    // There are no replies: what would have been kept is empty.
                    CommandArgument::Follows => content.argument_after(request, command, argument, &[], out),
                }
            }
        }
    }

    fn render_documents(&mut self, request: &Request) {
        let (content, out) = (self.content.as_ref(), &mut self.scratch);
        content.collection(request, out);
        let Some((documents, operands)) = self.shapes.get(usize::from(request.shape)) else { return };
        for number in 0..content.documents(request) {
            if *documents {
                content.document(request, number, out);
            }
            for &operand in operands {
                content.operand(request, number, operand, "x", out);
            }
        }
    }
}

/// The endpoint of a server that exists only inside the process.
pub fn inside_process() -> Endpoint {
    Endpoint::Unix("in-process".into())
}

impl Driver for NullDriver {
    type Exchange = Request;

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn hello(&mut self, _node: u16, _connection: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn greeted(
        &mut self,
        _node: u16,
        _connection: u32,
        _reply: u16,
        _input: &[u8],
        _out: &mut Vec<u8>,
    ) -> GreetingStep {
        GreetingStep::Need
    }

    fn begin(&mut self, exchange: &mut Request, request: &Request) -> u32 {
        *exchange = *request;
        1
    }

    fn route(&mut self, _exchange: &Request, _command: u32) -> u16 {
        0
    }

    fn encode(&mut self, request: &mut Request, _command: u32, out: &mut Vec<u8>) {
        self.scratch.clear();
        if request.verb == Verb::Document {
            self.render_documents(request);
            return out.push(1);
        }
        if request.verb == Verb::Command {
            self.render_commands(request);
            return out.push(1);
        }
        self.content.key(request, &mut self.scratch);
        if request.verb.changes_data() {
            for field in 0..self.content.fields(request) {
                self.content.value(request, field, &mut self.scratch);
            }
        }
        out.push(1);
    }

    fn decode(&mut self, _exchange: &mut Request, _command: u32, input: &[u8]) -> Decoded {
        match input.first() {
            None => Decoded::Need,
            Some(_) => Decoded::Reply { used: 1, then: Then::Finish(Outcome::Ok) },
        }
    }

    fn records(&self, request: &Request) -> u32 {
        if request.verb == Verb::Document { self.content.documents(request) } else { 1 }
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        if input.is_empty() { Decoded::Need } else { Decoded::Reply { used: 1, then: Then::Wait } }
    }
}
