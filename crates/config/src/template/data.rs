//! Data files: rows of CSV, of TSV, or of JSON lines.

use crate::template::command_text_error::CommandTextError;
use dyno_workload::command_mix::DataTable;

/// Form of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataForm {
    /// Cells between commas; a cell in double quotes may hold commas, line ends and doubled quotes.
    Csv,
    /// Cells between tabs.
    Tsv,
    /// A JSON object on each line.
    JsonLines,
}

impl DataForm {
    /// The form of a file with this name.
    pub fn of_name(name: &str) -> Result<DataForm, CommandTextError> {
        let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        match end.as_str() {
            "csv" => Ok(DataForm::Csv),
            "tsv" => Ok(DataForm::Tsv),
            "jsonl" | "ndjson" | "json" => Ok(DataForm::JsonLines),
            _ => Err(CommandTextError::NoForm),
        }
    }
}

/// Reads a file's rows; the first line of CSV and TSV names the columns. The error names the line.
pub(super) fn table(
    name: &str,
    text: &[u8],
    form: DataForm,
    in_order: bool,
) -> Result<DataTable, CommandTextError> {
    let (columns, rows) = match form {
        DataForm::Csv | DataForm::Tsv => {
            let comma = if form == DataForm::Csv { b',' } else { b'\t' };
            let mut records = separated(text, comma, form == DataForm::Csv)?.into_iter();
            let (_, head) = records.next().ok_or(CommandTextError::NoColumns)?;
            let columns: Vec<String> =
                head.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect();
            let mut rows = Vec::new();
            for (line, cells) in records {
                if cells.len() != columns.len() {
                    let (found, expected) = (cells.len(), columns.len());
                    return Err(CommandTextError::Cells { line, found, expected });
                }
                rows.push(cells);
            }
            (columns, rows)
        }
        DataForm::JsonLines => json_lines(text)?,
    };
    if rows.is_empty() {
        return Err(CommandTextError::NoRows);
    }
    Ok(DataTable { name: name.to_owned(), columns, rows, in_order })
}

type Record = (usize, Vec<Vec<u8>>);

/// Records with the line on which each begins; empty lines are none.
fn separated(text: &[u8], comma: u8, quotes: bool) -> Result<Vec<Record>, CommandTextError> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), Vec::new());
    let (mut line, mut begun, mut at) = (1, 1, 0);
    let mut quoted = false;
    while at < text.len() {
        let c = text[at];
        at += 1;
        match c {
            b'"' if quotes && cell.is_empty() && !quoted => {
                loop {
                    match (text.get(at), text.get(at + 1)) {
                        (Some(b'"'), Some(b'"')) => {
                            cell.push(b'"');
                            at += 2;
                        }
                        (Some(b'"'), _) => break,
                        (Some(&c), _) => {
                            line += usize::from(c == b'\n');
                            cell.push(c);
                            at += 1;
                        }
                        (None, _) => return Err(CommandTextError::OpenCell { line: begun }),
                    }
                }
                at += 1;
                quoted = true;
            }
            b'\r' if text.get(at) == Some(&b'\n') => {}
            b'\n' => {
                if !(cells.is_empty() && cell.is_empty() && !quoted) {
                    cells.push(std::mem::take(&mut cell));
                    records.push((begun, std::mem::take(&mut cells)));
                }
                line += 1;
                (begun, quoted) = (line, false);
            }
            c if c == comma => {
                cells.push(std::mem::take(&mut cell));
                quoted = false;
            }
            c => cell.push(c),
        }
    }
    if !(cells.is_empty() && cell.is_empty() && !quoted) {
        cells.push(cell);
        records.push((begun, cells));
    }
    Ok(records)
}

type Rows = (Vec<String>, Vec<Vec<Vec<u8>>>);

/// Objects: the fields of the first one are the columns. Texts stand as they are, anything else as JSON; a field that is not
/// there is empty.
fn json_lines(text: &[u8]) -> Result<Rows, CommandTextError> {
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.split(|c| *c == b'\n')) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line)
            .map_err(|source| CommandTextError::NoObject { line: number, source })?;
        if rows.is_empty() {
            columns = object.keys().cloned().collect();
        }
        let cell = |name: &String| match object.get(name) {
            Some(serde_json::Value::String(text)) => text.clone().into_bytes(),
            Some(other) => other.to_string().into_bytes(),
            None => Vec::new(),
        };
        rows.push(columns.iter().map(cell).collect());
    }
    Ok((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(table: &DataTable) -> Vec<Vec<&str>> {
        table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| std::str::from_utf8(cell).unwrap()).collect())
            .collect()
    }

    #[test]
    fn rows_of_each_form() {
        let csv = "sku,name\r\na1,\"x, \"\"y\"\"\nz\"\n\nb2,\n";
        let read = table("t", csv.as_bytes(), DataForm::Csv, false).unwrap();
        assert_eq!(read.columns, ["sku", "name"]);
        assert_eq!(cells(&read), [["a1", "x, \"y\"\nz"], ["b2", ""]]);
        let tsv = table("t", b"a\tb\n1\t\"2\n", DataForm::Tsv, true).unwrap();
        assert_eq!((cells(&tsv), tsv.in_order), (vec![vec!["1", "\"2"]], true));
        let json = b"{\"a\": \"x\", \"n\": 1}\n\n{\"n\": [2]}\n";
        let read = table("t", json, DataForm::JsonLines, false).unwrap();
        assert_eq!(
            (read.columns.clone(), cells(&read)),
            (vec!["a".into(), "n".into()], vec![vec!["x", "1"], vec!["", "[2]"]])
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let why = |text: &str, form| table("t", text.as_bytes(), form, false).unwrap_err().to_string();
        assert_eq!(why("a,b\n1,2\n3\n", DataForm::Csv), "line 3: 1 cells, expected 2");
        assert!(why("a\n\"1\n", DataForm::Csv).contains("line 2: a quote"));
        assert!(why("", DataForm::Csv).contains("empty"));
        assert!(why("a\n", DataForm::Tsv).contains("no rows"));
        assert!(why("{\"a\":1}\n[1]\n", DataForm::JsonLines).contains("line 2"));
    }
}
