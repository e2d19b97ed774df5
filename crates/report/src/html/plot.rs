//! Small drawings that need no script: points with intervals, and lines, on an axis of numbers or of words.

use crate::html::text::escape_html;
use std::fmt::Write as _;

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

/// A step of 1, 2 or 5 times a power of ten that gives about `count` ticks.
fn step(top: f64, count: f64) -> f64 {
    let raw = (top / count).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|n| *n >= raw).unwrap_or(raw)
}

/// A figure beside an axis: without zeros at its end, and 0 without a unit.
fn round(text: &str) -> String {
    let (number, unit) = text.split_once(' ').map_or((text, ""), |(number, unit)| (number, unit));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    match (number, unit) {
        ("0", _) | (_, "") => number.to_owned(),
        _ => format!("{number} {unit}"),
    }
}

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

    fn across(&self, out: &mut String, x: &impl Fn(f64) -> f64) {
        let base = HEIGHT - BOTTOM;
        let mut label = |at: f64, text: &str, anchor: &str| {
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                base + 17.0,
                escape_html(text)
            );
        };
        match &self.axis {
            Across::Words(words) => {
                let room = (WIDTH - LEFT - RIGHT) / words.len().max(1) as f64;
                let most = ((room / 7.0) as usize).max(2);
                for (number, word) in words.iter().enumerate() {
                    let short: String = match word.chars().count() > most {
                        true => word.chars().take(most - 1).chain(std::iter::once('\u{2026}')).collect(),
                        false => word.clone(),
                    };
                    label(x(number as f64), &short, "middle");
                }
            }
            Across::Thinned(words) => {
                let mut free = 0.0;
                for (number, word) in words.iter().enumerate() {
                    let half = word.chars().count() as f64 * 3.5 + 3.0;
                    if x(number as f64) - half >= free {
                        label(x(number as f64), word, "middle");
                        free = x(number as f64) + half;
                    }
                }
            }
            Across::Numbers => {
                let (low, high, doublings) = self.numbers();
                let ticks: Vec<f64> = match doublings {
                    true => (low.floor() as i32..=high.ceil() as i32).map(|n| f64::from(n).exp2()).collect(),
                    false => (0..=10).map(|n| f64::from(n) * step(high, 6.0)).collect(),
                };
                let inside = |tick: &f64| (LEFT - 1.0..=WIDTH - RIGHT + 1.0).contains(&x(*tick));
                ticks
                    .into_iter()
                    .filter(inside)
                    .for_each(|tick| label(x(tick), &round(&crate::html::text::format_rate(tick)), "middle"));
            }
        }
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        let _ = write!(
            out,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 6.0,
            escape_html(&self.across)
        );
    }

    /// The drawing as a figure.
    pub fn render_figure(&self) -> String {
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
        let mut out = format!(
            "<figure><figcaption>{0}</figcaption><svg class=\"fixed\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{0}\">",
            escape_html(&self.title)
        );
        let step = step(top - bottom, 4.0);
        let ticks = (-12..12).map(|n| f64::from(n) * step);
        for tick in ticks.filter(|tick| (bottom..=top).contains(tick)) {
            let at = y(tick);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                escape_html(&round(&(self.show)(tick)))
            );
        }
        if bottom < 0.0 {
            let at = y(0.0);
            let _ = write!(out, "<path class=\"s k6\" d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        }
        self.across(&mut out, &x);
        for (px, py) in &self.faint {
            let _ =
                write!(out, "<circle class=\"faint\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"/>", x(*px), y(*py));
        }
        for line in &self.lines {
            let mut path = String::new();
            for (number, (px, py)) in line.points.iter().enumerate() {
                let _ = write!(path, "{}{:.1} {:.1}", if number == 0 { "M" } else { "L" }, x(*px), y(*py));
            }
            let (style, dash) = (line.style % 8, DASH[line.style % DASH.len()]);
            let _ = write!(out, "<path class=\"s k{style}\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>");
        }
        for (px, py, interval) in &self.dots {
            let (cx, cy) = (x(*px), y(*py));
            if let Some((below, above)) = interval {
                let (low, high) = (y(py - below), y(py + above));
                let _ = write!(
                    out,
                    "<path class=\"s k0\" d=\"M{cx:.1} {low:.1}V{high:.1}M{0:.1} {low:.1}h8M{0:.1} {high:.1}h8\"/>",
                    cx - 4.0
                );
            }
            let _ = write!(out, "<circle class=\"f0\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\"/>");
        }
        out.push_str("</svg><div class=\"legend\">");
        for line in &self.lines {
            let (style, dash) = (line.style % 8, DASH[line.style % DASH.len()]);
            let _ = write!(
                out,
                "<span><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"s k{style}\" stroke-dasharray=\"{dash}\" \
                 d=\"M0 5H26\"/></svg> {}</span>",
                escape_html(&line.name)
            );
        }
        out.push_str("</div></figure>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beside_an_axis_are_round() {
        for (text, shown) in [
            ("5.00 ms", "5 ms"),
            ("0 ns", "0"),
            ("1.50 s", "1.5 s"),
            ("100 µs", "100 µs"),
            ("150,000", "150,000"),
            ("+50 %", "+50 %"),
        ] {
            assert_eq!(round(text), shown);
        }
    }
}
