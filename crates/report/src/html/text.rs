//! Figures as text, tables and lists, and data for scripts. `maud` escapes whatever is text: markup is a type of its
//! own, and what is not escaped is named.

use dyno_types::units::{Rate, ShownLatency, Thousands};
use maud::{Markup, PreEscaped, Render, html};
use serde::Serialize;

/// Text without the control characters that HTML does not allow, whatever a server says.
pub fn without_controls(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}")
}

/// JSON that may stand inside of `<script>`: nothing in it can end the element or begin a comment.
pub fn render_script_json(value: &impl Serialize) -> Markup {
    // The pages' own types have string keys and finite numbers: they cannot fail to become JSON.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    let safe = text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    PreEscaped(safe)
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

/// A table: heads, rows of cells, and how many of the first columns are words.
pub fn render_table(
    caption: &str,
    heads: &[impl Render],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = impl Render>>,
    words: usize,
) -> Markup {
    let class = |at: usize| (at < words).then_some("word");
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for (at, head) in heads.iter().enumerate() { th scope="col" class=[class(at)] { (head) } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, cell) in row.into_iter().enumerate() { td class=[class(at)] { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// A list of sentences.
pub fn render_lines(lines: impl IntoIterator<Item = impl Render>) -> Markup {
    html! { ul.reasons { @for line in lines { li { (line) } } } }
}

/// Parts one after another, with words between them.
pub fn join_markup(parts: impl IntoIterator<Item = impl Render>, between: &str) -> Markup {
    html! { @for (at, part) in parts.into_iter().enumerate() { @if at > 0 { (between) } (part) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out() {
        assert_eq!(
            without_controls("<a b='c' d=\"e\">&\u{0}").render().into_string(),
            "&lt;a b='c' d=&quot;e&quot;&gt;&amp;\u{fffd}"
        );
        let json = render_script_json(&"</script><!--\u{2028}").into_string();
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
