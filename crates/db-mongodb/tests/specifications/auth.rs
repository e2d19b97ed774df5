//! Credentials of connection strings (suite `auth`).

use crate::harness::{Checked, Suite, expect};
use crate::uris::{mechanism, password, user};
use dyno_db_mongodb::protocol::MongoOptions;
use serde_json::{Value, json};

#[test]
fn credentials() {
    Suite::named("auth").run();
}

/// A credential is what the URI says, or there is none.
pub fn check(case: &Value, data: &Value) -> Checked {
    crate::uris::check(case, data)?;
    let Some(expected) = case.get("credential") else { return Ok(()) };
    let options = MongoOptions::from_uri(case["uri"].as_str().unwrap()).unwrap();
    let Some(expected) = expected.as_object() else {
        return expect(options.auth.is_none(), || "there is a login".into());
    };
    let found = json!({
        "username": user(&options),
        "password": password(&options),
        "source": options.auth_source,
        "mechanism": mechanism(&options),
        "mechanism_properties": null,
    });
    for (name, value) in expected {
        expect(found[name] == *value, || format!("{name}: {}, not {value}", found[name]))?;
    }
    Ok(())
}
