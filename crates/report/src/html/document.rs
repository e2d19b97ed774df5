//! A whole HTML document with its security policy, and the figures that its script draws.

use crate::html::charts::{Chart, PageData};
use crate::html::text::{escape_html, render_script_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The sign of all pages: a needle on a dial. It stands in the page, so that nothing is asked for.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' \
    stroke='%230a7fc4' stroke-width='2' stroke-linecap='round'%3E%3Cpath d='M2 12a6.5 6.5 0 1 1 12 0M8 11l3-5'/%3E%3C/svg%3E";

const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");

/// The source of a style or script in a security policy.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Scripts, data and rights of a document.
pub(super) struct PageAssets<'a> {
    /// Scripts, in order.
    pub scripts: &'a [&'a str],
    /// Data that they draw.
    pub data: Option<&'a PageData>,
    /// True if it may ask the server that it came from, and send forms there.
    pub asks: bool,
}

/// A whole document that needs nothing else: title, body, data for the script.
pub(super) fn render_standalone_page(title: &str, body: &str, data: &PageData) -> String {
    render_page(title, body, &PageAssets { scripts: &[SCRIPT], data: Some(data), asks: false })
}

/// A whole document.
pub(super) fn render_page(title: &str, body: &str, assets: &PageAssets<'_>) -> String {
    let sources: Vec<String> = assets.scripts.iter().map(|script| source(script)).collect();
    let scripts = if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") };
    let asks = if assets.asks { "connect-src 'self'; form-action 'self'" } else { "form-action 'none'" };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {scripts}; img-src data:; base-uri 'none'; {asks}",
        source(STYLE)
    );
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"{ICON}\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n{body}",
        escape_html(title)
    );
    if let Some(data) = assets.data {
        let _ = writeln!(
            out,
            "<script type=\"application/json\" id=\"data\">{}</script>",
            render_script_json(data)
        );
    }
    assets.scripts.iter().for_each(|script| {
        let _ = writeln!(out, "<script>{script}</script>");
    });
    out.push_str("</body>\n</html>\n");
    out
}

/// A figure whose lines the script draws.
pub(super) fn render_figure(number: usize, chart: &Chart) -> String {
    let unit = if chart.unit == "us" { "µs to s, logarithmic" } else { &chart.unit };
    format!(
        "<figure data-chart=\"{number}\"><figcaption>{} <small>{}</small></figcaption>\
         <div class=\"plot\"></div><div class=\"legend\"></div></figure>\n",
        escape_html(&chart.title),
        escape_html(unit)
    )
}

/// The bar that stays: `chips` and navigation. `links`: addresses within the page, and their words.
pub(super) fn render_bar(chips: &str, what: &str, links: &[(String, String)]) -> String {
    let items: String = links
        .iter()
        .map(|(id, words)| format!("<li><a href=\"#{}\">{}</a></li>", escape_html(id), escape_html(words)))
        .collect();
    format!(
        "<div class=\"bar\" role=\"region\" aria-label=\"Verdict and sections\">{chips}<span class=\"what\">{}</span>{}</div>\n",
        escape_html(what),
        match links.is_empty() {
            true => String::new(),
            false => format!("<nav aria-label=\"Sections\"><ul>{items}</ul></nav>"),
        }
    )
}

/// A verdict as a chip: class and words.
pub(super) fn render_chip(class: &str, words: &str) -> String {
    format!("<strong class=\"trust {class}\">{}</strong>", escape_html(words))
}

/// Buttons above charts over time.
pub(super) const TOOLS: &str = "<div class=\"tools\"><button type=\"button\" id=\"zoomin\">Zoom in</button>\
    <button type=\"button\" id=\"zoomout\">Zoom out</button><button type=\"button\" id=\"reset\">Whole run</button>\
    <span id=\"phases\"></span><span id=\"view\"></span><span id=\"at\" class=\"dim\"></span></div>\n";

/// A figure of latency by percentile: which of the page's distributions it shows.
pub(super) fn percentile_figure(from: usize, to: usize) -> String {
    format!(
        "<figure data-percentiles=\"{from}-{to}\"><figcaption>Response time by percentile <small></small></figcaption>\
         <div class=\"plot\"></div><div class=\"legend\"></div></figure>\n<p class=\"dim\">The axis is log2(1 / (1 - p)): every \
         step halves what lies beyond. A line ends where its last sample lies, or where dropped arrivals begin.</p>\n"
    )
}
