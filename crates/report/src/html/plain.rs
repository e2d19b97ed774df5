//! A page of headings, paragraphs and tables, in the style of all pages.

use crate::html::charts::PageData;
use crate::html::document::{render_chip, render_standalone_page};
use crate::html::text::render_table;
use maud::html;

/// A part of a page.
pub enum PageBlock {
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
pub fn plain_page(title: &str, parts: &[PageBlock]) -> String {
    let body = html! {
        main id="main" {
            h1 { (title) }
            @for part in parts {
                @match part {
                    PageBlock::Heading(text) => h2 { (text) },
                    PageBlock::Text(text) => p { (text) },
                    PageBlock::Verdict(class, word) => p { (render_chip(class, word)) },
                    PageBlock::Table(caption, _, rows, _) if rows.is_empty() => p.dim { (caption) ": none." },
                    PageBlock::Table(caption, heads, rows, words) => {
                        (render_table(caption, heads, rows, *words))
                    }
                    PageBlock::Verbatim(text) => pre { (text) },
                }
            }
        }
    };
    render_standalone_page(title, &body, &PageData::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_rows_is_words() {
        let table = PageBlock::Table("Pre-checks".into(), vec!["looked at".into()], Vec::new(), 1);
        let page = plain_page("x", &[table]);
        assert!(page.contains("Pre-checks: none.") && !page.contains("looked at"), "{page}");
    }

    #[test]
    fn everything_is_escaped() {
        let evil = "<script>x</script>".to_owned();
        let rows = vec![vec![evil.clone()]];
        let parts = [
            PageBlock::Heading(evil.clone()),
            PageBlock::Text(evil.clone()),
            PageBlock::Verdict("valid", evil.clone()),
            PageBlock::Table(evil.clone(), vec![evil.clone()], rows, 1),
            PageBlock::Verbatim(evil.clone()),
        ];
        let page = plain_page(&evil, &parts);
        assert!(!page.contains("<script>x") && page.contains("&lt;script&gt;x"), "{page}");
    }
}
