//! The best pieces of a constant level each, and the best straight line, for a series whose noise remembers.
//!
//! The model is a mean that is constant between changes, with noise of first order autoregression. The likelihood is
//! maximised over places, levels, the noise's deviation *and* its correlation, for one piece and for more: what a correlation
//! explains as well as changes do is no change. Estimates of the correlation from the residuals of a fit were tried before.
//! They leave dips of 60 s unfound where neighbours correlate, or accuse steady noise that remembers. Profiling the correlation
//! under each number of changes does neither; the gain of a change hardly depends on the true correlation then, so that one
//! limit serves all (docs/reliability.md).
//!
//! Places of changes are free. They are found by dynamic programming over all intervals (Auger and Lawrence, 1989), in series
//! of more than 300 intervals over those where means to the left and to the right differ most (Niu and Zhang, 2012).

use super::mean;
use std::iter;

/// Correlations of neighbours that are tried.
const CORRELATIONS: [f64; 9] = [0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.88, 0.94];

/// Most changes that are looked for at once.
const MOST: usize = 8;

/// Intervals for each change: a series of fewer does not tell it from noise.
const EACH: usize = 5;

/// Shortest piece, intervals, and in series of fewer than [`SHORT`].
const SHORTEST: (usize, usize) = (3, 2);
const SHORT: usize = 15;

/// Series of up to so many intervals may change anywhere.
const EVERYWHERE: usize = 300;

/// In longer ones at so many places for each width of the means that are compared.
const PLACES: usize = 40;

/// Noise that is smaller than this, in units of the series, is none.
const FINEST: f64 = 1e-4;

/// The best description of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    /// First interval of each piece but the first; empty for a series of one level.
    pub edges: Vec<usize>,
    /// The change along a straight line from the first interval to the last, if that describes the series better than one
    /// level. Where it does so better than pieces, too, there are no edges.
    pub line: Option<f64>,
    /// Correlation of neighbouring intervals about the description.
    pub correlation: f64,
    /// Deviation of one interval about it, in units of the series.
    pub deviation: f64,
    /// Least step from one half of the series to the other that is found in 95 % of series with this noise.
    pub detectable: f64,
}

impl Pieces {
    /// The description of what is too short for one.
    pub fn unknown() -> Self {
        Pieces { edges: Vec::new(), line: None, correlation: 0.0, deviation: 0.0, detectable: f64::INFINITY }
    }
}

/// Sums for the error of any piece at one correlation.
struct Errors<'a> {
    y: &'a [f64],
    r: f64,
    steps: Vec<f64>,
    squares: Vec<f64>,
}

impl<'a> Errors<'a> {
    fn of(y: &'a [f64], r: f64) -> Self {
        let innovation = |at: usize| if at == 0 { 0.0 } else { y[at] - r * y[at - 1] };
        let sums = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let running = (0..y.len()).scan(0.0, |sum, at| {
                *sum += of(at);
                Some(*sum)
            });
            iter::once(0.0).chain(running).collect()
        };
        Errors { y, r, steps: sums(&innovation), squares: sums(&|at| innovation(at).powi(2)) }
    }

    /// Squared innovations of the piece from `from` to before `to` about its best level.
    fn piece(&self, from: usize, to: usize) -> f64 {
        let (first, fresh, slow) = (self.y[from], 1.0 - self.r * self.r, 1.0 - self.r);
        let weight = fresh + (to - from - 1) as f64 * slow * slow;
        let sum = fresh * first + slow * (self.steps[to] - self.steps[from + 1]);
        fresh * first * first + self.squares[to] - self.squares[from + 1] - sum * sum / weight
    }

    /// Squared innovations about the best straight line, and its slope.
    fn line(&self) -> (f64, f64) {
        let centre = (self.y.len() as f64 - 1.0) / 2.0;
        let (r, scale) = (self.r, (1.0 - self.r * self.r).sqrt());
        let mut sums = [0.0; 6];
        for (at, y) in self.y.iter().enumerate() {
            let x = at as f64 - centre;
            let (one, x, y) = match at {
                0 => (scale, scale * x, scale * y),
                _ => (1.0 - r, x - r * (x - 1.0), y - r * self.y[at - 1]),
            };
            let products = [one * one, one * x, x * x, one * y, x * y, y * y];
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
        }
        let [oo, ox, xx, oy, xy, yy] = sums;
        let determinant = oo * xx - ox * ox;
        let (level, slope) = ((oy * xx - ox * xy) / determinant, (oo * xy - ox * oy) / determinant);
        (yy - level * oy - slope * xy, slope)
    }
}

/// Twice the logarithm of the likelihood, but for a constant, of `n` intervals with such squared innovations in `pieces`.
fn likelihood(squares: f64, n: f64, r: f64, pieces: usize) -> f64 {
    pieces as f64 * (1.0 - r * r).ln() - n * (squares.max(0.0) / n + FINEST * FINEST).ln()
}

/// Places at which a piece may begin, with 0 and the length.
fn places(y: &[f64], shortest: usize) -> Vec<usize> {
    let n = y.len();
    if n <= EVERYWHERE {
        return (0..=n).collect();
    }
    let sums: Vec<f64> = iter::once(0.0)
        .chain(y.iter().scan(0.0, |sum, y| {
            *sum += y;
            Some(*sum)
        }))
        .collect();
    let mut all = vec![0, n];
    let widths =
        iter::successors(Some(shortest), |width| Some(width * 5 / 2)).take_while(|width| *width <= n / 4);
    for width in widths {
        let step = |at: usize| (sums[at + width] - 2.0 * sums[at] + sums[at - width]).abs();
        let mut steps: Vec<(f64, usize)> = (width..=n - width).map(|at| (step(at), at)).collect();
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut own: Vec<usize> = Vec::with_capacity(PLACES);
        for (_, at) in steps {
            if own.len() < PLACES && own.iter().all(|other| other.abs_diff(at) >= width) {
                own.push(at);
            }
        }
        // The place itself and its neighbours: noise moves the greatest step by one.
        all.extend(
            own.iter()
                .flat_map(|at| [at - 1, *at, at + 1])
                .filter(|at| (shortest..=n - shortest).contains(at)),
        );
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The least error of up to `most` changes at one correlation, and where they are; index 0 has none.
fn best(errors: &Errors<'_>, places: &[usize], shortest: usize, most: usize) -> Vec<(f64, Vec<usize>)> {
    let last = places.len() - 1;
    // Of the series up to a place with each number of changes: the least error, and the place of the last change.
    let mut least = vec![[f64::INFINITY; MOST + 1]; places.len()];
    let mut before = vec![[0_u32; MOST + 1]; places.len()];
    for to in 1..=last {
        let (mut own, mut origin) = ([f64::INFINITY; MOST + 1], [0_u32; MOST + 1]);
        let until = places[..to].partition_point(|place| place + shortest <= places[to]);
        if until > 0 {
            own[0] = errors.piece(0, places[to]);
        }
        for from in 1..until {
            let piece = errors.piece(places[from], places[to]);
            for changes in 1..=MOST {
                let all = least[from][changes - 1] + piece;
                origin[changes] = if all < own[changes] { from as u32 } else { origin[changes] };
                own[changes] = own[changes].min(all);
            }
        }
        (least[to], before[to]) = (own, origin);
    }
    let edges = |changes: usize| {
        let back = (1..=changes).rev().scan(last, |at, left| {
            *at = before[*at][left] as usize;
            Some(places[*at])
        });
        let mut edges: Vec<usize> = back.collect();
        edges.reverse();
        edges
    };
    let possible = (0..=most).take_while(|changes| least[last][*changes].is_finite());
    possible.map(|changes| (least[last][changes], edges(changes))).collect()
}

/// What each number of changes, and a straight line, explain of a series.
struct FitLikelihoods {
    /// Of each number of changes: twice the logarithm of the likelihood, edges, correlation, squared innovations.
    levels: Vec<(f64, Vec<usize>, f64, f64)>,
    /// Of the line: the same likelihood, slope, correlation, squared innovations.
    line: (f64, f64, f64, f64),
}

impl FitLikelihoods {
    fn of(y: &[f64]) -> Self {
        let (n, length) = (y.len() as f64, y.len());
        let shortest = if length < SHORT { SHORTEST.1 } else { SHORTEST.0 };
        let most = (length / EACH).clamp(1, MOST);
        // Sums of squares are more exact about 0.
        let middle = mean(y);
        let y: Vec<f64> = y.iter().map(|one| one - middle).collect();
        let places = places(&y, shortest);
        let mut all = FitLikelihoods { levels: Vec::new(), line: (f64::NEG_INFINITY, 0.0, 0.0, 0.0) };
        for r in CORRELATIONS {
            let errors = Errors::of(&y, r);
            for (changes, (squares, edges)) in best(&errors, &places, shortest, most).into_iter().enumerate()
            {
                let value = likelihood(squares, n, r, changes + 1);
                match all.levels.get_mut(changes) {
                    Some(own) if own.0 >= value => {}
                    Some(own) => *own = (value, edges, r, squares),
                    None => all.levels.push((value, edges, r, squares)),
                }
            }
            let (squares, slope) = errors.line();
            let value = likelihood(squares, n, r, 1);
            if value > all.line.0 {
                all.line = (value, slope, r, squares);
            }
        }
        all
    }

    /// What so many changes explain beyond one level.
    fn gain(&self, changes: usize) -> f64 {
        self.levels[changes].0 - self.levels[0].0
    }

    /// The number of changes that explain most beyond a price for each, and how much that is.
    fn greatest(&self, price: f64) -> (usize, f64) {
        let worth = |changes: usize| (changes, self.gain(changes) - price * changes as f64);
        (0..self.levels.len()).map(worth).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }
}

/// Describes `y`, at least 5 values, whose noise is small where it is less than a ten-thousandth.
pub fn fit_pieces(y: &[f64]) -> Pieces {
    let n = y.len() as f64;
    let (limits, mut all) = (EvidenceLimits::of(y.len()), FitLikelihoods::of(y));
    if all.levels.is_empty() {
        return Pieces::unknown();
    }
    let (found, beyond) = all.greatest(limits.each);
    let changes = match beyond > limits.any {
        // Changes beyond the surest have to pay more: the level of a part is not to be cut up.
        true => Some(all.greatest(limits.each + SURER).0).filter(|changes| *changes > 0).unwrap_or(found),
        false => 0,
    };
    // Of both what explains more for its parameters: a slope against a level and a place for each change (Schwarz, 1978).
    let price = n.ln();
    let (value, slope, r, squares) = all.line;
    let of_line = value - all.levels[0].0;
    let is_line =
        of_line > limits.line && of_line - price >= all.gain(changes) - 2.0 * price * changes as f64;
    let (_, edges, own_r, own_squares) = all.levels.swap_remove(changes);
    let (correlation, squares, parameters) =
        if is_line { (r, squares, 2.0) } else { (own_r, own_squares, 1.0 + changes as f64) };
    let innovation = (squares.max(0.0) / (n - parameters).max(1.0)).sqrt();
    let deviation = innovation / (1.0 - correlation * correlation).sqrt();
    // A statistic of this size is found, and 1.645 more is found in 95 % of series.
    let t = (n * ((limits.any + limits.each) / n).exp_m1()).sqrt() + 1.645;
    Pieces {
        edges: if is_line { Vec::new() } else { edges },
        line: (of_line > limits.line).then_some(slope * (n - 1.0)),
        correlation,
        deviation,
        detectable: t * 2.0 * innovation / ((1.0 - correlation) * n.sqrt()),
    }
}

/// What changes have to explain before they are believed, in units of twice the logarithm of the likelihood.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EvidenceLimits {
    /// Beyond what the changes cost: so much or more is found in few series of one level.
    any: f64,
    /// For each change.
    each: f64,
    /// For a straight line.
    line: f64,
}

/// Further price of a change once there is one.
const SURER: f64 = 9.0;

/// By the number of intervals: what 10,000 series of one level exceed in 1.5 % of cases where neighbours correlate by 0 or
/// 0.5, 2 % by 0.7 and 3 % by 0.8, the greatest of the four; and two thirds of that of a straight line. Made by
/// `RATES=1 cargo test --release -p dyno-analysis limits_of_pieces`.
const LIMITS: [(f64, f64, f64); 11] = [
    (5.0, 10.5, 14.8),
    (7.0, 9.3, 12.9),
    (10.0, 11.1, 12.3),
    (15.0, 10.1, 11.5),
    (20.0, 10.9, 10.8),
    (30.0, 11.8, 9.5),
    (60.0, 12.1, 7.9),
    (120.0, 9.6, 7.4),
    (300.0, 7.6, 7.4),
    (1000.0, 8.6, 6.7),
    (3600.0, 10.4, 8.9),
];

impl EvidenceLimits {
    /// Between two numbers of intervals by the logarithm.
    fn of(intervals: usize) -> EvidenceLimits {
        let n = intervals as f64;
        let each = 3.2 + 1.1 * n.ln();
        let after = LIMITS.partition_point(|(count, ..)| *count <= n).clamp(1, LIMITS.len() - 1);
        let ((from, any, line), (to, any_after, line_after)) = (LIMITS[after - 1], LIMITS[after]);
        let part = ((n.ln() - from.ln()) / (to.ln() - from.ln())).clamp(0.0, 1.0);
        let between = |a: f64, b: f64| a + part * (b - a);
        EvidenceLimits { any: between(any, any_after), each, line: between(line, line_after) }
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
