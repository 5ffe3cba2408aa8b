//! Trees as tables of counts, and the forest that is made of them.

use similarity::cohort::Outcome;
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::trees::table::{
    NodeKind, TerminalTable, TreeTable, from_tables, tables,
};
use similarity::learn::forest::{EventTimes, Sampling, Settings, Target};

use crate::sample::*;

fn sample(outcome: usize) -> similarity::cohort::Cohort {
    let mixed = mixed(150, 4);
    cohort(mixed.columns, mixed.outcomes[outcome].clone())
}

/// Without a bootstrap every patient counts once, so that counts and shares say the same.
fn settings(outcome: &Outcome) -> Settings {
    Settings {
        trees: 12,
        sampling: Sampling::Whole,
        terminal_min: 5,
        ..Settings::for_outcome(outcome)
    }
}

fn tables_of(
    outcome: usize,
) -> (
    similarity::cohort::Cohort,
    similarity::learn::forest::Grown,
    Vec<TreeTable>,
) {
    let cohort = sample(outcome);
    let grown = grown(&cohort, &settings(cohort.outcome()));
    let tables = tables(&grown, &cohort).unwrap();
    (cohort, grown, tables)
}

#[test]
fn a_forest_of_whole_counts_predicts_as_the_one_that_was_grown() {
    for outcome in 0..3 {
        let (cohort, grown, tables) = tables_of(outcome);
        let classes = match &grown.forest.schema().target {
            Target::Classes { levels } => levels.len(),
            Target::Numeric => 0,
            // Their hazards are events over time at risk, not over patients at risk: see below.
            Target::Survival { .. } => continue,
        };
        let schema = grown.forest.schema().clone();
        let made = from_tables(schema, &tables, &vec![1.0; classes]).unwrap();
        assert!(made.apply(cohort.columns()) == grown.forest.apply(cohort.columns()));
        let both = [&made, &grown.forest].map(|forest| forest.predict(cohort.columns()).unwrap());
        let far = match &both {
            [Prediction::Numeric(one), Prediction::Numeric(other)] => {
                (one - other).mapv(f64::abs).sum()
            }
            [Prediction::Classes(one), Prediction::Classes(other)] => {
                (one - other).mapv(f64::abs).sum()
            }
            other => panic!("{other:?}"),
        };
        assert!(far < 1e-9, "{far}");
        let again = tables_again(&tables, cohort.columns().len());
        assert!(again == tables);
    }
}

fn tables_again(tables: &[TreeTable], features: usize) -> Vec<TreeTable> {
    let again = |table: &TreeTable| TreeTable::new(table.nodes().to_vec(), features).unwrap();
    tables.iter().map(again).collect()
}

/// In loops: whose event falls into which interval, and how long each patient was at risk in it.
#[test]
fn a_survival_table_holds_events_and_time_at_risk_of_the_patients_of_its_node() {
    let mixed = mixed(150, 4);
    let survival = mixed
        .outcomes
        .into_iter()
        .find(|outcome| matches!(outcome, Outcome::Survival { .. }));
    let cohort = cohort(mixed.columns, survival.unwrap());
    let Outcome::Survival { time, event } = cohort.outcome() else {
        panic!("a survival outcome");
    };
    let longest = time.iter().copied().fold(0.0, f64::max);
    let grid = vec![0.3 * longest, 0.6 * longest, 0.9 * longest];
    let settings = Settings {
        event_times: EventTimes::Given(grid.clone()),
        ..settings(cohort.outcome())
    };
    let grown = grown(&cohort, &settings);
    let tables = tables(&grown, &cohort).unwrap();
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    for (number, table) in tables.iter().enumerate() {
        for (node, of_node) in table.nodes().iter().enumerate() {
            let NodeKind::Terminal(TerminalTable::Survival {
                ends,
                events,
                exposures,
            }) = &of_node.kind
            else {
                continue;
            };
            assert_eq!(ends, &[1, 2, 3]);
            let members: Vec<usize> = (0..time.len())
                .filter(|patient| nodes.of_tree(number)[*patient] as usize == node)
                .collect();
            assert_eq!(members.len(), of_node.patients as usize);
            let mut start = 0.0;
            for (place, end) in grid.iter().enumerate() {
                let seen = |patient: &&usize| {
                    event[**patient] && time[**patient] > start && time[**patient] <= *end
                };
                assert_eq!(members.iter().filter(seen).count() as u64, events[place]);
                let risk: f64 = members
                    .iter()
                    .map(|patient| (time[*patient].min(*end) - start).max(0.0))
                    .sum();
                assert!((risk - exposures[place]).abs() < 1e-9);
                start = *end;
            }
        }
    }
    let made = from_tables(grown.forest.schema().clone(), &tables, &[]).unwrap();
    let error = |forest: &similarity::learn::forest::Forest| {
        let sums = Predicted::of_forest(&forest.predict(cohort.columns()).unwrap())
            .errors(cohort.outcome());
        sums.error / sums.total as f64
    };
    assert!((error(&made) - error(&grown.forest)).abs() < 0.03);
}

#[test]
fn tables_of_another_outcome_make_no_forest() {
    let (_, grown, tables) = tables_of(0);
    let (_, other, _) = tables_of(1);
    let schema = other.forest.schema().clone();
    assert!(from_tables(schema, &tables, &[1.0, 1.0]).is_err());
    assert!(from_tables(grown.forest.schema().clone(), &[], &[1.0, 1.0]).is_err());
}
