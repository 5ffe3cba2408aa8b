use super::*;
use ndarray::s;

/// Points of a small grid, so that many scores are equal, and all of them exact.
fn points(count: usize, step: usize) -> Array2<f64> {
    let coordinate = |(row, column): (usize, usize)| ((row * step + 7 * column) % 5) as f64;
    Array2::from_shape_fn((count, 3), coordinate)
}

fn sorted(
    candidates: &Array2<f64>,
    query: ndarray::ArrayView1<f64>,
    rule: NeighbourRule,
    but: Option<usize>,
    count: usize,
) -> Vec<Neighbour> {
    let score = |row: usize| match rule {
        NeighbourRule::Distance => {
            let apart = &candidates.row(row) - &query;
            apart.dot(&apart)
        }
        NeighbourRule::InnerProduct => candidates.row(row).dot(&query),
    };
    let others = (0..candidates.nrows()).filter(|row| Some(*row) != but);
    let mut all: Vec<Neighbour> = others
        .map(|row| Neighbour {
            row,
            score: score(row),
        })
        .collect();
    all.sort_by(|a, b| match rule {
        NeighbourRule::Distance => a.score.total_cmp(&b.score),
        NeighbourRule::InnerProduct => b.score.total_cmp(&a.score),
    });
    all.truncate(count);
    all
}

/// Points of which many are equal and none is far from others, so that groups of near ones overlap.
fn crowd(count: usize, columns: usize) -> Array2<f64> {
    let coordinate = |(row, column): (usize, usize)| {
        let spread = [40, 9, 5, 3][column % 4];
        ((row * 7_919 + column * 104_729 + row * row % 31) % spread) as f64
    };
    Array2::from_shape_fn((count, columns), coordinate)
}

#[test]
fn groups_of_near_ones_leave_the_nearest_and_of_equal_scores_the_first_rows() {
    for columns in [1, 3, 8] {
        let stored = crowd(5_000, columns);
        let candidates = Candidates::new(stored.view());
        for rule in [NeighbourRule::Distance, NeighbourRule::InnerProduct] {
            let asked = &crowd(700, columns) * 1.5;
            assert!(
                grouped::search(&candidates, &asked.view(), rule, (9, false)).is_some(),
                "{columns} columns"
            );
            let found = candidates.nearest(&asked.view(), rule, 9).unwrap();
            for query in (0..700).step_by(13) {
                let wanted = sorted(&stored, asked.row(query), rule, None, 9);
                assert_eq!(found[query], wanted, "{rule:?}, query {query}");
            }
            let found = candidates.nearest_others(rule, 4).unwrap();
            for query in (0..5_000).step_by(77) {
                let wanted = sorted(&stored, stored.row(query), rule, Some(query), 4);
                assert_eq!(found[query], wanted, "{rule:?}, patient {query}");
            }
        }
    }
}

/// Numbers that single precision cannot tell apart, or has no place for.
#[test]
fn single_precision_leaves_the_nearest() {
    for (factor, far) in [
        (1.0, 0.0),
        (1e-25, 0.0),
        (1.0, 4e4),
        (1e12, 0.0),
        (1e20, 0.0),
    ] {
        let stored = (crowd(3_000, 30) + far) * factor;
        let asked = stored.slice(s![..600, ..]).to_owned() * 1.5 - 0.5 * far * factor;
        let candidates = Candidates::new(stored.view());
        let found = candidates.nearest(&asked.view(), NeighbourRule::Distance, 9);
        let others = candidates.nearest_others(NeighbourRule::Distance, 9);
        let narrow = candidates.narrow.get().and_then(Option::as_ref);
        assert_eq!(narrow.is_some(), factor < 1e20, "{factor} {far}");
        let scores = |found: &[Neighbour]| found.iter().map(|one| one.score).collect::<Vec<_>>();
        for (found, asked) in [(found.unwrap(), &asked), (others.unwrap(), &stored)] {
            let but = |query| (asked == stored).then_some(query);
            for query in (0..600).step_by(13) {
                let wanted = sorted(
                    &stored,
                    asked.row(query),
                    NeighbourRule::Distance,
                    but(query),
                    9,
                );
                let (found, wanted) = (scores(&found[query]), scores(&wanted));
                let size = 30.0 * (factor * (40.0 + far)).powi(2);
                let near = found.iter().zip(&wanted);
                assert!(
                    near.clone().all(|(a, b)| (a - b).abs() <= 1e-14 * size),
                    "{factor} {far}: {found:?} {wanted:?}"
                );
            }
        }
    }
}

#[test]
fn neighbours_of_all_parts_and_of_other_parts_come_from_one_walk() {
    let stored = points(1_400, 11);
    let parts: Vec<usize> = (0..1_400).map(|row| row % 5).collect();
    let rows: Vec<usize> = (0..1_400).step_by(3).collect();
    for rule in [NeighbourRule::Distance, NeighbourRule::InnerProduct] {
        let counts = |part: usize| 3 + part;
        let both = neighbours_apart(&stored.view(), &rows, &parts, rule, (6, &counts));
        let both = both.unwrap();
        let all = Candidates::new(stored.view());
        let all = all.nearest_of_rows(&rows, rule, 6).unwrap();
        assert_eq!(both.of_all, all, "{rule:?}");
        for (row, found) in rows.iter().zip(&both.of_others).step_by(40) {
            let others: Vec<usize> = (0..1_400).filter(|at| parts[*at] != parts[*row]).collect();
            let candidates = stored.select(Axis(0), &others);
            let count = counts(parts[*row]);
            let mut wanted = sorted(&candidates, stored.row(*row), rule, None, count);
            wanted
                .iter_mut()
                .for_each(|near| near.row = others[near.row]);
            assert_eq!(*found, wanted, "{rule:?}, patient {row}");
        }
    }
}

/// One query walks the candidates in strips that are merged, many in blocks of queries: equal scores go by row in both.
#[test]
fn of_equal_scores_the_first_rows_are_kept_in_strips_and_in_blocks() {
    let stored = points(3_000, 11);
    let candidates = Candidates::new(stored.view());
    for rule in [NeighbourRule::Distance, NeighbourRule::InnerProduct] {
        for (queries, count) in [(1, 9), (2, 3_001), (300, 40), (5_000, 2)] {
            let asked = points(queries, 3);
            let found = candidates.nearest(&asked.view(), rule, count).unwrap();
            assert_eq!(found.len(), queries);
            for query in [0, queries / 2, queries - 1] {
                let wanted = sorted(&stored, asked.row(query), rule, None, count);
                assert_eq!(found[query], wanted, "{rule:?}, query {query} of {queries}");
            }
        }
        let found = candidates.nearest_others(rule, 6).unwrap();
        for query in [0, 511, 512, 1_536, 2_999] {
            let wanted = sorted(&stored, stored.row(query), rule, Some(query), 6);
            assert_eq!(found[query], wanted, "{rule:?}, patient {query}");
        }
        let rows = [2_999, 0, 1_536];
        let some = candidates.nearest_of_rows(&rows, rule, 6).unwrap();
        for (row, near) in rows.iter().zip(some) {
            assert_eq!(near, found[*row], "{rule:?}, patient {row}");
        }
    }
}
