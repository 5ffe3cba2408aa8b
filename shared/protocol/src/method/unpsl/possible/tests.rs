//! No sums of patients are refused, of whatever shape and however they weigh; and the bounds are not far from some.

use super::super::message::Part;
use super::super::supervision::Supervision;
use super::*;
use crate::job::Job;
use crate::method::Method;
use ndarray::Axis;
use similarity::learn::unpsl::selection::Folds;
use similarity::learn::unpsl::{
    JudgedPairs, Labels, Pairs, SiteDerivatives, SiteObjective, Threshold, summarise,
};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

const FEATURES: usize = 5;
const FOLDS: usize = 3;

/// Numbers from 0 to 1 that follow from a place.
fn number(at: usize) -> f64 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn settings() -> UnpslSettings {
    let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
        [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
        [[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\nrank = 1\n";
    let Method::Unpsl(settings) = Job::parse(job).unwrap().method else {
        panic!("the job learns by UnPSL");
    };
    settings
}

/// Patients of sites of other sizes, which are unequal or small: most values are small, some far out, one column is nearly another,
/// and one is 0 but for few.
fn sites(case: usize) -> Vec<(Array2<f64>, Vec<u32>)> {
    let sizes = match case / 3 % 4 {
        0 => vec![12, 30 + case % 7, 80],
        1 => vec![13; 4],
        2 => vec![10, 140],
        _ => vec![20, 21, 22, 23],
    };
    let patients = |(site, patients): (usize, &usize)| {
        let at = |row: usize, column: usize| 1 + case * 9_973 + site * 7_919 + row * 31 + column;
        let value = |(row, column): (usize, usize)| {
            let far = match number(at(row, column + 9)) > 0.97 {
                true => 8.0,
                false => 1.0,
            };
            let own = far * (number(at(row, column)) - 0.5) * 3.4;
            let twin = (number(at(row, 0)) - 0.5) * 3.4;
            match column {
                3 => far - 1.0,
                4 => twin + 0.01 * own,
                _ => own,
            }
        };
        let x = Array2::from_shape_fn((*patients, FEATURES), value);
        let border = [0.4, 1.6, 2.1][case / 2 % 3];
        let class = |row| u32::from(row % 11 == 0 || x[[row, 0]] + number(at(row, 20)) > border);
        let classes = (0..*patients).map(class).collect();
        (x, classes)
    };
    sizes.iter().enumerate().map(patients).collect()
}

fn labels(supervision: Supervision, classes: &[u32]) -> Labels {
    let judged = || {
        let pairs = (1..classes.len()).map(|other| ([other / 5, other], other % 3 == 0));
        JudgedPairs::new(classes.len(), pairs).unwrap()
    };
    let codes = || classes.iter().copied().collect();
    match supervision {
        Supervision::Outcome => Labels::Classes(codes()),
        Supervision::Physician => Labels::Judged(judged()),
        Supervision::Both { times } => Labels::Both {
            codes: codes(),
            judged: judged(),
            times,
        },
    }
}

/// A site's derivatives, of all patients or without one or two folds of them; none where these leave it no pairs that can be balanced.
fn derivatives(
    (x, classes): &(Array2<f64>, Vec<u32>),
    settings: &UnpslSettings,
    totals: &Totals,
    asked: &Differentiating,
) -> Option<SiteDerivatives> {
    let (objective, all) = (&settings.objective, labels(settings.supervision, classes));
    let summary = |labels: &Labels| summarise(labels, objective.pairs, Seed(1));
    let secret = Some(Seed(classes.len() as u64));
    let of_all = || SiteObjective::new(&x.view(), &all, objective, totals, Seed(1), secret);
    let left_out = asked.parts[0].left_out();
    let own = match left_out.is_empty() {
        true => of_all(),
        false => {
            let strata = classes.iter().copied().collect();
            let folds = Folds::spread(&strata, FOLDS, Seed(1)).unwrap();
            let rows = folds.without(&left_out);
            let part = all.among(&rows);
            let totals = totals.for_part(&summary(&all), &summary(&part));
            let x = x.select(Axis(0), &rows);
            SiteObjective::new(&x.view(), &part, objective, &totals, Seed(1), secret)
        }
    };
    let rows = asked.rows[0].as_deref();
    Some(own.ok()?.derivatives(&asked.metrics[0], rows).unwrap())
}

/// The sums of all sites at one metric, and what judges them; none where no site has a pair of either kind.
fn summed(
    case: usize,
    settings: &UnpslSettings,
    asked: &Differentiating,
) -> Option<(Possible, message::Answer)> {
    let sites = sites(case);
    let summary = |(_, classes): &(_, Vec<u32>)| {
        let labels = labels(settings.supervision, classes);
        summarise(&labels, settings.objective.pairs, Seed(1))
    };
    let summaries: Vec<_> = sites.iter().map(summary).collect();
    let totals = Totals::of(&summaries);
    let mut squares = vec![0.0; FEATURES];
    for (x, _) in &sites {
        for (square, column) in squares.iter_mut().zip(x.columns()) {
            *square += column.dot(&column);
        }
    }
    let told = sites
        .iter()
        .filter_map(|site| derivatives(site, settings, &totals, asked))
        .reduce(|mut sum, told| {
            sum.objective += told.objective;
            sum.gradient += &told.gradient;
            sum.curvature += &told.curvature;
            if let (Some(sum), Some(own)) = (&mut sum.slope, &told.slope) {
                *sum += own;
            }
            sum.threshold.first += told.threshold.first;
            sum.threshold.second += told.threshold.second;
            sum
        });
    let told = vec![Derivatives::fold(&told?)];
    let possible = Possible::new(settings, &totals, &squares);
    Some((possible, message::Answer::Unpsl(Answer::Derivatives(told))))
}

fn asked(case: usize, settings: &UnpslSettings) -> Differentiating {
    let size = [0.0, 0.02, 0.3, 1.0, 4.0][case % 5];
    let rows = settings.objective.matrix_rows(FEATURES);
    let entry = |(row, column)| size * (number(case * 17 + row * 3 + column) - 0.5);
    let rows_asked = [None, None, Some(vec![0, 2, 4]), Some(Vec::new())];
    Differentiating {
        metrics: Arc::new(vec![Array2::from_shape_fn((rows, 2), entry)]),
        parts: vec![Part {
            form: settings.objective.form,
            fold: [None, Some(1), Some(2), Some(0)][case / 17 % 4],
            other: [None, None, None, Some(2)][case / 17 % 4],
        }],
        rows: Arc::new(vec![rows_asked[case % 4].clone()]),
    }
}

/// Settings of every kind.
fn of_kind(case: usize) -> UnpslSettings {
    let mut settings = settings();
    let objective = &mut settings.objective;
    objective.rank = 2;
    objective.form = [Form::InnerProduct, Form::Distance][case % 2];
    objective.loss = [Loss::Mean, Loss::Mean, Loss::Sum][case / 2 % 3];
    objective.threshold = [
        Threshold::Site,
        Threshold::Fixed(1.0),
        Threshold::Common(0.5),
    ][case / 3 % 3];
    objective.precision = [Precision::Exact, Precision::Rounded][case / 4 % 2];
    objective.lambda_correlation = [0.0, 0.3][case / 5 % 2];
    objective.pairs = [Pairs::All, Pairs::PerPatient(4)][case / 7 % 2];
    objective.pair_weights = [PairWeights::Equal, PairWeights::Balanced][case / 8 % 2];
    objective.site_weights = [
        SiteWeights::Pairs,
        SiteWeights::Patients,
        SiteWeights::Equal,
    ][case / 11 % 3];
    settings.supervision = [
        Supervision::Outcome,
        Supervision::Physician,
        Supervision::Both { times: 100 },
    ][case / 13 % 3];
    if settings.supervision.wants_judgements() {
        settings.objective.pairs = Pairs::All;
    }
    settings
}

#[test]
fn no_sums_of_patients_are_refused() {
    let mut judged_cases = 0;
    for case in 0..3_000 {
        let settings = of_kind(case);
        let asked = asked(case, &settings);
        let Some((possible, told)) = summed(case, &settings, &asked) else {
            continue;
        };
        judged_cases += 1;
        let judged = possible.judge(&told, &asked);
        assert!(
            judged.is_ok(),
            "{case}: {judged:?} {:?}",
            settings.objective
        );
    }
    assert!(judged_cases > 2_900, "{judged_cases}");
}

#[test]
fn what_is_a_few_times_as_large_as_sums_of_patients_is_refused() {
    let mut settings = settings();
    settings.objective.rank = 2;
    settings.objective.precision = Precision::Exact;
    let mut asked = asked(1, &settings);
    asked.rows = Arc::new(vec![None]);
    asked.parts = vec![Part::whole(settings.objective.form)];
    let (possible, told) = summed(1, &settings, &asked).unwrap();
    let message::Answer::Unpsl(Answer::Derivatives(told)) = told else {
        panic!("derivatives");
    };
    type Change = fn(&mut Derivatives, f64);
    // What is changed, and how many times what patients have is still believed at most.
    let changes: [(&str, Change, f64); 4] = [
        (
            "Gamma",
            |own, times| {
                own.triangles
                    .row_mut(0)
                    .iter_mut()
                    .for_each(|one| *one *= times)
            },
            20.0,
        ),
        (
            "T",
            |own, times| {
                own.triangles
                    .row_mut(1)
                    .iter_mut()
                    .for_each(|one| *one *= times)
            },
            20.0,
        ),
        (
            "T off its diagonal",
            |own, times| own.triangles[[1, 1]] = times * own.triangles[[1, 0]],
            2.0,
        ),
        ("objective", |own, times| own.objective *= times, 20.0),
    ];
    for (what, change, most) in changes {
        let judged = |times: f64| {
            let mut own = told[0].clone();
            change(&mut own, times);
            let told = message::Answer::Unpsl(Answer::Derivatives(vec![own]));
            possible.judge(&told, &asked)
        };
        let believed = (0..200).map(|step| 1.1_f64.powi(step));
        let first = believed.clone().find(|times| judged(*times).is_err());
        println!("{what}: {first:?}");
        assert!(
            first.is_some_and(|first| first <= most),
            "{what}: {first:?}"
        );
    }
}
