//! Logins that only the official driver has, before a scripted server that checks them: AWS IAM (feature `aws`), PLAIN and
//! OIDC of a Kubernetes pod; and what is said of those that are not built in.

use dyno_testkit::fake_mongo::{FakeCommand, Script, cursor, error, serve};
use dyno_testkit::{Dyno, assert_exit, outcome, phase, stderr};
use dyno_types::bson;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A single server of today; `login` answers what belongs to logins. Whatever else it is asked counts in `served`.
fn server(
    login: impl Fn(&FakeCommand, &mut Vec<u8>) + Send + Sync + 'static,
    served: &Arc<AtomicU64>,
) -> String {
    let served = served.clone();
    serve(|_| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" | "ismaster" => {
                for name in ["ismaster", "isWritablePrimary", "helloOk"] {
                    bson::put_boolean(out, name, true);
                }
                let sizes = [("maxBsonObjectSize", 16 << 20), ("maxMessageSizeBytes", 48_000_000)];
                let more = [("maxWriteBatchSize", 100_000), ("minWireVersion", 0), ("maxWireVersion", 21)];
                for (name, value) in sizes.into_iter().chain(more) {
                    bson::put_int32(out, name, value);
                }
                bson::put_double(out, "ok", 1.0);
            }
            "saslStart" | "saslContinue" => login(command, out),
            "ping" | "endSessions" => bson::put_double(out, "ok", 1.0),
            "find" => {
                served.fetch_add(1, Ordering::Relaxed);
                cursor(0, "firstBatch", 1, out);
            }
            name => error(59, &format!("no such command: {name}"), out),
        })
    })
}

fn text(command: &FakeCommand, name: &str) -> String {
    bson::find_element(&command.document, name)
        .and_then(|e| e.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn payload(command: &FakeCommand) -> Vec<u8> {
    bson::find_element(&command.document, "payload").and_then(|e| e.as_bytes().map(<[u8]>::to_vec)).unwrap()
}

fn answer(out: &mut Vec<u8>, payload: &[u8], done: bool) {
    bson::put_int32(out, "conversationId", 1);
    bson::put_boolean(out, "done", done);
    bson::put_binary(out, "payload", payload);
    bson::put_double(out, "ok", 1.0);
}

fn run(uri: &str, environment: &[(&str, &str)]) -> (Dyno, Output) {
    let dyno = Dyno::new();
    let arguments = ["run", uri, "--client", "official", "--no-load", "--records", "100", "--workload", "c"];
    let more = ["--ops", "200", "--users", "2", "--out", "d"];
    let mut command = dyno.command(&[&arguments[..], &more].concat());
    // No credentials of this host, and nothing asked of a cloud's metadata service.
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"] {
        command.env_remove(name);
    }
    let none = [("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "/dev/null")];
    command.envs(none).env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null").env("AWS_REGION", "eu-west-1");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    (dyno, output)
}

/// That a run was made, and that none of these words is in what was said and written.
fn assert_ran(dyno: &Dyno, output: &Output, served: &AtomicU64, secrets: &[&str]) {
    dyno.assert_ran(output);
    assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 200);
    assert_eq!(served.swap(0, Ordering::Relaxed), 200);
    for name in ["summary.json", "run.json", "events.jsonl"] {
        let kept = std::fs::read_to_string(dyno.path("d").join(name)).unwrap();
        secrets.iter().for_each(|secret| assert!(!kept.contains(secret), "{name} holds {secret}"));
    }
    secrets.iter().for_each(|secret| assert!(!stderr(output).contains(secret), "{}", stderr(output)));
}

#[test]
fn plain_is_user_and_password_in_one_message() {
    let served = Arc::default();
    let check = |command: &FakeCommand, out: &mut Vec<u8>| {
        let good = text(command, "mechanism") == "PLAIN" && text(command, "$db") == "$external";
        match good && payload(command) == b"\0pl4nt\0w0rd" {
            true => answer(out, b"", true),
            false => error(18, "no such user", out),
        }
    };
    let server = server(check, &served);
    let of = |password: &str| {
        format!("mongodb://pl4nt:{password}@{server}/t?authMechanism=PLAIN&authSource=$external")
    };
    let (dyno, output) = run(&of("w0rd"), &[]);
    assert_ran(&dyno, &output, &served, &["w0rd"]);
    let (_, output) = run(&of("wr0ng"), &[]);
    assert_exit(&output, &[3]);
    let told = stderr(&output);
    assert!(told.contains("no such user") && !told.contains("wr0ng"), "{told}");
}

#[test]
fn a_pod_shows_its_token() {
    let served = Arc::default();
    let check = |command: &FakeCommand, out: &mut Vec<u8>| {
        let token = payload(command);
        let token = bson::find_element(&token, "jwt").and_then(|e| e.as_str().map(str::to_owned));
        match text(command, "mechanism") == "MONGODB-OIDC" && token.as_deref() == Some("t0ken") {
            true => answer(out, b"", true),
            false => error(18, "no such token", out),
        }
    };
    let server = server(check, &served);
    let uri =
        format!("mongodb://{server}/t?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "t0ken").unwrap();
    let path = file.path().display().to_string();
    let (dyno, output) = run(&uri, &[("AWS_WEB_IDENTITY_TOKEN_FILE", &path)]);
    assert_ran(&dyno, &output, &served, &["t0ken"]);
}

#[test]
fn logins_that_are_not_built_in_are_refused_with_their_feature() {
    for (mechanism, feature, built) in
        [("MONGODB-AWS", "aws", cfg!(feature = "aws")), ("GSSAPI", "gssapi", cfg!(feature = "gssapi"))]
    {
        let uri =
            format!("mongodb://u:s3cret@127.0.0.1:1/?authMechanism={mechanism}&serverSelectionTimeoutMS=300");
        let (_, output) = run(&uri, &[]);
        let told = stderr(&output);
        assert!(!told.contains("s3cret"), "{told}");
        assert_exit(&output, &[if built { 3 } else { 2 }]);
        assert_eq!(told.contains(&format!("--features {feature}")), !built, "{told}");
        // The wire client names the other one.
        let dyno = Dyno::new();
        let output = dyno.run(&["run", &uri, "--no-out"]);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains("--client official has others"), "{}", stderr(&output));
    }
}

#[cfg(feature = "aws")]
mod aws {
    use super::*;
    use hmac::digest::KeyInit;
    use hmac::{Hmac, Mac};
    use sha2::{Digest, Sha256};

    const KEY: &str = "AKIDEXAMPLE";
    const SECRET: &str = "wJalrXUtnFEMI+K7MDENG";
    const TOKEN: &str = "FQoGZXIvYXdzEJr";
    const HOST: &str = "sts.eu-west-1.amazonaws.com";

    fn mac(key: &[u8], data: &str) -> Vec<u8> {
        let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.chain_update(data).finalize().into_bytes().to_vec()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn base64(bytes: &[u8]) -> String {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    /// The signature of the request that the client would send to AWS, by Signature Version 4.
    fn signature(signed: &str, date: &str, nonce: &[u8], token: Option<&str>) -> String {
        let body = "Action=GetCallerIdentity&Version=2011-06-15";
        let header = |name: &str| match name {
            "content-length" => body.len().to_string(),
            "content-type" => "application/x-www-form-urlencoded".into(),
            "host" => HOST.into(),
            "x-amz-date" => date.into(),
            "x-amz-security-token" => token.unwrap_or_default().into(),
            "x-mongodb-gs2-cb-flag" => "n".into(),
            "x-mongodb-server-nonce" => base64(nonce),
            other => panic!("{other} is not to be signed"),
        };
        let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", header(name))).collect();
        let request = format!("POST\n/\n\n{headers}\n{signed}\n{}", hex(&Sha256::digest(body)));
        let scope = format!("{}/eu-west-1/sts/aws4_request", &date[..8]);
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
        let key = ["eu-west-1", "sts", "aws4_request"]
            .iter()
            .fold(mac(format!("AWS4{SECRET}").as_bytes(), &date[..8]), |key, part| mac(&key, part));
        hex(&mac(&key, &text))
    }

    fn part<'a>(authorization: &'a str, name: &str) -> &'a str {
        let at = authorization.find(name).map_or("", |at| &authorization[at + name.len() + 1..]);
        at.split(',').next().unwrap_or_default()
    }

    /// Whether the client's last message proves that it has the secret.
    fn proves(payload: &[u8], nonce: &[u8], token: Option<&str>) -> bool {
        let says = |name: &str| bson::find_element(payload, name).and_then(|e| e.as_str().map(str::to_owned));
        let (authorization, date) = (says("a").unwrap(), says("d").unwrap());
        let signed = part(&authorization, "SignedHeaders");
        let must = ["host", "x-amz-date", "x-mongodb-gs2-cb-flag", "x-mongodb-server-nonce"];
        says("t").as_deref() == token
            && part(&authorization, "Credential").starts_with(&format!("{KEY}/{}", &date[..8]))
            && must.iter().all(|name| signed.split(';').any(|one| one == *name))
            && part(&authorization, "Signature") == signature(signed, &date, nonce, token)
    }

    fn service(token: Option<&'static str>, served: &Arc<AtomicU64>) -> String {
        let nonces = std::sync::Mutex::new(Vec::<Vec<u8>>::new());
        let check = move |command: &FakeCommand, out: &mut Vec<u8>| {
            let said = payload(command);
            if command.name() == "saslStart" {
                assert_eq!(text(command, "mechanism"), "MONGODB-AWS");
                assert_eq!(bson::find(&said, "p").unwrap().as_i64(), Some(110));
                let mut nonce = bson::find_element(&said, "r").unwrap().as_bytes().unwrap().to_vec();
                assert_eq!(nonce.len(), 32);
                nonce.resize(64, 7);
                let mut first = Vec::new();
                let at = bson::open(&mut first);
                bson::put_binary(&mut first, "s", &nonce);
                bson::put_string(&mut first, "h", HOST);
                bson::close(&mut first, at);
                nonces.lock().unwrap().push(nonce);
                return answer(out, &first, false);
            }
            // Connections log in side by side: the answer belongs to one of the conversations.
            let proven = nonces.lock().unwrap().iter().any(|nonce| proves(&said, nonce, token));
            match proven {
                true => answer(out, b"", true),
                false => error(18, "the signature is not that of the key", out),
            }
        };
        server(check, served)
    }

    fn escaped(text: &str) -> String {
        text.replace('+', "%2B")
    }

    #[test]
    fn the_signature_proves_the_key_of_the_uri() {
        let served = Arc::default();
        let server = service(None, &served);
        let of = |secret: &str| {
            format!("mongodb://{KEY}:{}@{server}/t?authMechanism=MONGODB-AWS", escaped(secret))
        };
        let (dyno, output) = run(&of(SECRET), &[]);
        assert_ran(&dyno, &output, &served, &[SECRET, &escaped(SECRET)]);
        let (_, output) = run(&of("an0ther"), &[]);
        assert_exit(&output, &[3]);
        let told = stderr(&output);
        assert!(told.contains("the signature is not that of the key") && !told.contains("an0ther"), "{told}");
    }

    #[test]
    fn a_session_token_is_signed_too_and_kept_nowhere() {
        let served = Arc::default();
        let server = service(Some(TOKEN), &served);
        let properties = format!("authMechanismProperties=AWS_SESSION_TOKEN:{TOKEN}");
        let uri =
            format!("mongodb://{KEY}:{}@{server}/t?authMechanism=MONGODB-AWS&{properties}", escaped(SECRET));
        let (dyno, output) = run(&uri, &[]);
        assert_ran(&dyno, &output, &served, &[SECRET, &escaped(SECRET), TOKEN]);
    }

    #[test]
    fn the_environment_names_the_key_where_the_uri_does_not() {
        let served = Arc::default();
        let server = service(Some(TOKEN), &served);
        let uri = format!("mongodb://{server}/t?authMechanism=MONGODB-AWS");
        let environment =
            [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_SESSION_TOKEN", TOKEN)];
        let (dyno, output) = run(&uri, &environment);
        assert_ran(&dyno, &output, &served, &[SECRET, TOKEN]);
        // Nothing anywhere: said, and not waited for.
        let (_, output) = run(&uri, &[]);
        assert_exit(&output, &[3]);
        assert!(stderr(&output).contains("MONGODB-AWS"), "{}", stderr(&output));
    }
}
