//! One way for all pods of a run: the controller speaks to a hub in one of them, and the hub to every pod.
//!
//! ```text
//! controller                  pod 0                        every pod
//!   Relay --- kubectl exec --- hub  --- pod network, sealed --- listen --- dyno worker --stdio
//!                                                                     \--- dyno host --stdio
//! ```
//!
//! Workers of pods on one node are a group (`remote::worker::group`): the hub speaks to the first of these pods, and the group
//! there to the others, by the same sealed connections (`pod_channel`).
//!
//! A controller in a pod of the same cluster starts the hub beside itself: it needs neither kubectl nor the right to exec for it.
//!
//! A `kubectl exec` costs the controller a process of tens of megabytes, so there is one and not one a worker. What it carries
//! is cut into frames of channels; a channel is the standard input, output and error of one program in one pod. Only the
//! holders of the run's token, which stands in a Secret of the run, can open a connection between pods, or read it (`seal`).
//!
//! Things that end: a channel whose program has ended, with how it did; all channels of a hub that is lost; programs in pods
//! whose connection is lost; and a hub to which no controller speaks.

pub mod controller;
pub mod frames;
pub mod hub;
pub mod pod;
pub(crate) mod pod_channel;
pub mod seal;
#[cfg(test)]
mod tests;

use crate::remote::relay::frames::TOKEN_BYTES;
use dyno_types::bounded;
use dyno_types::limits::SECRET_BYTES;
use std::io;
use std::path::Path;

/// Reads a token from a file.
pub fn token(path: &Path) -> io::Result<Vec<u8>> {
    let text = bounded::text_file(path, SECRET_BYTES)?;
    let token = text.trim();
    match token.len() >= TOKEN_BYTES {
        true => Ok(token.as_bytes().to_vec()),
        false => {
            Err(io::Error::other(format!("{}: a token has {TOKEN_BYTES} characters or more", path.display())))
        }
    }
}
