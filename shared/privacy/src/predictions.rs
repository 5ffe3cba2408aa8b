//! What may leave of how well a model predicts. Whether anything does depends on how many patients are judged and never on
//! how many are judged wrong: else the better a model is, the less would be heard of it.

use crate::border::Border;
use crate::content::{Content, ErrorSums, Errors, HeldOutVotes, Table};
use crate::rule::Rules;

/// Withholds of what is known of all sites together what the default rules demand.
pub fn publish(contents: Vec<Content<'_>>) {
    let rules = Rules::default();
    let border = Border::new(rules.cell_min);
    for content in contents {
        match content {
            Content::Tables(tables) => withhold_tables(&rules, border, tables),
            Content::Errors(errors) => withhold_errors(&rules, border, errors),
            Content::HeldOut(counts) => withhold_held_out(&rules, border, counts),
            Content::Cohort { .. }
            | Content::Columns { .. }
            | Content::Histograms(_)
            | Content::SecondMoments
            | Content::Nodes(_)
            | Content::LocalUpdate
            | Content::PairSums
            | Content::Tabulated
            | Content::Groups { .. }
            | Content::Clusters(_)
            | Content::Covered => {}
        }
    }
}

/// Rounds tables to the grid, and omits those of too few patients.
fn withhold_tables(rules: &Rules, border: Border, tables: Vec<Table<'_>>) {
    let few = |patients: u64| patients < rules.patients_min.max(rules.cell_min);
    for table in tables {
        let Table {
            confusion,
            scores,
            rounded_to,
            judged,
            gains,
        } = table;
        if few(judged) {
            gains.into_iter().for_each(|sums| *sums = None);
        }
        *rounded_to = border.step();
        for told in [&mut *confusion, &mut *scores] {
            if told.as_ref().is_some_and(|table| few(sum(table))) {
                *told = None;
            }
        }
        if let Some(table) = confusion {
            border.round_confusion(table);
        }
        if let Some(table) = scores {
            border.round_scores(table);
        }
    }
}

/// Rounds counts to the grid, and omits those of too few patients.
fn withhold_held_out(rules: &Rules, border: Border, votes: Vec<&mut Option<HeldOutVotes>>) {
    for told in votes {
        *told = told.and_then(|own| {
            let patients = own.right.saturating_add(own.wrong);
            let wrong = border.rounded(own.wrong).min(patients);
            (patients >= rules.patients_min.max(rules.cell_min)).then_some(HeldOutVotes {
                right: patients - wrong,
                wrong,
                log_loss: own.log_loss,
            })
        });
    }
}

/// Omits errors over too few patients, and rounds counts of errors to the grid.
#[allow(clippy::cast_precision_loss)] // exact below 2^53
fn withhold_errors(rules: &Rules, border: Border, errors: Vec<Errors<'_>>) {
    for errors in errors {
        let (sums, counted) = match errors {
            Errors::Counted(sums) => (sums, true),
            Errors::Summed(sums) => (sums, false),
        };
        if sums.is_some_and(|sums| is_over_few(rules, &sums)) {
            *sums = None;
        }
        if let Some(sums) = sums.as_mut().filter(|_| counted) {
            sums.error = border.rounded_sum(sums.error).min(sums.total as f64);
        }
    }
}

fn is_over_few(rules: &Rules, sums: &ErrorSums) -> bool {
    sums.total < rules.patients_min.max(rules.cell_min)
}

fn sum(table: &[Vec<u64>]) -> u64 {
    table.iter().flatten().sum()
}
