//! The elementwise part of the pair loss: from similarities to losses and their derivatives.
//!
//! One pass over a slice of s_ij does, with z = y (s - b) and e = exp(-|z|),
//!
//! ```text
//! softplus(-z) = max(-z, 0) + log(1 + e)       sigma(-z) = e / (1 + e) where z >= 0, else 1 / (1 + e)
//! ```
//!
//! which never overflows. The logarithms are taken of products of many (1 + e), each between 1 and 2.
//! The loops are plain and free of branches so that the compiler uses the widest registers that the
//! processor has; no operation is fused and sums run in fixed lanes, so every width gives equal bits.

use crate::numeric::widths::widths;

/// Elements of one inner pass: its scratch stays in the first-level cache.
const CHUNK: usize = 64;
/// Lanes of the sums.
const LANES: usize = 8;
/// Chunks between logarithms: 2^(64 / 8 * 100) is far below the largest double.
const CHUNKS_PER_LOGARITHM: u32 = 100;
/// exp(-708) is the smallest result that is not subnormal.
const EXPONENT_MAX: f64 = 708.0;

/// What the pairs of one kind (similar or dissimilar) add up to, before their weight.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    positive: [f64; LANES],
    products: [f64; LANES],
    derivatives: [f64; LANES],
    logarithms: f64,
    chunks: u32,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            positive: [0.0; LANES],
            products: [1.0; LANES],
            derivatives: [0.0; LANES],
            logarithms: 0.0,
            chunks: 0,
        }
    }

    /// Sum of softplus(-z).
    pub(super) fn loss(&self) -> f64 {
        let logarithms: f64 = self
            .products
            .iter()
            .map(|product| libm::log(*product))
            .sum();
        self.positive.iter().sum::<f64>() + logarithms + self.logarithms
    }

    /// Sum of the weighted derivatives with respect to s.
    pub(super) fn derivative(&self) -> f64 {
        self.derivatives.iter().sum()
    }

    #[inline(always)]
    fn add(&mut self, positive: &[f64], factors: &[f64], derivatives: &[f64]) {
        add_lanes(&mut self.positive, positive);
        add_lanes(&mut self.derivatives, derivatives);
        let (chunks, rest) = factors.as_chunks::<LANES>();
        for chunk in chunks {
            for (product, factor) in self.products.iter_mut().zip(chunk) {
                *product *= factor;
            }
        }
        for (product, factor) in self.products.iter_mut().zip(rest) {
            *product *= factor;
        }
        self.chunks += 1;
        if self.chunks == CHUNKS_PER_LOGARITHM {
            self.logarithms += self
                .products
                .iter()
                .map(|product| libm::log(*product))
                .sum::<f64>();
            self.products = [1.0; LANES];
            self.chunks = 0;
        }
    }
}

#[inline(always)]
fn add_lanes(sums: &mut [f64; LANES], values: &[f64]) {
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value;
    }
}

/// Both kinds of pairs.
#[derive(Debug, Clone)]
pub(super) struct Tallies {
    pub(super) similar: Tally,
    pub(super) dissimilar: Tally,
}

impl Tallies {
    pub(super) fn new() -> Self {
        Self {
            similar: Tally::new(),
            dissimilar: Tally::new(),
        }
    }

    /// The weighted loss of both.
    pub(super) fn loss(&self, kinds: Kinds) -> f64 {
        kinds.similar * self.similar.loss() + kinds.dissimilar * self.dissimilar.loss()
    }

    /// Sum of the weighted derivatives with respect to s, of both.
    pub(super) fn derivative(&self) -> f64 {
        self.similar.derivative() + self.dissimilar.derivative()
    }
}

/// A run of pairs of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// y: +1 or -1.
    pub(super) sign: f64,
    /// w.
    pub(super) weight: f64,
    /// b.
    pub(super) threshold: f64,
}

/// Weights and threshold of labelled pairs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    /// w of similar pairs.
    pub(super) similar: f64,
    /// w of dissimilar pairs.
    pub(super) dissimilar: f64,
    /// b.
    pub(super) threshold: f64,
}

/// exp(-a) for a >= 0, to about one rounding: Cody and Waite's reduction and Taylor's series to the
/// thirteenth power, whose remainder on |r| <= log(2)/2 is below 5e-18.
#[inline(always)]
fn exponential_of_minus(a: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: adding it rounds to a whole number
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if a < EXPONENT_MAX { -a } else { -EXPONENT_MAX };
    let shifted = x * std::f64::consts::LOG2_E + SHIFT;
    let whole = shifted - SHIFT;
    let r = (x - whole * LN_2_HIGH) - whole * LN_2_LOW;
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let p0 = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0));
    let p4 = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5_040.0));
    let p8 = (1.0 / 40_320.0 + r * (1.0 / 362_880.0))
        + r2 * (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0));
    let p12 = 1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0);
    let series = p0 + r4 * (p4 + r4 * (p8 + r4 * p12));
    // the low bits of `shifted` hold the whole number: move them into the exponent
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    series * power
}

/// The inner products of one row, whose entries are `own`, with rows that stand side by side: entry k of each in row k of `columns`, which
/// are `stride` apart.
#[inline(always)]
fn products_body(own: &[f64], columns: &[f64], stride: usize, products: &mut [f64]) {
    let length = products.len();
    products.fill(0.0);
    let (several, last) = own.as_chunks::<4>();
    for (entries, columns) in several.iter().zip(columns.chunks(4 * stride)) {
        let row = |place: usize| &columns[place * stride..][..length];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        for (place, sum) in products.iter_mut().enumerate() {
            let first = entries[0] * a[place] + entries[1] * b[place];
            *sum += first + (entries[2] * c[place] + entries[3] * d[place]);
        }
    }
    let rest = columns.chunks(stride).skip(4 * several.len());
    for (entry, column) in last.iter().zip(rest) {
        for (sum, other) in products.iter_mut().zip(column) {
            *sum += entry * other;
        }
    }
}

/// With G = -w y sigma the second derivative w sigma (1 - sigma) is |G| - G^2 / w: of each kind the sums of both.
#[inline(always)]
fn add_curvatures_body(derivatives: &[f64], kinds: Kinds, sum: &mut f64) {
    let mut sums = [[0.0; LANES]; 4];
    let (chunks, rest) = derivatives.as_chunks::<LANES>();
    for chunk in chunks {
        add_sizes(chunk, &mut sums);
    }
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    add_sizes(&last, &mut sums);
    let [similar, similar_squares, dissimilar, dissimilar_squares] =
        sums.map(|lanes| lanes.iter().sum::<f64>());
    *sum += similar - similar_squares / kinds.similar;
    *sum += dissimilar - dissimilar_squares / kinds.dissimilar;
}

/// Adds the sizes and squares of derivatives below 0, which are of similar pairs, and of those above.
#[inline(always)]
fn add_sizes(chunk: &[f64; LANES], sums: &mut [[f64; LANES]; 4]) {
    let [similar, similar_squares, dissimilar, dissimilar_squares] = sums;
    for lane in 0..LANES {
        let value = chunk[lane];
        let below = if value < 0.0 { -value } else { 0.0 };
        let above = if value < 0.0 { 0.0 } else { value };
        similar[lane] += below;
        similar_squares[lane] += below * below;
        dissimilar[lane] += above;
        dissimilar_squares[lane] += above * above;
    }
}

/// The sum of the second derivatives w sigma (1 - sigma) over pairs of these derivatives G = -w y sigma.
pub(super) fn curvature_sum(derivatives: &[f64], kinds: Kinds) -> f64 {
    let mut sum = 0.0;
    add_curvatures(derivatives, kinds, &mut sum);
    sum
}

#[inline(always)]
fn sweep_run_body(similarities: &mut [f64], kind: Kind, tally: &mut Tally) {
    let mut positive = [0.0; CHUNK];
    let mut factors = [1.0; CHUNK];
    let outer = -kind.weight * kind.sign;
    for chunk in similarities.chunks_mut(CHUNK) {
        let length = chunk.len();
        let (positive, factors) = (&mut positive[..length], &mut factors[..length]);
        for at in 0..length {
            let z = kind.sign * (chunk[at] - kind.threshold);
            let e = exponential_of_minus(z.abs());
            let factor = 1.0 + e;
            let share = 1.0 / factor;
            positive[at] = if z < 0.0 { -z } else { 0.0 };
            factors[at] = factor;
            chunk[at] = outer * if z < 0.0 { share } else { e * share };
        }
        tally.add(positive, factors, chunk);
    }
}

#[inline(always)]
fn sweep_labelled_body(
    similarities: &mut [f64],
    labels: &[i8],
    kinds: Kinds,
    tallies: &mut Tallies,
) {
    let mut positive = [[0.0; CHUNK]; 2];
    let mut factors = [[1.0; CHUNK]; 2];
    let mut derivatives = [[0.0; CHUNK]; 2];
    let mut signs = [0.0; CHUNK];
    for (chunk, labels) in similarities.chunks_mut(CHUNK).zip(labels.chunks(CHUNK)) {
        for (sign, label) in signs.iter_mut().zip(labels) {
            *sign = f64::from(*label);
        }
        for (at, similarity) in chunk.iter_mut().enumerate() {
            let sign = signs[at];
            let z = sign * (*similarity - kinds.threshold);
            // an unlabelled pair has z = 0: its terms are taken out by the masks
            let e = exponential_of_minus(z.abs());
            let share = 1.0 / (1.0 + e);
            let below = if z < 0.0 { -z } else { 0.0 };
            let sigma = if z < 0.0 { share } else { e * share };
            let (similar, dissimilar) = (sign > 0.0, sign < 0.0);
            positive[0][at] = if similar { below } else { 0.0 };
            positive[1][at] = if dissimilar { below } else { 0.0 };
            factors[0][at] = if similar { 1.0 + e } else { 1.0 };
            factors[1][at] = if dissimilar { 1.0 + e } else { 1.0 };
            derivatives[0][at] = if similar { -kinds.similar * sigma } else { 0.0 };
            derivatives[1][at] = if dissimilar {
                kinds.dissimilar * sigma
            } else {
                0.0
            };
            *similarity = derivatives[0][at] + derivatives[1][at];
        }
        let end = chunk.len();
        tallies.similar.add(
            &positive[0][..end],
            &factors[0][..end],
            &derivatives[0][..end],
        );
        tallies.dissimilar.add(
            &positive[1][..end],
            &factors[1][..end],
            &derivatives[1][..end],
        );
    }
}

widths! {
    /// Replaces every s by the weighted derivative -w y sigma(-y (s - b)), all pairs of one kind.
    pub(super) sweep_run = sweep_run_body(similarities: &mut [f64], kind: Kind, tally: &mut Tally)
}

widths! {
    /// Replaces every s by the weighted derivative, each pair by its own label (0 gives 0).
    pub(super) sweep_labelled = sweep_labelled_body(
        similarities: &mut [f64], labels: &[i8], kinds: Kinds, tallies: &mut Tallies
    )
}

widths! {
    /// Inner products of one row with rows that stand side by side.
    pub(super) products = products_body(
        own: &[f64], columns: &[f64], stride: usize, products: &mut [f64]
    )
}

widths! {
    /// Adds the sum of the second derivatives.
    add_curvatures = add_curvatures_body(derivatives: &[f64], kinds: Kinds, sum: &mut f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarities() -> Vec<f64> {
        let middle = (-4000..4000).map(|step| f64::from(step) * 0.011 + 0.0037);
        middle
            .chain([0.0, -0.0, 1.0, 700.0, -700.0, 1e6, -1e6, 1e300, -1e300])
            .collect()
    }

    #[test]
    fn products_with_rows_side_by_side_are_inner_products() {
        for rank in 1..10 {
            let stride = 7;
            let columns: Vec<f64> = (0..rank * stride).map(|at| libm::sin(at as f64)).collect();
            let own: Vec<f64> = (0..rank).map(|at| 0.3 + at as f64).collect();
            for first in 0..stride {
                let mut found = vec![1.0; stride - first];
                products(&own, &columns[first..], stride, &mut found);
                for (row, found) in (first..stride).zip(found) {
                    let terms = own.iter().enumerate();
                    let wanted: f64 = terms.map(|(k, own)| own * columns[k * stride + row]).sum();
                    assert!((found - wanted).abs() < 1e-13, "{rank} {row}");
                }
            }
        }
    }

    #[test]
    fn the_exponential_is_within_two_roundings_of_the_standard_one() {
        for step in 0..70_700 {
            let a = f64::from(step) * 0.01;
            let (found, wanted) = (exponential_of_minus(a), (-a).exp());
            assert!(
                (found / wanted - 1.0).abs() < 4.5e-16,
                "at {a}: {found} for {wanted}"
            );
        }
        assert!(exponential_of_minus(1e300) < 1e-300);
    }

    #[test]
    fn a_run_adds_up_to_softplus_and_sigma_of_each() {
        for sign in [1.0, -1.0] {
            let kind = Kind {
                sign,
                weight: 0.7,
                threshold: 1.0,
            };
            let mut values = similarities();
            let mut tally = Tally::new();
            sweep_run(&mut values[..8007], kind, &mut tally);
            let (mut loss, mut derivative) = (0.0, 0.0);
            for (s, found) in similarities()[..8007].iter().zip(&values) {
                let z = sign * (s - 1.0);
                loss += (-z).max(0.0) + (-z.abs()).exp().ln_1p();
                let wanted = -0.7 * sign / (1.0 + z.exp());
                derivative += wanted;
                assert!(
                    (found - wanted).abs() <= 1e-15 * wanted.abs() + 1e-300,
                    "{found} {wanted}"
                );
            }
            assert!((tally.loss() / loss - 1.0).abs() < 1e-13);
            assert!((tally.derivative() / derivative - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn labelled_pairs_agree_with_runs_and_unlabelled_ones_count_for_nothing() {
        let labels: Vec<i8> = (0..similarities().len())
            .map(|at| (at % 3) as i8 - 1)
            .collect();
        let kinds = Kinds {
            similar: 0.7,
            dissimilar: 1.9,
            threshold: 0.4,
        };
        let mut values = similarities();
        let mut tallies = Tallies::new();
        sweep_labelled(&mut values, &labels, kinds, &mut tallies);
        for (label, weight, tally) in [(1, 0.7, &tallies.similar), (-1, 1.9, &tallies.dissimilar)] {
            let of_kind = |values: &[f64]| -> Vec<f64> {
                let mine = values
                    .iter()
                    .zip(&labels)
                    .filter(|(_, found)| **found == label);
                mine.map(|(value, _)| *value).collect()
            };
            let mut run = of_kind(&similarities());
            let mut wanted = Tally::new();
            let kind = Kind {
                sign: f64::from(label),
                weight,
                threshold: 0.4,
            };
            sweep_run(&mut run, kind, &mut wanted);
            assert_eq!(of_kind(&values), run);
            assert!((tally.loss() / wanted.loss() - 1.0).abs() < 1e-13);
        }
        assert!(
            values
                .iter()
                .zip(&labels)
                .all(|(value, label)| *label != 0 || *value == 0.0)
        );
    }

    #[test]
    fn every_register_width_gives_equal_bits() {
        let kind = Kind {
            sign: -1.0,
            weight: 1.3,
            threshold: 1.0,
        };
        let (mut plain, mut widest) = (similarities(), similarities());
        let (mut plain_tally, mut widest_tally) = (Tally::new(), Tally::new());
        sweep_run_body(&mut plain, kind, &mut plain_tally);
        sweep_run(&mut widest, kind, &mut widest_tally);
        assert!(
            plain
                .iter()
                .zip(&widest)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
        assert_eq!(plain_tally.loss().to_bits(), widest_tally.loss().to_bits());
    }
}
