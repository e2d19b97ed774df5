//! One request to a receiver.

use crate::http_agent::tls;
use crate::push::error::PushError;
use crate::push::receiver::{PushProtocol, Receiver};
use dyno_types::limits::PUSH_ANSWER_BYTES;
use std::time::Duration;
use ureq::{Agent, Proxy};

/// Time for one request, connecting and the answer included.
const PATIENCE: Duration = Duration::from_secs(5);

/// Characters of an answer that are shown.
const SHOWN: usize = 200;

/// The longest that a receiver may have us wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Sends requests to one receiver, on one connection where it keeps it.
pub(crate) struct ReceiverClient {
    agent: Agent,
    receiver: Receiver,
}

impl ReceiverClient {
    pub(crate) fn new(receiver: Receiver) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A push goes where it was said, and so do its headers.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(PATIENCE))
            .user_agent(format!("dyno/{}", env!("CARGO_PKG_VERSION")))
            .proxy(if receiver.is_here() { None } else { Proxy::try_from_env() });
        if receiver.url.scheme_str() == Some("https") {
            config = config.tls_config(tls());
        }
        ReceiverClient { agent: config.build().into(), receiver }
    }

    /// Sends a body once.
    pub(crate) fn post(&self, body: &[u8]) -> Result<Vec<u8>, PushError> {
        let mut request =
            self.agent.post(&self.receiver.url).header("Content-Type", "application/x-protobuf");
        if self.receiver.protocol == PushProtocol::RemoteWrite {
            request = request
                .header("Content-Encoding", "snappy")
                .header("X-Prometheus-Remote-Write-Version", "0.1.0");
        }
        for (name, value) in &self.receiver.headers {
            request = request.header(name, value);
        }
        let silent = |error| PushError::Silent(Box::new(error));
        let mut response = request.send(body).map_err(silent)?;
        let status = response.status();
        let after = response.headers().get("retry-after");
        let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
        let answer = response.body_mut().with_config().limit(PUSH_ANSWER_BYTES).read_to_vec();
        if status.is_success() {
            // It has been taken, whatever was to be said of it.
            return Ok(answer.unwrap_or_default());
        }
        let answer = answer.unwrap_or_default();
        let text = String::from_utf8_lossy(&answer);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let message = first.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
        Err(PushError::Refused {
            status: status.to_string(),
            message,
            again: self.receiver.protocol.is_temporary(status.as_u16()),
            after: after.map(|seconds| Duration::from_secs(seconds).min(LONGEST)),
        })
    }
}
