//! A record as one run of bytes, for stores that map bytes to bytes. Which fields a request names and whether their
//! values are right is `reading`'s affair.
//!
//! ```text
//! record = field*      field = name length (u16 LE)  value length (u32 LE)  name  value
//! ```
//!
//! There is no count and no checksum: the engines keep length and integrity of a value themselves.

/// Bytes before a field's name.
const HEADER: usize = 6;

/// Why bytes are not a record, or cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// Stored bytes end inside a field.
    #[error("the stored bytes are not a record of dyno (a field is cut short)")]
    Malformed,
    /// A name exceeds 65,535 bytes or a value 4 GiB.
    #[error("a field's name is longer than 65,535 bytes or its value than 4,294,967,295 bytes")]
    TooLong,
}

/// Appends one field whose name and value are written by the two closures.
pub(crate) fn push_with(
    out: &mut Vec<u8>,
    name: impl FnOnce(&mut Vec<u8>),
    value: impl FnOnce(&mut Vec<u8>),
) -> Result<(), RecordError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    name(out);
    let middle = out.len();
    value(out);
    let name_len = u16::try_from(middle - start - HEADER).map_err(|_| RecordError::TooLong)?;
    let value_len = u32::try_from(out.len() - middle).map_err(|_| RecordError::TooLong)?;
    out[start..start + 2].copy_from_slice(&name_len.to_le_bytes());
    out[start + 2..start + HEADER].copy_from_slice(&value_len.to_le_bytes());
    Ok(())
}

/// Appends one field.
pub(crate) fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), RecordError> {
    push_with(out, |out| out.extend_from_slice(name), |out| out.extend_from_slice(value))
}

/// The fields of a record in stored order; after an error there is nothing more.
pub(crate) fn fields(record: &[u8]) -> FieldIter<'_> {
    FieldIter { record, at: 0 }
}

/// Iterator over (name, value); see [`fields`].
#[derive(Clone, Debug)]
pub(crate) struct FieldIter<'r> {
    record: &'r [u8],
    at: usize,
}

impl<'r> FieldIter<'r> {
    /// The next field and where its value starts.
    fn step(&mut self) -> Option<Result<EncodedField<'r>, RecordError>> {
        if self.at == self.record.len() {
            return None;
        }
        let field = EncodedField::at(self.record, self.at);
        self.at = field.as_ref().map_or(self.record.len(), |field| field.value_at + field.value.len());
        Some(field.ok_or(RecordError::Malformed))
    }
}

impl<'r> Iterator for FieldIter<'r> {
    type Item = Result<(&'r [u8], &'r [u8]), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.step()?.map(|field| (field.name, field.value)))
    }
}

struct EncodedField<'r> {
    name: &'r [u8],
    value: &'r [u8],
    value_at: usize,
}

impl<'r> EncodedField<'r> {
    fn at(record: &'r [u8], at: usize) -> Option<Self> {
        let (lengths, rest) = record.get(at..)?.split_at_checked(HEADER)?;
        let name_len = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let value_len = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]) as usize;
        let (name, rest) = rest.split_at_checked(name_len)?;
        let value = rest.get(..value_len)?;
        Some(EncodedField { name, value, value_at: at + HEADER + name_len })
    }
}

/// Gives field `name` a new value, in place; a field that the record does not have is appended.
pub(crate) fn replace(record: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), RecordError> {
    let mut walk = fields(record);
    while let Some(field) = walk.step() {
        let field = field?;
        if field.name != name {
            continue;
        }
        let (at, old_len) = (field.value_at, field.value.len());
        if old_len == value.len() {
            record[at..at + old_len].copy_from_slice(value);
            return Ok(());
        }
        let value_len = u32::try_from(value.len()).map_err(|_| RecordError::TooLong)?;
        let length_at = at - name.len() - HEADER + 2;
        record[length_at..length_at + 4].copy_from_slice(&value_len.to_le_bytes());
        record.splice(at..at + old_len, value.iter().copied());
        return Ok(());
    }
    push(record, name, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    fn model() -> impl Strategy<Value = Model> {
        btree_map(vec(any::<u8>(), 0..12), vec(any::<u8>(), 0..200), 0..12)
    }

    fn encode(model: &Model) -> Vec<u8> {
        let mut record = Vec::new();
        model.iter().for_each(|(name, value)| push(&mut record, name, value).unwrap());
        record
    }

    fn decode(record: &[u8]) -> Model {
        fields(record).map(|field| field.map(|(n, v)| (n.to_vec(), v.to_vec())).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn encoding_is_undone_by_iterating(model in model()) {
            prop_assert_eq!(decode(&encode(&model)), model);
        }

        #[test]
        fn replacing_changes_one_field_only(
            mut model in model(),
            pick in any::<prop::sample::Index>(),
            fresh in vec(any::<u8>(), 0..12),
            value in vec(any::<u8>(), 0..300),
        ) {
            let mut record = encode(&model);
            let order: Vec<Vec<u8>> = model.keys().cloned().collect();
            let name = if order.is_empty() { fresh } else { order[pick.index(order.len())].clone() };
            replace(&mut record, &name, &value).unwrap();
            let names: Vec<Vec<u8>> = fields(&record).map(|field| field.unwrap().0.to_vec()).collect();
            if !order.is_empty() {
                prop_assert_eq!(names, order);
            }
            model.insert(name, value);
            prop_assert_eq!(decode(&record), model);
        }

        #[test]
        fn any_bytes_end_in_fields_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
            let mut broken = false;
            for field in fields(&bytes) {
                prop_assert!(!broken);
                broken = field.is_err();
            }
            let mut record = bytes.clone();
            if replace(&mut record, b"name", b"value").is_ok() {
                prop_assert!(fields(&record).any(|field| field == Ok((&b"name"[..], &b"value"[..]))));
            }
        }

        #[test]
        fn a_record_cut_short_is_malformed(model in model(), cut in any::<prop::sample::Index>()) {
            let record = encode(&model);
            prop_assume!(!record.is_empty());
            let short = &record[..cut.index(record.len())];
            let whole = fields(short).map_while(Result::ok).map(|(n, v)| HEADER + n.len() + v.len()).sum::<usize>();
            let ends_between_fields = whole == short.len();
            prop_assert_eq!(fields(short).all(|field| field.is_ok()), ends_between_fields);
        }
    }

    #[test]
    fn a_name_too_long_is_refused() {
        let name = vec![0; 65_536];
        assert_eq!(push(&mut Vec::new(), &name, b""), Err(RecordError::TooLong));
        assert_eq!(push(&mut Vec::new(), &name[1..], b""), Ok(()));
    }
}
