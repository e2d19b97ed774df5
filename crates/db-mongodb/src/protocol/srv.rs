//! `mongodb+srv://`: what DNS says of the hosts and options (MongoDB's "Initial DNS Seedlist Discovery" and "Polling SRV
//! records" specifications). The questions are asked elsewhere.

use dyno_types::address::Address;
use dyno_types::{RefusalCode, Refused};

/// Questions of a URI to DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srv {
    /// The name in the URI.
    pub host: String,
    /// `srvServiceName`.
    pub service: String,
    /// `srvMaxHosts`: most hosts that are used, chosen at random; 0 for all.
    pub max_hosts: usize,
    /// Options that the URI sets, in lower case: they go before those of the TXT record.
    given: Vec<String>,
}

impl Srv {
    /// For the part of a URI where hosts stand.
    pub(super) fn new(place: &str, query: &str) -> Result<Self, Refused> {
        let bad = |why: &str| {
            Err(Refused::new(RefusalCode::BadValue, place, format!("mongodb+srv://{place}: {why}")))
        };
        if place.contains(',') {
            return bad("one name, whose records name the hosts");
        }
        if place.contains(':') {
            return bad("no port: the records say it");
        }
        let labels = || place.split('.');
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        if place.len() > 200 || !labels().all(is_label) {
            return bad("a name such as cluster.example.com");
        }
        let keys =
            query.split('&').filter_map(|pair| pair.split_once('=')).map(|(key, _)| key.to_ascii_lowercase());
        Ok(Srv { host: place.to_owned(), service: "mongodb".into(), max_hosts: 0, given: keys.collect() })
    }

    /// The name whose SRV records name the hosts.
    pub fn name(&self) -> String {
        format!("_{}._tcp.{}", self.service, self.host)
    }

    /// The domain that hosts must belong to: without the name's first part, where two are left.
    fn domain(&self) -> &str {
        match self.host.split_once('.') {
            Some((_, parent)) if parent.contains('.') => parent,
            _ => &self.host,
        }
    }

    /// Returns whether the URI sets one of these options itself.
    pub(super) fn sets(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.as_str()))
    }

    /// The hosts that the records may name; the others are an error, since an attacker who can write the records must not lead
    /// passwords elsewhere.
    pub(super) fn accept(&self, hosts: Vec<(String, u16)>) -> Result<Vec<Address>, Refused> {
        if hosts.is_empty() {
            return Err(Refused::new(
                RefusalCode::BadValue,
                self.name(),
                format!("{} has no SRV records", self.name()),
            ));
        }
        let end = format!(".{}", self.domain().to_ascii_lowercase());
        hosts
            .into_iter()
            .map(|(host, port)| {
                let name = host.trim_end_matches('.').to_ascii_lowercase();
                if !name.ends_with(&end) || name.len() == end.len() {
                    let name = self.name();
                    return Err(Refused::new(
                        RefusalCode::BadValue,
                        name.as_str(),
                        format!("the SRV record of {name} names {host:?}, which is not within {end}"),
                    ));
                }
                match port {
                    0 => Err(Refused::new(
                        RefusalCode::BadValue,
                        self.name(),
                        format!("the SRV record of {} names port 0", self.name()),
                    )),
                    _ => Ok(Address::Tcp(name, port)),
                }
            })
            .collect()
    }
}

/// Returns whether `name` can be a service (RFC 6335, without its limit of 15 characters): the label in DNS, with the `_`
/// before it, has up to 63.
pub(super) fn is_service(name: &str) -> bool {
    (1..=62).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && name.split('-').all(|part| !part.is_empty())
}

/// Takes `most` at random; all where it is 0.
pub(super) fn some(mut hosts: Vec<Address>, most: usize) -> Result<Vec<Address>, Refused> {
    if most == 0 || most >= hosts.len() {
        return Ok(hosts);
    }
    for at in 0..most {
        let drawn = getrandom::u64().map_err(|e| {
            Refused::new(RefusalCode::Limit, "srvMaxHosts", format!("no random bytes for srvMaxHosts: {e}"))
        })?;
        let left = (hosts.len() - at) as u64;
        hosts.swap(at, at + (drawn % left) as usize);
    }
    hosts.truncate(most);
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::super::options::MongoOptions;
    use super::*;

    fn options(uri: &str) -> MongoOptions {
        MongoOptions::from_uri(uri).unwrap()
    }

    fn refused(uri: &str) -> String {
        MongoOptions::from_uri(uri).unwrap_err().to_string()
    }

    fn hosts(names: &[&str]) -> Vec<(String, u16)> {
        names.iter().map(|name| ((*name).to_owned(), 27_017)).collect()
    }

    #[test]
    fn the_name_and_its_defaults() {
        let plain = options("mongodb+srv://u:p@test1.test.build.10gen.cc/db");
        let srv = plain.srv.as_ref().unwrap();
        assert_eq!(srv.name(), "_mongodb._tcp.test1.test.build.10gen.cc");
        assert!(plain.tls.is_some() && plain.addresses.is_empty());
        assert_eq!(plain.redacted(), "mongodb+srv://u:***@test1.test.build.10gen.cc/db");
        let other = options("mongodb+srv://a.b.c/?srvServiceName=own&tls=false&srvMaxHosts=2");
        assert_eq!(
            (other.srv.as_ref().unwrap().name().as_str(), other.tls.is_some()),
            ("_own._tcp.a.b.c", false)
        );
        assert!(options("mongodb+srv://a.b.c/?ssl=false").tls.is_none());
    }

    #[test]
    fn what_the_scheme_does_not_go_with() {
        for (uri, message) in [
            ("mongodb+srv://a.b.c,d.b.c", "one name"),
            ("mongodb+srv://a.b.c:27017", "no port"),
            ("mongodb+srv://", "such as cluster.example.com"),
            ("mongodb+srv://a..c", "such as"),
            ("mongodb+srv://a.b.c/?directConnection=true", "directConnection"),
            ("mongodb+srv://a.b.c/?srvMaxHosts=-1", "srvMaxHosts"),
            ("mongodb+srv://a.b.c/?srvMaxHosts=1&replicaSet=rs", "replicaSet"),
            ("mongodb+srv://a.b.c/?srvServiceName=", "srvServiceName"),
            ("mongodb://h/?srvMaxHosts=1", "mongodb+srv://"),
            ("mongodb://h/?srvServiceName=x", "mongodb+srv://"),
        ] {
            assert!(refused(uri).contains(message), "{uri}: {}", refused(uri));
        }
    }

    /// The rules of the specification, case by case.
    #[test]
    fn hosts_stay_within_the_domain() {
        let cluster = "mongodb+srv://cluster.example.com/";
        let good = options(cluster).with_records(hosts(&["a.example.com.", "B.x.Example.Com"]), &[]).unwrap();
        let tcp = |host: &str| Address::Tcp(host.into(), 27_017);
        assert_eq!(good.addresses, [tcp("a.example.com"), tcp("b.x.example.com")]);
        for host in [
            "a.example.org",
            "badexample.com",
            "example.com",
            ".example.com",
            "a.example.com.evil.net",
            "localhost",
        ] {
            let mixed = hosts(&["a.example.com", host]);
            let why = options(cluster).with_records(mixed, &[]).unwrap_err().to_string();
            assert!(why.contains("not within .example.com"), "{host}: {why}");
        }
        assert!(
            options(cluster)
                .with_records(Vec::new(), &[])
                .unwrap_err()
                .to_string()
                .contains("no SRV records")
        );
        // A name of two parts, or one: hosts have a part more.
        for name in ["mongo.local", "mongo"] {
            let uri = format!("mongodb+srv://{name}/");
            assert!(options(&uri).with_records(hosts(&[&format!("a.{name}")]), &[]).is_ok());
            assert!(options(&uri).with_records(hosts(&[name]), &[]).is_err());
            assert!(options(&uri).with_records(hosts(&["a.other.local"]), &[]).is_err());
        }
    }

    #[test]
    fn the_text_sets_three_options_and_the_uri_goes_before_it() {
        let with = |uri: &str, texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            options(uri).with_records(hosts(&["a.example.com"]), &texts)
        };
        let cluster = "mongodb+srv://u:p@cluster.example.com/db";
        let taken = with(cluster, &["authSource=thisDB&replicaSet=repl0"]).unwrap();
        assert_eq!((taken.auth_source.as_str(), taken.replica_set.as_deref()), ("thisDB", Some("repl0")));
        let own = with(
            &format!("{cluster}?authSource=otherDB&REPLICASET=mine"),
            &["authSource=thisDB&replicaSet=repl0"],
        );
        let own = own.unwrap();
        assert_eq!((own.auth_source.as_str(), own.replica_set.as_deref()), ("otherDB", Some("mine")));
        assert_eq!(with(cluster, &[]).unwrap().auth_source, "db");
        assert!(!with(cluster, &["loadBalanced=false"]).unwrap().load_balanced);
        assert!(with(cluster, &["loadBalanced=true"]).unwrap().load_balanced);
        let own = with(&format!("{cluster}?loadBalanced=false"), &["loadBalanced=true"]).unwrap();
        assert!(!own.load_balanced);
        for (texts, message) in [
            (&["socketTimeoutMS=500"][..], "only authSource"),
            (&["tls=false"], "only authSource"),
            (&["replicaSet"], "name=value"),
            (&["authSource="], "empty"),
            (&["loadBalanced=maybe"], "true or false"),
            (&["authSource=a", "authSource=a"], "2 TXT records"),
        ] {
            let why = with(cluster, texts).unwrap_err().to_string();
            assert!(why.contains(message), "{texts:?}: {why}");
        }
        let several = with("mongodb+srv://cluster.example.com/?srvMaxHosts=1", &["replicaSet=rs"]);
        assert!(several.unwrap_err().to_string().contains("srvMaxHosts"));
    }

    #[test]
    fn as_many_hosts_as_asked_for_each_as_likely() {
        let names: Vec<String> = (0..5).map(|n| format!("h{n}.example.com")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..2_000 {
            let two = options("mongodb+srv://c.example.com/?srvMaxHosts=2");
            let two = two.with_records(hosts(&names), &[]).unwrap().addresses;
            assert!(two.len() == 2 && two[0] != two[1]);
            for host in two {
                *seen.entry(format!("{host:?}")).or_insert(0u32) += 1;
            }
        }
        assert!(seen.len() == 5 && seen.values().all(|n| (640..960).contains(n)), "{seen:?}");
        for most in [0, 5, 9] {
            let all = options(&format!("mongodb+srv://c.example.com/?srvMaxHosts={most}"));
            assert_eq!(all.with_records(hosts(&names), &[]).unwrap().addresses.len(), 5);
        }
    }
}
