//! Small drawings that need no script: points with intervals, and lines, on an axis of numbers or of words.

use crate::html::axes::{log_ticks, nice_step, round_label, tenths};
use maud::{Markup, html};

/// The axis across.
pub enum Across {
    /// Words side by side; the x of a point is their number.
    Words(Vec<String>),
    /// The same, each written out in full or not at all, where there is no room.
    Thinned(Vec<String>),
    /// Numbers, in doublings if they span a lot.
    Numbers,
    /// The same, of a few numbers that are written out where each stands, as far as there is room.
    Levels(Vec<(f64, String)>),
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
    /// True if the axis up is logarithmic: its bottom is then above 0, or that of the least value.
    pub log: bool,
    /// Figures of the axis up.
    pub show: fn(f64) -> String,
}

/// Points above words or levels: operations per second of each.
pub fn category_plot(
    title: String,
    across: String,
    axis: Across,
    dots: Vec<Dot>,
    faint: Vec<(f64, f64)>,
    top: f64,
) -> Plot {
    let lines = Vec::new();
    let show = crate::html::text::format_rate;
    Plot { title, across, axis, dots, faint, lines, top, bottom: 0.0, log: false, show }
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 12.0;
/// Room beside the first and the last level, as a share of what lies between them.
const END_ROOM: f64 = 0.06;
/// Least share of the axis between two levels: the room of a short label.
const LABEL_ROOM: f64 = 0.08;
const DASH: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

impl Plot {
    fn numbers(&self) -> (f64, f64, bool) {
        let all = self
            .dots
            .iter()
            .map(|dot| dot.0)
            .chain(self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)))
            .chain(
                match &self.axis {
                    Across::Levels(levels) => levels.as_slice(),
                    _ => &[],
                }
                .iter()
                .map(|level| level.0),
            );
        range(all)
    }

    fn place(&self) -> impl Fn(f64) -> f64 {
        let room = WIDTH - LEFT - RIGHT;
        let (low, high, doublings) = match &self.axis {
            Across::Words(words) | Across::Thinned(words) => (-0.5, words.len() as f64 - 0.5, false),
            Across::Numbers => self.numbers(),
            // Points keep off the ends, where their intervals would be cut.
            Across::Levels(_) => {
                let (low, high, doublings) = self.numbers();
                let room = (high - low) * END_ROOM;
                (low - room, high + room, doublings)
            }
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
                // On a phone letters are wider than elsewhere.
                let most = ((room / 8.5) as usize).max(2);
                for (number, word) in words.iter().enumerate() {
                    let short: String = match word.chars().count() > most {
                        true => word.chars().take(most - 1).chain(std::iter::once('\u{2026}')).collect(),
                        false => word.clone(),
                    };
                    labels.push((x(number as f64), short));
                }
            }
            Across::Thinned(words) => {
                let words = words.iter().enumerate();
                labels.extend(thin(words.map(|(number, word)| (x(number as f64), word.clone()))));
            }
            Across::Levels(levels) => {
                let mut levels: Vec<&(f64, String)> = levels.iter().collect();
                levels.sort_by(|a, b| a.0.total_cmp(&b.0));
                labels.extend(thin(levels.into_iter().map(|(value, word)| (x(*value), word.clone()))));
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
        let above = |y: &f64| *y > 0.0;
        let top = match self.log {
            true => ends(true).fold(self.top, f64::max) * 1.25,
            false => ends(true).fold(self.top, f64::max).max(1e-9) * 1.05,
        };
        let bottom = match (self.log, self.bottom < 0.0) {
            (true, _) => {
                let given = if self.bottom > 0.0 { self.bottom } else { f64::INFINITY };
                ends(false).filter(above).fold(given, f64::min).min(top / 2.0) * 0.8
            }
            (false, true) => ends(false).fold(self.bottom, f64::min) * 1.05,
            (false, false) => 0.0,
        };
        let base = HEIGHT - BOTTOM;
        let y = |value: f64| {
            let value = value.clamp(bottom, top);
            let share = match self.log {
                true => (value / bottom).ln() / (top / bottom).ln(),
                false => (value - bottom) / (top - bottom),
            };
            base - share * (base - TOP)
        };
        let x = self.place();
        // Three ticks or more.
        let ticks: Vec<f64> = match self.log {
            true => log_ticks(bottom, top),
            false => {
                let step = nice_step(top - bottom, 5.0);
                (-12..12).map(|n| f64::from(n) * step).filter(|tick| (bottom..=top).contains(tick)).collect()
            }
        };
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

/// Begin and end of an axis of numbers, and whether it is in doublings: then they are binary logarithms.
fn range(all: impl Iterator<Item = f64>) -> (f64, f64, bool) {
    let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
    let low = if low.is_finite() { low } else { 0.0 };
    let doublings = low > 0.0 && high / low >= 8.0;
    if doublings { (low.log2(), high.log2(), true) } else { (0.0, high.max(1e-9), false) }
}

/// Returns whether each of these levels has room for a label between its neighbours, where they stand at their distances.
pub fn stand_apart(levels: &[f64]) -> bool {
    let (low, high, doublings) = range(levels.iter().copied());
    let mut places: Vec<f64> = levels.iter().map(|x| if doublings { x.log2() } else { *x }).collect();
    places.sort_by(f64::total_cmp);
    let room = (high - low) * (1.0 + 2.0 * END_ROOM) * LABEL_ROOM;
    places.windows(2).all(|pair| pair[1] - pair[0] >= room)
}

/// Labels that have room beside the one before.
fn thin(labels: impl Iterator<Item = (f64, String)>) -> Vec<(f64, String)> {
    let mut free = 0.0;
    let fits = |(at, word): &(f64, String)| {
        let half = word.chars().count() as f64 * 3.5 + 3.0;
        let fits = at - half >= free;
        if fits {
            free = at + half;
        }
        fits
    };
    labels.filter(fits).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(axis: Across, log: bool) -> Plot {
        let dots = vec![(1.0, 100.0, None), (4.0, 1_000.0, None), (16.0, 10_000.0, None)];
        let show = crate::html::text::format_rate;
        let (title, across) = ("t".to_owned(), "users".to_owned());
        Plot { title, across, axis, dots, faint: vec![], lines: vec![], top: 0.0, bottom: 0.0, log, show }
    }

    fn places(plot: &Plot, of: &str) -> Vec<f64> {
        let drawn = plot.render_figure().into_string();
        let parts = drawn.split(of).skip(1);
        parts.map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn levels_stand_at_their_distances() {
        let levels = |all: &[f64]| Across::Levels(all.iter().map(|n| (*n, n.to_string())).collect());
        // Of 1, 4 and 16 each is four times the one before: as far from each other.
        let x = places(&plot(levels(&[1.0, 4.0, 16.0]), false), "cx=\"");
        assert!(((x[1] - x[0]) - (x[2] - x[1])).abs() < 0.3, "{x:?}");
        let close = Plot {
            dots: vec![(1.0, 1.0, None), (2.0, 1.0, None), (4.0, 1.0, None)],
            ..plot(levels(&[1.0, 2.0, 4.0]), false)
        };
        let x = places(&close, "cx=\"");
        assert!(((x[2] - x[1]) - 2.0 * (x[1] - x[0])).abs() < 0.3, "{x:?}");
        let words = Across::Levels(vec![(1.0, "one".into()), (1.01, "hidden".into()), (2.0, "two".into())]);
        let drawn = plot(words, false).render_figure().into_string();
        assert!(drawn.contains(">one<") && drawn.contains(">two<") && !drawn.contains(">hidden<"), "{drawn}");
    }

    #[test]
    fn levels_that_would_stand_on_each_other_do_not_stand_apart() {
        for apart in [&[4.0][..], &[1.0, 4.0, 16.0], &[16.0, 1.0, 2.0, 4.0, 8.0], &[0.0, 50.0, 100.0]] {
            assert!(stand_apart(apart), "{apart:?}");
        }
        for close in [&[1.0, 1.01, 2.0][..], &[0.0, 1.0, 1_000.0], &[5.0, 5.0], &[1_000.0, 1_001.0]] {
            assert!(!stand_apart(close), "{close:?}");
        }
    }

    #[test]
    fn a_logarithmic_axis_gives_factors_the_same_room() {
        let y = places(&plot(Across::Numbers, true), "cy=\"");
        assert!(((y[0] - y[1]) - (y[1] - y[2])).abs() < 0.3, "{y:?}");
        let drawn = plot(Across::Numbers, true).render_figure().into_string();
        for label in ["100", "1,000", "10,000"] {
            assert!(drawn.contains(&format!(">{label}</text>")), "{label}: {drawn}");
        }
    }
}
