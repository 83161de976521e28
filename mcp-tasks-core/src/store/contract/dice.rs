//! Numbers that look random and come from a seed.

/// SplitMix64: every seed gives a sequence of its own, the same on every machine.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.roll() % u64::from(bound)).unwrap_or_default()
    }

    /// A place in something of this length.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(u32::try_from(len).unwrap_or(u32::MAX)) as usize
    }

    /// Whether a chance of one in `bound` comes up.
    pub fn one_in(&mut self, bound: u32) -> bool {
        self.below(bound) == 0
    }
}
