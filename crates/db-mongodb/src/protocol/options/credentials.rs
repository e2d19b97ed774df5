//! The login of a connection string: user, password, mechanism and the database that knows the user.

use crate::protocol::scram::Mechanism;
use dyno_types::address::percent_decode;
use dyno_types::{RefusalCode, Refused};

/// Method of login, and the user who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// By a password.
    Scram {
        /// `None` takes the best that the server offers.
        mechanism: Option<Mechanism>,
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// By a password that the server gets to see and hands to another service (LDAP).
    Plain {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// By the client's certificate.
    X509 {
        /// The certificate's subject; the server takes it from the certificate where it is not given.
        user: Option<String>,
    },
}

/// Database of users that something else than the server knows.
pub(super) const EXTERNAL: &str = "$external";

/// Mechanisms that only the official driver has: name, feature of cargo.
const OFFICIAL: [(&str, &str); 3] =
    [("GSSAPI", "gssapi"), ("MONGODB-AWS", "aws"), ("MONGODB-OIDC", "official")];

const ACCEPTED: &str = "SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509";

/// Parts of the login, until all of them are known.
#[derive(Default)]
pub(super) struct LoginParts {
    user: Option<String>,
    password: Option<String>,
    /// `authMechanism`.
    pub mechanism: Option<String>,
    /// `authSource`.
    pub source: Option<String>,
    /// The option that gives properties, as it is written.
    pub properties: Option<String>,
}

impl LoginParts {
    /// Reads what stands before the `@`.
    pub fn new(login: &str) -> Result<Self, Refused> {
        let refuse = |why: &str| Refused::new(RefusalCode::BadValue, "target", why);
        let hidden = |_| refuse("the user or password has a % that is not followed by two hex digits");
        if login.contains('@') {
            return Err(refuse("the user or password has an @: write %40 for it"));
        }
        let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
        if password.is_some_and(|password| password.contains(':')) {
            return Err(refuse("the user or password has a second colon: write %3A for it"));
        }
        if user.is_empty() {
            return Err(refuse("the URI names no user before the @: write user:password@, or no @"));
        }
        let user = Some(percent_decode(user).map_err(hidden)?);
        let password = password.map(percent_decode).transpose().map_err(hidden)?;
        Ok(LoginParts { user, password, ..LoginParts::default() })
    }

    /// The login and the database that knows the user; `database` is the one of the URI, empty if it has none.
    pub fn finish(self, database: &str) -> Result<(Option<Auth>, String), Refused> {
        let LoginParts { user, password, mechanism, source, properties } = self;
        let named = mechanism.as_deref().unwrap_or_default();
        if let Some((name, feature)) = OFFICIAL.iter().find(|(name, _)| *name == named) {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "authMechanism",
                format!(
                    "option authMechanism={name}: expected {ACCEPTED}; --client official has {name}, in a build with \
                 --features {feature}"
                ),
            ));
        }
        if let Some(key) = properties {
            return Err(Refused::new(
                RefusalCode::Unsupported,
                key.as_str(),
                format!(
                    "option {key}: the mechanisms that have properties (GSSAPI, MONGODB-AWS, MONGODB-OIDC) are --client \
                 official's"
                ),
            ));
        }
        let or_database = |otherwise: &str| match &source {
            Some(source) => source.clone(),
            None if database.is_empty() => otherwise.to_owned(),
            None => database.to_owned(),
        };
        let scram = match named {
            "" => None,
            "SCRAM-SHA-1" => Some(Mechanism::Sha1),
            "SCRAM-SHA-256" => Some(Mechanism::Sha256),
            "MONGODB-X509" => {
                let refuse = |key: &str, why: &str| {
                    let text = format!("option authMechanism=MONGODB-X509: {why}");
                    Err(Refused::new(RefusalCode::Conflict, key, text))
                };
                return match &source {
                    _ if password.is_some() => {
                        refuse("authMechanism", "the certificate is the proof: leave the password out")
                    }
                    Some(other) if other != EXTERNAL => {
                        refuse("authSource", "leave authSource out, or set it to $external")
                    }
                    _ => Ok((Some(Auth::X509 { user }), EXTERNAL.into())),
                };
            }
            "PLAIN" => {
                let (user, password) = both(user, password)?;
                if user.contains('\0') || password.contains('\0') {
                    return Err(Refused::new(
                        RefusalCode::BadValue,
                        "authMechanism",
                        "option authMechanism=PLAIN: the user or password has a byte 0, which ends them",
                    ));
                }
                return Ok((Some(Auth::Plain { user, password }), or_database(EXTERNAL)));
            }
            other => {
                return Err(Refused::new(
                    RefusalCode::BadValue,
                    "authMechanism",
                    format!("option authMechanism={other}: expected {ACCEPTED}"),
                ));
            }
        };
        let auth = match (user, password, scram) {
            (None, None, None) => None,
            (user, password, mechanism) => {
                let (user, password) = both(user, password)?;
                Some(Auth::Scram { mechanism, user, password })
            }
        };
        Ok((auth, or_database("admin")))
    }
}

fn both(user: Option<String>, password: Option<String>) -> Result<(String, String), Refused> {
    match (user, password) {
        (Some(user), Some(password)) => Ok((user, password)),
        (Some(_), None) => Err(Refused::new(
            RefusalCode::Missing,
            "target",
            "the URI names a user but no password: write user:password@",
        )),
        (None, _) => Err(Refused::new(
            RefusalCode::Missing,
            "target",
            "the URI names no user to log in: write user:password@",
        )),
    }
}
