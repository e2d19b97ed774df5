//! Small drawings that need no script: points with intervals, and lines, on an axis of numbers or of words.

use crate::html::axes::{nice_step, round_label, tenths};
use maud::{Markup, html};

/// The axis across.
pub enum Across {
    /// Words side by side; the x of a point is their number.
    Words(Vec<String>),
    /// The same, each written out in full or not at all, where there is no room.
    Thinned(Vec<String>),
    /// Numbers, in doublings if they span a lot.
    Numbers,
}

/// A point: x, y, and how far its interval reaches below and above.
pub type Dot = (f64, f64, Option<(f64, f64)>);

/// A line through points, with its name.
pub struct PlotLine {
    /// Name.
    pub name: String,
    /// Colour and dash: 1 to 7.
    pub style: usize,
    /// Points.
    pub points: Vec<(f64, f64)>,
}

/// A drawing.
pub struct Plot {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis.
    pub across: String,
    /// The axis across.
    pub axis: Across,
    /// Measured points.
    pub dots: Vec<Dot>,
    /// Single runs behind the points: drawn small and light.
    pub faint: Vec<(f64, f64)>,
    /// Lines.
    pub lines: Vec<PlotLine>,
    /// The least top of the axis up, so that several drawings have the same.
    pub top: f64,
    /// The greatest bottom of the axis up: 0, or below it.
    pub bottom: f64,
    /// Figures of the axis up.
    pub show: fn(f64) -> String,
}

/// Points above words: operations per second of each.
pub fn category_plot(
    title: String,
    across: String,
    words: Vec<String>,
    dots: Vec<Dot>,
    faint: Vec<(f64, f64)>,
    top: f64,
) -> Plot {
    let (axis, lines) = (Across::Words(words), Vec::new());
    Plot { title, across, axis, dots, faint, lines, top, bottom: 0.0, show: crate::html::text::format_rate }
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 12.0;
const DASH: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

impl Plot {
    fn numbers(&self) -> (f64, f64, bool) {
        let all = self
            .dots
            .iter()
            .map(|dot| dot.0)
            .chain(self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)));
        let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
        let low = if low.is_finite() { low } else { 0.0 };
        let doublings = low > 0.0 && high / low >= 8.0;
        if doublings { (low.log2(), high.log2(), true) } else { (0.0, high.max(1e-9), false) }
    }

    fn place(&self) -> impl Fn(f64) -> f64 {
        let room = WIDTH - LEFT - RIGHT;
        let (low, high, doublings) = match &self.axis {
            Across::Words(words) | Across::Thinned(words) => (-0.5, words.len() as f64 - 0.5, false),
            Across::Numbers => self.numbers(),
        };
        move |x| {
            let x = if doublings { x.log2() } else { x };
            LEFT + (x - low) / (high - low).max(1e-9) * room
        }
    }

    /// Labels of the axis across, where each stands, and the axis' own.
    fn across(&self, x: &impl Fn(f64) -> f64) -> Markup {
        let mut labels: Vec<(f64, String)> = Vec::new();
        match &self.axis {
            Across::Words(words) => {
                let room = (WIDTH - LEFT - RIGHT) / words.len().max(1) as f64;
                let most = ((room / 7.0) as usize).max(2);
                for (number, word) in words.iter().enumerate() {
                    let short: String = match word.chars().count() > most {
                        true => word.chars().take(most - 1).chain(std::iter::once('\u{2026}')).collect(),
                        false => word.clone(),
                    };
                    labels.push((x(number as f64), short));
                }
            }
            Across::Thinned(words) => {
                let mut free = 0.0;
                for (number, word) in words.iter().enumerate() {
                    let half = word.chars().count() as f64 * 3.5 + 3.0;
                    if x(number as f64) - half >= free {
                        labels.push((x(number as f64), word.clone()));
                        free = x(number as f64) + half;
                    }
                }
            }
            Across::Numbers => {
                let (low, high, doublings) = self.numbers();
                let ticks: Vec<f64> = match doublings {
                    true => (low.floor() as i32..=high.ceil() as i32).map(|n| f64::from(n).exp2()).collect(),
                    false => (0..=10).map(|n| f64::from(n) * nice_step(high, 6.0)).collect(),
                };
                let inside = |tick: &f64| (LEFT - 1.0..=WIDTH - RIGHT + 1.0).contains(&x(*tick));
                let shown = |tick: f64| (x(tick), round_label(&crate::html::text::format_rate(tick)));
                labels.extend(ticks.into_iter().filter(inside).map(shown));
            }
        }
        let (middle, base) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - BOTTOM);
        let labels = labels.into_iter().map(|(at, text)| (at, base + 17.0, text));
        let own = (middle, HEIGHT - 6.0, self.across.clone());
        html! {
            @for (at, up, text) in labels.chain([own]) {
                text x=(tenths(at)) y=(tenths(up)) text-anchor="middle" { (text) }
            }
        }
    }

    /// The drawing as a figure.
    pub fn render_figure(&self) -> Markup {
        let ends = |up: bool| {
            let dots = self.dots.iter().map(move |(_, y, interval)| {
                let (below, above) = interval.unwrap_or_default();
                if up { y + above } else { y - below }
            });
            let lines = self.lines.iter().flat_map(|line| line.points.iter().map(|p| p.1));
            dots.chain(lines).chain(self.faint.iter().map(|p| p.1)).filter(|y| y.is_finite())
        };
        let top = ends(true).fold(self.top, f64::max).max(1e-9) * 1.05;
        let bottom = match self.bottom < 0.0 {
            true => ends(false).fold(self.bottom, f64::min) * 1.05,
            false => 0.0,
        };
        let base = HEIGHT - BOTTOM;
        let y = |value: f64| base - (value.clamp(bottom, top) - bottom) / (top - bottom) * (base - TOP);
        let x = self.place();
        // Three ticks or more.
        let step = nice_step(top - bottom, 5.0);
        let ticks = (-12..12).map(|n| f64::from(n) * step).filter(|tick| (bottom..=top).contains(tick));
        let right = tenths(WIDTH - RIGHT);
        html! {
            figure {
                figcaption { (self.title) }
                svg.fixed viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.title) {
                    @for tick in ticks {
                        @let at = tenths(y(tick));
                        line class="grid" x1=(LEFT) x2=(right) y1=(at) y2=(at) {}
                        text x=(tenths(LEFT - 6.0)) y=(tenths(y(tick) + 4.0)) text-anchor="end" {
                            (round_label(&(self.show)(tick)))
                        }
                    }
                    @if bottom < 0.0 {
                        path class="s k6" d={ "M" (LEFT) " " (tenths(y(0.0))) "H" (right) } {}
                    }
                    (self.across(&x))
                    @for (px, py) in &self.faint {
                        circle class="faint" cx=(tenths(x(*px))) cy=(tenths(y(*py))) r="2.5" {}
                    }
                    @for line in &self.lines { (line.render_path(&line.path(&x, &y))) }
                    @for (px, py, interval) in &self.dots {
                        @let (cx, cy) = (x(*px), y(*py));
                        @if let Some((below, above)) = interval {
                            path class="s k0" d=(bar(cx, y(py - below), y(py + above))) {}
                        }
                        circle class="f0" cx=(tenths(cx)) cy=(tenths(cy)) r="3.5" {}
                    }
                }
                div.legend {
                    @for line in &self.lines {
                        span {
                            svg viewBox="0 0 26 10" aria-hidden="true" { (line.render_path("M0 5H26")) }
                            " " (line.name)
                        }
                    }
                }
            }
        }
    }
}

/// The path of an interval from `low` to `high`, with its ends.
fn bar(cx: f64, low: f64, high: f64) -> String {
    let left = cx - 4.0;
    format!("M{cx:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}h8M{left:.1} {high:.1}h8")
}

impl PlotLine {
    fn path(&self, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) -> String {
        let step = |(number, (px, py)): (usize, &(f64, f64))| {
            format!("{}{:.1} {:.1}", if number == 0 { "M" } else { "L" }, x(*px), y(*py))
        };
        self.points.iter().enumerate().map(step).collect()
    }

    fn render_path(&self, path: &str) -> Markup {
        let dash = DASH[self.style % DASH.len()];
        html! { path class={ "s k" (self.style % 8) } stroke-dasharray=(dash) d=(path) {} }
    }
}
