//! A whole HTML document with its security policy, and the figures that its script draws.

use crate::html::charts::{Chart, PageData};
use crate::html::drawn::{draw_chart, draw_legend, draw_percentiles};
use crate::html::text::{render_script_json, without_controls};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use sha2::{Digest, Sha256};

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
pub(super) fn render_standalone_page(title: &str, body: &Markup, data: &PageData) -> String {
    render_page(title, body, &PageAssets { scripts: &[SCRIPT], data: Some(data), asks: false })
}

/// A whole document.
pub(super) fn render_page(title: &str, body: &Markup, assets: &PageAssets<'_>) -> String {
    let sources: Vec<String> = assets.scripts.iter().map(|script| source(script)).collect();
    let scripts = if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") };
    let asks = if assets.asks { "connect-src 'self'; form-action 'self'" } else { "form-action 'none'" };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {scripts}; img-src data:; base-uri 'none'; {asks}",
        source(STYLE)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href=(ICON);
                title { (without_controls(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "To the content" }
                (PreEscaped(without_controls(&body.0)))
                @if let Some(data) = assets.data {
                    script type="application/json" id="data" { (render_script_json(data)) }
                }
                @for script in assets.scripts { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string()
}

/// A figure: drawn into the page, and anew by the script.
pub(super) fn render_figure(number: usize, chart: &Chart, data: &PageData) -> Markup {
    let unit = match (chart.unit.as_str(), chart.log) {
        ("us", true) => "µs to s, logarithmic",
        ("us", false) => "µs to s",
        (unit, _) => unit,
    };
    html! {
        figure data-chart=(number) {
            figcaption { (chart.title) " " small { (unit) } }
            div.plot { (draw_chart(chart, data, if number < 2 { 250.0 } else { 180.0 })) }
            div.legend { (draw_legend(chart.choices.iter().take(1).flat_map(|one| &one.s).map(|one| one.n.as_str()))) }
        }
    }
}

/// The bar that stays: `chips` and navigation. `links`: addresses within the page, and their words.
pub(super) fn render_bar(chips: &Markup, what: &str, links: &[(impl Render, impl Render)]) -> Markup {
    html! {
        div.bar role="region" aria-label="Verdict and sections" {
            (chips)
            span.what { (what) }
            @if !links.is_empty() {
                nav aria-label="Sections" {
                    ul { @for (id, words) in links { li { a href={ "#" (id) } { (words) } } } }
                }
            }
        }
    }
}

/// A section with its heading.
pub(super) fn render_section(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ "h-" (id) } {
            h2 id={ "h-" (id) } { (title) }
            (content)
        }
    }
}

/// A verdict as a chip: class and words.
pub(super) fn render_chip(class: &str, message: &str) -> Markup {
    html! { strong class={ "trust " (class) } { (message) } }
}

/// A figure that stands for the run, with what is to be said of it.
pub(super) fn render_tile(name: &str, value: &str, more: &str) -> Markup {
    html! {
        div {
            dt { (name) }
            dd { (value) @if !more.is_empty() { small { (more) } } }
        }
    }
}

/// Buttons above charts over time.
pub(super) fn render_tools() -> Markup {
    html! {
        div.tools {
            button type="button" id="zoomin" { "Zoom in" }
            button type="button" id="zoomout" { "Zoom out" }
            button type="button" id="reset" { "Whole run" }
            span id="phases" {}
            span id="view" {}
            span id="at" class="dim" {}
        }
    }
}

/// A figure of latency by percentile: which of the page's distributions it shows.
pub(super) fn percentile_figure(from: usize, to: usize, data: &PageData) -> Markup {
    let shown = &data.distributions[from..to];
    html! {
        figure data-percentiles={ (from) "-" (to) } {
            figcaption { "Response time by percentile " small {} }
            div.plot { (draw_percentiles(shown)) }
            div.legend { (draw_legend(shown.iter().map(|one| one.n.as_str()))) }
        }
        p.dim {
            "The axis is log2(1 / (1 - p)): every step halves what lies beyond. A line ends where its last \
             sample lies, or where dropped arrivals begin."
        }
    }
}
