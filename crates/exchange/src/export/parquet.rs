//! A table as a Parquet file: every column may be null, pages are compressed by Snappy.

use crate::export::ExportError;
use crate::export::table::{Cell, ColumnKind, ExportTable};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// Rows in a group: readers hold one at a time.
const GROUP: usize = 1 << 17;

/// The file's bytes.
pub fn parquet(table: &ExportTable) -> Result<Vec<u8>, ExportError> {
    write(table).map_err(|e| ExportError::Format { format: "parquet", source: e.into() })
}

fn write(table: &ExportTable) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, kind): &(String, ColumnKind)| {
        let physical = match kind {
            ColumnKind::Text => Physical::BYTE_ARRAY,
            ColumnKind::Int => Physical::INT64,
            ColumnKind::Real => Physical::DOUBLE,
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        let builder = match kind {
            ColumnKind::Text => builder.with_converted_type(ConvertedType::UTF8),
            _ => builder,
        };
        builder.build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("dyno").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, properties)?;
    for rows in table.rows.chunks(GROUP) {
        let mut group = file.next_row_group()?;
        for (at, (_, kind)) in table.columns.iter().enumerate() {
            let cells = || rows.iter().map(move |row| &row[at]);
            match kind {
                ColumnKind::Text => column::<ByteArrayType>(&mut group, cells(), |cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                })?,
                ColumnKind::Int => column::<Int64Type>(&mut group, cells(), |cell| match cell {
                    Cell::Int(n) => Some(*n),
                    _ => None,
                })?,
                ColumnKind::Real => column::<DoubleType>(&mut group, cells(), |cell| match cell {
                    Cell::Real(x) => Some(*x),
                    Cell::Int(n) => Some(*n as f64),
                    _ => None,
                })?,
            }
        }
        group.close()?;
    }
    file.close()?;
    Ok(bytes)
}

fn column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let found = value(cell);
        levels.push(i16::from(found.is_some()));
        values.extend(found);
    }
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("fewer columns than the schema has".into()));
    };
    writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
    writer.close()
}
