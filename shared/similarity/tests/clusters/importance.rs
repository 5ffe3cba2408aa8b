//! What marks a cluster, and what does not.

use super::*;
use similarity::cohort::MISSING_LEVEL;
use similarity::uses::clusters::{Contrast, Spread, importance};

fn columns() -> (Vec<Column>, Vec<u32>) {
    use rand::RngExt;
    let mut stream = Seed(21).stream("columns", 0);
    let assigned: Vec<u32> = (0..240)
        .map(|row| u32::from(row % 4 == 0) + u32::from(row % 8 == 0))
        .collect();
    let mut draw = || stream.random_range(-1.0..1.0_f64);
    let numeric = |name: &str, values: Vec<f64>| Column {
        name: name.to_owned(),
        values: Values::Numeric(values.into()),
    };
    let marking: Vec<f64> = assigned
        .iter()
        .map(|own| draw() + f64::from(u8::from(*own == 2)))
        .collect();
    let noise: Vec<Vec<f64>> = (0..20)
        .map(|_| assigned.iter().map(|_| draw()).collect())
        .collect();
    let levels: Vec<u32> = assigned
        .iter()
        .enumerate()
        .map(|(row, own)| match draw() {
            _ if row == 5 => MISSING_LEVEL,
            draw if *own == 1 => u32::from(draw > 0.6),
            draw => u32::from(draw > -0.6),
        })
        .collect();
    let mut columns = vec![
        numeric("marking", marking),
        Column {
            name: "level".to_owned(),
            values: Values::Categorical {
                codes: levels.into(),
                levels: vec!["a".to_owned(), "b".to_owned()],
            },
        },
        numeric("constant", vec![3.0; 240]),
    ];
    columns.extend(
        noise
            .into_iter()
            .enumerate()
            .map(|(place, values)| numeric(&format!("noise {place}"), values)),
    );
    (columns, assigned)
}

#[test]
fn what_was_planted_marks_its_cluster_and_noise_does_not() {
    let (columns, assigned) = columns();
    for contrast in [Contrast::Wasserstein, Contrast::JensenShannon] {
        let found = importance(&columns, (&assigned, 3), contrast, (199, Seed(1)));
        assert_eq!((found.marks.len(), found.marks[0].len()), (3, 23));
        assert!(
            found.marks[2][0].p < 0.02,
            "{contrast:?} {:?}",
            found.marks[2][0]
        );
        assert!(
            found.marks[1][1].p < 0.02,
            "{contrast:?} {:?}",
            found.marks[1][1]
        );
        assert!(found.marks[2][0].distance > found.marks[2][0].by_chance);
        for of_cluster in &found.marks {
            assert_eq!(of_cluster[2].distance, 0.0);
            assert_eq!(of_cluster[2].p, 1.0);
            let marked = of_cluster[3..].iter().filter(|mark| mark.p < 0.05).count();
            assert!(marked <= 1, "{contrast:?} {marked}");
        }
        let again = importance(&columns, (&assigned, 3), contrast, (199, Seed(1)));
        assert_eq!(found, again);
    }
}

/// Each of 60 cohorts of noise alone is said to be marked in one of 20 clusters, give or take.
#[test]
fn of_noise_as_many_clusters_are_marked_as_p_says() {
    use rand::RngExt;
    let mut marked = 0;
    for cohort in 0..60 {
        let mut stream = Seed(40).stream("noise", cohort);
        let mut column = |place: usize| Column {
            name: format!("{place}"),
            values: Values::Numeric(
                (0..40)
                    .map(|_| stream.random_range(0.0..1.0_f64).powi(1 + place as i32))
                    .collect(),
            ),
        };
        let columns: Vec<Column> = (0..8).map(&mut column).collect();
        let assigned: Vec<u32> = (0..40).map(|row| row % 2).collect();
        let found = importance(
            &columns,
            (&assigned, 2),
            Contrast::Wasserstein,
            (99, Seed(cohort)),
        );
        marked += usize::from(found.marks[0].iter().any(|mark| mark.p <= 0.05));
    }
    assert!(marked <= 8, "{marked} of 60");
}

#[test]
fn the_distance_of_a_cluster_is_scipys_between_it_and_the_rest_in_standard_deviations() {
    let (columns, assigned) = columns();
    let found = importance(
        &columns,
        (&assigned, 3),
        Contrast::Wasserstein,
        (9, Seed(1)),
    );
    let Values::Numeric(values) = &columns[0].values else {
        panic!("not numbers")
    };
    let of = |wanted: bool| -> Vec<f64> {
        let both = values.iter().zip(&assigned);
        both.filter(|(_, own)| (**own == 2) == wanted)
            .map(|(value, _)| *value)
            .collect()
    };
    let spread = values.std(0.0);
    let wanted = wasserstein(&of(true), &of(false)) / spread;
    assert!((found.marks[2][0].distance - wanted).abs() < 1e-12);
}

#[test]
fn a_spread_is_of_known_values_alone() {
    let values = Values::Numeric(vec![4.0, f64::NAN, 1.0, 3.0, 2.0, 5.0].into());
    let Spread::Numbers(points) = Spread::of(&values, &[0, 1, 2, 3, 4, 5]) else {
        panic!("levels")
    };
    assert_eq!(points, [1.2, 2.0, 3.0, 4.0, 4.8]);
    let values = Values::Categorical {
        codes: vec![0, 1, MISSING_LEVEL, 1].into(),
        levels: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(
        Spread::of(&values, &[1, 2, 0]),
        Spread::Levels(vec![0.5, 0.5])
    );
}
