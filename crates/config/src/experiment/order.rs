//! In which order runs are made.

use crate::experiment::spec::Order;
use dyno_types::rng::Stream;

/// One run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Place in the order, from 1.
    pub number: usize,
    /// Index of its cell.
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
}

/// The runs of `cells` cells, each `repetitions` times.
pub(super) fn order(cells: usize, repetitions: u32, order: Order, seed: u64) -> Vec<PlannedRun> {
    let pairs: Vec<(usize, u32)> = match order {
        Order::Sequential => {
            (0..cells).flat_map(|cell| (1..=repetitions).map(move |repetition| (cell, repetition))).collect()
        }
        Order::File => {
            (1..=repetitions).flat_map(|repetition| (0..cells).map(move |cell| (cell, repetition))).collect()
        }
        Order::Random => {
            let mut draws = Stream::from_bits(seed);
            let block =
                |repetition| shuffled(cells, &mut draws).into_iter().map(move |cell| (cell, repetition));
            (1..=repetitions).flat_map(block).collect()
        }
    };
    let number =
        |(at, (cell, repetition)): (usize, (usize, u32))| PlannedRun { number: at + 1, cell, repetition };
    pairs.into_iter().enumerate().map(number).collect()
}

/// Fisher and Yates' shuffle of 0..n.
fn shuffled(n: usize, draws: &mut Stream) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let j = ((u128::from(draws.next_u64()) * (i as u128 + 1)) >> 64) as usize;
        all.swap(i, j);
    }
    all
}
