use super::*;
use crate::uses::neighbours::{Candidates, NeighbourRule, neighbours};
use ndarray::Array2;
use ndarray::array;
use rand_distr::{Distribution, StandardNormal};

fn patients(count: usize) -> Array2<f64> {
    let mut stream = crate::numeric::seed::Seed(1).stream("test", 0);
    Array2::from_shape_simple_fn((count, 3), || StandardNormal.sample(&mut stream))
}

#[test]
fn neighbours_are_the_head_of_the_sorted_list() {
    // more than one block of queries and of candidates
    let all = patients(1100);
    for rule in [NeighbourRule::Distance, NeighbourRule::InnerProduct] {
        let found = Candidates::new(all.view()).nearest_others(rule, 7).unwrap();
        for query in [0, 511, 512, 1099] {
            let score = |other: usize| match rule {
                NeighbourRule::Distance => {
                    (&all.row(query) - &all.row(other)).mapv(|v| v * v).sum()
                }
                NeighbourRule::InnerProduct => -all.row(query).dot(&all.row(other)),
            };
            let mut others: Vec<usize> = (0..1100).filter(|other| *other != query).collect();
            others.sort_by(|a, b| score(*a).total_cmp(&score(*b)));
            let rows: Vec<usize> = found[query].iter().map(|near| near.row).collect();
            assert_eq!(rows, others[..7]);
        }
    }
}

#[test]
fn the_majority_wins_and_equal_votes_go_to_the_nearest() {
    let near = |rows: &[usize]| {
        rows.iter()
            .map(|&row| Neighbour { row, score: 0.0 })
            .collect::<Vec<_>>()
    };
    let classes = array![0, 1, 1, 2];
    let queries = [near(&[0, 1, 2]), near(&[3, 0, 1]), near(&[1, 3])];
    assert_eq!(vote(&queries, &classes).unwrap(), array![1, 2, 1]);
    assert!(vote(&queries, &array![0]).is_err());
}

#[test]
fn scores_are_those_of_the_counts() {
    // by their definitions; scikit-learn gives the same (tests/reference/unpsl)
    let counts = BinaryCounts {
        true_positive: 8,
        false_positive: 2,
        true_negative: 5,
        false_negative: 4,
    };
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-15;
    assert!(near(counts.accuracy(), 13.0 / 19.0));
    assert!(near(counts.recall(), 2.0 / 3.0));
    assert!(near(counts.precision(), 0.8));
    assert!(near(counts.f1(), 8.0 / 11.0));
    assert!(near(counts.f2(), 20.0 / 29.0));
    let nobody = BinaryCounts::default();
    assert_eq!(
        (nobody.accuracy(), nobody.recall(), nobody.f1()),
        (None, None, None)
    );
}

#[test]
fn counts_of_sites_add_up() {
    let (predicted, actual) = (array![1, 0, 1, 2, 0, 1], array![1, 1, 0, 2, 0, 1]);
    let whole = BinaryCounts::of(&predicted, &actual, 1);
    let part = |range: std::ops::Range<usize>| {
        let cut = |codes: &Array1<u32>| codes.slice(s![range.clone()]).to_owned();
        BinaryCounts::of(&cut(&predicted), &cut(&actual), 1)
    };
    let mut merged = part(0..2);
    merged.merge(&part(2..6));
    assert_eq!(merged, whole);
    let right = RightCounts::of(&predicted, &actual);
    assert_eq!(right, RightCounts { right: 4, wrong: 2 });
}

#[test]
fn pairs_are_counted_once_each() {
    let all = patients(600);
    let labels = Labels::Classes((0..600).map(|patient| patient % 3).collect());
    let found = count_pairs(&all.view(), &labels, Form::InnerProduct, 0.3).unwrap();
    let mut wanted = BinaryCounts::default();
    for i in 0..600 {
        for j in 0..i {
            wanted.add(all.row(i).dot(&all.row(j)) >= 0.3, i % 3 == j % 3);
        }
    }
    assert_eq!(found, wanted);
    assert!(count_pairs(&patients(5).view(), &labels, Form::InnerProduct, 0.3).is_err());
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let (few, none) = (patients(3), Array2::zeros((0, 3)));
    let rule = NeighbourRule::default();
    let within = |count| Candidates::new(few.view()).nearest_others(rule, count);
    assert_eq!(within(0), Err(EvaluateError::NoNeighbours));
    assert!(neighbours(&none.view(), &few.view(), rule, 1).is_err());
    let alone = Candidates::new(few.slice(s![..1, ..]));
    assert!(alone.nearest_others(rule, 1).is_err());
    assert!(neighbours(&few.slice(s![.., ..2]), &few.view(), rule, 1).is_err());
    // fewer candidates than asked for: all of them
    assert_eq!(within(9).unwrap()[0].len(), 2);
}
