//! The choice, by sums that are made up.

use super::*;
use crate::job::Job;
use crate::method::Method;
use ndarray::array;

/// Metrics of two lambda_1, each learned without each of three folds and without each two, and judged with 1 and 3 neighbours: by sums over
/// all folds, then over the others of each. The second is empty without the folds 1 and 2.
fn judged() -> Selection {
    let text = "name = \"choice\"\nmethod = \"unpsl\"\nsites = [\"a\", \"b\"]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
         [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
         [unpsl]\nrank = 1\nform = \"distance\"\nlambda_sparsity = [0.05, 0.1]\nneighbours = [1, 3]\nfolds = 3\n";
    let job = Job::parse(text).unwrap();
    let Method::Unpsl(settings) = &job.method else {
        panic!("a job of UnPSL");
    };
    let mut choice = Selection::new(settings, 100, true).unwrap();
    assert_eq!(choice.two, [[0, 1], [0, 2], [1, 2]]);
    let of_one = |metric: f64| {
        (0..3)
            .map(|fold| array![[metric + f64::from(fold)]])
            .collect()
    };
    choice.models = vec![Arc::new(of_one(10.0)), Arc::new(of_one(20.0))];
    let some = array![[1.0]];
    choice.inner = vec![
        vec![some.clone(); 3],
        vec![some.clone(), some, array![[0.0]]],
    ];
    choice.whole = vec![0, 1];
    let scores = |losses: [f64; 8]| {
        let score = |log_loss| VoteScore {
            counts: RightCounts {
                right: 50,
                wrong: 50,
            },
            log_loss,
        };
        losses.map(score).to_vec()
    };
    choice.scored = vec![
        scores([60.0, 59.0, 60.0, 58.0, 57.0, 61.0, 60.0, 62.0]),
        scores([58.0, 57.0, 56.0, 59.0, 50.0, 50.0, 50.0, 50.0]),
    ];
    choice
}

#[test]
fn each_fold_has_what_is_best_without_its_patients() {
    let choice = judged();
    assert_eq!(choice.sums(), 8);
    let chosen = choice.choose().unwrap();
    assert_eq!(chosen.candidate.lambda_sparsity, 0.1);
    assert_eq!(chosen.candidate.neighbours, 3);
    let neighbours: Vec<u32> = chosen.of_folds.iter().map(|one| one.neighbours).collect();
    assert_eq!(neighbours, [1, 1, 1]);
    let models: Vec<f64> = chosen.models.iter().map(|model| model[[0, 0]]).collect();
    // Without the folds 1 and 2 the second metric is empty: neither is judged by it.
    assert_eq!(models, [20.0, 11.0, 12.0]);
}

#[test]
fn where_a_fold_has_no_metric_the_choice_is_not_nested() {
    let mut choice = judged();
    choice.inner[0][0] = array![[0.0]];
    choice.inner[1][0] = array![[0.0]];
    let chosen = choice.choose().unwrap();
    assert!(chosen.of_folds.is_empty());
    assert_eq!(chosen.models[0], array![[20.0]]);
    choice.two = Vec::new();
    let plain = choice.choose().unwrap();
    assert_eq!(plain.candidate, chosen.candidate);
}
