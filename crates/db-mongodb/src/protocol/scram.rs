//! SCRAM, the conversation that proves a password without sending it (RFC 5802, RFC 7677; MongoDB's authentication
//! specification). SCRAM-SHA-1 takes MongoDB's MD5 digest for the password, SCRAM-SHA-256 the prepared password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use dyno_types::{RefusalCode, Refused};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::sync::Mutex;

/// Fewest iterations accepted from a server.
const LEAST_ITERATIONS: u32 = 4_096;
/// Most: what a server asks for is computed before the run and must end.
const MOST_ITERATIONS: u32 = 10_000_000;

/// Which hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-1.
    Sha1,
    /// SCRAM-SHA-256.
    Sha256,
}

impl Mechanism {
    /// Name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        // A key of any length is accepted.
        match self {
            Mechanism::Sha1 => Hmac::<Sha1>::new_from_slice(key)
                .map(|m| m.chain_update(data).finalize().into_bytes().to_vec()),
            Mechanism::Sha256 => Hmac::<Sha256>::new_from_slice(key)
                .map(|m| m.chain_update(data).finalize().into_bytes().to_vec()),
        }
        .unwrap_or_default()
    }

    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(data).to_vec(),
            Mechanism::Sha256 => Sha256::digest(data).to_vec(),
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations).to_vec(),
            Mechanism::Sha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec(),
        }
    }
}

/// A user and what the mechanism makes of the password. Salted passwords are kept: computing one takes milliseconds,
/// and every connection needs it.
#[derive(Debug)]
pub struct Login {
    mechanism: Mechanism,
    user: String,
    password: Vec<u8>,
    salted: Mutex<Option<Salted>>,
}

/// Salt, iterations, and what they make of the password.
type Salted = (Vec<u8>, u32, Vec<u8>);

impl Login {
    /// A login; refuses a password that SASLprep forbids.
    pub fn new(mechanism: Mechanism, user: &str, password: &str) -> Result<Login, Refused> {
        let prepared = match mechanism {
            Mechanism::Sha1 => hex::encode(md5::Md5::digest(format!("{user}:mongo:{password}").as_bytes())),
            Mechanism::Sha256 => stringprep::saslprep(password)
                .map_err(|_| {
                    Refused::new(
                        RefusalCode::BadValue,
                        "target",
                        "the password has characters that SASLprep forbids",
                    )
                })?
                .into_owned(),
        };
        Ok(Login {
            mechanism,
            user: user.replace('=', "=3D").replace(',', "=2C"),
            password: prepared.into_bytes(),
            salted: Mutex::new(None),
        })
    }

    /// The mechanism.
    pub fn login_mechanism(&self) -> Mechanism {
        self.mechanism
    }

    fn salted(&self, salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut kept = self.salted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*kept {
            Some((s, i, salted)) if s == salt && *i == iterations => salted.clone(),
            _ => {
                let salted = self.mechanism.salted(&self.password, salt, iterations);
                *kept = Some((salt.to_vec(), iterations, salted.clone()));
                salted
            }
        }
    }
}

/// A conversation that cannot go on: a login fails.
#[derive(Debug, thiserror::Error)]
pub enum ScramError {
    /// This host has no random bytes.
    #[error("no random bytes for a nonce: {0}")]
    Random(#[source] getrandom::Error),
    /// The server's first message lacks a field.
    #[error("SCRAM: the server's first message lacks r=, s= or i=: {0:?}")]
    Incomplete(String),
    /// The server asks for an extension, which a client that does not know it must refuse (RFC 5802, section 5.1).
    #[error("SCRAM: the server asks for an extension that is not known here: {0:?}")]
    Extension(String),
    /// The server has not taken our nonce.
    #[error("SCRAM: the server's nonce does not continue ours")]
    Nonce,
    /// The salt is not encoded.
    #[error("SCRAM: the salt is not base64")]
    Salt(#[source] base64::DecodeError),
    /// The iterations are no number.
    #[error("SCRAM: no number of iterations")]
    NoIterations(#[source] std::num::ParseIntError),
    /// Iterations outside of what is accepted.
    #[error(
        "SCRAM: the server asks for {0} iterations; {LEAST_ITERATIONS} to {MOST_ITERATIONS} are accepted"
    )]
    Iterations(u32),
    /// The server's last message has no signature, or a wrong one.
    #[error("SCRAM: the server did not prove that it knows the password")]
    Unproven,
}

/// Content of the server's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFirst<'a> {
    /// Both nonces.
    pub nonce: &'a str,
    /// Salt of the password.
    pub salt: Vec<u8>,
    /// Number of times that it is mixed.
    pub iterations: u32,
}

/// One conversation.
#[derive(Debug)]
pub struct Conversation {
    nonce: String,
    first_bare: String,
    server_signature: Vec<u8>,
}

impl Conversation {
    /// Begins one with a fresh nonce; returns the client's first message too.
    pub fn begin(login: &Login) -> Result<(Self, String), ScramError> {
        let mut bytes = [0u8; 24];
        getrandom::fill(&mut bytes).map_err(ScramError::Random)?;
        Ok(Self::with_nonce(login, BASE64.encode(bytes)))
    }

    /// The same with a nonce of the caller's, for golden vectors.
    pub fn with_nonce(login: &Login, nonce: String) -> (Self, String) {
        let first_bare = format!("n={},r={nonce}", login.user);
        let message = format!("n,,{first_bare}");
        (Conversation { nonce, first_bare, server_signature: Vec::new() }, message)
    }

    /// Reads the server's first message.
    pub fn read_first<'a>(&self, server_first: &'a str) -> Result<ServerFirst<'a>, ScramError> {
        if let Some(extension) = server_first.split(',').find(|part| part.starts_with("m=")) {
            return Err(ScramError::Extension(extension.to_owned()));
        }
        let field = |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(iterations)) = (field("r="), field("s="), field("i=")) else {
            return Err(ScramError::Incomplete(server_first.to_owned()));
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramError::Nonce);
        }
        let salt = BASE64.decode(salt).map_err(ScramError::Salt)?;
        let iterations: u32 = iterations.parse().map_err(ScramError::NoIterations)?;
        if !(LEAST_ITERATIONS..=MOST_ITERATIONS).contains(&iterations) {
            return Err(ScramError::Iterations(iterations));
        }
        Ok(ServerFirst { nonce, salt, iterations })
    }

    /// The client's final message, in answer to the server's first.
    pub fn final_message(&mut self, login: &Login, server_first: &str) -> Result<String, ScramError> {
        let ServerFirst { nonce, salt, iterations } = self.read_first(server_first)?;
        let m = login.mechanism;
        let salted = login.salted(&salt, iterations);
        let client_key = m.hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{server_first},{without_proof}", self.first_bare);
        let signature = m.hmac(&m.hash(&client_key), message.as_bytes());
        debug_assert_eq!(client_key.len(), signature.len(), "a shorter proof would prove less");
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        self.server_signature = m.hmac(&m.hmac(&salted, b"Server Key"), message.as_bytes());
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }

    /// Returns whether the server knows the password too.
    pub fn check(&self, server_final: &str) -> Result<(), ScramError> {
        // Extensions may follow; those that are not known are ignored.
        let verifier = server_final.split(',').next().and_then(|part| part.strip_prefix("v="));
        let found = verifier.and_then(|v| BASE64.decode(v).ok());
        match found {
            Some(signature) if signature == self.server_signature && !signature.is_empty() => Ok(()),
            _ => Err(ScramError::Unproven),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, section 3.
    #[test]
    fn sha_256_vector() {
        let login = Login::new(Mechanism::Sha256, "user", "pencil").unwrap();
        let (mut talk, first) = Conversation::with_nonce(&login, "rOprNGfwEbeRWgbNEkqO".into());
        assert_eq!(first, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(
            talk.final_message(&login, server).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        talk.check("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
        assert!(talk.check("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=").is_err());
        assert!(talk.check("e=other-error").is_err());
        talk.check("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=,x=unknown").unwrap();
    }

    /// The example of MongoDB's authentication specification.
    #[test]
    fn sha_1_vector() {
        let login = Login::new(Mechanism::Sha1, "user", "pencil").unwrap();
        let (mut talk, _) = Conversation::with_nonce(&login, "fyko+d2lbbFgONRv9qkxdawL".into());
        let server =
            "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000";
        assert_eq!(
            talk.final_message(&login, server).unwrap(),
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY="
        );
        talk.check("v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=").unwrap();
    }

    #[test]
    fn a_server_that_plays_false_is_refused() {
        let login = Login::new(Mechanism::Sha256, "a=b,c", "p").unwrap();
        let (mut talk, first) = Conversation::with_nonce(&login, "abc".into());
        assert_eq!(first, "n,,n=a=3Db=2Cc,r=abc");
        for server in
            ["", "r=xyz,s=AA==,i=4096", "r=abc,s=AA==,i=4096", "r=abcd,s=AA==,i=1", "r=abcd,s=?,i=4096"]
        {
            assert!(talk.final_message(&login, server).is_err(), "{server}");
        }
        assert!(talk.check("v=").is_err());
        let extended = "m=ext,r=abcd,s=QQ==,i=4096";
        assert!(
            matches!(talk.final_message(&login, extended), Err(ScramError::Extension(text)) if text == "m=ext")
        );
    }
}
