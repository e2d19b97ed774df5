//! Clocks that ended service times.

/// Replies by the clock that says when they arrived. All zero where the kernel was not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Replies that arrived when the kernel says, or the network card.
    pub kernel: u64,
    /// Number of `kernel` that the network card stamped.
    pub card: u64,
    /// Replies that arrived when the client handled them: the connection has no such stamps, the kernel did not say it, its
    /// clock had just been set, or what it says is no moment between sending and handling.
    pub client: u64,
    /// Number of `kernel` that came in one piece with later bytes, whose time they have.
    pub shared: u64,
    /// By how much the arrival of one of these may be overstated at most, nanoseconds.
    pub shared_most_ns: u64,
}

/// Where the client's clock ends fewer than one time in so many, p99 is the kernel's.
const KERNELS: u64 = 1_000;

impl Stamps {
    /// Returns whether the kernel's clock ends all but a few of the times.
    pub fn by_kernel(&self) -> bool {
        self.client * KERNELS < self.kernel
    }

    /// Returns whether so many arrivals may be overstated, because they came in one piece with later bytes, that the server's
    /// share of this percentile is not known.
    pub fn hides_arrivals(&self, percentile: f64) -> bool {
        let all = (self.kernel + self.client) as f64;
        self.shared as f64 > all * (1.0 - percentile / 100.0) / 2.0
    }

    /// Adds others.
    pub fn add(&mut self, other: &Stamps) {
        self.kernel += other.kernel;
        self.card += other.card;
        self.client += other.client;
        self.shared += other.shared;
        self.shared_most_ns = self.shared_most_ns.max(other.shared_most_ns);
    }
}
