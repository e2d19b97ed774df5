//! A page of headings, paragraphs and tables, in the style of all pages.

use crate::html::document::document;
use crate::html::text::{esc, table};

/// A part of a page.
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A verdict: a class of the style (`valid`, `suspect`, `invalid`) and a word.
    Verdict(&'static str, String),
    /// A table: caption, heads, rows, and how many columns are words.
    Table(String, Vec<String>, Vec<Vec<String>>, usize),
    /// Text as it is.
    Verbatim(String),
}

/// The page, whole and for itself. Everything is escaped.
pub fn plain_page(title: &str, parts: &[Part]) -> String {
    let mut body = format!("<main id=\"main\">\n<h1>{}</h1>\n", esc(title));
    for part in parts {
        body += &match part {
            Part::Heading(text) => format!("<h2>{}</h2>\n", esc(text)),
            Part::Text(text) => format!("<p>{}</p>\n", esc(text)),
            Part::Verdict(class, word) => {
                format!("<p><strong class=\"trust {class}\">{}</strong></p>\n", esc(word))
            }
            Part::Table(caption, _, rows, _) if rows.is_empty() => {
                format!("<p class=\"dim\">{}: none.</p>\n", esc(caption))
            }
            Part::Table(caption, heads, rows, words) => table(caption, heads, rows, *words),
            Part::Verbatim(text) => format!("<pre>{}</pre>\n", esc(text)),
        };
    }
    document(title, &(body + "</main>\n"), &crate::html::charts::Data::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_rows_is_words() {
        let table = Part::Table("Pre-checks".into(), vec!["looked at".into()], Vec::new(), 1);
        let page = plain_page("x", &[table]);
        assert!(page.contains("Pre-checks: none.") && !page.contains("looked at"), "{page}");
    }

    #[test]
    fn everything_is_escaped() {
        let evil = "<script>x</script>".to_owned();
        let rows = vec![vec![evil.clone()]];
        let parts = [
            Part::Heading(evil.clone()),
            Part::Text(evil.clone()),
            Part::Verdict("valid", evil.clone()),
            Part::Table(evil.clone(), vec![evil.clone()], rows, 1),
            Part::Verbatim(evil.clone()),
        ];
        let page = plain_page(&evil, &parts);
        assert!(!page.contains("<script>x") && page.contains("&lt;script&gt;x"), "{page}");
    }
}
