//! Patients' rows from the jumps of a gradient.
//!
//! Column 1 of W is T w with a huge T, the others are eps e_k. Every s_ij is then plus or minus infinity by the
//! signs g_i of w'x_i, the matrix G of the loss is (g g' - c c') / 2 with the classes c, and the columns of
//! the gradient are those of X'GX. Where w turns past one patient x, u = X'g becomes u +- 2 x, and the
//! gradient jumps by D = (u2 u2' - u1 u1') / 2. Two jumps in a row share the u between them.

use super::site::FEATURES;
use ndarray::{Array1, Array2, s};

/// Columns of W.
pub(crate) const RANK: usize = 8;
/// The first feature whose column is looked at; w lies in the plane of the first two.
const FIRST: usize = 2;
const SEEN: usize = RANK - 1;
const EPSILON: f64 = 1e-3;
const TOLERANCE: f64 = 1e-5;

/// W that looks from `angle` with the scale `steep`.
pub(crate) fn view(angle: f64, steep: f64) -> Array2<f64> {
    let mut metric = Array2::zeros((FEATURES, RANK));
    metric[[0, 0]] = steep * angle.cos();
    metric[[1, 0]] = steep * angle.sin();
    for column in 0..SEEN {
        metric[[FIRST + column, column + 1]] = EPSILON;
    }
    metric
}

/// Turns w through a half circle in so many rounds; `look` gives the sum of the pairs' gradients at a metric, of one site or of
/// several. Gives the rows that the jumps tell, and how many rounds were answered.
pub(crate) fn recover(
    mut look: impl FnMut(&Array2<f64>) -> Option<Array2<f64>>,
    rounds: u32,
    steep: f64,
) -> (Vec<Array1<f64>>, u32) {
    let mut seen: Vec<(f64, Array2<f64>)> = Vec::new();
    for round in 0..rounds {
        let angle = std::f64::consts::PI * f64::from(round) / f64::from(rounds);
        let metric = view(angle, steep);
        let Some(gradient) = look(&metric) else {
            break;
        };
        seen.push((angle, gradient.slice(s![.., 1..]).mapv(|x| x / EPSILON)));
    }
    let answered = u32::try_from(seen.len()).unwrap();
    let jumps: Vec<(f64, Array2<f64>)> = seen
        .windows(2)
        .map(|two| (two[0].0, &two[1].1 - &two[0].1))
        .filter(|(_, jump)| norm(jump) > 1e-3)
        .collect();
    let rows = (0..jumps.len()).filter_map(|place| {
        // The next jump of the same site: no other shares a direction.
        let mut later = jumps[place + 1..].iter();
        // w between the two jumps.
        later.find_map(|(angle, next)| row(&jumps[place].1, next, *angle))
    });
    (rows.collect(), answered)
}

fn row(jump: &Array2<f64>, next: &Array2<f64>, angle: f64) -> Option<Array1<f64>> {
    let (basis, other) = (plane(jump)?, plane(next)?);
    // The direction that both planes hold.
    let cross = basis.t().dot(&other);
    let [weight, direction] = top(&cross.dot(&cross.t()));
    if (weight[0] - 1.0).abs() > TOLERANCE {
        return None;
    }
    // jump = B Q B', known in the columns that were seen.
    let known = basis.slice(s![FIRST..FIRST + SEEN, ..]);
    let form = basis
        .t()
        .dot(jump)
        .dot(&known)
        .dot(&inverse(&known.t().dot(&known)));
    let form = (&form + &form.t()) / 2.0;
    let dual = inverse(&form);
    let size = |vector: &Array1<f64>| vector.dot(&dual.dot(vector));
    let after = scaled(&direction, 2.0 / size(&direction))?;
    let turned = dual.dot(&after);
    let before = Array1::from(vec![-turned[1], turned[0]]);
    let before = scaled(&before, -2.0 / size(&before))?;
    let (after, before) = (basis.dot(&after), basis.dot(&before));
    // w'u is the sum of all |w'x|.
    let facing = after[0] * angle.cos() + after[1] * angle.sin();
    let (minus, plus) = ((&after - &before) / 2.0, (&after + &before) / 2.0);
    let short = if minus.dot(&minus) < plus.dot(&plus) {
        minus
    } else {
        plus
    };
    // The patient turned to the side of w: u grew by 2 x.
    Some(if facing > 0.0 { short } else { -short })
}

fn scaled(vector: &Array1<f64>, square: f64) -> Option<Array1<f64>> {
    (square.is_finite() && square > 0.0).then(|| vector * square.sqrt())
}

/// An orthonormal basis, d x 2, of the columns of a matrix of rank 2; none of any other rank.
fn plane(jump: &Array2<f64>) -> Option<Array2<f64>> {
    let mut rest = jump.clone();
    let whole = norm(jump);
    let mut basis = Array2::zeros((jump.nrows(), 2));
    for place in 0..2 {
        let longest = rest
            .columns()
            .into_iter()
            .max_by(|a, b| a.dot(a).total_cmp(&b.dot(b)))?
            .to_owned();
        let unit = &longest / longest.dot(&longest).sqrt();
        let shares = unit.dot(&rest);
        for (column, share) in shares.iter().enumerate() {
            let mut column = rest.column_mut(column);
            column.scaled_add(-share, &unit);
        }
        basis.column_mut(place).assign(&unit);
    }
    (norm(&rest) < TOLERANCE * whole).then_some(basis)
}

/// The largest eigenvalue of a symmetric 2 x 2 matrix, and its eigenvector.
fn top(matrix: &Array2<f64>) -> [Array1<f64>; 2] {
    let (a, b, c) = (matrix[[0, 0]], matrix[[0, 1]], matrix[[1, 1]]);
    let value = (a + c) / 2.0 + (((a - c) / 2.0).powi(2) + b * b).sqrt();
    let vector = if b.abs() > 1e-300 {
        Array1::from(vec![b, value - a])
    } else if a >= c {
        Array1::from(vec![1.0, 0.0])
    } else {
        Array1::from(vec![0.0, 1.0])
    };
    let length = vector.dot(&vector).sqrt();
    [Array1::from(vec![value]), vector / length]
}

fn inverse(matrix: &Array2<f64>) -> Array2<f64> {
    let (a, b, c, d) = (
        matrix[[0, 0]],
        matrix[[0, 1]],
        matrix[[1, 0]],
        matrix[[1, 1]],
    );
    let determinant = a * d - b * c;
    ndarray::array![[d, -b], [-c, a]] / determinant
}

fn norm(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// How many patients' whole rows are among `rows`, up to the sign, to one part in a thousand.
pub(crate) fn told(rows: &[Array1<f64>], truth: &Array2<f64>) -> usize {
    let near = |patient: &ndarray::ArrayView1<f64>| {
        rows.iter().any(|row| {
            let apart = row - patient;
            let mirrored = row + patient;
            let apart = apart.dot(&apart).min(mirrored.dot(&mirrored));
            apart.sqrt() < 1e-3 * patient.dot(patient).sqrt()
        })
    };
    truth.rows().into_iter().filter(near).count()
}
