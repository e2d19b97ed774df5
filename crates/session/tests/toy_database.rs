//! A database in 150 lines: what docs/contributing/add-a-database.md walks through. A server that keeps texts under keys is
//! spoken to in lines, `SET key value` and `GET key`, and is loaded and measured by dyno.

use dyno_db::probe::Stop;
use dyno_db::target::{Database, LoginForm, OpenTarget, Scheme, Target, TargetInfo};
use dyno_db::target_error::TargetError;
use dyno_engine::{Control, End, Finished, Job, RunError, Second, run_wire};
use dyno_record::Totals;
use dyno_session::oracle::ping_job;
use dyno_types::{
    Content, Decoded, Driver, Endpoint, GreetingStep, Outcome, RefusalCode, Refused, Request, Then, Verb,
};
use dyno_workload::Workload;
use dyno_workload::ycsb::{CoreConfig, CoreWorkload};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

// The database: its name, the form of its URIs, and what reads one.

struct Toy;

impl Database for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "toy", form: "toy://host:port", login: LoginForm::None }]
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        let address = uri.strip_prefix("toy://").and_then(|text| text.parse().ok());
        let address = address.ok_or_else(|| {
            Refused::new(RefusalCode::BadValue, "target", format!("{uri}: expected toy://host:port"))
        })?;
        Ok(Box::new(ToyTarget(address)))
    }
}

// The target: asked once whether a server is there.

#[derive(Debug)]
struct ToyTarget(SocketAddr);

impl Target for ToyTarget {
    fn redacted(&self) -> String {
        format!("toy://{}", self.0)
    }

    fn open(&self, _content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        TcpStream::connect(self.0).map_err(|e| TargetError::Unreachable(format!("{}: {e}", self.0)))?;
        Ok(Box::new(OpenToy([Endpoint::Tcp { host: self.0.ip().to_string(), address: self.0 }])))
    }
}

// The open target: what it is, what it refuses, and which driver applies a load.

struct OpenToy([Endpoint; 1]);

impl OpenTarget for OpenToy {
    fn info(&self) -> TargetInfo {
        TargetInfo { database: "toy 1.0".into(), wire: true, ..TargetInfo::default() }
    }

    fn check(&self, _content: &Arc<dyn Content>, verbs: &[Verb]) -> Result<(), Refused> {
        if verbs.contains(&Verb::Scan) {
            return Err(Refused::new(RefusalCode::Unsupported, "workload", "the toy has no scans"));
        }
        Ok(())
    }

    fn has_sockets(&self) -> bool {
        true
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        let content = job.workload.content();
        let make = || Ok(ToyDriver { endpoints: self.0.clone(), content: content.clone() });
        run_wire(job, control, None, make, on_second)
    }
}

// The driver: bytes of a request, and what a reply means. It knows neither sockets nor clocks.

struct ToyDriver {
    endpoints: [Endpoint; 1],
    content: Arc<dyn Content>,
}

impl Driver for ToyDriver {
    type Exchange = Request;

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn hello(&mut self, _node: u16, _connection: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn greeted(&mut self, _: u16, _: u32, _: u16, _: &[u8], _: &mut Vec<u8>) -> GreetingStep {
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
        out.extend_from_slice(if request.verb.changes_data() { b"SET " } else { b"GET " });
        self.content.key(request, out);
        if request.verb.changes_data() {
            out.push(b' ');
            (0..self.content.fields(request)).for_each(|field| self.content.value(request, field, out));
        }
        out.push(b'\n');
    }

    fn decode(&mut self, _exchange: &mut Request, _command: u32, input: &[u8]) -> Decoded {
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Decoded::Need };
        let outcome = if input[0] == b'-' { Outcome::NotFound } else { Outcome::Ok };
        Decoded::Reply { used: end + 1, then: Then::Finish(outcome) }
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        let end = input.iter().position(|byte| *byte == b'\n');
        end.map_or(Decoded::Need, |end| Decoded::Reply { used: end + 1, then: Then::Wait })
    }
}

// A server to test against.

fn serve(stream: TcpStream, records: &Mutex<HashMap<String, String>>) {
    let mut out = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let mut records = records.lock().unwrap();
        let reply = match words[..] {
            ["SET", key, value] => {
                records.insert(key.into(), value.into()).map_or("+ new".into(), |_| "+".into())
            }
            ["GET", key] => records.get(key).map_or("-".into(), |value| format!("={value}")),
            _ => "?".to_owned(),
        };
        drop(records);
        // In one piece: a second one would wait for the first to be acknowledged.
        if out.write_all(format!("{reply}\n").as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_toy_is_loaded_and_measured() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("toy://{}", listener.local_addr().unwrap());
    let records = Arc::new(Mutex::new(HashMap::new()));
    let kept = records.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let records = records.clone();
            std::thread::spawn(move || serve(stream, &records));
        }
    });
    let mut properties = |name: &str| {
        let set = [("recordcount", "500"), ("fieldcount", "1")];
        set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    let config = CoreConfig::from_lookup(&mut properties).unwrap();
    let run = |workload: Arc<dyn Workload>, operations| {
        let target = Toy.parse(&uri).unwrap();
        let opened = target.open(workload.content(), &|| false).unwrap();
        let pacing = dyno_engine::Pacing::Closed { think_ns: 0 };
        let end = End { operations: Some(operations), duration_ns: None };
        let job = Job { workload, ..ping_job(pacing, 4, 1, end) };
        let mut totals = Totals::new(job.workload.metrics().len(), job.scale);
        opened.run(job, Arc::default(), &mut |second| totals.merge(&second.totals)).unwrap();
        totals
    };
    let loaded = run(Arc::new(CoreWorkload::load_phase(&config).unwrap()), 500);
    assert_eq!((loaded.count_ok(), kept.lock().unwrap().len()), (500, 500));
    let measured = run(Arc::new(CoreWorkload::run(&config).unwrap()), 2_000);
    assert_eq!((measured.count_ok(), measured.count_failed()), (2_000, 0));
    let refused = Toy.parse("toy://nowhere").unwrap_err();
    assert!(refused.to_string().contains("expected toy://host:port"));
}
