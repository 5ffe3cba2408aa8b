//! Places by a forest: vectors whose squared distances come near 2 (1 - P), for whoever needs sums over patients where a proximity
//! tells of pairs alone.
//!
//! A proximity is an inner product: of each tree a patient has a 1 for its terminal node. Its projection onto the subspace that made-up
//! patients spread over most is a vector of few numbers, by Nystroem's way (Williams and Seeger 2001) with the subspace of
//! simultaneous iteration (Halko, Martinsson and Tropp 2011). The made-up patients are drawn from the forest alone, and are nobody's:
//! down a tree to a terminal node, at each split by its patients, and then a value for every feature, all that the tree's cut points
//! leave being as likely. So places follow from the forest: whoever has the forest has them with equal bits, for all is IEEE
//! additions, products, quotients and roots in a fixed order.
//!
//! A place may have two numbers for each feature and no more ([`coordinates`]). The mean of the places of ten patients tells as many
//! numbers of ten times as many unknown ones as there are features. Of 32 numbers and two features, ten patients are read from it.

use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::cohort::{Column, MISSING_LEVEL, Values};
use crate::compare::proximity::kernel::proximity_with;
use crate::learn::forest::trees::terminal::Buckets;
use crate::learn::forest::trees::tree::{Node, SplitRule};
use crate::learn::forest::{FeatureKind, FeatureSchema, Forest, TerminalNodes, Tree};
use crate::numeric::portable::dot;
use crate::numeric::seed::Seed;

/// Numbers of a place at most.
const COORDINATES_MAX: usize = 8;
/// Numbers of a place at most for every feature of the forest.
const COORDINATES_OF_FEATURE: usize = 2;
/// Patients who are made up.
const MADE_UP: usize = 1024;
/// One of so many of them has no value in a feature where a tree asks for none: cohorts with missing values lie badly among patients who all
/// have one, and to the others that does little.
const MISSING: u64 = 16;
/// Steps of the iteration.
const STEPS: usize = 4;
/// What is left of a direction below this share of its square is rounding, and no direction.
const FLAT: f64 = 1e-12;
/// Patients who are placed at once.
const STRIP: usize = 4096;

/// Places by one forest.
pub struct Places {
    /// The made-up patients by their terminal nodes.
    made_up: Buckets,
    /// One row a coordinate, one column a made-up patient.
    turn: Array2<f64>,
}

impl Places {
    /// Of a forest, of as many [`coordinates`] as it has.
    ///
    /// # Panics
    /// Where the forest has no tree.
    #[must_use]
    pub fn new(forest: &Forest) -> Self {
        Self::with_coordinates(forest, coordinates(forest.schema().features.len()))
    }

    /// Of so many coordinates: of more than [`coordinates`], sums over few patients tell these patients.
    ///
    /// # Panics
    /// Where the forest has no tree.
    #[must_use]
    pub fn with_coordinates(forest: &Forest, coordinates: usize) -> Self {
        let nodes = forest.apply(&made_up(forest));
        let nodes = nodes.expect("columns by the forest's own schema");
        let made_up = Buckets::new(&nodes);
        let kernel = proximity_with(&made_up, &nodes);
        let mut stream = Seed(0).stream("places/directions", 0);
        let start = || stream.random::<f64>() - 0.5;
        let mut images = Array2::from_shape_simple_fn((coordinates, MADE_UP), start);
        let mut turn = images.clone();
        for _ in 0..STEPS {
            turn = images;
            images = apply(&kernel, &turn);
            orthonormalise(&mut turn, &mut images);
        }
        Self { made_up, turn }
    }

    /// The places of patients by their terminal nodes in that forest, n x m. Directions that the forest does not have are 0.
    #[must_use]
    pub fn of(&self, patients: &TerminalNodes) -> Array2<f64> {
        let mut placed = Array2::zeros((patients.patients(), self.turn.nrows()));
        let strips = placed.axis_chunks_iter_mut(Axis(0), STRIP).enumerate();
        for (strip, mut rows) in strips {
            let first = strip * STRIP;
            let own: Vec<usize> = (first..first + rows.nrows()).collect();
            let shared = proximity_with(&self.made_up, &patients.select(&own));
            rows.assign(&apply(&shared, &self.turn).t());
        }
        placed
    }
}

/// Numbers of a place by a forest of so many features: two for each, 8 at most.
#[must_use]
pub fn coordinates(features: usize) -> usize {
    COORDINATES_MAX.min(COORDINATES_OF_FEATURE * features)
}

/// The products of each row of `left` (the columns of what comes out) with each row of `turn` (its rows).
fn apply(left: &Array2<f64>, turn: &Array2<f64>) -> Array2<f64> {
    let mut product = Array2::zeros((turn.nrows(), left.nrows()));
    let of_row = |(mut row, direction): (ndarray::ArrayViewMut1<'_, f64>, ArrayView1<'_, f64>)| {
        for (entry, of_left) in row.iter_mut().zip(left.outer_iter()) {
            *entry = dot(&of_left, &direction);
        }
    };
    let rows: Vec<_> = product.outer_iter_mut().zip(turn.outer_iter()).collect();
    rows.into_par_iter().for_each(of_row);
    product
}

/// Gram and Schmidt's way, twice, in the inner product u' K v of the kernel K; `images` are the rows of `rows` times K, and go with them.
fn orthonormalise(rows: &mut Array2<f64>, images: &mut Array2<f64>) {
    for place in 0..rows.nrows() {
        let square = dot(&rows.row(place), &images.row(place));
        for before in (0..place).chain(0..place) {
            let shared = dot(&images.row(before), &rows.row(place));
            for all in [&mut *rows, &mut *images] {
                let (known, mut own) =
                    all.multi_slice_mut((ndarray::s![before, ..], ndarray::s![place, ..]));
                own.scaled_add(-shared, &known);
            }
        }
        let left = dot(&rows.row(place), &images.row(place));
        let scale = match left > FLAT * square {
            true => 1.0 / left.sqrt(),
            false => 0.0,
        };
        rows.row_mut(place).mapv_inplace(|entry| entry * scale);
        images.row_mut(place).mapv_inplace(|entry| entry * scale);
    }
}

/// What a tree leaves a patient of a terminal node in one feature.
#[derive(Clone)]
enum Left {
    /// A number above the first and at most the second.
    Within(f64, f64),
    /// One of these levels.
    Levels(Vec<bool>),
    /// No value.
    Missing,
}

/// Patients who are nobody's, as the forest's columns.
fn made_up(forest: &Forest) -> Vec<Column> {
    let features = &forest.schema().features;
    let levels: Vec<usize> = features
        .iter()
        .map(|feature| match &feature.kind {
            FeatureKind::Numeric => 0,
            FeatureKind::Categorical { levels } => levels.len(),
        })
        .collect();
    let cuts = cuts(forest, &levels);
    let mut stream = Seed(0).stream("places/patients", 0);
    let leaves: Vec<Vec<Left>> = (0..MADE_UP)
        .map(|_| {
            let tree = stream.random_range(0..forest.trees().len() as u64);
            terminal(&forest.trees()[tree as usize], &levels, &mut stream)
        })
        .collect();
    let column = |(place, feature): (usize, &FeatureSchema)| {
        let left = leaves.iter().map(|of_patient| &of_patient[place]);
        let values = match &feature.kind {
            FeatureKind::Numeric => {
                let value = |left| number(left, &cuts[place], &mut stream);
                Values::Numeric(left.map(value).collect::<Array1<f64>>())
            }
            FeatureKind::Categorical { levels } => Values::Categorical {
                codes: left.map(|left| level(left, &mut stream)).collect(),
                levels: levels.clone(),
            },
        };
        Column {
            name: feature.name.clone(),
            values,
        }
    };
    features.iter().enumerate().map(column).collect()
}

/// Where any tree cuts each feature, rising.
fn cuts(forest: &Forest, levels: &[usize]) -> Vec<Vec<f64>> {
    let mut cuts = vec![Vec::new(); levels.len()];
    for tree in forest.trees() {
        for number in 0..tree.nodes() as u32 {
            if let Node::Split {
                feature,
                rule: SplitRule::AtMost(cut),
                ..
            } = tree.node(number, levels)
                && cut.is_finite()
            {
                cuts[feature].push(cut);
            }
        }
    }
    for of_feature in &mut cuts {
        of_feature.sort_by(f64::total_cmp);
        of_feature.dedup();
    }
    cuts
}

/// A terminal node as likely as the patients of the tree are in it.
fn terminal(tree: &Tree, levels: &[usize], stream: &mut impl Rng) -> Vec<Left> {
    let all = |levels: &usize| match levels {
        0 => Left::Within(f64::NEG_INFINITY, f64::INFINITY),
        count => Left::Levels(vec![true; *count]),
    };
    let mut leaves: Vec<Left> = levels.iter().map(all).collect();
    let mut number = 0;
    while let Node::Split {
        feature,
        rule,
        left,
        right,
        ..
    } = tree.node(number, levels)
    {
        let (of_left, of_right) = (
            u64::from(tree.patients()[left as usize]),
            u64::from(tree.patients()[right as usize]),
        );
        let goes_left = stream.random_range(0..(of_left + of_right).max(1)) < of_left;
        narrow(&mut leaves[feature], rule, goes_left);
        number = if goes_left { left } else { right };
    }
    leaves
}

/// Takes away what a side of a split does not leave; where that is every value, whoever is there has none.
fn narrow(leaves: &mut Left, rule: SplitRule<'_>, goes_left: bool) {
    match (&mut *leaves, rule) {
        (Left::Within(low, high), SplitRule::AtMost(cut)) => {
            match goes_left {
                true => *high = high.min(cut),
                false => *low = low.max(cut),
            }
            if *low >= *high {
                *leaves = Left::Missing;
            }
        }
        (Left::Levels(left), SplitRule::Levels(words)) => {
            for (level, is_left) in left.iter_mut().enumerate() {
                *is_left &= (words[level / 64] >> (level % 64) & 1 == 1) == goes_left;
            }
        }
        (Left::Missing, _) | (Left::Within(..), _) | (Left::Levels(_), _) => {}
    }
}

/// One of the cut points that are left, or a number above the last.
fn number(left: &Left, cuts: &[f64], stream: &mut impl Rng) -> f64 {
    let (Left::Within(low, high), false) = (left, stream.random_range(0..MISSING) == 0) else {
        return f64::NAN;
    };
    let from = cuts.partition_point(|cut| cut <= low);
    let to = cuts.partition_point(|cut| cut <= high);
    let choices = (to - from) as u64 + u64::from(*high == f64::INFINITY);
    let chosen = from + stream.random_range(0..choices.max(1)) as usize;
    cuts.get(chosen).copied().unwrap_or(f64::MAX)
}

fn level(left: &Left, stream: &mut impl Rng) -> u32 {
    let (Left::Levels(left), false) = (left, stream.random_range(0..MISSING) == 0) else {
        return MISSING_LEVEL;
    };
    let left: Vec<usize> = (0..left.len()).filter(|level| left[*level]).collect();
    match left.len() as u64 {
        0 => MISSING_LEVEL,
        count => left[stream.random_range(0..count) as usize] as u32,
    }
}
