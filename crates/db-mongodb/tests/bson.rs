//! Our BSON beside the `bson` crate: what one writes the other reads.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document};
use dyno_types::bson as ours;
use proptest::prelude::*;

fn value(depth: u32) -> BoxedStrategy<Bson> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_filter("equal to itself", |x| !x.is_nan()).prop_map(Bson::Double),
        any::<bool>().prop_map(Bson::Boolean),
        "[a-zé0-9 ]{0,30}".prop_map(Bson::String),
        any::<i64>().prop_map(|ms| Bson::DateTime(DateTime::from_millis(ms))),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })),
        Just(Bson::Null),
        Just(Bson::MinKey),
        Just(Bson::ObjectId(bson::oid::ObjectId::from_bytes([7; 12]))),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    prop_oneof![
        4 => leaf,
        1 => document(depth - 1).prop_map(Bson::Document),
        1 => prop::collection::vec(value(depth - 1), 0..12).prop_map(Bson::Array),
    ]
    .boxed()
}

fn document(depth: u32) -> BoxedStrategy<Document> {
    prop::collection::vec(("[a-z_$]{1,8}", value(depth)), 0..8)
        .prop_map(|all| all.into_iter().collect())
        .boxed()
}

/// Writes a document with our writer.
fn write(document: &Document, out: &mut Vec<u8>) {
    let at = ours::open(out);
    for (name, value) in document {
        write_value(name, value, out);
    }
    ours::close(out, at);
}

fn write_value(name: &str, value: &Bson, out: &mut Vec<u8>) {
    match value {
        Bson::Int32(n) => ours::put_int32(out, name, *n),
        Bson::Int64(n) => ours::put_int64(out, name, *n),
        Bson::Double(x) => ours::put_double(out, name, *x),
        Bson::Boolean(b) => ours::put_boolean(out, name, *b),
        Bson::String(s) => ours::put_string(out, name, s),
        Bson::DateTime(t) => ours::put_date(out, name, t.timestamp_millis()),
        Bson::Binary(b) => ours::put_binary(out, name, &b.bytes),
        Bson::Null => ours::put_null(out, name),
        Bson::MinKey => ours::put_head(out, 0xFF, name),
        Bson::ObjectId(id) => {
            ours::put_head(out, ours::kind::OBJECT_ID, name);
            out.extend_from_slice(&id.bytes());
        }
        Bson::Document(inner) => {
            ours::put_head(out, ours::kind::DOCUMENT, name);
            write(inner, out);
        }
        Bson::Array(all) => {
            ours::put_head(out, ours::kind::ARRAY, name);
            let at = ours::open(out);
            for (index, value) in all.iter().enumerate() {
                write_value(&index.to_string(), value, out);
            }
            ours::close(out, at);
        }
        other => unreachable!("{other:?}"),
    }
}

/// What our reader makes of an element, beside what it was.
fn same(element: &ours::Element<'_>, value: &Bson) -> bool {
    match value {
        Bson::Int32(n) => element.as_i64() == Some(i64::from(*n)),
        Bson::Int64(n) => element.as_i64() == Some(*n),
        Bson::Double(x) => element.as_f64().map(f64::to_bits) == Some(x.to_bits()),
        Bson::Boolean(b) => element.is_true() == *b,
        Bson::String(s) => element.as_str() == Some(s.as_str()),
        Bson::DateTime(t) => element.as_i64() == Some(t.timestamp_millis()),
        Bson::Binary(b) => element.as_bytes() == Some(&b.bytes[..]),
        Bson::Document(inner) => inner.to_vec().ok().as_deref() == element.as_document(),
        _ => true,
    }
}

proptest! {
    #[test]
    fn both_write_the_same_bytes(document in document(3)) {
        let mut out = Vec::new();
        write(&document, &mut out);
        prop_assert_eq!(&out, &document.to_vec().unwrap());
    }

    #[test]
    fn ours_reads_what_the_crate_writes(document in document(3)) {
        let bytes = document.to_vec().unwrap();
        prop_assert_eq!(ours::check(&bytes), Ok(()));
        let elements: Vec<_> = ours::read_elements(&bytes).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(elements.len(), document.len());
        for (element, (name, value)) in elements.iter().zip(&document) {
            prop_assert_eq!(element.name, name.as_bytes());
            prop_assert!(same(element, value), "{}: {:?} {:?}", name, value, element);
        }
    }

    #[test]
    fn what_the_crate_refuses_to_read_at_all_does_not_lead_ours_astray(
        document in document(2), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = document.to_vec().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // Neither panics; ours ends.
        let _ = ours::check(&bytes);
        let _ = Document::from_reader(&bytes[..]);
    }
}
