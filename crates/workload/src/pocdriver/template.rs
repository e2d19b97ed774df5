//! The document: a tree of nodes and fields, laid out once as a list of parts.
//!
//! Fields are numbered through the whole tree, and the number decides the type: 0 is a number, 1 a date, 3 a text; of
//! the rest every third is a number, every fifth of what is left a date, all others texts. At depth d a level of n
//! fields has floor(n^(1/(d+1))) nodes of equally many fields; what is left over follows the nodes.

use super::config::PocConfig;
use super::text::Texts;
use dyno_types::bson::{self, kind};
use dyno_types::rng::{Purpose, Stream};

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A 64-bit integer: the absolute value of a normal number of mean 0 and deviation a million.
    Number,
    /// A date before now; the distance is half-normal with a deviation of 3 * 10^11 ms.
    Date,
    /// A piece of Latin.
    Text,
}

impl FieldKind {
    /// The type of field `number`.
    pub fn of_field(number: u32) -> Self {
        match number {
            1 => FieldKind::Date,
            3 => FieldKind::Text,
            n if n % 3 == 0 => FieldKind::Number,
            n if n % 5 == 0 => FieldKind::Date,
            _ => FieldKind::Text,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    /// Bytes of the element's head, and what follows.
    Field(FieldKind, Box<[u8]>),
    Open(Box<[u8]>),
    Close,
}

/// The document, ready to be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<TemplatePart>,
    /// Dotted names of the leaf fields in order.
    leaves: Vec<String>,
    texts: Texts,
    locations: Vec<String>,
    /// `arr` and `bin`, the same in every document.
    tail: Vec<u8>,
    now_ms: i64,
    normal: HalfNormal,
}

impl Template {
    /// The document of a checked config.
    pub fn new(config: &PocConfig) -> Self {
        let mut template = Template {
            parts: Vec::new(),
            leaves: Vec::new(),
            texts: Texts::new(config.text_chars as usize),
            locations: config.locations.clone(),
            tail: tail(config),
            now_ms: config.now_ms,
            normal: HalfNormal::new(),
        };
        template.level(config.fields, config.depth, "");
        template
    }

    fn level(&mut self, fields: u32, depth: u32, prefix: &str) {
        let mut left = fields;
        if depth > 0 {
            let nodes = root(fields, depth + 1);
            let each = fields / nodes;
            for node in 0..nodes {
                let name = format!("node{node}");
                let mut head = Vec::new();
                bson::put_head(&mut head, kind::DOCUMENT, &name);
                self.parts.push(TemplatePart::Open(head.into()));
                self.level(each, depth - 1, &format!("{prefix}{name}."));
                self.parts.push(TemplatePart::Close);
            }
            left -= each * nodes;
        }
        for _ in 0..left {
            let number = self.leaves.len() as u32;
            let (field, name) = (FieldKind::of_field(number), format!("fld{number}"));
            let mut head = Vec::new();
            let code = match field {
                FieldKind::Number => kind::INT64,
                FieldKind::Date => kind::DATE,
                FieldKind::Text => kind::STRING,
            };
            bson::put_head(&mut head, code, &name);
            self.parts.push(TemplatePart::Field(field, head.into()));
            self.leaves.push(format!("{prefix}{name}"));
        }
    }

    /// Bytes that no document exceeds.
    pub fn most_bytes(&self) -> usize {
        let mut one = Vec::new();
        self.render_document(1, 1, 0, &mut one);
        let texts =
            self.parts.iter().filter(|part| matches!(part, TemplatePart::Field(FieldKind::Text, _))).count();
        let place = self.locations.iter().map(String::len).max().unwrap_or(0);
        one.len() + texts * self.texts.longest_text() + place
    }

    /// Dotted names of the leaf fields, in the order of indexes.
    pub fn leaf_names(&self) -> &[String] {
        &self.leaves
    }

    /// Appends `{w: worker, i: sequence}` as the element `name`.
    #[inline]
    pub fn put_id(worker: u32, sequence: u64, name: &str, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, name);
        let at = bson::open(out);
        bson::put_int32(out, "w", worker as i32);
        bson::put_int32(out, "i", sequence as i32);
        bson::close(out, at);
    }

    /// Appends the document of a worker's sequence number.
    pub fn render_document(&self, seed: u64, worker: u32, sequence: u64, out: &mut Vec<u8>) {
        let mut stream = Stream::new(seed ^ u64::from(worker), sequence, Purpose::Value);
        let document = bson::open(out);
        Self::put_id(worker, sequence, "_id", out);
        let mut open = [0usize; 64];
        let mut depth = 0;
        for part in &self.parts {
            match part {
                TemplatePart::Field(field, head) => {
                    out.extend_from_slice(head);
                    self.value(*field, stream.next_u64(), out);
                }
                TemplatePart::Open(head) => {
                    out.extend_from_slice(head);
                    open[depth] = bson::open(out);
                    depth += 1;
                }
                TemplatePart::Close => {
                    depth -= 1;
                    bson::close(out, open[depth]);
                }
            }
        }
        if !self.locations.is_empty() {
            bson::put_string(
                out,
                "location",
                &self.locations[stream.next_below(self.locations.len() as u64) as usize],
            );
        }
        out.extend_from_slice(&self.tail);
        bson::close(out, document);
    }

    /// Appends the value of a field for 64 random bits.
    #[inline]
    fn value(&self, field: FieldKind, bits: u64, out: &mut Vec<u8>) {
        match field {
            // |floor(x)| of a negative x is one more than floor(|x|).
            FieldKind::Number => {
                let x = self.normal.draw(bits) * 1e6;
                out.extend_from_slice(&(x as i64 + (bits & 1) as i64).to_le_bytes());
            }
            FieldKind::Date => {
                let x = self.normal.draw(bits) * 3e11;
                out.extend_from_slice(&(self.now_ms - (x as i64 + (bits & 1) as i64)).to_le_bytes());
            }
            FieldKind::Text => bson::put_text_value(out, self.texts.pick_text(bits)),
        }
    }

    /// Appends a new value of leaf `leaf` as the element `name`.
    pub fn put_leaf(&self, leaf: u32, bits: u64, name: &str, out: &mut Vec<u8>) {
        let field = FieldKind::of_field(leaf);
        let code = match field {
            FieldKind::Number => kind::INT64,
            FieldKind::Date => kind::DATE,
            FieldKind::Text => kind::STRING,
        };
        bson::put_head(out, code, name);
        self.value(field, bits, out);
    }
}

/// The greatest n with n^power <= x.
fn root(x: u32, power: u32) -> u32 {
    (1..=x)
        .take_while(|n| u64::from(*n).checked_pow(power).is_some_and(|p| p <= u64::from(x)))
        .last()
        .unwrap_or(1)
}

/// `arr`, where it is wanted, and `bin`.
fn tail(config: &PocConfig) -> Vec<u8> {
    let mut out = Vec::new();
    let (outer, inner) = config.arrays;
    if outer > 0 {
        bson::put_head(&mut out, kind::ARRAY, "arr");
        let arrays = bson::open(&mut out);
        for index in 0..outer {
            bson::put_item_head(&mut out, kind::ARRAY, index);
            let array = bson::open(&mut out);
            for index in 0..inner {
                bson::put_item_head(&mut out, kind::INT32, index);
                out.extend_from_slice(&[0; 4]);
            }
            bson::close(&mut out, array);
        }
        bson::close(&mut out, arrays);
    }
    // Random bytes, which no storage engine compresses, made once for all documents of a process, as in the original.
    let mut stream = Stream::new(config.seed, u64::from(config.first_worker), Purpose::Choice);
    let mut bytes = vec![0; config.binary_bytes as usize];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&stream.next_u64().to_le_bytes()[..chunk.len()]);
    }
    bson::put_binary(&mut out, "bin", &bytes);
    out
}

/// Absolute values of standard normal numbers, by their distribution function turned round: a table of its values at
/// evenly spaced probabilities, straight lines between them, and the tail by Marsaglia's method ("Generating a variable
/// from the tail of the normal distribution", Technometrics 1964).
#[derive(Clone, Debug, PartialEq)]
struct HalfNormal {
    table: Vec<f64>,
}

const BINS: usize = 4096;

impl HalfNormal {
    fn new() -> Self {
        // The distribution function is added up in small steps of x; errors are far below the table's own.
        let mut table = Vec::with_capacity(BINS);
        let density = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (-x * x / 2.0).exp();
        let (mut x, mut p) = (0.0f64, 0.0f64);
        const STEP: f64 = 1e-5;
        for bin in 0..BINS {
            let wanted = bin as f64 / BINS as f64;
            while p < wanted {
                p += STEP * density(x + STEP / 2.0);
                x += STEP;
            }
            table.push(x);
        }
        HalfNormal { table }
    }

    /// The lowest bit is left to callers.
    #[inline]
    fn draw(&self, bits: u64) -> f64 {
        let bin = (bits >> 52) as usize;
        let within = ((bits >> 20) & 0xFFFF_FFFF) as f64 / 4_294_967_296.0;
        match self.table.get(bin + 1) {
            Some(next) => self.table[bin] + (next - self.table[bin]) * within,
            None => self.tail(bits),
        }
    }

    #[cold]
    fn tail(&self, bits: u64) -> f64 {
        let from = self.table[BINS - 1];
        let mut stream = Stream::new(bits, 0, Purpose::Choice);
        loop {
            let (u, v) = (1.0 - stream.next_unit(), 1.0 - stream.next_unit());
            let x = (from * from - 2.0 * u.ln()).sqrt();
            if v * x <= from {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_normal_has_its_moments() {
        let normal = HalfNormal::new();
        let n = 400_000;
        let mut stream = Stream::new(7, 0, Purpose::Value);
        let (mut sum, mut squares, mut far) = (0.0, 0.0, 0);
        for _ in 0..n {
            let x = normal.draw(stream.next_u64());
            sum += x;
            squares += x * x;
            far += u32::from(x > 3.0);
        }
        let n = f64::from(n);
        assert!((sum / n - 0.797_884_56).abs() < 0.004, "{}", sum / n);
        assert!((squares / n - 1.0).abs() < 0.01, "{}", squares / n);
        assert!((f64::from(far) / n - 0.0027).abs() < 0.0005, "{far}");
    }

    #[test]
    fn roots_are_whole_and_exact() {
        for (x, power, expected) in
            [(27, 3, 3), (64, 3, 4), (125, 3, 5), (25, 3, 2), (234, 3, 6), (1692, 3, 11), (5, 1, 5)]
        {
            assert_eq!(root(x, power), expected, "{x} {power}");
        }
    }
}
