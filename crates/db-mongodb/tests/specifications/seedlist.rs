//! Hosts and options from DNS (suite `initial-dns-seedlist-discovery`), with the records of the suite as answers.

use crate::harness::{Checked, Suite, expect};
use crate::uris::{check_login, check_options};
use dyno_db_mongodb::protocol::MongoOptions;
use dyno_types::Refused;
use dyno_types::address::Address;
use serde_json::Value;

#[test]
fn seedlists() {
    Suite::named("initial-dns-seedlist-discovery").run();
}

/// Hosts and options are what the records say, or the URI is refused.
pub fn check(case: &Value, data: &Value) -> Checked {
    let options = match (discover(case, data), case["error"].as_bool().unwrap_or(false)) {
        (Ok(options), false) => options,
        (Err(_), true) => return Ok(()),
        (Ok(_), true) => return expect(false, || "is accepted".into()),
        (Err(why), false) => return expect(false, || why.to_string()),
    };
    let shown = |address: &Address| match address {
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    };
    let mut found: Vec<String> = options.addresses.iter().map(shown).collect();
    found.sort();
    if let Some(seeds) = case["seeds"].as_array() {
        expect(found == *seeds, || format!("hosts: {found:?}"))?;
    }
    if let Some(count) = case["count"].as_u64() {
        expect(found.len() as u64 == count, || format!("hosts: {found:?}"))?;
    }
    check_options(&options, &case["options"])?;
    check_login(&options, &case["login"])
}

fn discover(case: &Value, data: &Value) -> Result<MongoOptions, Refused> {
    let options = MongoOptions::from_uri(case["uri"].as_str().unwrap())?;
    let srv = options.srv.as_ref().unwrap();
    let records =
        |kind: &str, name: &str| data[kind][name.to_lowercase()].as_array().cloned().unwrap_or_default();
    let own = case["records"].as_array().cloned();
    let hosts = own.unwrap_or_else(|| records("srv", &srv.name()));
    let hosts = hosts.iter().map(|host| (host[0].as_str().unwrap().into(), host[1].as_u64().unwrap() as u16));
    let hosts: Vec<(String, u16)> = hosts.collect();
    let texts: Vec<String> =
        records("txt", &srv.host).iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    options.with_records(hosts, &texts)
}
