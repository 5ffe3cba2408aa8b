//! Numbers for made-up patients.

/// Numbers from 0 to 1, always the same.
pub struct Draws(pub u64);

impl Draws {
    /// The next number from 0 to 1.
    pub fn number(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, of deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.number()).sum::<f64>() - 6.0
    }
}
