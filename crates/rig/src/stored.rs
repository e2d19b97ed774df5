//! What the records that are there look like, beside those that a run would load: a load is skipped only for records of
//! the same shape.

use crate::presence::{found, present};
use crate::target::Opened;
use dyno_engine::RunError;
use dyno_types::{Content, Refused, Request, Verb};
use dyno_workload::Workload;
use dyno_workload::ycsb::CoreConfig;
use dyno_workload::ycsb::content::CoreContent;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that are looked at.
const SAMPLES: u64 = 20;

/// Fields of records with the lengths that were seen, bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shape {
    fields: BTreeMap<Vec<u8>, (usize, usize)>,
}

impl Shape {
    fn see(&mut self, field: &[u8], length: usize) {
        let seen = self.fields.entry(field.to_vec()).or_insert((length, length));
        *seen = (seen.0.min(length), seen.1.max(length));
    }

    /// What the records of `content` would be.
    fn wanted(content: &dyn Content) -> Self {
        let mut shape = Shape::default();
        for seed in 0..1_000 {
            let request = Request { verb: Verb::Insert, seed, ..Request::default() };
            for field in 0..content.fields(&request) {
                let mut name = Vec::new();
                content.name(&request, field, &mut name);
                shape.see(&name, content.value_len(&request, field));
            }
        }
        shape
    }

    fn lengths(&self) -> (usize, usize) {
        let all = self.fields.values();
        all.fold((usize::MAX, 0), |(least, most), (low, high)| (least.min(*low), most.max(*high)))
    }

    /// Whether `stored` are records of this shape: the same fields, and lengths that this shape has.
    fn holds(&self, stored: &Shape) -> bool {
        let (least, most) = self.lengths();
        let (low, high) = stored.lengths();
        self.fields.keys().eq(stored.fields.keys()) && low >= least && high <= most
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.lengths();
        let count = self.fields.len();
        let name =
            |name: Option<&Vec<u8>>| name.map_or(String::new(), |n| String::from_utf8_lossy(n).into_owned());
        let fields = match count {
            0 => return f.write_str("no fields"),
            1 => format!("1 field ({})", name(self.fields.keys().next())),
            _ => format!("{count} fields ({} ...)", name(self.fields.keys().next())),
        };
        match least == most {
            true => write!(f, "{fields} of {most} bytes"),
            false => write!(f, "{fields} of {least} to {most} bytes"),
        }
    }
}

/// A content that takes note of what is read instead of checking it.
struct Looking {
    inner: Arc<dyn Content>,
    seen: Mutex<Shape>,
}

impl Content for Looking {
    fn table(&self) -> &str {
        self.inner.table()
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        self.inner.key(request, out);
    }

    fn fields(&self, request: &Request) -> usize {
        self.inner.fields(request)
    }

    fn name(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.inner.name(request, field, out);
    }

    fn value_len(&self, request: &Request, field: usize) -> usize {
        self.inner.value_len(request, field)
    }

    fn value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.inner.value(request, field, out);
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, _request: &Request, field: &[u8], value: &[u8]) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).see(field, value.len());
        true
    }
}

/// Whether the records that `workload` expects are there; refuses where records of another shape, or under keys of another
/// form, are. `ways` say how to go on. Embedded stores show no fields: of these only the keys are looked at.
pub fn present_as(
    opened: &Opened,
    workload: &Arc<dyn Workload>,
    config: &CoreConfig,
    ways: &str,
) -> Result<bool, RunError> {
    let Some((count, first)) = workload.expects().filter(|(count, _)| *count > 0) else { return Ok(true) };
    let samples = count.min(SAMPLES);
    let refuse = |what: String| Err(RunError::from(Refused(format!("{what}: {ways}"))));
    if !present(opened, workload)? {
        let mut other = config.clone();
        other.names.hashed = !config.names.hashed;
        let content = CoreContent::new(&other).map_err(|bad| Refused(bad.to_string()))?;
        let content: Arc<dyn Content> = Arc::new(content);
        if found(opened, &content, (first, count), samples)?.there < samples {
            return Ok(false);
        }
        let form = |hashed: bool| if hashed { "hashed" } else { "ordered" };
        return refuse(format!(
            "the records that are there have {} keys (insertorder), this run asks for {} ones",
            form(other.names.hashed),
            form(config.names.hashed)
        ));
    }
    let looking = Arc::new(Looking { inner: workload.content(), seen: Mutex::default() });
    let content: Arc<dyn Content> = looking.clone();
    found(opened, &content, (first, count), samples)?;
    let stored = looking.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let wanted = Shape::wanted(workload.content().as_ref());
    if stored.fields.is_empty() || wanted.holds(&stored) {
        return Ok(true);
    }
    refuse(format!("the records that are there have {stored}, those of this run {wanted}"))
}
