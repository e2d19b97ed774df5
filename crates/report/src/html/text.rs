//! Escaping and figures as text. Everything that came from a server or a file goes through [`escape_html`] or
//! [`render_script_json`].

use dyno_types::units::{Rate, ShownLatency, Thousands};
use serde::Serialize;

/// Text between tags or in a quoted attribute.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in HTML, whatever a server says.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand inside of `<script>`: nothing in it can end the element or begin a comment.
pub fn render_script_json(value: &impl Serialize) -> String {
    // The pages' own types have string keys and finite numbers: they cannot fail to become JSON.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Microseconds with a unit; an infinite time is that of arrivals that were dropped.
pub fn format_us(value: f64) -> String {
    if value.is_infinite() {
        return "dropped".into();
    }
    ShownLatency((value * 1e3).round().max(0.0) as u64).to_string()
}

/// A whole number with its thousands apart.
pub fn format_whole(value: f64) -> String {
    if value < 0.0 {
        format!("-{}", Thousands((-value).round() as u64))
    } else {
        Thousands(value.round() as u64).to_string()
    }
}

/// A rate with the digits that it needs.
pub fn format_rate(value: f64) -> String {
    Rate(value).to_string()
}

/// A time to the second; anything else as it is.
pub fn format_timestamp(started: &str) -> String {
    match started.parse::<jiff::Timestamp>().and_then(|at| at.round(jiff::Unit::Second)) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => started.to_owned(),
    }
}

/// A share as a percentage.
pub fn format_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Bytes with a binary unit.
pub fn format_bytes(value: f64) -> String {
    dyno_types::units::BinaryBytes(value).to_string()
}

/// A table: heads, rows of cells that are escaped here, and how many of the first columns are words.
pub fn render_table(caption: &str, heads: &[String], rows: &[Vec<String>], words: usize) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| escape_html(cell)).collect()).collect();
    table_of_markup(caption, heads, &rows, words)
}

/// As [`render_table`], of cells that are markup already.
pub fn table_of_markup(caption: &str, heads: &[String], rows: &[Vec<String>], words: usize) -> String {
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        escape_html(caption)
    );
    let class = |at: usize| if at < words { " class=\"word\"" } else { "" };
    for (at, head) in heads.iter().enumerate() {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(at), escape_html(head)));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            out.push_str(&format!("<td{}>{cell}</td>", class(at)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Heads from words.
pub fn table_heads(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out() {
        assert_eq!(
            escape_html("<a b='c' d=\"e\">&\u{0}"),
            "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;\u{fffd}"
        );
        let json = render_script_json(&"</script><!--\u{2028}");
        assert!(!json.contains('<') && !json.contains('>') && !json.contains('\u{2028}'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><!--\u{2028}");
    }

    #[test]
    fn words_of_a_shell() {
        let words: Vec<String> = ["dyno", "run", "it's", "", "p99(read) < 5ms"].map(str::to_owned).to_vec();
        assert_eq!(dyno_types::shell::quoted(&words), "dyno run 'it'\\''s' '' 'p99(read) < 5ms'");
    }

    #[test]
    fn figures() {
        assert_eq!(
            (format_rate(12345.6), format_rate(1.25), format_rate(0.0)),
            ("12,346".into(), "1.25".into(), "0".into())
        );
        assert_eq!(
            (format_bytes(100.0), format_bytes(3.0 * 1024.0 * 1024.0)),
            ("100 B".into(), "3.0 MiB".into())
        );
    }
}
