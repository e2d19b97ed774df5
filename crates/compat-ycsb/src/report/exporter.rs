//! The three exporters: text, a sequence of JSON objects, one JSON array; byte for byte as YCSB writes them.

use crate::report::java;
use crate::report::line::{Line, ReportNumber};
use std::io::{self, Write};

/// A layout of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// `[METRIC], measurement, value` lines.
    Text,
    /// JSON objects one after the other; not one JSON document.
    Json,
    /// One JSON array of the same objects.
    JsonArray,
}

impl Exporter {
    /// The exporter of a class name of YCSB (any package), or of dyno's short name `text`, `json` or `jsonarray`.
    pub fn from_name(name: &str) -> Option<Exporter> {
        match name.rsplit('.').next()? {
            "TextMeasurementsExporter" | "text" => Some(Exporter::Text),
            "JSONMeasurementsExporter" | "json" => Some(Exporter::Json),
            "JSONArrayMeasurementsExporter" | "jsonarray" => Some(Exporter::JsonArray),
            _ => None,
        }
    }

    /// Writes a report. Only text ends with a line end.
    pub fn write(self, lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
        let (open, between, close) = match self {
            Exporter::Text => ("", "", ""),
            Exporter::Json => ("", " ", ""),
            Exporter::JsonArray => ("[ ", ", ", if lines.is_empty() { "]" } else { " ]" }),
        };
        out.write_all(open.as_bytes())?;
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                out.write_all(between.as_bytes())?;
            }
            match self {
                Exporter::Text => {
                    writeln!(out, "[{}], {}, {}", line.metric, line.measurement, line.value)?;
                }
                Exporter::Json | Exporter::JsonArray => out.write_all(object(line).as_bytes())?,
            }
        }
        out.write_all(close.as_bytes())
    }

    /// The whole report as text.
    pub fn export(self, lines: &[Line]) -> String {
        let mut bytes = Vec::new();
        // Writing into memory cannot fail.
        let _ = self.write(lines, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Jackson's pretty print of one call: numbers that JSON does not have become strings.
fn object(line: &Line) -> String {
    let value = match &line.value {
        ReportNumber::Double(x) if !x.is_finite() => format!("\"{}\"", java::double(*x)),
        ReportNumber::Text(word) => format!("\"{word}\""),
        value => value.to_string(),
    };
    let text = |t: &str| serde_json::Value::from(t).to_string();
    format!(
        "{{\n  \"metric\" : {},\n  \"measurement\" : {},\n  \"value\" : {value}\n}}",
        text(&line.metric),
        text(&line.measurement)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let lines = [
            Line::new("OVERALL", "RunTime(ms)", ReportNumber::Int(390)),
            Line::new("READ", "AverageLatency(us)", ReportNumber::Double(f64::NAN)),
        ];
        assert_eq!(
            Exporter::Text.export(&lines),
            "[OVERALL], RunTime(ms), 390\n[READ], AverageLatency(us), NaN\n"
        );
        let first =
            "{\n  \"metric\" : \"OVERALL\",\n  \"measurement\" : \"RunTime(ms)\",\n  \"value\" : 390\n}";
        let second = "{\n  \"metric\" : \"READ\",\n  \"measurement\" : \"AverageLatency(us)\",\n  \"value\" : \"NaN\"\n}";
        assert_eq!(Exporter::Json.export(&lines), format!("{first} {second}"));
        assert_eq!(Exporter::JsonArray.export(&lines), format!("[ {first}, {second} ]"));
        assert_eq!(Exporter::JsonArray.export(&[]), "[ ]");
        assert_eq!(Exporter::Json.export(&[]), "");
    }

    #[test]
    fn class_names() {
        for (name, exporter) in [
            ("site.ycsb.measurements.exporter.TextMeasurementsExporter", Some(Exporter::Text)),
            ("com.yahoo.ycsb.measurements.exporter.JSONMeasurementsExporter", Some(Exporter::Json)),
            ("jsonarray", Some(Exporter::JsonArray)),
            ("xml", None),
        ] {
            assert_eq!(Exporter::from_name(name), exporter);
        }
    }
}
