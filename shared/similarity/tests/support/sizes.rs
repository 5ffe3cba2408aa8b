//! A wide and a tall site, and the peak of this process's memory.

use std::fs;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};
use similarity::learn::unpsl::{Labels, Pairs, Settings, SiteObjective, Totals, start, summarise};
use similarity::numeric::seed::Seed;

/// The shape of a site.
pub struct Size {
    pub name: &'static str,
    pub patients: usize,
    pub features: usize,
    pub rank: usize,
    pub pairs: Pairs,
}

/// Genes: one d x d matrix alone would have 3.2 GB.
pub const WIDE: Size = Size {
    name: "wide",
    patients: 200,
    features: 20_000,
    rank: 16,
    pairs: Pairs::All,
};

/// A large hospital: one n x n matrix alone would have 80 GB.
pub const TALL: Size = Size {
    name: "tall",
    patients: 100_000,
    features: 100,
    rank: 8,
    pairs: Pairs::PerPatient(20),
};

impl Size {
    pub fn settings(&self) -> Settings {
        Settings {
            rank: self.rank,
            pairs: self.pairs,
            ..Settings::paper()
        }
    }

    /// Independent normal features and two classes.
    pub fn objective(&self) -> SiteObjective {
        let patients = self.matrix();
        let labels = Labels::Classes((0..self.patients as u32).map(|i| i % 2).collect());
        let settings = self.settings();
        let totals = Totals::of(&[summarise(&labels, self.pairs, Seed(1))]);
        SiteObjective::new(&patients.view(), &labels, &settings, &totals, Seed(1), None).unwrap()
    }

    pub fn start(&self) -> Array2<f64> {
        start(&self.settings(), self.features, Seed(1), 0)
    }

    fn matrix(&self) -> Array2<f64> {
        let mut stream = Seed(1).stream("size", 0);
        let shape = (self.patients, self.features);
        Array2::from_shape_simple_fn(shape, || StandardNormal.sample(&mut stream))
    }
}

/// The most memory that this process has had resident, bytes; none where the system does not tell.
pub fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(1024 * kilobytes)
}
