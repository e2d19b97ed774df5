use crate::export::pivot::Measure;
use crate::export::table::Cell;
use crate::export::table::ColumnKind;
use crate::export::table::ExportTable;

fn row(values: &[(&str, ColumnKind, Cell)]) -> Vec<(String, ColumnKind, Cell)> {
    values.iter().map(|(name, kind, cell)| ((*name).to_owned(), *kind, cell.clone())).collect()
}

fn table() -> ExportTable {
    let mut table = ExportTable::default();
    table.push(row(&[("run", ColumnKind::Text, "a,\"b\"".into()), ("users", ColumnKind::Text, "8".into())]));
    table.push(row(&[
        ("run", ColumnKind::Text, "=HYPERLINK(1)".into()),
        ("users", ColumnKind::Text, "16".into()),
        ("p99_us", ColumnKind::Real, 12.5.into()),
        ("ok", ColumnKind::Int, 3u64.into()),
    ]));
    table.numbers(&["users".to_owned(), "run".to_owned()]);
    table
}

#[test]
fn what_is_not_known_is_empty_and_words_stay_words() {
    let table = table();
    assert_eq!(table.columns[1], ("users".to_owned(), ColumnKind::Real));
    assert_eq!(table.columns[0].1, ColumnKind::Text, "names of runs are no numbers");
    assert_eq!(table.csv(), "run,users,p99_us,ok\n\"a,\"\"b\"\"\",8,,\n'=HYPERLINK(1),16,12.5,3\n");
    assert_eq!(Cell::from(f64::NAN), Cell::None);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back() {
    use crate::export::parquet::parquet;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    let bytes = parquet(&table()).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows: Vec<Vec<Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
        .collect();
    assert_eq!(rows[0], [Field::Str("a,\"b\"".into()), Field::Double(8.0), Field::Null, Field::Null]);
    assert_eq!(rows[1][1..], [Field::Double(16.0), Field::Double(12.5), Field::Long(3)]);
}

#[test]
fn figures_of_a_pivot_are_named_or_refused() {
    assert!(matches!(Measure::parse("throughput"), Ok(Measure::Throughput)));
    assert!(matches!(Measure::parse("P99"), Ok(Measure::Response(_))));
    assert!(matches!(Measure::parse("p99(read)"), Ok(Measure::Figure(_))));
    let message = Measure::parse("speed").unwrap_err().to_string();
    assert!(message.contains("expected throughput"), "{message}");
}
